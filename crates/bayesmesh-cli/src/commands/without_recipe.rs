//! `bayesmesh train DATA`: data instead of a recipe.

use std::path::Path;

use anyhow::Result;

use crate::use_cases::{recipe_for_images, recipe_for_table};

/// The recipe that suits what is at a path, where that is data, with the name that errors call it
/// by. It says what was chosen. `targets` are what is to be predicted of a table.
pub fn chosen(path: &Path, targets: &[String]) -> Result<Option<(String, String)>> {
    match recipe_for_table(path, targets)? {
        None => recipe_for_images(path),
        chosen => Ok(chosen),
    }
}
