//! Images, divided into those to learn from, to validate and to test with.

use anyhow::{Context, Result};
use bayesmesh::Dataset as _;
use bayesmesh_data::cifar10::{self, Cifar10, Images};

use crate::recipe::{Data, Normalisation, Recipe};

/// Everything about the data of a classification.
pub struct Classification {
    /// What is learned from, augmented if the recipe says so.
    pub train: Images,
    /// What is scored after every epoch, as it is; nothing where no share was set aside.
    pub valid: Option<Images>,
    /// What is scored in the end, as it is.
    pub test: Images,
    /// All images that there are.
    all: Cifar10,
    normalisation: cifar10::Normalisation,
}

impl Classification {
    /// Opens or generates the images of a recipe.
    pub fn new(recipe: &Recipe) -> Result<Self> {
        let (all, limit, test_limit) = match &recipe.data {
            Data::Cifar10 { path, limit, test_limit, .. } => {
                let folder = recipe.data.file().expect("this kind has a folder");
                let all = Cifar10::open(folder).with_context(|| {
                    format!(
                        "data.path is `{path}`; `bayesmesh data fetch cifar10` gets the images, \
                         `--set data.path=FOLDER` names another place"
                    )
                })?;
                (all, *limit, *test_limit)
            }
            Data::Cifar10Synthetic { count, test_count, seed, .. } => {
                // Five files of training images for every one of test images.
                let per_file = count.div_ceil(5).max(*test_count);
                (Cifar10::synthetic(per_file, *seed)?, Some(*count), Some(*test_count))
            }
            Data::Load { .. } | Data::LoadSynthetic { .. } => {
                unreachable!("a series is not classified")
            }
        };
        let settings = recipe.data.images().expect("images are divided and prepared");
        let normalisation = match settings.normalisation {
            Normalisation::Standard => cifar10::Normalisation::PIXELS,
            Normalisation::Reference => cifar10::Normalisation::REFERENCE,
        };
        let images = all.train(limit)?.normalised(normalisation)?;
        let (train, valid) = images.split(settings.validation, settings.split_seed)?;
        Ok(Self {
            train: train.augmented(settings.augmentation),
            valid: Some(valid).filter(|valid| !valid.is_empty()),
            test: all.test(test_limit)?.normalised(normalisation)?,
            all,
            normalisation,
        })
    }

    /// The first so many test images.
    pub fn first_test_images(&self, count: usize) -> Result<Images> {
        Ok(self.all.test(Some(count))?.normalised(self.normalisation)?)
    }

    /// Whether the images are generated.
    pub fn is_synthetic(&self) -> bool {
        self.all.is_synthetic()
    }
}
