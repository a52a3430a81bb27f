//! `bayesmesh data fetch | check | synth load`.

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{self, format_time};
use bayesmesh_files::{AtomicFile, FileError, create_folder};
use clap::Args;
use serde_json::{Value, json};

use super::super::{DataCommand, DataVerb};
use crate::exit::Usage;
use crate::say::{self, say};

/// Open Power System Data, CC BY 4.0; German load every 15 minutes, 2015 to 2020.
const LOAD: &str = "https://data.open-power-system-data.org/time_series/2020-10-06/\
                    time_series_15min_singleindex.csv";

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![
        DataCommand::new(
            DataVerb::Fetch,
            "load",
            "The German grid load; downloads with the `curl` of this machine",
            |Fetch { out, from }| fetch(&out, from.as_deref()),
        ),
        DataCommand::new(
            DataVerb::Check,
            "load",
            "Read a load series, say what was found and repaired",
            |Check { file }| check(&file),
        ),
        DataCommand::new(
            DataVerb::Synth,
            "load",
            "A series that looks like the German load",
            |Synth { out, days, seed }| synth(&out, days, seed),
        ),
    ]
}

#[derive(Args)]
struct Fetch {
    /// Where to write
    #[arg(long, value_name = "FILE", default_value = "data/load.csv")]
    out: PathBuf,
    /// A file or an address to take it from instead of the usual source
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
}

#[derive(Args)]
struct Check {
    /// The file
    file: PathBuf,
}

#[derive(Args)]
struct Synth {
    /// Where to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long
    #[arg(long, default_value_t = 730)]
    days: u32,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Reads a series and says what was found and repaired.
fn check(file: &Path) -> Result<Value> {
    let (series, repairs) = load::read(file)?;
    say!("{repairs}");
    Ok(json!({
        "file": say::path(file),
        "format": format!("{:?}", repairs.format),
        "values": series.len(),
        "start": format_time(series.start),
        "step_seconds": series.step_seconds,
        "replaced": repairs.replaced(),
    }))
}

/// Writes a generated series.
fn synth(out: &Path, days: u32, seed: u64) -> Result<Value> {
    let series = german_like(&SynthConfig { seed, days, ..SynthConfig::default() })?;
    make_parent(out)?;
    let io = |error| FileError::new(out, "write", &error);
    let mut writer = BufWriter::new(AtomicFile::create(out).map_err(io)?);
    load::write_csv(&series, &mut writer)?;
    let file = writer.into_inner().map_err(|error| io(error.into_error()))?;
    file.commit().map_err(io)?;
    say!("{} values: {}", series.len(), out.display());
    Ok(json!({ "out": say::path(out), "values": series.len(), "seed": seed }))
}

/// Brings a series to `out`, which appears only when it has been read without an error. An
/// interrupted download goes on where it stopped.
fn fetch(out: &Path, from: Option<&str>) -> Result<Value> {
    make_parent(out)?;
    let source = from.unwrap_or(LOAD);
    let partial = out.with_extension("part");
    if Path::new(source).is_file() {
        // Refused under its own name, and before anything is written.
        load::read(source)?;
        std::fs::copy(source, &partial)
            .map_err(|error| FileError::new(&partial, "write", &error))?;
    } else if !source.contains("://") {
        return Err(Usage(format!("--from {source}: there is no such file")).into());
    } else {
        say!("downloading {source}");
        let status = Command::new("curl")
            .args(["--fail", "--location", "--progress-bar", "--continue-at", "-", "--output"])
            .arg(&partial)
            .arg(source)
            .status()
            .context("could not run curl; install it, or download the file and use --from FILE")?;
        if !status.success() {
            return Err(Usage(format!(
                "curl could not get {source} ({status}); what has arrived is kept and the same \
                 command goes on, or download the file elsewhere and use --from FILE"
            ))
            .into());
        }
    }
    let mut result = check(&partial)?;
    std::fs::rename(&partial, out).map_err(|error| FileError::new(out, "write", &error))?;
    say!("{}", out.display());
    result["file"] = say::path(out);
    Ok(result)
}

fn make_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => Ok(create_folder(parent)?),
        _ => Ok(()),
    }
}
