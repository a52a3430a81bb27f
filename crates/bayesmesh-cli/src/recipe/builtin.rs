//! The recipes that come with the program.

use super::error::RecipeError;
use super::suggest::nearest;

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../recipes/", $name, ".toml")))),*]
    };
}

/// Names and texts of the files of `recipes/`.
pub(super) const BUILTIN: &[(&str, &str)] = builtin![
    "demo",
    "load-mlp",
    "load-mlp-gaussian",
    "load-mlp-vi",
    "images-demo",
    "cifar10-vit",
    "cifar10-vit-quick",
    "cifar10-vit-reference",
    "era5-demo",
    "era5-swin",
    "gfs-wind",
    "uci-dropout",
    "uci-best",
    "images-folder",
];

/// The names of the recipes that come with the program.
pub fn builtin_names() -> Vec<&'static str> {
    BUILTIN.iter().map(|(name, _)| *name).collect()
}

/// The text of a recipe that comes with the program.
pub fn builtin_text(name: &str) -> Result<&'static str, RecipeError> {
    let found = BUILTIN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names = builtin_names();
        RecipeError::NoSuchBuiltin {
            name: name.to_owned(),
            nearest: nearest(name, names.iter().copied()),
            names,
        }
    })
}
