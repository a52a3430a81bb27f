//! What recipes promise.

mod builtin;
mod conflicts;
mod documentation;
mod files;
mod missing_keys;
mod overriding;
mod properties;
mod resolved;
mod syntax;
mod unknown_keys;
mod wrong_overrides;
mod wrong_values;

use super::{Catalogue, Recipe, RecipeError};

/// A valid recipe to be spoiled.
const TRIAL: &str = r#"name = "trial"

[data]
kind = "load"
path = "load.csv"

[model]
kind = "mlp"
dropout = 0.1

[posterior]
kind = "mc-dropout"

[loss]
kind = "squared-error-of-mean"

[train]
samples = 4
"#;

/// What makes a classification of the trial.
const IMAGES: [&str; 4] = [
    "data.kind=cifar10",
    "model.kind=vit",
    "posterior.kind=mean-field",
    "loss.kind=expected-cross-entropy",
];

/// What makes the trial a forecast of weather.
const WEATHER: [&str; 3] =
    ["data.kind=era5-synthetic", "model.kind=swin", "posterior.kind=mean-field"];

/// The trial with parts of its text replaced.
fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(TRIAL.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    })
}

/// A recipe that comes with the program.
fn builtin(name: &str, overrides: &[String]) -> Result<Recipe, RecipeError> {
    Recipe::builtin(&Catalogue::builtin(), name, overrides)
}

/// A section of a recipe as one of its types.
fn section<T: serde::de::DeserializeOwned>(recipe: &Recipe, name: &str) -> T {
    recipe.section(name).unwrap()
}

fn parse(text: &str, overrides: &[&str]) -> Result<Recipe, RecipeError> {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Recipe::parse(&Catalogue::builtin(), text, "trial.toml", &overrides)
}

/// All that is said of the edited trial, as it is printed.
fn refusal(edits: &[(&str, &str)], overrides: &[&str]) -> String {
    match parse(&edited(edits), overrides) {
        Err(RecipeError::Invalid { problems, .. }) => {
            let printed: Vec<String> = problems.iter().map(ToString::to_string).collect();
            printed.join("\n\n")
        }
        other => panic!("not refused for its contents: {other:?}"),
    }
}
