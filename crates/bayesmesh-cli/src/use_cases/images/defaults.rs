//! The recipe that suits a folder of images.

use std::path::Path;

use anyhow::Result;
use bayesmesh_data::images::ImageFolder;

use crate::recipe::builtin_text;
use crate::run::RunFolder;
use crate::say::say;

/// The recipe that all others start from.
const BASE: &str = "images-folder";

/// For a folder of images, a recipe with what errors call it; nothing for anything else.
pub fn default_recipe(path: &Path) -> Result<Option<(String, String)>> {
    // A run, whose recipe is in it, is no folder of images.
    if !path.is_dir() || RunFolder::open(path).is_ok() {
        return Ok(None);
    }
    let folder = ImageFolder::open(path, None)?;
    let images = folder.parts[0].as_ref().map_or(0, Vec::len);
    let Choice { epochs, batch, why } = Choice::of(images);
    let name = path.canonicalize().ok();
    let name = name.as_deref().unwrap_or(path).file_name().unwrap_or_default().to_string_lossy();
    let name: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .collect();
    let name = if name.is_empty() { "images".to_owned() } else { name };
    let mut recipe: toml::Table = toml::from_str(builtin_text(BASE)?)?;
    recipe["name"] = name.into();
    recipe["data"]["path"] = path.display().to_string().into();
    recipe["train"]["epochs"] = epochs.into();
    recipe["train"]["batch"] = batch.into();
    say!(
        "no recipe given: `{BASE}`, as {images} images of {} classes suggest",
        folder.classes.len()
    );
    say!("  classes {}", shown(&folder.classes));
    say!("  train   {epochs} epochs with batches of {batch}: {why}");
    say!("  the recipe of the run will be in its folder; `--set KEY=VALUE` changes it");
    Ok(Some((format!("chosen for {}", path.display()), toml::to_string(&recipe)?)))
}

/// Some of many classes.
fn shown(classes: &[String]) -> String {
    const SHOWN: usize = 10;
    let first = classes.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match classes.len() > SHOWN {
        true => format!("{first} and {} more", classes.len() - SHOWN),
        false => first,
    }
}

/// What depends on how many images there are.
#[derive(Debug, PartialEq)]
struct Choice {
    epochs: i64,
    batch: i64,
    why: &'static str,
}

impl Choice {
    /// So many epochs that a network sees about 60,000 images, but each at least 8 and at most 60
    /// times.
    fn of(images: usize) -> Self {
        let images = images.max(1);
        let epochs = (60_000 / images).clamp(8, 60) as i64;
        // A class of few images needs many steps.
        let (batch, why) = match images {
            0..200 => (8, "few images, and each is seen often"),
            200..1000 => (16, "some hundred images"),
            _ => (32, "thousands of images"),
        };
        Self { epochs, batch, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_images_are_seen_often() {
        assert_eq!((Choice::of(1).epochs, Choice::of(1).batch), (60, 8));
        assert_eq!((Choice::of(2000).epochs, Choice::of(2000).batch), (30, 32));
        assert_eq!(Choice::of(1_000_000).epochs, 8);
    }
}
