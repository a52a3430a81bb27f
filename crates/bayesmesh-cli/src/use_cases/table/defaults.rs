//! The recipe for a table that comes without one.
//!
//! What is chosen follows from the number of rows and from what is predicted; `docs/tables.md` has
//! the choices and what they were measured by.

use std::path::Path;

use anyhow::Result;
use bayesmesh_data::table::{Cells, Column, Folder, Frame, Kinds, infer, nearly_numbers};

use super::data::read;
use crate::exit::Usage;
use crate::say::say;

/// What is predicted of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Values,
    Counts,
    Classes,
}

/// What follows from the number of rows.
struct Size {
    hidden: usize,
    batch: usize,
    epochs: usize,
    patience: usize,
    rate: &'static str,
    dropout: &'static str,
}

impl Size {
    fn of(rows: usize) -> Self {
        let [hidden, batch, epochs, patience] = match rows {
            0..100 => [32, 8, 300, 60],
            100..1_000 => [64, 32, 300, 60],
            1_000..10_000 => [128, 64, 120, 25],
            10_000..50_000 => [128, 128, 60, 12],
            _ => [128, 512, 30, 6],
        };
        // Of few rows there must be a batch to train on.
        let batch = batch.min((rows / 2).max(1));
        let dropout = if rows < 1_000 { "0.05" } else { "0.02" };
        let rate = if rows < 10_000 { "2e-3" } else { "3e-3" };
        Self { hidden, batch, epochs, patience, rate, dropout }
    }
}

/// The name and the text of the recipe that suits a table; nothing for a path that is none.
pub fn default_recipe(path: &Path, targets: &[String]) -> Result<Option<(String, String)>> {
    let folder = Folder::at(path);
    let ending = path.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
    let is_table = matches!(ending.as_deref(), Some("csv" | "tsv" | "parquet" | "pq"));
    if !is_table && folder.is_none() && targets.is_empty() {
        return Ok(None);
    }
    let (frame, targets) = match folder {
        Some(folder) => folder.read()?,
        None => (read(path, &[], &[])?, targets.to_vec()),
    };
    let named = |error| anyhow::Error::new(error).context(path.display().to_string());
    let said = Kinds { targets: targets.clone(), ..Kinds::default() };
    infer(&frame, &said).map_err(named)?;
    if targets.is_empty() {
        let names: Vec<String> = frame.names().iter().map(|name| format!("`{name}`")).collect();
        return Err(Usage(format!(
            "which column is to be predicted? Add `--target NAME`; {} has {}",
            path.display(),
            names.join(", ")
        ))
        .into());
    }
    let (aim, why) = aim(&frame, &targets);
    let name = name(path);
    let cells = || targets.iter().filter_map(|name| frame.column(name)).map(|own| &own.cells);
    let usable = |row: &usize| cells().all(|cells| !cells.is_missing(*row));
    let rows = (0..frame.rows).filter(usable).count();
    let text = text(&name, path, &targets, aim, &Size::of(rows));
    say!("no recipe: one is chosen for {rows} rows, and written down in the run");
    say!("  {why}");
    Ok(Some((format!("chosen for {}", path.display()), text)))
}

/// What is predicted, and why.
fn aim(frame: &Frame, targets: &[String]) -> (Aim, String) {
    const FEW: usize = 10;
    let [target] = targets else {
        return (Aim::Values, format!("{} targets: numbers are predicted", targets.len()));
    };
    let values = |why: &str| (Aim::Values, format!("target `{target}`: {why}"));
    let classes = |why: &str| (Aim::Classes, format!("target `{target}`: {why}"));
    match frame.column(target).map(|column: &Column| &column.cells) {
        // Some words among numbers are no classes; reading them as numbers says which they are.
        Some(Cells::Texts(texts)) if nearly_numbers(texts) => values("numbers but for some texts"),
        Some(Cells::Texts(_)) => classes("texts, so classes are predicted"),
        Some(Cells::Numbers(numbers)) => {
            let mut there: Vec<f64> = numbers.iter().copied().filter(|x| !x.is_nan()).collect();
            let whole = there.iter().all(|x| x.fract() == 0.0);
            let mean = there.iter().sum::<f64>() / there.len() as f64;
            there.sort_unstable_by(f64::total_cmp);
            there.dedup();
            match there.len() {
                kinds @ 2..=FEW if whole => classes(&format!(
                    "{kinds} whole numbers, so classes are predicted; for numbers, \
                     `--set loss.kind=gaussian-mixture`"
                )),
                // Ages and years are whole numbers too, but far from zero.
                2.. if whole && there[0] >= 0.0 && mean < 30.0 => (
                    Aim::Counts,
                    format!(
                        "target `{target}`: small whole numbers, so counts are predicted; for any \
                         numbers, `--set loss.kind=gaussian-mixture`"
                    ),
                ),
                _ => values("numbers, so a mean and intervals are predicted"),
            }
        }
        _ => values("numbers are predicted"),
    }
}

/// What the run is called: the name of the file, as far as a name may have it.
fn name(path: &Path) -> String {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut stem = full.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Folders of the UCI benchmark are called `data`; the one around it has the name.
    if stem == "data" && path.is_dir() {
        let around = full.parent().and_then(Path::file_name).unwrap_or_default();
        stem = around.to_string_lossy().into_owned();
    }
    let usable = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(usable).collect();
    if name.trim_matches('.').is_empty() { "table".to_owned() } else { name }
}

fn text(name: &str, path: &Path, targets: &[String], aim: Aim, size: &Size) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let targets: Vec<String> = targets.iter().map(|target| quoted(target)).collect();
    let loss = match aim {
        Aim::Values => "gaussian-mixture",
        Aim::Counts => "negative-binomial-mixture",
        Aim::Classes => "expected-cross-entropy",
    };
    let Size { hidden, batch, epochs, patience, rate, dropout } = size;
    format!(
        "name = {}

[data]
kind = \"table\"
path = {}
target = [{}]

[model]
kind = \"mlp\"
hidden = [{hidden}, {hidden}]
dropout = {dropout}

[posterior]
kind = \"mc-dropout\"

[loss]
kind = \"{loss}\"

[train]
epochs = {epochs}
patience = {patience}
samples = 8
batch = {batch}
clip_norm = 10.0
memory = \"retain\"

[optimizer]
kind = \"adam\"
rate = {rate}

[schedule]
kind = \"cosine\"

[evaluate]
draws = 64
",
        quoted(name),
        quoted(&path.to_string_lossy()),
        targets.join(", "),
    )
}
