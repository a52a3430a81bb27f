//! Where batches come from.

use std::ops::Range;

use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{Device, Int, Tensor, TensorData};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// What the targets of a batch are, on the host, for scoring predictions.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// Class numbers, one a row.
    Labels(Vec<usize>),
    /// Values, row by row.
    Values(Vec<f32>),
}

/// Targets of a batch.
pub trait Target: Rows {
    /// The targets on the host.
    fn truth(&self) -> Truth;
}

impl Target for Tensor<1, Int> {
    fn truth(&self) -> Truth {
        let labels = self.clone().try_into_vec_as::<i64>().expect("integers can be read back");
        // A negative label becomes one that no network has a class for, and is reported as such.
        Truth::Labels(
            labels.into_iter().map(|l| usize::try_from(l).unwrap_or(usize::MAX)).collect(),
        )
    }
}

impl Target for Tensor<2> {
    fn truth(&self) -> Truth {
        Truth::Values(crate::tensors::to_vec(self.clone()))
    }
}

/// Examples that can be fetched by their numbers.
pub trait Dataset: Sync {
    /// Inputs of a batch, as the network takes them.
    type Input: Rows;
    /// Targets of a batch, as the loss takes them.
    type Target: Target;

    /// How many examples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The examples with these numbers, in this order, on the device.
    ///
    /// In training it is called ahead of time from threads in the background, for several batches
    /// at once where several ranks share them.
    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Self::Input, Self::Target)>;

    /// A short text that tells these examples from others, by which the ranks of a job make sure
    /// that all have the same ones; [`Checksum`] makes one. By default they compare only how many
    /// there are.
    fn checksum(&self) -> Option<String> {
        None
    }

    /// Where an example stands in time, for forecasts of series; nothing, the default, where
    /// examples have no order. Those of a series come in the order of time.
    ///
    /// By it calibration learns from what has come true before ([`Follower`](crate::Follower)).
    fn moment(&self, row: usize) -> Option<Moment> {
        let _ = row;
        None
    }

    /// A random variation of loaded inputs for training; `None`, the default, leaves them as they
    /// are, which lets draws share what they have in common.
    ///
    /// Take the numbers for example `rows[i]` from `stream` by an address made of `rows[i]`, not of
    /// `i`: then the result does not depend on how the batch is divided among ranks.
    fn augment(&self, input: &Self::Input, rows: &[usize], stream: &Stream) -> Option<Self::Input> {
        let _ = (input, rows, stream);
        None
    }
}

/// Where a forecast stands: in which series, and at what time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The number of the series.
    pub series: u64,
    /// The time of the first value that is forecast, in steps of the series; the k-th after it is
    /// k steps later. All values before it are known when the forecast is made.
    pub time: i64,
}

/// Makes a short text of many bytes, other bytes giving another one but for bad luck: the first
/// sixteen hexadecimal digits of their SHA-256, the same on every machine.
///
/// ```
/// use bayesmesh::data::Checksum;
///
/// let text = |values: &[f32]| Checksum::default().floats(values).text();
/// assert_eq!(text(&[1.0, 2.0]), text(&[1.0, 2.0]));
/// assert_ne!(text(&[1.0, 2.0]), text(&[2.0, 1.0]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Checksum(Sha256);

