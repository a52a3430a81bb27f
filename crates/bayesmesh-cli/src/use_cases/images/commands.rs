//! `bayesmesh data check | synth images`.

use std::path::PathBuf;

use anyhow::Result;
use bayesmesh_data::images::{SYNTHETIC_CLASSES, Survey, write_synthetic};
use clap::Args;
use serde_json::{Map, Value, json};

use super::super::{DataCommand, DataVerb};
use crate::progress::Counter;
use crate::say::{self, say};

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![
        DataCommand::of::<super::Images, _>(
            DataVerb::Check,
            "Read every image of a folder: how many of each class, how large, which are broken",
            check,
        ),
        DataCommand::of::<super::Images, _>(
            DataVerb::Synth,
            "Circles, crosses, squares and triangles as PNG and JPEG files, a folder for each",
            synth,
        ),
    ]
}

#[derive(Args)]
struct Check {
    /// The folder that has a folder of images for each class, or such folders in train/, valid/ and
    /// test/
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args)]
struct Synth {
    /// The folder to write, which must be new or empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Images of each of the four classes
    #[arg(long, value_name = "N", default_value_t = 200)]
    count: usize,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Reads every image.
fn check(Check { folder }: Check) -> Result<Value> {
    let counter = Counter::reading(0, "images");
    let survey = Survey::of(&folder, &|| counter.add(1))?;
    drop(counter);
    let classes = &survey.folder.classes;
    let names: Vec<&str> = survey.parts.iter().map(|part| part.name).collect();
    let header: Vec<&str> = std::iter::once("class").chain(names.iter().copied()).collect();
    let mut rows = Vec::new();
    let mut counts = Map::new();
    for (class, name) in classes.iter().enumerate() {
        let of_parts = survey.parts.iter().map(|part| part.counts[class]);
        rows.push(
            std::iter::once(name.clone()).chain(of_parts.clone().map(|n| n.to_string())).collect(),
        );
        let of_parts = names.iter().map(|name| (*name).to_owned()).zip(of_parts.map(|n| json!(n)));
        counts.insert(name.clone(), Value::Object(of_parts.collect()));
    }
    let sums = survey.parts.iter().map(|part| part.counts.iter().sum::<usize>().to_string());
    rows.push(std::iter::once("sum".to_owned()).chain(sums).collect());
    say!("{}: {} classes", folder.display(), classes.len());
    say!("{}", say::table(&header, &rows));
    if let Some(sizes) = survey.sizes {
        let [smallest, median, largest] = sizes.map(|[width, height]| format!("{width}×{height}"));
        say!("pixels: {smallest} at least, {median} in the middle, {largest} at most");
    }
    for (names, words) in [
        (&survey.folder.others, "no PNG or JPEG by its name"),
        (&survey.folder.left_out, "a folder of no part, or a link to what was read"),
        (&survey.folder.empty, "a folder without images"),
    ] {
        names.iter().for_each(|name| say!("left out: {name}, {words}"));
    }
    survey.broken.iter().for_each(|broken| say!("cannot be read: {}", broken.problem));
    say!("{} images can be read, {} cannot", survey.readable, survey.broken.len());
    let broken: Vec<Value> = survey
        .broken
        .iter()
        .map(|broken| json!({ "file": say::path(&broken.file), "problem": broken.problem }))
        .collect();
    Ok(json!({
        "folder": say::path(&folder),
        "classes": counts,
        "divided": survey.folder.divided,
        "readable": survey.readable,
        "broken": broken,
        "others": survey.folder.others,
        "left_out": survey.folder.left_out,
        "empty": survey.folder.empty,
        "sizes": survey.sizes,
    }))
}

/// Writes images that can be learned from.
fn synth(Synth { out, count, seed }: Synth) -> Result<Value> {
    write_synthetic(&out, count, seed)?;
    let classes = SYNTHETIC_CLASSES;
    say!("{}: {count} images each of {}", out.display(), classes.join(", "));
    Ok(json!({ "out": say::path(&out), "classes": classes, "per_class": count, "seed": seed }))
}
