//! Images in folders, divided into those to learn from, to validate and to test with.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bayesmesh::Dataset as _;
use bayesmesh_data::images::{
    Augmentation, Broken, CHANNELS, Division, ImageFile, ImageFolder, ImageSet, ImagesError,
    Listing, Normalisation, Reading, Shares,
};
use bayesmesh_schema::{Keys, Kinds};
use serde::Deserialize;

use crate::progress::Counter;
use crate::recipe::Recipe;

/// What checkpoints call mean and deviation of the training pixels.
pub const PIXELS: &str = "pixels";

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ImagesSettings {
    /// a folder of PNG and JPEG images of any size for each class
    Images(ImagesKeys),
}

/// How images are found, divided and prepared.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct ImagesKeys {
    /// The folder that has a folder of images for each class, or such folders in `train/`, `valid/`
    /// and `test/`. `~/` is the home folder; a relative path starts at the working directory, not
    /// at the recipe.
    #[key(required = "\"photos\"", also("folder", "dir", "root"))]
    pub path: String,
    /// Height and width that images get: the largest square in the middle, resized.
    #[key(default = 64, at_least = 8, at_most = 1024, also("image_size", "resolution", "side"))]
    pub size: usize,
    /// The classes, by the names of their folders. A run has those that it was trained with in its
    /// recipe.
    #[key(unset = "all folders with images", items = 2, also("labels", "class_names"))]
    pub classes: Option<Vec<String>>,
    /// The share of the images of each class that is set aside and scored after every epoch; not
    /// where there is a folder `valid/`. Predictions are calibrated on them.
    #[key(default = 0.15, at_least = 0, below = 0.5, also("validation_share", "valid", "val"))]
    pub validation: f64,
    /// The share of the images of each class that the network is scored on in the end; not where
    /// there is a folder `test/`.
    #[key(default = 0.15, at_least = 0, below = 0.5, also("test_share"))]
    pub test: f64,
    /// The seed of that choice. Apart from `train.seed`, so that runs with other seeds learn from
    /// the same images.
    #[key(default = 0)]
    pub split_seed: u64,
    /// Training images are random windows of themselves: the share of the area that is lost at
    /// most; 0 for none. `train.augment` says which draws see the same variation.
    #[key(default = 0.3, at_least = 0, below = 1, also("random_crop"))]
    pub crop: f64,
    /// Whether training images are mirrored, left to right, every other time; not for letters.
    #[key(default = true, also("mirror", "hflip"))]
    pub flip: bool,
    /// Brightness, contrast and saturation of training images are multiplied by random numbers from
    /// 1 − c to 1 + c.
    #[key(default = 0.2, at_least = 0, below = 1, also("color", "color_jitter"))]
    pub colour: f64,
    /// Operations drawn by lot for each training image, as RandAugment does: turned, sheared,
    /// moved, brighter, more contrast, more saturation, full range, fewer levels, inverted where
    /// bright, or nothing.
    #[key(default = 0, at_most = 12, also("rand_augment", "num_ops"))]
    pub operations: usize,
    /// How strong these are at most.
    #[key(default = 0.5, at_least = 0, at_most = 1, also("magnitude"))]
    pub strength: f64,
    /// Memory for decoded images, in GiB. Where they need more, files are decoded for every batch.
    #[key(default = 4.0, at_least = 0, also("memory_gib"))]
    pub cache_gib: f64,
}

/// Mean and deviation of the training pixels, which all images are normalised by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(Normalisation);

/// Six numbers: the means of red, green and blue, then the deviations.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.0.mean;
        let [d, e, g] = self.0.std;
        write!(f, "{a} {b} {c} {d} {e} {g}")
    }
}

impl FromStr for Scale {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Vec<f32> = text.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let part = |first: usize| -> [f32; CHANNELS] {
            std::array::from_fn(|c| numbers.get(first + c).copied().unwrap_or(f32::NAN))
        };
        Ok(Self(Normalisation { mean: part(0), std: part(CHANNELS) }))
    }
}

/// Everything about the data of a classification.
pub struct Images {
    /// What is learned from, varied as the recipe says.
    pub train: ImageSet,
    /// What is scored after every epoch; nothing where no images were set aside.
    pub valid: Option<ImageSet>,
    /// What is scored in the end.
    pub test: ImageSet,
    /// The names of the classes.
    pub classes: Arc<[String]>,
    /// What a person should know of the data.
    pub findings: Vec<String>,
    /// What images are normalised by.
    pub scale: Scale,
    /// The keys.
    pub settings: ImagesSettings,
}

impl ImagesSettings {
    fn keys(&self) -> &ImagesKeys {
        let Self::Images(keys) = self;
        keys
    }

    /// The classes that a run was trained with.
    pub fn classes(&self) -> Vec<String> {
        self.keys().classes.clone().unwrap_or_default()
    }

    /// The folder with the images of a recipe.
    pub fn folder(&self, recipe: &Recipe) -> Result<ImageFolder> {
        let keys = self.keys();
        let path = recipe.data_path().unwrap_or_default();
        let folder = ImageFolder::open(&path, keys.classes.as_deref());
        folder.with_context(|| {
            format!("data.path is `{}`; `--set data.path=FOLDER` names another place", keys.path)
        })
    }

