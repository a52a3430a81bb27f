//! The Bayesian ViT on the first images of CIFAR-10: accuracy and time, for
//! `peers/cifar_torch_blue.py`.
//!
//! usage: cifar FOLDER IMAGES EPOCHS BATCH DRAWS HEAT MESH
//! prints after every epoch its seconds, and accuracy and NLL of 8 draws on 2,000 test images

use std::time::Instant;

use bayesmesh::loss::{Categorical, Mixture};
use bayesmesh::trainer::Memory;
use bayesmesh::{Length, MeanField, Mesh, Posterior, Prior, Settings, Trainer};
use bayesmesh_data::cifar10::Cifar10;
use bayesmesh_models::VitConfig;
use burn::tensor::Device;

#[global_allocator]
static ALLOCATOR: bayesmesh::process_memory::Allocator = bayesmesh::process_memory::Allocator;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    bayesmesh::process_memory::keep_freed();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, images, epochs, batch, draws, heat, mesh] = &arguments[..] else {
        return Err("usage: cifar FOLDER IMAGES EPOCHS BATCH DRAWS HEAT MESH".into());
    };
    let data = Cifar10::open(folder)?;
    let train = data.train(Some(images.parse()?))?.augmented(true);
    let test = data.test(Some(2000))?;
    let network = VitConfig::cifar10().init(&Device::default());
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?.initialised(0);
    let settings = Settings {
        samples: draws.parse()?,
        batch: batch.parse()?,
        heat: heat.parse()?,
        mesh: mesh.parse::<Mesh>()?,
        memory: Memory::Retain,
        ..Settings::default()
    };
    let loss = Mixture::new(Categorical).with_floor(1e-5)?;
    let mut trainer = Trainer::new(posterior, loss, settings);
    for epoch in 1..=epochs.parse()? {
        let start = Instant::now();
        trainer.fit(&train, None, Length::Epochs(epoch))?;
        let seconds = start.elapsed().as_secs_f64();
        let scores = trainer.evaluate(&test, 8)?;
        let score =
            |name: &str| scores.iter().find(|s| s.name == name).map_or(f64::NAN, |s| s.value);
        println!(
            "epoch {epoch}: {seconds:.1} s, accuracy {:.3}, nll {:.3}",
            score("accuracy"),
            score("nll")
        );
    }
    Ok(())
}
