//! Keys that are right one by one but do not go together.

use anyhow::Result;
use bayesmesh::CalibrateConfig;
use bayesmesh::posterior::{Kl, PosteriorConfig, Prior};
use bayesmesh::trainer::Schedule;

use super::Recipe;
use super::sections::Rate;
use crate::tasks::TaskInfo;

/// Keys that do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key that is best changed.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Conflict {
    /// A conflict that is best settled at `key`.
    pub fn new(key: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into(), help: help.into() }
    }

    /// Shares of the data for training, validation and test that do not sum to 1.
    pub fn of_shares(split: &[f64; 3], example: &str) -> Option<Self> {
        let sum: f64 = split.iter().sum();
        // Without the digits that binary fractions add.
        let shown = (sum * 1e6).round() / 1e6;
        ((sum - 1.0).abs() >= 1e-6).then(|| {
            Self::new(
                "data.split",
                format!("the shares of `data.split` sum to {shown}, not to 1"),
                format!(
                    "shares for training, validation and test, for example `split = {example}`"
                ),
            )
        })
    }
}

/// Everything about a recipe that does not go together.
pub(super) fn all(recipe: &Recipe) -> Result<Vec<Conflict>> {
    let mut all = recipe.use_case().conflicts(recipe)?;
    let (network, task) = (network(recipe)?, task(recipe));
    let draws = if task.is_none() { draws(recipe)? } else { None };
    let posterior = recipe.posterior()?;
    let others = [
        name(recipe),
        draws,
        task,
        spread(recipe, &posterior),
        lonely(recipe),
        kl(&posterior),
        no_kl(recipe, &posterior),
        floor(recipe)?,
        levels(recipe),
        calibration(recipe),
    ];
    all.extend(network);
    all.extend(others.into_iter().flatten());
    Ok(all)
}

/// The name becomes a part of file names.
fn name(recipe: &Recipe) -> Option<Conflict> {
    let name = &recipe.name;
    let usable = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.chars().all(usable) && !name.trim_matches('.').is_empty() {
        return None;
    }
    Some(Conflict::new(
        "name",
        format!("the name {name:?} cannot be part of a file name"),
        "use letters, digits, `-`, `_` and `.` only, for example `name = \"load-mlp\"`",
    ))
}

/// What a network has against the recipe; first of all, that it is not for these data.
fn network(recipe: &Recipe) -> Result<Vec<Conflict>> {
    let (case, kind) = (recipe.use_case(), recipe.kind("model"));
    let all = recipe.catalogue().use_cases();
    let takers = all.iter().flat_map(|case| case.models().into_iter().map(move |m| (case, m)));
    let (taker, model) = takers
        .filter(|(_, model)| model.name == kind)
        .min_by_key(|(taker, _)| taker.name() != case.name())
        .expect("kinds of networks are those of the use cases");
    let mut conflicts = (model.conflicts)(recipe)?;
    if taker.name() != case.name() {
        let (own, other) = (case.models(), taker.kinds());
        conflicts.push(Conflict::new(
            "model.kind",
            format!("{} takes {}, but the data are {}", model.noun, taker.inputs(), case.inputs()),
            format!(
                "use `model.kind = \"{}\"`, or {}, for example `data.kind = \"{}\"`",
                own[0].name,
                taker.inputs(),
                other[0].name
            ),
        ));
    }
    Ok(conflicts)
}

fn task(recipe: &Recipe) -> Option<Conflict> {
    let own = recipe.use_case().task();
    let kind = recipe.kind("loss");
    let of = |task: &&TaskInfo| (task.losses)().iter().any(|loss| loss.name == kind);
    let other = recipe.catalogue().tasks().into_iter().find(of)?;
    if other.name == own.name {
        return None;
    }
    Some(Conflict::new(
        "loss.kind",
        format!(
            "this loss is for {}, but the data have {} to predict",
            other.predicts, own.predicts
        ),
        format!("use a loss for {}, for example `kind = \"{}\"`", own.name, own.example),
    ))
}