    /// Whether so many decoded images are kept in memory.
    fn keeps(&self, images: usize) -> bool {
        let keys = self.keys();
        let bytes = images as f64 * (CHANNELS * keys.size * keys.size) as f64;
        bytes <= keys.cache_gib * (1u64 << 30) as f64
    }

    fn read(&self, files: Vec<ImageFile>, keep: bool) -> Result<(ImageSet, Vec<Broken>)> {
        let counter = Counter::reading(files.len(), "images");
        let progress = || counter.add(1);
        let reading = Reading { size: self.keys().size, keep, progress: &progress };
        Ok(ImageSet::read(files, reading)?)
    }

    /// Images to predict: all in a folder and the folders within it, with those that are broken.
    pub fn images_of(&self, folder: &Path, scale: Scale) -> Result<(ImageSet, Vec<Broken>)> {
        let Listing { images, .. } = Listing::of(folder, &self.classes())?;
        let keep = self.keeps(images.len());
        let (images, broken) = self.read(images, keep)?;
        if images.is_empty() {
            return Err(all_broken(folder, &broken).into());
        }
        Ok((images.normalised(scale.0)?, broken))
    }
}

fn all_broken(folder: &Path, broken: &[Broken]) -> ImagesError {
    let first = broken.first().map_or(String::new(), |first| format!(": {}", first.problem));
    let problem = format!("no image in it can be read{first}");
    ImagesError::Folder { folder: folder.into(), problem }
}

/// Some of many names, with how many there are.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len() > SHOWN {
        true => format!("{shown} and {} more", names.len() - SHOWN),
        false => shown,
    }
}

/// `1 file`, `2 files`.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Images {
    /// Reads the images of a recipe.
    pub fn new(settings: &ImagesSettings, recipe: &Recipe) -> Result<Self> {
        let keys = settings.keys();
        let folder = settings.folder(recipe)?;
        let shares = Shares { validation: keys.validation, test: keys.test, seed: keys.split_seed };
        let Division { train, valid, test } = folder.divide(shares)?;
        let keep = settings.keeps(train.len() + valid.len() + test.len());
        let (mut sets, mut broken) = (Vec::new(), Vec::new());
        for files in [train, valid, test] {
            let (set, found) = settings.read(files, keep)?;
            sets.push(set);
            broken.extend(found);
        }
        let test = sets.pop().expect("three parts");
        let valid = sets.pop().expect("three parts");
        let train = sets.pop().expect("three parts");
        let mut findings = findings(&folder, &broken);
        findings.extend(check(&folder, &broken, &train, &valid, &test)?);
        let scale = Scale(train.statistics());
        Ok(Self {
            train: train.normalised(scale.0)?.augmented(Some(keys.augmentation())),
            valid: match valid.is_empty() {
                true => None,
                false => Some(valid.normalised(scale.0)?),
            },
            test: test.normalised(scale.0)?,
            classes: folder.classes.into(),
            findings,
            scale,
            settings: settings.clone(),
        })
    }
}

impl ImagesKeys {
    fn augmentation(&self) -> Augmentation {
        let Self { crop, flip, colour, operations, strength, .. } = *self;
        Augmentation { crop, flip, colour, operations, strength }
    }
}

/// What is not used of a folder.
fn findings(folder: &ImageFolder, broken: &[Broken]) -> Vec<String> {
    let mut findings = Vec::new();
    if !broken.is_empty() {
        let names: Vec<String> = broken.iter().map(|broken| broken.problem.clone()).collect();
        let count = counted(broken.len(), "image", "images");
        findings.push(format!("left out, {count} that cannot be read: {}", some(&names)));
    }
    for (names, one, many, why) in [
        (&folder.others, "file", "files", "no PNG or JPEG by name"),
        (&folder.left_out, "folder", "folders", "of no class or part, or links to what was read"),
        (&folder.empty, "folder", "folders", "without images"),
    ] {
        if !names.is_empty() {
            let count = counted(names.len(), one, many);
            findings.push(format!("left out, {count} {why}: {}", some(names)));
        }
    }
    findings
}

/// Refuses parts of which nothing can be learned; says which classes a part lacks.
fn check(
    folder: &ImageFolder,
    broken: &[Broken],
    train: &ImageSet,
    valid: &ImageSet,
    test: &ImageSet,
) -> Result<Vec<String>> {
    let missing = |set: &ImageSet| -> Vec<String> {
        let classes = folder.classes.iter().enumerate();
        let has = |class: usize| set.files().iter().any(|file| file.label == Some(class));
        classes.filter(|(class, _)| !has(*class)).map(|(_, name)| name.clone()).collect()
    };
    let refuse = |problem: String| ImagesError::Folder { folder: folder.root.clone(), problem };
    if let Some(class) = missing(train).first() {
        let reason = broken.first().map_or(String::new(), |first| format!(" ({})", first.problem));
        return Err(refuse(format!(
            "there is no readable image of the class `{class}` to learn from{reason}"
        ))
        .into());
    }
    if test.is_empty() {
        return Err(all_broken(&folder.root.join("test"), broken).into());
    }
    let mut words = Vec::new();
    for (set, part) in [(valid, "validation"), (test, "test")] {
        let missing = missing(set);
        if !set.is_empty() && !missing.is_empty() {
            let count = counted(missing.len(), "class has", "classes have");
            words.push(format!("{count} no {part} images: {}", some(&missing)));
        }
    }
    Ok(words)
}
