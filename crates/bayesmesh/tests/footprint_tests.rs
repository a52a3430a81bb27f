//! What a run is said to need is what it takes, as the system counts it.
#![cfg(target_os = "linux")]

use std::fs;

use bayesmesh::loss::{Combine, GaussianOfDraws};
use bayesmesh::trainer::{Footprint, Length, Memory, Sizes};
use bayesmesh::{
    Draw, MeanField, Mesh, Network, Posterior, Prior, Reduce, Settings, TensorDataset, Trainer,
    process_memory,
};
use bayesmesh_files::testing::{Scratch, rerun, role};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};

/// So many layers of this width: 24 million weights, of which 48 million numbers are trained. What
/// the program and its threads hold does not matter beside them.
const LAYERS: usize = 6;
const WIDTH: usize = 2000;

#[derive(Module, Debug)]
struct Tower {
    layers: Vec<Linear>,
}

impl Network for Tower {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _: &Draw) -> Tensor<2> {
        self.layers.iter().fold(input, |x, layer| activation::tanh(layer.forward(x)))
    }
}

/// Settings, by the place of their name in this list.
const CASES: [&str; 6] = ["one rank", "two", "divided", "kept", "tree", "rows"];

fn settings(case: &str) -> Settings {
    let base = Settings { samples: 2, batch: 4, threads: Some(1), ..Settings::default() };
    let two = Settings { mesh: Mesh::samples(2).unwrap(), ..base.clone() };
    match case {
        "one rank" => base,
        "two" => two,
        "divided" => Settings { shard_optimizer: true, ..two },
        "kept" => Settings { samples: 6, memory: Memory::Retain, ..base },
        "tree" => Settings { samples: 4, reduce: Reduce::Reproducible, ..base },
        "rows" => Settings { batch: 2500, memory: Memory::Retain, ..base },
        _ => unreachable!("one of the list"),
    }
}

/// The line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    1024 * line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// What the steps of a run take, and what they were said to.
fn measured_and_predicted(settings: Settings) -> (u64, u64) {
    process_memory::keep_freed();
    let device = Device::default();
    let layer = |_| LinearConfig::new(WIDTH, WIDTH).init(&device);
    let network = Tower { layers: (0..LAYERS).map(layer).collect() };
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap().initialised(0);
    let numbers = posterior.parameters().values().len() as u64;
    let x = Tensor::<2>::ones([settings.batch, WIDTH], &device);
    let data = TensorDataset::new(x.clone(), x).unwrap();
    let width = WIDTH as u64;
    let sizes = Sizes {
        weights: numbers / 2,
        numbers,
        // Of each layer what it takes and what it gives to `tanh`, as measured; and the last output.
        activations: (2 * LAYERS as u64 + 1) * width,
        example: 2 * width,
        outputs: width,
    };
    let ranks = settings.mesh.size() as u64;
    let predicted = ranks * Footprint::of(&settings, Combine::Moments, &sizes).total();
    let mut trainer = Trainer::new(posterior, GaussianOfDraws::default(), settings);
    process_memory::give_back_freed();
    // The values of the first rank are there already.
    let before = status("VmRSS") - 4 * numbers;
    trainer.fit(&data, None, Length::Steps(2)).unwrap();
    (status("VmHWM") - before, predicted)
}

#[test]
fn what_is_predicted_is_what_is_measured() {
    const TEST: &str = "what_is_predicted_is_what_is_measured";
    if let Some(folder) = role() {
        let case = fs::read_to_string(folder.join("case")).unwrap();
        let (measured, predicted) = measured_and_predicted(settings(&case));
        fs::write(folder.join("outcome"), format!("{measured} {predicted}")).unwrap();
        return;
    }
    let mut wrong = Vec::new();
    for case in CASES {
        let scratch = Scratch::new();
        fs::write(scratch.path().join("case"), case).unwrap();
        // A process of its own: the peak is that of the process.
        assert!(rerun(&[], TEST, scratch.path()).status().unwrap().success(), "{case}");
        let outcome = fs::read_to_string(scratch.path().join("outcome")).unwrap();
        let (measured, predicted) = outcome.split_once(' ').unwrap();
        let (measured, predicted): (f64, f64) =
            (measured.parse().unwrap(), predicted.parse().unwrap());
        let difference = predicted / measured - 1.0;
        println!("{case}: {:.0} MB, predicted {:.0} MB", measured / 1e6, predicted / 1e6);
        if difference.abs() > 0.1 {
            wrong.push(format!("{case}: {measured} measured, {predicted} predicted"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
