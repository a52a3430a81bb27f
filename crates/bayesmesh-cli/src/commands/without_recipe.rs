//! `bayesmesh train DATA`: data instead of a recipe.

use std::path::Path;

use anyhow::Result;

use crate::args::Aim;
use crate::exit::Usage;
use crate::use_cases::{recipe_for_images, recipe_for_series, recipe_for_table};

/// The recipe that suits what is at a path, where that is data, with the name that errors call it
/// by. It says what was chosen.
pub fn chosen(path: &Path, aim: &Aim) -> Result<Option<(String, String)>> {
    let targets = &aim.target;
    if let Some(horizon) = aim.horizon {
        if targets.is_empty() {
            let message = "which column is to be forecast? Add `--target NAME`; several are series \
                           beside each other";
            return Err(Usage(message.to_owned()).into());
        }
        return Ok(Some(recipe_for_series(path, targets, horizon)));
    }
    match recipe_for_table(path, targets)? {
        None => recipe_for_images(path),
        chosen => Ok(chosen),
    }
}
