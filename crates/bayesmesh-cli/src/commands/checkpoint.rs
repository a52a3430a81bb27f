//! `bayesmesh checkpoint`.

use std::path::Path;

use anyhow::Result;
use bayesmesh::checkpoint::{Checkpoint, Group};
use serde_json::{Value, json};

use super::trained_run::latest_checkpoint;
use crate::run::RunFolder;
use crate::say::{self, say};

/// Shows what a checkpoint holds.
pub fn inspect(path: &Path) -> Result<Value> {
    let (path, checkpoint) = match path.is_dir() {
        true => latest_checkpoint(&RunFolder::open(path)?)?,
        false => (path.to_path_buf(), Checkpoint::load(path)?),
    };
    let digest = checkpoint.digest();
    say!("{}", path.display());
    say!("  step    {}", checkpoint.step);
    say!("  seed    {}", checkpoint.seed);
    say!("  digest  {digest}");
    for (name, count) in &checkpoint.counters {
        say!("  {name}  {count}");
    }
    let tensors = |group: Group| checkpoint.group(group).iter().map(move |tensor| (group, tensor));
    let all = || Group::ALL.into_iter().flat_map(tensors);
    let rows: Vec<Vec<String>> = all()
        .map(|(group, tensor)| {
            let shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
            vec![
                format!("{group}/{}", tensor.name),
                shape.join("×"),
                tensor.values.len().to_string(),
            ]
        })
        .collect();
    say!("\n{}", say::table(&["tensor", "shape", "numbers"], &rows));
    let tensors: Vec<Value> = all()
        .map(|(group, t)| json!({ "group": group.name(), "name": t.name, "shape": t.shape }))
        .collect();
    Ok(json!({
        "file": say::path(&path),
        "step": checkpoint.step,
        "seed": checkpoint.seed,
        "digest": digest,
        "counters": checkpoint.counters,
        "tensors": tensors,
    }))
}