impl Checksum {
    /// Takes bytes in.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(bytes);
        self
    }

    /// Takes the bits of numbers in, little-endian.
    #[must_use]
    pub fn floats(mut self, values: &[f32]) -> Self {
        for values in values.chunks(4096) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.0.update(bytes);
        }
        self
    }

    /// Sixteen hexadecimal digits.
    pub fn text(&self) -> String {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A tensor, or several, whose first axis counts examples. Ranks that train on the same rows get
/// clones, which should be cheap, as those of tensors are.
pub trait Rows: Clone + Send {
    /// The number of examples.
    fn rows(&self) -> usize;
    /// Refuses parts that do not have the same number of examples.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// The examples with these numbers, on the device.
    ///
    /// # Panics
    ///
    /// If there is no example of such a number.
    fn select_rows(&self, rows: &[usize], device: &Device) -> Self;
    /// Batches one after the other, as one batch.
    fn stack(batches: Vec<Self>) -> Self;
    /// Appends everything another process needs to have the same, bit for bit.
    fn pack(&self, words: &mut Vec<f32>);
    /// What [`pack`](Self::pack) wrote, taken from the front of `words`; an error if it did not
    /// write them.
    fn unpack(words: &mut &[f32], device: &Device) -> Result<Self>;
}

/// Appends a shape and the bits of values, as the words that ranks send each other.
fn pack<const D: usize>(shape: [usize; D], values: impl Iterator<Item = u32>, into: &mut Vec<f32>) {
    into.extend(shape.iter().map(|&size| f32::from_bits(size as u32)));
    into.extend(values.map(f32::from_bits));
}

/// The shape that [`pack`] wrote, and the bits of the values, each of so many words.
fn unpack<'a, const D: usize>(
    words: &mut &'a [f32],
    width: usize,
) -> Result<([usize; D], &'a [f32])> {
    let parts = words.split_first_chunk::<D>().and_then(|(shape, rest)| {
        let shape = shape.map(|size| size.to_bits() as usize);
        let count = shape.iter().try_fold(width, |count, &size| count.checked_mul(size))?;
        let (values, rest) = rest.split_at_checked(count)?;
        Some((shape, values, rest))
    });
    let Some((shape, values, rest)) = parts else {
        return Err(Error::Data(format!(
            "{} words of another rank are no batch; do all ranks run the same program on the same \
             data?",
            words.len()
        )));
    };
    *words = rest;
    Ok((shape, values))
}

fn indices(rows: &[usize], device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
    let n = rows.len();
    Tensor::from_data(TensorData::new(rows, [n]), device)
}

impl<const D: usize> Rows for Tensor<D> {
    fn rows(&self) -> usize {
        self.dims()[0]
    }

    fn select_rows(&self, rows: &[usize], device: &Device) -> Self {
        let selected = self.clone().select(0, indices(rows, &self.device()));
        selected.to_device(device)
    }

    fn stack(batches: Vec<Self>) -> Self {
        Tensor::cat(batches, 0)
    }

    fn pack(&self, words: &mut Vec<f32>) {
        let values = crate::tensors::to_vec(self.clone());
        pack(self.dims(), values.into_iter().map(f32::to_bits), words);
    }

    fn unpack(words: &mut &[f32], device: &Device) -> Result<Self> {
        let (shape, values) = unpack::<D>(words, 1)?;
        Ok(Tensor::from_data(TensorData::new(values.to_vec(), shape), device))
    }
}

impl<const D: usize> Rows for Tensor<D, Int> {
    fn rows(&self) -> usize {
        self.dims()[0]
    }

    fn select_rows(&self, rows: &[usize], device: &Device) -> Self {
        let selected = self.clone().select(0, indices(rows, &self.device()));
        selected.to_device(device)
    }

    fn stack(batches: Vec<Self>) -> Self {
        Tensor::cat(batches, 0)
    }

    fn pack(&self, words: &mut Vec<f32>) {
        let values = self.clone().try_into_vec_as::<i64>().expect("integers can be read back");
        let halves = values.into_iter().flat_map(|value| [value as u32, (value >> 32) as u32]);
        pack(self.dims(), halves, words);
    }

    fn unpack(words: &mut &[f32], device: &Device) -> Result<Self> {
        let (shape, values) = unpack::<D>(words, 2)?;
        let whole =
            |halves: &[f32]| i64::from(halves[0].to_bits()) | i64::from(halves[1].to_bits()) << 32;
        let values: Vec<i64> = values.chunks_exact(2).map(whole).collect();
        Ok(Tensor::from_data(TensorData::new(values, shape), device))
    }
}

impl<A: Rows, B: Rows> Rows for (A, B) {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn check(&self) -> Result<()> {
        self.0.check()?;
        self.1.check()?;
        let (first, second) = (self.0.rows(), self.1.rows());
        match first == second {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "a pair of {first} and {second} rows; both must have one for each example"
            ))),
        }
    }

    fn select_rows(&self, rows: &[usize], device: &Device) -> Self {
        (self.0.select_rows(rows, device), self.1.select_rows(rows, device))
    }

    fn stack(batches: Vec<Self>) -> Self {
        let (a, b) = batches.into_iter().unzip();
        (A::stack(a), B::stack(b))
    }

    fn pack(&self, words: &mut Vec<f32>) {
        self.0.pack(words);
        self.1.pack(words);
    }

    fn unpack(words: &mut &[f32], device: &Device) -> Result<Self> {
        Ok((A::unpack(words, device)?, B::unpack(words, device)?))
    }
}

