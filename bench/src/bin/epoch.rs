//! A whole epoch: loading, augmentation, training steps, validation.
//!
//! usage: epoch vit FOLDER BATCH DRAWS MESH EPOCHS [KEY=VALUE ...]
//!        epoch mlp FILE BATCH DRAWS MESH EPOCHS [KEY=VALUE ...]
//! with images or a load that `bench/src/epoch_files.rs` has written, and changes of the settings;
//! prints the seconds of the best epoch after a first one

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected, SquaredErrorOfMean};
use bayesmesh::trainer::{Augment, Callback, EpochReport, Flow, Memory, StepReport};
use bayesmesh::{Length, McDropout, MeanField, Mesh, Posterior, Prior, Settings, Trainer};
use bayesmesh_bench::{changed, epoch_files};
use bayesmesh_models::{MlpConfig, VitConfig};
use burn::tensor::Device;

#[global_allocator]
static ALLOCATOR: bayesmesh::process_memory::Allocator = bayesmesh::process_memory::Allocator;

/// When each epoch ended.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<Instant>>>);

impl Callback for Clock {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn wants_checkpoint_of_epoch(&self, _: &EpochReport) -> bool {
        false
    }

    fn on_epoch(&mut self, _: &EpochReport, _: &dyn Fn() -> Checkpoint) -> bayesmesh::Result<Flow> {
        self.0.lock().expect("not poisoned").push(Instant::now());
        Ok(Flow::Continue)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    bayesmesh::process_memory::keep_freed();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: epoch vit|mlp PATH BATCH DRAWS MESH EPOCHS [KEY=VALUE ...]";
    let ([what, path, batch, draws, mesh, epochs], changes) =
        arguments.split_first_chunk().ok_or(usage)?;
    let settings = Settings {
        samples: draws.parse()?,
        batch: batch.parse()?,
        mesh: mesh.parse::<Mesh>()?,
        memory: Memory::Retain,
        // As from PyTorch's loader, which varies an image once for all draws.
        augment: Augment::Shared,
        ..Settings::default()
    };
    let settings = changed(settings, changes)?;
    let (path, device) = (Path::new(path), Device::default());
    let length = Length::Epochs(epochs.parse::<usize>()? + 1);
    let clock = Clock::default();
    match what.as_str() {
        "vit" => {
            let (train, valid) = epoch_files::images(path)?;
            let network = VitConfig::cifar10().init(&device);
            let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?.initialised(0);
            let trainer = Trainer::new(posterior, Expected(Categorical), settings);
            trainer.with_callback(clock.clone()).fit(&train, Some(&valid), length)?;
        }
        "mlp" => {
            let (train, valid) = epoch_files::load(path)?;
            let network = MlpConfig { dropout: 0.1, ..MlpConfig::new(96, vec![128, 128], 24) };
            let posterior = McDropout::new(network.init(&device)).initialised(0);
            let trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
            trainer.with_callback(clock.clone()).fit(&train, Some(&valid), length)?;
        }
        _ => return Err(usage.into()),
    }
    let ends = clock.0.lock().expect("not poisoned");
    let epochs = ends.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64());
    println!("{}", epochs.fold(f64::INFINITY, f64::min));
    Ok(())
}