fn draws(recipe: &Recipe) -> Result<Option<Conflict>> {
    let (least, samples) = (recipe.use_case().least_draws(recipe)?, recipe.train.samples);
    if samples >= least {
        return Ok(None);
    }
    let loss = if recipe.kind("loss") == "crps" { "the fair CRPS" } else { "this loss" };
    Ok(Some(Conflict::new(
        "train.samples",
        format!("{loss} compares draws and needs at least {least}, not {samples}"),
        format!("use `train.samples = {least}` or more, or another loss"),
    )))
}

/// A loss that learns from the spread of the draws needs draws that differ in prediction too.
fn spread(recipe: &Recipe, posterior: &PosteriorConfig) -> Option<Conflict> {
    (*posterior == PosteriorConfig::Point && recipe.kind("loss") == "gaussian-of-draws").then(|| {
        Conflict::new(
            "loss.kind",
            "`gaussian-of-draws` reads the uncertainty from the spread of the draws, but those of \
             a `point` posterior are all the same",
            "use `loss.kind = \"expected-gaussian\"`, where the network predicts its noise, or \
             another posterior",
        )
    })
}

/// An ensemble is told apart from a network by its members.
fn lonely(recipe: &Recipe) -> Option<Conflict> {
    (recipe.members() == Some(1)).then(|| {
        Conflict::new(
            "train.samples",
            "an `ensemble` has as many members as `train.samples` says, and one is none",
            "use for example `train.samples = 5`, or `posterior.kind = \"point\"`",
        )
    })
}

fn kl(posterior: &PosteriorConfig) -> Option<Conflict> {
    match posterior {
        PosteriorConfig::MeanField(field)
            if field.kl == Kl::Analytic && !matches!(field.prior, Prior::Normal { .. }) =>
        {
            Some(Conflict::new(
                "posterior.kl",
                "a scale-mixture prior has no distance in closed form",
                "use `kl = \"monte-carlo\"`, or a normal prior",
            ))
        }
        _ => None,
    }
}

/// The weight of a penalty that does not exist.
fn no_kl(recipe: &Recipe, posterior: &PosteriorConfig) -> Option<Conflict> {
    let key = match (posterior, &recipe.train) {
        (PosteriorConfig::MeanField(_), _) => return None,
        (_, train) if train.heat != 1.0 => "train.heat",
        (_, train) if train.kl_warmup != 0 => "train.kl_warmup",
        _ => return None,
    };
    Some(Conflict::new(
        key,
        format!("`{key}` weighs the distance to the prior, which only `mean-field` has"),
        "leave it out, or use `posterior.kind = \"mean-field\"`",
    ))
}

fn floor(recipe: &Recipe) -> Result<Option<Conflict>> {
    let Rate { rate } = recipe.section("optimizer")?;
    Ok(match recipe.section("schedule")? {
        Schedule::Cosine { floor, .. } if floor > rate => Some(Conflict::new(
            "schedule.floor",
            format!("the learning rate cannot fall from {rate:?} to {floor:?}"),
            "use a `schedule.floor` of at most `optimizer.rate`",
        )),
        _ => None,
    })
}

fn levels(recipe: &Recipe) -> Option<Conflict> {
    (!recipe.evaluate.levels.is_sorted_by(|a, b| a < b)).then(|| {
        Conflict::new(
            "evaluate.levels",
            "`evaluate.levels` must ascend, each level once",
            "for example `levels = [0.5, 0.8, 0.9, 0.95]`",
        )
    })
}

/// A calibration that is not for these data.
fn calibration(recipe: &Recipe) -> Option<Conflict> {
    let case = recipe.use_case();
    let asked = !matches!(recipe.calibrate, CalibrateConfig::Auto | CalibrateConfig::None);
    if asked && !case.calibrates() {
        return Some(Conflict::new(
            "calibrate.kind",
            format!(
                "{} has an ensemble of draws, which is not calibrated point by point",
                case.inputs()
            ),
            "leave `[calibrate]` out; a loss such as `crps` trains the ensemble to be honest",
        ));
    }
    let refused = recipe.calibrate.method(case.task().classes, case.is_series()).err()?;
    Some(Conflict::new(
        "calibrate.kind",
        refused.to_string(),
        "use `calibrate.kind = \"auto\"`, which suits any data, or `\"none\"`",
    ))
}
