//! `train.tune`: settings that are chosen before the training, on its own examples.

use std::path::Path;

use anyhow::{Context as _, Result};
use bayesmesh::Mesh;
use serde_json::Value;

use crate::exit::Usage;
use crate::job::Job;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::say::say;
use crate::use_cases::Verb;

/// The share of the examples by which settings are judged.
const JUDGING: f64 = 0.2;

/// The recipe that is trained: of those that `train.tune` names the one whose log-likelihood is
/// highest on a part of the training examples, after training on the rest of them. Where `begun` is
/// the folder of a run, the one that was chosen then.
pub fn chosen(job: &Job, recipe: Recipe, mesh: Mesh, begun: Option<&Path>) -> Result<Recipe> {
    let mut candidates = recipe.candidates()?;
    if candidates.len() == 1 {
        return Ok(candidates.remove(0));
    }
    if let Some(folder) = begun {
        let own = Recipe::load(job.catalogue(), &RunFolder::open(folder)?.recipe(), &[])?;
        let chosen = candidates.iter().position(|candidate| *candidate == own);
        return Ok(candidates.swap_remove(chosen.unwrap_or(0)));
    }
    let mut scores = Vec::new();
    for (number, candidate) in candidates.iter().enumerate() {
        let settings = &recipe.tune[number];
        say!("[{}/{}] trying {settings} on training data", number + 1, candidates.len());
        let trial = trial(candidate)?;
        let trial = trial.use_case().resolved(trial)?;
        let folder = tempfile::tempdir().context("a folder for a trial cannot be made")?;
        let out = &folder.path().join("trial");
        let result = trial.use_case().run(job, trial, Verb::Train { mesh, out, resume: false })?;
        let score = result["test"]["log_likelihood"].as_f64();
        scores.push(score.unwrap_or(f64::NEG_INFINITY));
    }
    let best = || {
        let places = 0..scores.len();
        let best = places.max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or_default();
        let shown: Vec<String> = scores.iter().map(|score| format!("{score:.3}")).collect();
        say!(
            "chosen on training data: {}, by log-likelihoods of {}",
            recipe.tune[best],
            shown.join(", ")
        );
        Ok(best.to_string())
    };
    let best: usize = job.first(best)?.parse().context("the number of a candidate")?;
    Ok(candidates.swap_remove(best))
}

/// The same recipe, tested on a part of its training examples.
fn trial(recipe: &Recipe) -> Result<Recipe> {
    let data = recipe.section::<toml::Table>("data")?;
    let shares = data.get("split").and_then(toml::Value::as_array);
    let shares: Vec<f64> = shares.into_iter().flatten().filter_map(toml::Value::as_float).collect();
    let ([train, valid, _], Some(_)) = (&shares[..], data.get("tuning")) else {
        return Err(Usage(
            "train.tune is for tables, whose training rows can be divided again; choose with \
             `compare --vary` instead"
                .to_owned(),
        )
        .into());
    };
    let own = (1.0 - JUDGING) / (train + valid);
    let split = format!("data.split=[{}, {}, {JUDGING:?}]", train * own, valid * own);
    Ok(recipe.with(&["data.tuning=true".to_owned(), split])?)
}

/// Whether the folder of a run holds one of the candidates of a recipe.
pub fn is_of(found: &Recipe, recipe: &Recipe) -> Result<bool> {
    Ok(recipe.candidates()?.contains(found))
}

/// What `bayesmesh train` prints, with the settings that were chosen.
pub fn told(mut result: Value, recipe: &Recipe, chosen: &Recipe) -> Result<Value> {
    if recipe.tune.is_empty() || result.is_null() {
        return Ok(result);
    }
    let place = recipe.candidates()?.iter().position(|candidate| candidate == chosen);
    result["tuned"] = place.map_or(Value::Null, |place| recipe.tune[place].clone().into());
    Ok(result)
}
