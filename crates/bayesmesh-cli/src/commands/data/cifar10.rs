//! `bayesmesh data … cifar10`.

use std::path::Path;

use anyhow::Result;
use bayesmesh::Dataset;
use bayesmesh_data::cifar10::{self, CLASSES, Cifar10, Installed, Source};
use serde_json::{Value, json};

/// Brings CIFAR-10 to a folder, which appears complete and checked or not at all.
pub fn fetch(out: &Path, from: Option<String>) -> Result<Value> {
    let source = match from {
        None => Source::Usual,
        Some(from) if from.contains("://") => Source::Address(from),
        Some(from) => Source::Path(from.into()),
    };
    let from = match cifar10::install(&source, out, &mut |words| eprintln!("{words}"))? {
        Installed::Already => {
            eprintln!("{}: CIFAR-10 is here already, and its checksums are right", out.display());
            None
        }
        Installed::From(from) => {
            eprintln!("{}: 60000 images, checksums are right", out.display());
            Some(from)
        }
    };
    Ok(json!({ "folder": out, "installed": from.is_some(), "from": from }))
}

/// Compares every bit with the published sums and counts the classes.
pub fn check(folder: &Path) -> Result<Value> {
    let cifar = Cifar10::open(folder)?;
    if cifar.is_synthetic() {
        eprintln!("{}: a generated stand-in for CIFAR-10, not the photographs", folder.display());
    } else {
        cifar10::verify(folder)?;
        eprintln!("{}: CIFAR-10 as published, checksums are right", folder.display());
    }
    let (train, test) = (cifar.train(None)?, cifar.test(None)?);
    let counts = (train.class_counts(), test.class_counts());
    eprintln!("{:<12} {:>8} {:>8}", "class", "training", "test");
    let mut classes = serde_json::Map::new();
    for (i, class) in CLASSES.into_iter().enumerate() {
        let (train, test) = (counts.0[i], counts.1[i]);
        eprintln!("{class:<12} {train:>8} {test:>8}");
        classes.insert(class.into(), json!({ "train": train, "test": test }));
    }
    eprintln!("{:<12} {:>8} {:>8}", "all", train.len(), test.len());
    Ok(json!({
        "folder": folder,
        "synthetic": cifar.is_synthetic(),
        "train": train.len(),
        "test": test.len(),
        "classes": classes,
    }))
}

/// Writes a stand-in that can be learned from.
pub fn synth(out: &Path, count: usize, seed: u64) -> Result<Value> {
    cifar10::write_synthetic(out, count, seed)?;
    eprintln!("{}: {} training and {count} test images", out.display(), 5 * count);
    Ok(json!({ "out": out, "train": 5 * count, "test": count, "seed": seed }))
}
