//! What fits each key but not the others.

use super::{Data, Kl, Loss, Model, Posterior, Prior, Recipe, Schedule, Task};

/// Two keys that do not go together.
pub(super) struct Conflict {
    /// The key that is best changed.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Everything about a recipe that does not go together.
pub(super) fn conflicts(recipe: &Recipe) -> Vec<Conflict> {
    let checks = [
        name,
        split,
        series,
        network,
        transformer,
        patches,
        task,
        draws,
        spread,
        dropout,
        kl,
        no_kl,
        floor,
        levels,
    ];
    checks.iter().filter_map(|check| check(recipe)).collect()
}

fn conflict(key: &'static str, message: String, help: impl Into<String>) -> Option<Conflict> {
    Some(Conflict { key, message, help: help.into() })
}

/// The name becomes a part of file names.
fn name(recipe: &Recipe) -> Option<Conflict> {
    let name = &recipe.name;
    let usable = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.chars().all(usable) && !name.trim_matches('.').is_empty() {
        return None;
    }
    conflict(
        "name",
        format!("the name {name:?} cannot be part of a file name"),
        "use letters, digits, `-`, `_` and `.` only, for example `name = \"load-mlp\"`",
    )
}

fn split(recipe: &Recipe) -> Option<Conflict> {
    let windows = recipe.data.windows()?;
    let sum: f64 = windows.split.iter().sum();
    if (sum - 1.0).abs() < 1e-6 {
        return None;
    }
    conflict(
        "data.split",
        format!("the shares of `data.split` sum to {}, not to 1", rounded(sum)),
        "shares for training, validation and test, for example `split = [0.6, 0.1, 0.3]`",
    )
}

/// A generated series must be long enough for one example in each of its parts.
fn series(recipe: &Recipe) -> Option<Conflict> {
    const VALUES_PER_DAY: f64 = 96.0;
    let Data::LoadSynthetic { days, windows, .. } = &recipe.data else {
        return None;
    };
    let smallest = windows.split.iter().copied().fold(f64::INFINITY, f64::min);
    let example = windows.inputs as f64 + windows.outputs as f64;
    let needed = (example / (VALUES_PER_DAY * smallest)).ceil() + 1.0;
    if *days as f64 >= needed {
        return None;
    }
    conflict(
        "data.days",
        format!(
            "{days} days are too few: the smallest part of `data.split` must hold an example of \
             {example} values"
        ),
        format!("use at least `days = {needed}`, or fewer `inputs` and `outputs`"),
    )
}

/// A network takes a series or images.
fn network(recipe: &Recipe) -> Option<Conflict> {
    match (recipe.data.task(), &recipe.model) {
        (Task::Regression, Model::Vit { .. }) => conflict(
            "model.kind",
            "a vision transformer takes images, but the data are a series".to_owned(),
            "use `model.kind = \"mlp\"`, or images, for example `data.kind = \"cifar10\"`",
        ),
        (Task::Classification, Model::Mlp { .. }) => conflict(
            "model.kind",
            "a perceptron takes a series, but the data are images".to_owned(),
            "use `model.kind = \"vit\"`, or a series, for example `data.kind = \"load\"`",
        ),
        _ => None,
    }
}

/// The heads of the attention and the positions divide a token.
fn transformer(recipe: &Recipe) -> Option<Conflict> {
    let Model::Vit { width, heads, .. } = recipe.model else {
        return None;
    };
    let (divisor, why) = match (width % heads, width % 4) {
        (0, 0) => return None,
        (0, _) => (4, "sines and cosines of two directions are added to it".to_owned()),
        _ => (heads, format!("its {heads} heads share it")),
    };
    // The least common multiple of both.
    let step = (1..=4).map(|n| n * heads).find(|n| n % 4 == 0)?;
    let below = width / step * step;
    let near = match below {
        0 => format!("`width = {step}`"),
        _ => format!("`width = {below}` or `width = {}`", below + step),
    };
    conflict(
        "model.width",
        format!("a width of {width} is not divisible by {divisor}: {why}"),
        format!("use for example {near}"),
    )
}

fn patches(recipe: &Recipe) -> Option<Conflict> {
    const SIDE: usize = 32;
    match recipe.model {
        Model::Vit { patch, .. } if !SIDE.is_multiple_of(patch) => conflict(
            "model.patch",
            format!("patches of {patch}×{patch} pixels do not divide images of {SIDE}×{SIDE}"),
            "use 1, 2, 4, 8, 16 or 32",
        ),
        _ => None,
    }
}

fn task(recipe: &Recipe) -> Option<Conflict> {
    match (recipe.data.task(), recipe.loss.task()) {
        (data, loss) if data == loss => None,
        (Task::Regression, _) => conflict(
            "loss.kind",
            "this loss is for classes, but the data have numbers to predict".to_owned(),
            "use a loss for regression, for example `kind = \"squared-error-of-mean\"`",
        ),
        (Task::Classification, _) => conflict(
            "loss.kind",
            "this loss is for numbers, but the data have classes to predict".to_owned(),
            "use a loss for classification, for example `kind = \"expected-cross-entropy\"`",
        ),
    }
}

fn draws(recipe: &Recipe) -> Option<Conflict> {
    let (least, samples) = (recipe.loss.least_draws(), recipe.train.samples);
    if samples >= least {
        return None;
    }
    let loss = match recipe.loss {
        Loss::Crps { .. } => "the fair CRPS",
        _ => "this loss",
    };
    conflict(
        "train.samples",
        format!("{loss} compares draws and needs at least {least}, not {samples}"),
        format!("use `train.samples = {least}` or more, or another loss"),
    )
}

/// A loss that learns from the spread of the draws needs draws that differ in prediction too.
fn spread(recipe: &Recipe) -> Option<Conflict> {
    let (Posterior::Point, Loss::GaussianOfDraws { .. }) = (&recipe.posterior, &recipe.loss) else {
        return None;
    };
    conflict(
        "loss.kind",
        "`gaussian-of-draws` reads the uncertainty from the spread of the draws, but those of a \
         `point` posterior are all the same"
            .to_owned(),
        "use `loss.kind = \"expected-gaussian\"`, where the network predicts its noise, or \
         another posterior",
    )
}

fn dropout(recipe: &Recipe) -> Option<Conflict> {
    if recipe.posterior != Posterior::McDropout || recipe.model.has_dropout() {
        return None;
    }
    match &recipe.model {
        Model::Mlp { hidden, .. } if hidden.is_empty() => conflict(
            "model.hidden",
            "`mc-dropout` drops hidden units, but the network has none: all draws would be the \
             same"
                .to_owned(),
            "add a hidden layer, for example `hidden = [128]`, or use another posterior",
        ),
        Model::Mlp { .. } => conflict(
            "model.dropout",
            "`mc-dropout` without dropout has no randomness: all draws would be the same"
                .to_owned(),
            "set for example `model.dropout = 0.1`, or use `posterior.kind = \"point\"` or \
             `\"mean-field\"`",
        ),
        Model::Vit { .. } => conflict(
            "posterior.kind",
            "`mc-dropout` drops hidden units, but a vision transformer has no dropout: all draws \
             would be the same"
                .to_owned(),
            "use `kind = \"mean-field\"`, or `kind = \"point\"` for comparison",
        ),
    }
}

fn kl(recipe: &Recipe) -> Option<Conflict> {
    match &recipe.posterior {
        Posterior::MeanField(field)
            if field.kl == Kl::Analytic && !matches!(field.prior, Prior::Normal { .. }) =>
        {
            conflict(
                "posterior.kl",
                "a scale-mixture prior has no distance in closed form".to_owned(),
                "use `kl = \"monte-carlo\"`, or a normal prior",
            )
        }
        _ => None,
    }
}

/// The weight of a penalty that does not exist.
fn no_kl(recipe: &Recipe) -> Option<Conflict> {
    let key = match (&recipe.posterior, &recipe.train) {
        (Posterior::MeanField(_), _) => return None,
        (_, train) if train.heat != 1.0 => "train.heat",
        (_, train) if train.kl_warmup != 0 => "train.kl_warmup",
        _ => return None,
    };
    conflict(
        key,
        format!("`{key}` weighs the distance to the prior, which only `mean-field` has"),
        "leave it out, or use `posterior.kind = \"mean-field\"`",
    )
}

fn floor(recipe: &Recipe) -> Option<Conflict> {
    let rate = recipe.optimizer.rate;
    match recipe.schedule {
        Schedule::Cosine { floor, .. } if floor > rate => conflict(
            "schedule.floor",
            format!("the learning rate cannot fall from {rate:?} to {floor:?}"),
            "use a `schedule.floor` of at most `optimizer.rate`",
        ),
        _ => None,
    }
}

fn levels(recipe: &Recipe) -> Option<Conflict> {
    let levels = &recipe.evaluate.levels;
    if levels.is_sorted_by(|a, b| a < b) {
        return None;
    }
    conflict(
        "evaluate.levels",
        "`evaluate.levels` must ascend, each level once".to_owned(),
        "for example `levels = [0.5, 0.8, 0.9, 0.95]`",
    )
}

/// Without the digits that binary fractions add.
fn rounded(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}
