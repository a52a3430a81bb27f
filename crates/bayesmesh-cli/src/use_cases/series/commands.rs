//! `bayesmesh data check | synth series`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bayesmesh_data::load::format_time;
use bayesmesh_data::series::synth::{self, SynthConfig};
use bayesmesh_data::series::{Encoding, Panel, Period, Repairs, Roles};
use clap::Args;
use serde_json::{Value, json};

use super::read;
use crate::say::{self, say};
use crate::use_cases::{DataCommand, DataVerb};

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![
        DataCommand::of::<super::Series, _>(
            DataVerb::Check,
            "Read series from a CSV or Parquet file and say what was found",
            check,
        ),
        DataCommand::of::<super::Series, _>(
            DataVerb::Synth,
            "Daily sales of some shops, with promotions and the weather",
            synth,
        ),
    ]
}

#[derive(Args)]
struct Check {
    /// The file
    file: PathBuf,
    /// The column to forecast; several are several series
    #[arg(long, value_name = "NAME", required = true)]
    target: Vec<String>,
    /// The column of times [default: the only one that has any]
    #[arg(long, value_name = "NAME")]
    time: Option<String>,
    /// The column of names, where rows of several series are below each other
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
}

#[derive(Args)]
struct Synth {
    /// Where to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How many shops
    #[arg(long, default_value_t = 8)]
    shops: usize,
    /// How long
    #[arg(long, default_value_t = 1095)]
    days: usize,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Reads series and says what was found.
fn check(Check { file, target, time, series }: Check) -> Result<Value> {
    /// As `data.fill` has it by default.
    const FILL: usize = 4;
    let frame = read(&file, &[])?;
    let roles = Roles { targets: target, time, series, ..Roles::default() };
    let found_in = || file.display().to_string();
    let (panel, repairs) = Panel::gather(&frame, &roles, None, FILL).with_context(found_in)?;
    say!("{}", overview(&panel, &repairs));
    let values: usize = panel.series.iter().map(|series| series.values.len()).sum();
    Ok(json!({
        "file": say::path(&file), "series": panel.series.len(), "values": values,
        "period": panel.period.to_string(), "filled": repairs.filled, "missing": repairs.missing,
    }))
}

/// Writes generated series.
fn synth(Synth { out, shops, days, seed }: Synth) -> Result<Value> {
    synth::write(&SynthConfig { shops, days, seed }, &out)?;
    say!("{shops} shops, {days} days: {}", out.display());
    Ok(json!({ "out": say::path(&out), "shops": shops, "days": days, "seed": seed }))
}

/// Which series there are.
fn overview(panel: &Panel, repairs: &Repairs) -> String {
    const SHOWN: usize = 10;
    let time = |series: usize, step: usize| match (panel.time(series, step), panel.period) {
        (Some(time), Period::Counts(_)) => time.to_string(),
        (Some(time), _) => format_time(time).replace("T00:00:00Z", ""),
        (None, _) => step.to_string(),
    };
    let rows: Vec<Vec<String>> = (panel.series.iter().enumerate().take(SHOWN))
        .map(|(number, series)| {
            let present = series.values.iter().filter(|value| !value.is_nan());
            let count = present.clone().count();
            let mean = present.sum::<f64>() / count as f64;
            let name = if series.name.is_empty() { "the series" } else { &series.name };
            vec![
                name.to_owned(),
                count.to_string(),
                time(number, 0),
                time(number, series.values.len() - 1),
                format!("{mean:.4}"),
            ]
        })
        .collect();
    let more = match panel.series.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("\nand {more} series more"),
    };
    let period = match panel.period {
        Period::Rows => "each row a step, as times are not regular".to_owned(),
        period => format!("a value every {}", period.words(1)),
    };
    let table = say::table(&["series", "values", "from", "to", "mean"], &rows);
    let repaired = match repaired(repairs) {
        words if words.is_empty() => words,
        words => format!("\n{words}"),
    };
    format!("{} series, {period}\n{table}{more}{repaired}", panel.series.len())
}

/// What was repaired, in words; empty where nothing was.
pub fn repaired(repairs: &Repairs) -> String {
    let &Repairs { off_grid, filled, missing, nameless } = repairs;
    let parts = [
        (filled, "missing values in short gaps were interpolated"),
        (missing, "missing values in longer gaps are in no window"),
        (off_grid, "rows between the steps of the grid were left out"),
        (nameless, "rows without a time or a name were left out"),
    ];
    let words = parts.iter().filter(|(count, _)| *count > 0);
    words.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>().join("; ")
}

/// What a network gets of these series.
pub fn found(panel: &Panel, repairs: &Repairs, encoding: &Encoding) -> String {
    let cut = &encoding.cut;
    let [past, known] = [&encoding.roles.past, &encoding.roles.known].map(|names| names.join(", "));
    let mut lines = vec![overview(panel, repairs)];
    lines.push(format!(
        "the next {} are forecast from the last {}",
        panel.period.words(cut.outputs),
        panel.period.words(cut.inputs)
    ));
    if !known.is_empty() {
        lines.push(format!("known beforehand: {known}"));
    }
    if !past.is_empty() {
        lines.push(format!("known until the forecast: {past}"));
    }
    lines.join("\n")
}
