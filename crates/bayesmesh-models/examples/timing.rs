use bayesmesh::loss::SquaredErrorOfMean;
use bayesmesh::trainer::*;
use bayesmesh::*;
use bayesmesh_models::*;
use burn::tensor::*;
fn main() {
    let device = Device::default();
    let a: Vec<String> = std::env::args().collect();
    let mesh: Mesh = a[1].parse().unwrap();
    let n = 20000;
    let x = Tensor::<2>::random([n, 96], Distribution::Normal(0.0, 1.0), &device);
    let y = Tensor::<2>::random([n, 24], Distribution::Normal(0.0, 1.0), &device);
    let data = TensorDataset::new(x, y).unwrap();
    let net = MlpConfig {
        inputs: 96,
        hidden: vec![128, 128],
        outputs: 24,
        activation: Activation::Relu,
        dropout: 0.1,
    }
    .init(&device);
    let settings = Settings {
        samples: 16,
        batch: 64,
        mesh,
        memory: if a.len() > 2 { Memory::Retain } else { Memory::Recompute },
        ..Settings::default()
    };
    let mut t = Trainer::new(McDropout::new(net).initialised(0), SquaredErrorOfMean, settings);
    t.fit(&data, None, Length::Steps(50)).unwrap();
    for k in 1..4 {
        let t0 = std::time::Instant::now();
        t.fit(&data, None, Length::Steps(50 + 300 * k)).unwrap();
        println!("{:.3} ms/step", t0.elapsed().as_secs_f64() * 1e3 / 300.0);
    }
}
