//! `bayesmesh compare`: the same recipe with other values of some keys, each with several seeds.

mod plan;
mod report;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bayesmesh::Mesh;
use bayesmesh_files::create_folder;
use serde_json::{Value, json};

use super::{read_recipe, tune};
use crate::args::{self, Divisions};
use crate::exit::{Interrupted, Usage};
use crate::job::Job;
use crate::recipe::Recipe;
use crate::run::{MetricsTable, RunFolder};
use crate::say::{self, say};
use crate::table_file;
use crate::use_cases::{Splits, Verb};
use plan::{Plan, Repeat, Variant};
use summary::Summary;

/// The file of a run that is finished, with what it came to.
const RESULT: &str = "result.json";

/// A finished run of a variant.
pub struct VariantRun {
    /// What `bayesmesh train --json` prints.
    pub result: Value,
    pub metrics: MetricsTable,
}

/// Trains every variant with every seed and division, and writes what they came to beside them.
pub fn compare(job: &Job, arguments: &args::Compare) -> Result<Value> {
    let base = read_recipe(job, &arguments.recipe, &arguments.aim, &arguments.set)?.located();
    let splits = arguments.splits.map(|asked| splits(&base, asked)).transpose()?;
    let seeds = arguments.seeds.unwrap_or(if splits.is_some() { 1 } else { 3 });
    let plan = Plan::new(&base.name, &arguments.vary, base.train.seed, seeds, splits)?;
    let recipes = recipes(job, arguments, &plan)?;
    job.warn_of_crowding(job.mesh(&arguments.ranks, &base)?)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| Path::new("runs").join(format!("{}-compare", base.name)));
    let runs = plan.variants.len() * plan.repeats.len();
    let mut number = 0;
    let mut finished = Vec::new();
    for (variant, recipes) in plan.variants.iter().zip(&recipes) {
        let mut of_variant = Vec::new();
        for (recipe, repeat) in recipes.iter().zip(&plan.repeats) {
            number += 1;
            say!("\n[{number}/{runs}] {}, {}", variant.name, repeat.words());
            let mesh = job.mesh(&arguments.ranks, recipe)?;
            let folder = out.join(variant.folder()).join(repeat.folder());
            once(job, recipe, mesh, &folder).map_err(|error| {
                let unfinished = format!(
                    "the comparison in {} is not finished; the same command goes on",
                    out.display()
                );
                match error.is::<Interrupted>() {
                    true => Interrupted(unfinished).into(),
                    false => error.context(unfinished),
                }
            })?;
            if job.leads() {
                of_variant.push(VariantRun::read(&folder)?);
            }
        }
        finished.push(of_variant);
    }
    if !job.leads() {
        return Ok(Value::Null);
    }
    let main = base.use_case().main_scores();
    let summary = Summary::new(&plan, &finished);
    let page = report::report(&base, &plan, &finished, &summary, main);
    let write = |name: &str, contents: String| -> Result<PathBuf> {
        let path = out.join(name);
        table_file::write(&path, contents.as_bytes())?;
        Ok(path)
    };
    write("compare.csv", summary.csv())?;
    let report = write("report.html", page.to_html())?;
    let result = json!({
        "recipe": base.name,
        "out": say::path(&out),
        "seeds": plan.seeds(),
        "splits": plan.splits(),
        "variants": summary.json(),
        "report": say::path(&report),
    });
    write("compare.json", format!("{result:#}\n"))?;
    say::to_output(&format!("{}\n", summary.table(main)))?;
    say!("report: {}", report.display());
    Ok(result)
}

/// The divisions that are asked for, of those that the data have.
fn splits(recipe: &Recipe, asked: Divisions) -> Result<u64> {
    let refuse = |words: String| Err(Usage(words).into());
    match (recipe.use_case().splits(recipe)?, asked) {
        (Splits::One, _) => refuse(
            "--splits: these data are divided in one way only; vary other keys, or use --seeds"
                .to_owned(),
        ),
        (_, Divisions::Number(0)) => refuse("--splits 0: use at least one division".to_owned()),
        (Splits::Many(there), Divisions::All) => Ok(there),
        (Splits::Many(there), Divisions::Number(asked)) if asked > there => {
            refuse(format!("--splits {asked}: the data have {there} divisions"))
        }
        (Splits::Any, Divisions::All) => refuse(
            "--splits: rows can be divided by chance as often as you like; say how often, for \
             example `--splits 5`, or set data.folds"
                .to_owned(),
        ),
        (_, Divisions::Number(asked)) => Ok(asked),
    }
}

/// The recipe of each variant with each seed and division, complete. All are read before anything
/// is trained.
fn recipes(job: &Job, arguments: &args::Compare, plan: &Plan) -> Result<Vec<Vec<Recipe>>> {
    let recipe = |variant: &Variant, repeat: &Repeat| -> Result<Recipe> {
        let mut set = arguments.set.clone();
        set.extend(variant.settings.iter().map(|(key, value)| format!("{key}={value}")));
        set.extend(repeat.settings());
        let recipe = read_recipe(job, &arguments.recipe, &arguments.aim, &set)?.located();
        recipe.use_case().resolved(recipe)
    };
    let of_variant =
        |variant: &Variant| plan.repeats.iter().map(|repeat| recipe(variant, repeat)).collect();
    plan.variants.iter().map(of_variant).collect()
}

/// Trains a recipe in a folder, goes on where it was interrupted, or does nothing where it is
/// finished.
fn once(job: &Job, recipe: &Recipe, mesh: Mesh, out: &Path) -> Result<()> {
    const FINISHED: &str = "finished";
    const BEGUN: &str = "begun";
    let state = job.first(|| {
        let begun = out.join("recipe.toml").exists();
        if !begun || !out.join(RESULT).exists() {
            if let Some(parent) = out.parent() {
                create_folder(parent)?;
            }
            return Ok(if begun { BEGUN } else { "new" }.to_owned());
        }
        let found = Recipe::load(job.catalogue(), &RunFolder::open(out)?.recipe(), &[])?;
        if !tune::is_of(&found, recipe)? {
            return Err(Usage(format!(
                "{} holds a run of another recipe; compare in another folder with --out, or remove \
                 it",
                out.display()
            ))
            .into());
        }
        Ok(FINISHED.to_owned())
    })?;
    if state == FINISHED {
        say!("finished before: {}", out.display());
        return Ok(());
    }
    let begun = state == BEGUN;
    let chosen = tune::chosen(job, recipe.clone(), mesh, begun.then_some(out))?;
    let verb = Verb::Train { mesh, out, resume: begun };
    let result = tune::told(chosen.use_case().run(job, chosen.clone(), verb)?, recipe, &chosen)?;
    if job.leads() {
        RunFolder::open(out)?.write(RESULT, format!("{result:#}\n"))?;
    }
    Ok(())
}

impl VariantRun {
    /// Read back also where the run has just ended: the last digit of a number can change on the
    /// way through a file.
    fn read(out: &Path) -> Result<Self> {
        let folder = RunFolder::open(out)?;
        let result = serde_json::from_str(&folder.read(RESULT)?).with_context(|| {
            format!("{}/{RESULT} is damaged; remove it to train again", out.display())
        })?;
        Ok(Self { result, metrics: MetricsTable::read(folder.metrics())? })
    }
}
