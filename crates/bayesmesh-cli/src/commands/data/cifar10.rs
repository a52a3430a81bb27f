//! `bayesmesh data … cifar10`.

use std::path::Path;

use anyhow::Result;
use bayesmesh::Dataset;
use bayesmesh_data::Source;
use bayesmesh_data::cifar10::{self, CLASSES, Cifar10, Installed};
use serde_json::{Value, json};

use crate::say::say;

/// Brings CIFAR-10 to a folder, which appears complete and checked or not at all.
pub fn fetch(out: &Path, from: Option<String>) -> Result<Value> {
    let source = Source::named(from);
    let from = match cifar10::install(&source, out, &mut |words| say!("{words}"))? {
        Installed::Already => {
            say!("{}: CIFAR-10 is here already, and its checksums are right", out.display());
            None
        }
        Installed::From(from) => {
            say!("{}: 60000 images, checksums are right", out.display());
            Some(from)
        }
    };
    Ok(json!({ "folder": out.display().to_string(), "installed": from.is_some(), "from": from }))
}

/// Compares every bit with the published sums and counts the classes.
pub fn check(folder: &Path) -> Result<Value> {
    let cifar = Cifar10::open(folder)?;
    if cifar.is_synthetic() {
        say!("{}: a generated stand-in for CIFAR-10, not the photographs", folder.display());
    } else {
        cifar10::verify(folder)?;
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
        "folder": folder.display().to_string(),
        "synthetic": cifar.is_synthetic(),
        "train": train.len(),
        "test": test.len(),
        "classes": classes,
    }))
}

/// Writes a stand-in that can be learned from.
pub fn synth(out: &Path, count: usize, seed: u64) -> Result<Value> {
    cifar10::write_synthetic(out, count, seed)?;
    say!("{}: {} training and {count} test images", out.display(), 5 * count);
    Ok(json!({ "out": out.display().to_string(), "train": 5 * count, "test": count, "seed": seed }))
}
