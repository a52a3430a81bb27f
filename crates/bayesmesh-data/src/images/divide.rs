//! Which images are learned from, validated and tested with.

use bayesmesh_kernels::stream::{Purpose, Stream};

use super::error::ImagesError;
use super::folder::{ImageFile, ImageFolder};

/// How images are divided where there are no folders for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The share of each class for validation.
    pub validation: f64,
    /// The share of each class for the test.
    pub test: f64,
    /// The seed of the lots.
    pub seed: u64,
}

/// Images of training, validation and test.
#[derive(Clone, Debug)]
pub struct Division {
    /// What is learned from.
    pub train: Vec<ImageFile>,
    /// What is validated with; may be none.
    pub valid: Vec<ImageFile>,
    /// What is tested with.
    pub test: Vec<ImageFile>,
}

/// The share of so many images: at least one of three or more, and fewer than half of them.
fn part(count: usize, share: f64) -> usize {
    match count {
        _ if share <= 0.0 => 0,
        0..3 => 0,
        _ => ((count as f64 * share).round() as usize).clamp(1, (count - 1) / 2),
    }
}

impl ImageFolder {
    /// Divides the images: parts that have folders are those; others are drawn by lot from the
    /// training images, of every class its share.
    pub fn divide(&self, shares: Shares) -> Result<Division, ImagesError> {
        let Shares { validation, test, seed } = shares;
        if !(0.0..0.5).contains(&validation) || !(0.0..0.5).contains(&test) {
            return Err(ImagesError::Setting(format!(
                "shares of {validation} for validation and {test} for the test are not possible; \
                 choose numbers from 0 to below 0.5"
            )));
        }
        let [train, valid, given_test] = &self.parts;
        let train = train.as_ref().expect("there are training images");
        let wanted =
            |given: &Option<Vec<ImageFile>>, share| if given.is_some() { 0.0 } else { share };
        let [validation, test] = [wanted(valid, validation), wanted(given_test, test)];
        // 0 is training, 1 validation, 2 test.
        let mut places = vec![0; train.len()];
        for class in 0..self.classes.len() {
            let rows: Vec<usize> =
                (0..train.len()).filter(|&row| train[row].label == Some(class)).collect();
            let [valid, test] = [validation, test].map(|share| part(rows.len(), share));
            // Tensor 0 of this purpose orders the epochs of a training with the same seed.
            let lots = Stream::new(seed, Purpose::Shuffle).at_tensor(1).at_step(class as u32);
            for (lot, index) in lots.permutation(rows.len()).into_iter().enumerate() {
                places[rows[index]] = match lot {
                    lot if lot < test => 2,
                    lot if lot < test + valid => 1,
                    _ => 0,
                };
            }
        }
        let drawn = |place: usize| -> Vec<ImageFile> {
            let those = train.iter().zip(&places).filter(|(_, found)| **found == place);
            those.map(|(file, _)| file.clone()).collect()
        };
        let division = Division {
            train: drawn(0),
            valid: valid.clone().unwrap_or_else(|| drawn(1)),
            test: given_test.clone().unwrap_or_else(|| drawn(2)),
        };
        match division.test.is_empty() {
            false => Ok(division),
            true => Err(ImagesError::folder(
                &self.root,
                format!(
                    "there are no images to test with: of {} images of {} classes none can be \
                     spared. Put at least three images in the folder of a class, make a folder \
                     test/, or set `data.test` above 0",
                    train.len(),
                    self.classes.len()
                ),
            )),
        }
    }
}