/// A data set that fits in memory: two tensors with the same number of rows, or a part of them.
#[derive(Clone, Debug)]
pub struct TensorDataset<I, T> {
    inputs: I,
    targets: T,
    /// Which of their rows are examples.
    rows: Range<usize>,
}

impl<I: Rows, T: Rows> TensorDataset<I, T> {
    /// Pairs inputs with targets; refuses different numbers of rows, and none.
    pub fn new(inputs: I, targets: T) -> Result<Self> {
        inputs.check()?;
        targets.check()?;
        if inputs.rows() != targets.rows() {
            return Err(Error::Data(format!(
                "{} rows of inputs but {} rows of targets; they must be equal",
                inputs.rows(),
                targets.rows()
            )));
        }
        if inputs.rows() == 0 {
            return Err(Error::Data("a data set of no rows; give it at least one".to_owned()));
        }
        let rows = 0..inputs.rows();
        Ok(Self { inputs, targets, rows })
    }

    /// Parts that follow one another, with these shares of the rows, e.g. `[0.8, 0.1, 0.1]` for
    /// training, validation and test. Refuses shares of which a part would have no row. Rows stay
    /// in their order: shuffle them before where neighbours are alike.
    pub fn split<const N: usize>(&self, shares: [f64; N]) -> Result<[Self; N]> {
        let rows = self.rows.len();
        let mut ends = vec![0];
        let mut sum = 0.0;
        for share in shares {
            sum += share;
            ends.push((sum * rows as f64).round() as usize);
        }
        let valid = ends.windows(2).all(|ends| ends[0] < ends[1]) && sum < 1.0 + 1e-9;
        if !valid {
            return Err(Error::Data(format!(
                "{rows} rows cannot be split into shares of {shares:?}; every part needs a row, \
                 and the shares add up to at most 1"
            )));
        }
        Ok(std::array::from_fn(|part| {
            let at = |end: usize| self.rows.start + ends[end].min(rows);
            Self { rows: at(part)..at(part + 1), ..self.clone() }
        }))
    }
}

impl<I: Rows + Sync, T: Target + Sync> Dataset for TensorDataset<I, T> {
    type Input = I;
    type Target = T;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn checksum(&self) -> Option<String> {
        let mut words = Vec::new();
        self.inputs.pack(&mut words);
        self.targets.pack(&mut words);
        let checksum = Checksum::default().floats(&words);
        match self.rows == (0..self.inputs.rows()) {
            true => Some(checksum.text()),
            false => Some(checksum.bytes(format!("{:?}", self.rows).as_bytes()).text()),
        }
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(I, T)> {
        if let Some(row) = rows.iter().find(|row| **row >= self.len()) {
            return Err(Error::Data(format!(
                "example {row} of {}; examples count from 0 to below their number",
                self.len()
            )));
        }
        let rows: Vec<usize> = rows.iter().map(|row| self.rows.start + row).collect();
        Ok((self.inputs.select_rows(&rows, device), self.targets.select_rows(&rows, device)))
    }
}

/// The order in which examples are visited: a fresh permutation for every epoch, keyed by the seed,
/// and full batches only.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    seed: u64,
    examples: usize,
    batch: usize,
    epoch: Option<(usize, Vec<usize>)>,
}

impl Batches {
    /// Of a batch that the examples fill.
    pub fn new(seed: u64, examples: usize, batch: usize) -> Self {
        Self { seed, examples, batch, epoch: None }
    }

    fn steps_per_epoch(&self) -> usize {
        self.examples / self.batch
    }

