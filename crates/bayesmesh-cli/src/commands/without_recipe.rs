//! `bayesmesh train DATA`: data instead of a recipe.

use std::path::Path;

use anyhow::Result;

use crate::use_cases::recipe_for_images;

/// A recipe that suits data at a path, with the name that errors call it by; nothing for data of
/// another kind. It says what was chosen.
type Choose = fn(&Path) -> Result<Option<(String, String)>>;

/// The kinds of data that need no recipe, in the order in which they are asked.
const KINDS: &[Choose] = &[recipe_for_images];

/// The recipe that suits what is at a path, where that is data.
pub fn chosen(path: &Path) -> Result<Option<(String, String)>> {
    for choose in KINDS {
        if let Some(chosen) = choose(path)? {
            return Ok(Some(chosen));
        }
    }
    Ok(None)
}
