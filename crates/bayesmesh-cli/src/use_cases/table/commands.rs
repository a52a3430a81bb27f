//! `bayesmesh data check table`.

use std::path::PathBuf;

use anyhow::Result;
use bayesmesh_data::table::{Found, Kinds, infer};
use clap::Args;
use serde_json::{Value, json};

use super::data::{columns, read};
use crate::say::{self, say};
use crate::use_cases::{DataCommand, DataVerb};

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![DataCommand::of::<super::TableValues, _>(
        DataVerb::Check,
        "Read a CSV or Parquet file and say what its columns are taken for",
        check,
    )]
}

#[derive(Args)]
struct Check {
    /// The file
    file: PathBuf,
    /// The column to predict, to look for copies of it; can be repeated
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
}

/// Reads a table and says what its columns are.
fn check(Check { file, target }: Check) -> Result<Value> {
    let frame = read(&file, &[], &[])?;
    let found = infer(&frame, &Kinds { targets: target, ..Kinds::default() })?;
    say!("{}", columns(&found, frame.rows, 0));
    let column = |found: &Found| {
        json!({
            "name": found.name, "kind": found.kind.to_string(), "missing": found.missing,
            "values": found.values, "note": found.note,
        })
    };
    let columns: Vec<Value> = found.iter().map(column).collect();
    Ok(json!({ "file": say::path(&file), "rows": frame.rows, "columns": columns }))
}