    /// The examples of the global batch of a step.
    pub fn rows(&mut self, step: usize) -> &[usize] {
        let (epoch, position) = (step / self.steps_per_epoch(), step % self.steps_per_epoch());
        if self.epoch.as_ref().is_none_or(|(known, _)| *known != epoch) {
            let stream = Stream::new(self.seed, Purpose::Shuffle).at_step(epoch as u32);
            self.epoch = Some((epoch, stream.permutation(self.examples)));
        }
        let order = &self.epoch.as_ref().expect("set above").1;
        &order[position * self.batch..][..self.batch]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_each_example_once_in_an_order_of_its_own() {
        let mut batches = Batches::new(7, 12, 4);
        let mut orders = Vec::new();
        for epoch in 0..2 {
            let mut seen: Vec<usize> = Vec::new();
            for step in 0..3 {
                seen.extend(batches.rows(epoch * 3 + step));
            }
            orders.push(seen.clone());
            seen.sort_unstable();
            assert_eq!(seen, (0..12).collect::<Vec<_>>());
        }
        assert_ne!(orders[0], orders[1]);
    }

    #[test]
    fn a_step_has_the_same_rows_whenever_it_is_asked_for() {
        let mut one = Batches::new(3, 10, 3);
        let mut other = one.clone();
        let late = one.rows(7).to_vec();
        (0..7).for_each(|step| _ = other.rows(step).len());
        assert_eq!(other.rows(7), late);
    }

    /// Rows of zeros.
    fn zeros(rows: usize) -> Tensor<2> {
        Tensor::zeros([rows, 2], &Device::default())
    }

    #[test]
    fn tensors_that_do_not_go_together_are_refused() {
        let told = |outcome: Result<()>, text: &str| {
            assert_eq!(outcome.unwrap_err().to_string(), text);
        };
        told(
            TensorDataset::new(zeros(3), zeros(4)).map(drop),
            "data: 3 rows of inputs but 4 rows of targets; they must be equal",
        );
        told(
            TensorDataset::new((zeros(3), zeros(2)), zeros(3)).map(drop),
            "data: a pair of 3 and 2 rows; both must have one for each example",
        );
        told(
            TensorDataset::new((zeros(3), (zeros(3), zeros(4))), zeros(3)).map(drop),
            "data: a pair of 3 and 4 rows; both must have one for each example",
        );
        told(
            TensorDataset::new(zeros(0), zeros(0)).map(drop),
            "data: a data set of no rows; give it at least one",
        );
        assert!(TensorDataset::new((zeros(3), zeros(3)), zeros(3)).is_ok());
    }

    #[test]
    fn words_that_are_no_rows_are_refused() {
        let device = Device::default();
        let mut words = Vec::new();
        (zeros(3), Tensor::<1, Int>::arange(0..3, &device)).pack(&mut words);
        let of_shape = |shape: [u32; 2]| shape.map(f32::from_bits).to_vec();
        let cut = words[..words.len() - 1].to_vec();
        for words in [vec![], vec![0.0], of_shape([3, 2]), of_shape([u32::MAX; 2]), cut] {
            let rows = <(Tensor<2>, Tensor<1, Int>)>::unpack(&mut &words[..], &device);
            let message = rows.unwrap_err().to_string();
            assert!(message.contains("no batch"), "{message}");
        }
        assert!(<(Tensor<2>, Tensor<1, Int>)>::unpack(&mut &words[..], &device).is_ok());
    }

    #[test]
    fn parts_follow_one_another() {
        let x = Tensor::<1, Int>::arange(0..10, &Device::default()).float().unsqueeze_dim::<2>(1);
        let data = TensorDataset::new(x.clone(), x).unwrap();
        let parts = data.split([0.5, 0.25, 0.25]).unwrap();
        let values: Vec<Vec<f32>> = parts
            .iter()
            .map(|part| {
                let rows: Vec<usize> = (0..part.len()).collect();
                crate::tensors::to_vec(part.batch(&rows, &Device::default()).unwrap().1)
            })
            .collect();
        assert_eq!(values.concat(), (0..10).map(|i| i as f32).collect::<Vec<_>>());
        assert_eq!(values.iter().map(Vec::len).collect::<Vec<_>>(), [5, 3, 2]);
        assert_eq!(data.split([0.3]).unwrap()[0].len(), 3);
        assert_eq!(parts[1].split([0.4, 0.6]).unwrap()[1].rows, 6..8);
        assert_ne!(parts[0].checksum(), parts[1].checksum());
        for shares in [[0.9, 0.01], [0.9, 0.2], [-0.1, 0.5], [f64::NAN, 0.5]] {
            let message = data.split(shares).unwrap_err().to_string();
            assert!(message.contains("cannot be split"), "{message}");
        }
    }

    #[test]
    fn an_example_that_does_not_exist_is_an_error() {
        let data = TensorDataset::new(zeros(3), zeros(3)).unwrap();
        let error = data.batch(&[0, 3], &Device::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "data: example 3 of 3; examples count from 0 to below their number"
        );
        assert_eq!(data.batch(&[2, 0], &Device::default()).unwrap().0.rows(), 2);
    }
}
