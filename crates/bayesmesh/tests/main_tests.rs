//! What a program prints that returns the library's errors from its `main`. This is such a program:
//! it runs itself for each error and reads what it printed.

use std::env;
use std::process::Command;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::comm::CommError;
use bayesmesh::metrics::Accuracy;
use bayesmesh::{Error, Mesh, Result};

/// Which error to return from `main`.
const ERROR: &str = "BAYESMESH_TEST_ERROR";

/// Errors and what they say.
const TEXTS: [(&str, &str); 5] = [
    ("checkpoint", "nowhere/best.safetensors: no such file or folder. Check the path"),
    ("mesh", "a mesh of 0x2 has no ranks; both axes need at least 1"),
    ("communication", "rank 1 failed: out of memory"),
    ("metric", "label 2 of example 1 is not below the number of classes, 2"),
    ("setting", "a floor of -1 under a density is not possible; choose zero or a positive number"),
];

fn main() -> Result<()> {
    if let Ok(error) = env::var(ERROR) {
        return fail(&error);
    }
    for (error, text) in TEXTS {
        let this = env::current_exe().expect("a path");
        let output = Command::new(this).env(ERROR, error).output().expect("it can be run");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(printed, format!("Error: {text}\n"), "{error}");
        assert!(!output.status.success(), "{error}");
    }
    Ok(())
}

/// Does what ends in an error, as a user would meet it.
fn fail(error: &str) -> Result<()> {
    match error {
        "checkpoint" => _ = Checkpoint::load("nowhere/best.safetensors")?,
        "mesh" => _ = Mesh::new(0, 2)?,
        "communication" => {
            let reason = "out of memory".to_owned();
            return Err(CommError::PeerFailed { rank: 1, reason }.into());
        }
        "metric" => {
            use bayesmesh::metrics::ClassificationMetric as _;
            Accuracy::new().add(&[0.5, 0.5, 0.1, 0.9], &[0, 2])?;
        }
        "setting" => {
            use bayesmesh::loss::{Categorical, Mixture};
            Mixture::new(Categorical).with_floor(-1.0)?;
        }
        other => return Err(Error::Data(format!("no such error: {other}"))),
    }
    Ok(())
}
