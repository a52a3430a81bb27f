//! Regression on a table of numbers with honest uncertainty: `tabular TABLE.txt MODEL.safetensors`.
//! The last column is the target.
#![forbid(unsafe_code)]

use bayesmesh::prelude::*;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData, activation::relu};

#[derive(burn::module::Module, Debug)]
struct Mlp {
    hidden: Linear,
    output: Linear,
}

impl Network for Mlp {
    type Input = Tensor<2>;
    fn forward(&self, x: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.output.forward(relu(self.hidden.forward(x)))
    }
}

fn main() -> bayesmesh::Result<()> {
    let [table, model] = [1, 2].map(|n| std::env::args().nth(n).expect("two paths"));
    let (text, device) = (std::fs::read_to_string(table).expect("a text"), Device::default());
    let rows = text.lines().filter(|row| !row.is_empty());
    let rows: Vec<Vec<f32>> =
        rows.map(|row| row.split_whitespace().flat_map(str::parse).collect()).collect();
    let (count, columns) = (rows.len(), rows[0].len());
    let table = Tensor::<2>::from_data(TensorData::new(rows.concat(), [count, columns]), &device);
    let scale = Standardize::fit(&table.clone().narrow(0, 0, count * 8 / 10))?;
    let table = scale.apply_to(&table)?;
    let (x, y) = (table.clone().narrow(1, 0, columns - 1), table.narrow(1, columns - 1, 1));
    let [train, valid, test] = TensorDataset::new(x, y)?.split([0.8, 0.1, 0.1])?;

    let hidden = LinearConfig::new(columns - 1, 50).init(&device);
    let output = LinearConfig::new(50, 1).init(&device);
    let network = LearnedNoise::new(Mlp { hidden, output }, 1);
    let posterior = MeanField::new(network.clone(), Prior::normal(0.0, 1.0))?.initialised(0);
    let settings = Settings { samples: 4, schedule: 0.01.into(), ..Settings::default() };
    let mut trainer = Trainer::new(posterior, Expected(Gaussian), settings)
        .with_target_scale(scale.columns(columns - 1..columns)?)
        .with_callback(EarlyStopping::on("nll").patience(30))
        .with_callback(BestCheckpoint::on("nll").save(&model));
    trainer.fit(&train, Some(&valid), Length::Epochs(300))?;
    // In any other program, too: the file has all but the network.
    for score in &Predictor::load(model, network)?.evaluate(&test, 100)? {
        println!("{} {:.4} ± {:.4}", score.name, score.value, score.se_examples);
    }
    Ok(())
}
