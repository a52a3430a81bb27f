//! Images, divided into those to learn from, to validate and to test with.

use std::path::Path;

use anyhow::{Context, Result};
use bayesmesh::Dataset as _;
use bayesmesh_data::cifar10::{self, Images, Normalisation};
use bayesmesh_schema::{Choice, Keys, Kinds};
use serde::Deserialize;

use crate::recipe::Recipe;

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cifar10Settings {
    /// photographs of 32×32 pixels in ten classes, 50,000 to learn from and 10,000 to test with
    Cifar10 {
        /// The folder of the images, as `bayesmesh data fetch cifar10` makes it. `~/` is the home
        /// folder; a relative path starts at the working directory, not at the recipe.
        #[key(default = "data/cifar10", also("folder", "dir", "root"))]
        path: String,
        /// How many of the training images are used, from the first on, those for validation
        /// included.
        #[key(unset = "all 50,000", at_least = 1, also("subset", "count", "train_limit"))]
        limit: Option<usize>,
        /// How many of the test images are used, from the first on.
        #[key(unset = "all 10,000", at_least = 1, also("test_count"))]
        test_limit: Option<usize>,
        #[serde(flatten)]
        preparation: Preparation,
    },
    /// generated images of the same form, stripes in ten colours; needs no file
    Cifar10Synthetic {
        /// Training images to generate, those for validation included.
        #[key(default = 2000, at_least = 1, at_most = 50_000, also("limit"))]
        count: usize,
        /// Test images to generate.
        #[key(default = 500, at_least = 1, at_most = 10_000, also("test_limit"))]
        test_count: usize,
        /// The seed of the generator. Apart from `train.seed`, so that runs with other seeds see
        /// the same data.
        #[key(default = 1)]
        seed: u64,
        #[serde(flatten)]
        preparation: Preparation,
    },
}

/// How images are divided and prepared.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct Preparation {
    /// The share of the training images that is set aside and scored after every epoch; 0 for none.
    #[key(default = 0.1, at_least = 0, below = 1, also("validation_share", "valid", "val"))]
    pub validation: f64,
    /// The seed of that choice. Apart from `train.seed`, so that runs with other seeds learn from
    /// the same images.
    #[key(default = 0)]
    pub split_seed: u64,
    /// Whether training images are varied: of the image with 4 black pixels around it a random part
    /// of its size, mirrored every other time. `train.augment` says which draws see the same
    /// variation.
    #[key(default = true, also("augment"))]
    pub augmentation: bool,
    /// Pixels minus a mean, divided by a deviation, channel by channel: that of all pixels (0.2470,
    /// 0.2435, 0.2616), or that of the paper's reference code (0.2023, 0.1994, 0.2010).
    #[key(default = "standard", also("normalization"))]
    pub normalisation: PixelScale,
}

/// Whose mean and deviation make numbers of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PixelScale {
    /// Those of all pixels of the training images.
    Standard,
    /// Those of the paper's reference code.
    Reference,
}

/// Everything about the data of a classification.
pub struct Cifar10 {
    /// What is learned from, augmented if the recipe says so.
    pub train: Images,
    /// What is scored after every epoch, as it is; nothing where no share was set aside.
    pub valid: Option<Images>,
    /// What is scored in the end, as it is.
    pub test: Images,
    /// All images that there are.
    all: cifar10::Cifar10,
    normalisation: Normalisation,
}

impl Cifar10Settings {
    fn preparation(&self) -> &Preparation {
        let (Self::Cifar10 { preparation, .. } | Self::Cifar10Synthetic { preparation, .. }) = self;
        preparation
    }

    fn normalisation(&self) -> Normalisation {
        match self.preparation().normalisation {
            PixelScale::Standard => Normalisation::PIXELS,
            PixelScale::Reference => Normalisation::REFERENCE,
        }
    }

    /// How many training and test images are used; all where nothing is said.
    fn limits(&self) -> [Option<usize>; 2] {
        match self {
            Self::Cifar10 { limit, test_limit, .. } => [*limit, *test_limit],
            Self::Cifar10Synthetic { count, test_count, .. } => [Some(*count), Some(*test_count)],
        }
    }

    /// Opens or generates all images.
    fn open(&self, recipe: &Recipe) -> Result<cifar10::Cifar10> {
        match self {
            Self::Cifar10 { path, .. } => {
                cifar10::Cifar10::open(recipe.data_path().unwrap_or_default()).with_context(|| {
                    format!(
                        "data.path is `{path}`; `bayesmesh data fetch cifar10` gets the images, \
                         `--set data.path=FOLDER` names another place"
                    )
                })
            }
            Self::Cifar10Synthetic { count, test_count, seed, .. } => {
                // Five files of training images for every one of test images.
                let per_file = count.div_ceil(5).max(*test_count);
                Ok(cifar10::Cifar10::synthetic(per_file, *seed)?)
            }
        }
    }

    /// Test images to predict: those of a folder, or those of the recipe; the first so many of all,
    /// if that is said.
    pub fn test_images(
        &self,
        recipe: &Recipe,
        folder: Option<&Path>,
        limit: Option<usize>,
    ) -> Result<Images> {
        let (all, own) = match folder {
            Some(folder) => (cifar10::Cifar10::open(folder)?, None),
            None => (self.open(recipe)?, self.limits()[1]),
        };
        Ok(all.test(limit.or(own))?.normalised(self.normalisation())?)
    }
}

impl Cifar10 {
    /// Opens or generates the images of a recipe.
    pub fn new(settings: &Cifar10Settings, recipe: &Recipe) -> Result<Self> {
        let all = settings.open(recipe)?;
        let (normalisation, preparation) = (settings.normalisation(), settings.preparation());
        let [limit, test_limit] = settings.limits();
        let images = all.train(limit)?.normalised(normalisation)?;
        let (train, valid) = images.split(preparation.validation, preparation.split_seed)?;
        Ok(Self {
            train: train.augmented(preparation.augmentation),
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
