//! `bayesmesh data … load`.

use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{self, format_time};
use bayesmesh_files::{AtomicFile, FileError, create_folder};
use serde_json::{Value, json};

use crate::exit::Usage;

/// Open Power System Data, CC BY 4.0; German load every 15 minutes, 2015 to 2020.
const LOAD: &str = "https://data.open-power-system-data.org/time_series/2020-10-06/\
                    time_series_15min_singleindex.csv";

/// Reads a series and says what was found and repaired.
pub fn check(file: &Path) -> Result<Value> {
    let (series, repairs) = load::read(file)?;
    eprintln!("{repairs}");
    Ok(json!({
        "file": file,
        "format": format!("{:?}", repairs.format),
        "values": series.len(),
        "start": format_time(series.start),
        "step_seconds": series.step_seconds,
        "replaced": repairs.replaced(),
    }))
}

/// Writes a generated series.
pub fn synth(out: &Path, days: u32, seed: u64) -> Result<Value> {
    let series = german_like(&SynthConfig { seed, days, ..SynthConfig::default() })?;
    make_parent(out)?;
    let io = |error| FileError::new(out, "write", &error);
    let mut writer = BufWriter::new(AtomicFile::create(out).map_err(io)?);
    load::write_csv(&series, &mut writer)?;
    let file = writer.into_inner().map_err(|error| io(error.into_error()))?;
    file.commit().map_err(io)?;
    eprintln!("{} values: {}", series.len(), out.display());
    Ok(json!({ "out": out, "values": series.len(), "seed": seed }))
}

/// Brings a series to `out`, which appears only when it has been read without an error. An
/// interrupted download goes on where it stopped.
pub fn fetch(out: &Path, from: Option<&str>) -> Result<Value> {
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
        eprintln!("downloading {source}");
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
    eprintln!("{}", out.display());
    result["file"] = json!(out);
    Ok(result)
}

fn make_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => Ok(create_folder(parent)?),
        _ => Ok(()),
    }
}
