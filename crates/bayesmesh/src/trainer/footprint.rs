//! How much memory the steps of a run take.

use bayesmesh_comm::{BucketReducer, Reduce, share};
use bayesmesh_kernels::Precision;

use super::{Memory, OptimizerConfig, Settings};
use crate::loss::Combine;

/// How large the network, its posterior and an example are, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Weights of the network.
    pub weights: u64,
    /// Trainable numbers of the posterior: as many as weights where all draws have the same ones.
    pub numbers: u64,
    /// What the network keeps of one example and one draw between its forward and its backward
    /// pass.
    pub activations: u64,
    /// Of one example what the network takes, and the truth.
    pub example: u64,
    /// What the network makes of one example.
    pub outputs: u64,
}

/// What one rank holds when it holds most, in bytes, beside the program and the data set.
///
/// With n numbers, w weights and d draws on a rank, all of four bytes:
///
/// | held | how much | when |
/// |---|---|---|
/// | values | n | always |
/// | optimiser | 2n for Adam, divided among the ranks if so chosen | always |
/// | weights | w a draw that is kept, w for all where all have the same | until its backward pass ends |
/// | activations | of each draw that is kept | until its backward pass ends |
/// | sums | n; reproducible up to (⌊log₂ d⌋ + 1)·n | from the beginning of the first backward pass |
/// | gradients of weights | w; in the first step of a run also where later ones send them at once | the end of a backward pass |
///
/// In bf16 activations are half as large, but for what a residual connection carries: all in all
/// five eighths are counted.
///
/// All draws are kept by [`Memory::Retain`] for losses that need it, else one at a time. The peak
/// is the beginning or the end of some backward pass. That the sum is written while activations go
/// does not help: their memory is kept for the next step.
///
/// ```
/// use bayesmesh::loss::Combine;
/// use bayesmesh::trainer::{Footprint, Settings, Sizes};
///
/// let sizes = Sizes { weights: 50_000_000, numbers: 100_000_000, ..Sizes::default() };
/// let adam = Footprint::of(&Settings::default(), Combine::Mean, &sizes);
/// // Values, two moments, the sum; weights of a draw and their gradients.
/// assert_eq!(adam.values + adam.optimizer + adam.sums, 4 * 400_000_000);
/// assert_eq!(adam.weights + adam.gradients, 400_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Trainable numbers.
    pub values: u64,
    /// The state of the optimiser, and what its step needs.
    pub optimizer: u64,
    /// Weights of draws.
    pub weights: u64,
    /// Activations of draws.
    pub activations: u64,
    /// Sums over draws.
    pub sums: u64,
    /// Gradients of weights, or what is on its way to other ranks instead.
    pub gradients: u64,
    /// What the loss makes of outputs.
    pub outputs: u64,
    /// Batches that are loaded, or about to be.
    pub batches: u64,
    /// What the allocator cannot use between blocks.
    pub gaps: u64,
}

impl Footprint {
    /// That of a rank that has as many draws and rows as any, for a loss that combines draws so.
    pub fn of(settings: &Settings, combine: Combine, sizes: &Sizes) -> Self {
        let mesh = settings.mesh;
        let draws = share(settings.samples, mesh.samples_size(), 0).len() as u64;
        let rows = share(settings.batch, mesh.data_size(), 0).len() as u64;
        let bytes = |numbers: u64| numbers.saturating_mul(size_of::<f32>() as u64);
        let certain = sizes.numbers <= sizes.weights;
        let keeps = settings.memory == Memory::Retain && (certain || combine != Combine::Mean);
        let sends_early = settings.overlap && mesh.size() > 1 && !settings.shard_optimizer;

        let (numbers, weights) = (bytes(sizes.numbers), bytes(sizes.weights));
        let on_the_way = numbers.min(BucketReducer::MOST_ON_THE_WAY as u64);
        let gradients = if sends_early { weights.max(on_the_way) } else { weights };
        let activations = bytes(rows.saturating_mul(sizes.activations));
        let activations = match settings.precision {
            Precision::F32 => activations,
            Precision::Bf16 => activations / 8 * 5,
        };
        let parts = if settings.shard_optimizer { mesh.size() as u64 } else { 1 };
        let (state, step) = match settings.optimizer {
            OptimizerConfig::Adam { .. } | OptimizerConfig::AdamW { .. } => (2, 0),
            OptimizerConfig::Sgd { momentum, .. } => (u64::from(momentum > 0.0), 2),
        };
        let always = Self {
            values: numbers,
            optimizer: numbers.saturating_mul(state).div_ceil(parts),
            outputs: bytes(
                rows.saturating_mul(sizes.outputs).saturating_mul(of_outputs(combine, settings)),
            ),
            batches: bytes(sizes.example.saturating_mul(rows))
                .saturating_mul(1 + settings.prefetch as u64),
            ..Self::default()
        };
        // As soon as a backward pass is over: the sum is summed over ranks, and changes the values.
        let update = Self {
            sums: numbers,
            optimizer: always.optimizer.saturating_add(numbers.saturating_mul(step) / parts),
            ..always
        };
        let moments = (0..draws).flat_map(|done| {
            let left = if keeps { draws - done } else { 1 };
            let sums = match settings.reduce {
                Reduce::Fast => 1,
                Reduce::Reproducible => u64::from(done.count_ones()) + 1,
            };
            let begin = Self {
                weights: weights.saturating_mul(if certain { 1 } else { left }),
                activations: activations.saturating_mul(left),
                sums: numbers.saturating_mul(sums),
                ..always
            };
            let end =
                Self { activations: activations.saturating_mul(left - 1), gradients, ..begin };
            [begin, end]
        });
        let gaps = |moment: Self| {
            let blocks = [moment.weights, moment.activations, moment.gradients];
            let blocks = blocks.into_iter().fold(0, u64::saturating_add);
            Self { gaps: blocks / GAPS, ..moment }
        };
        let moments = moments.chain([update]).map(gaps);
        moments.max_by_key(Self::total).unwrap_or(always)
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        let Self {
            values,
            optimizer,
            weights,
            activations,
            sums,
            gradients,
            outputs,
            batches,
            gaps,
        } = *self;
        let items =
            [values, optimizer, weights, activations, sums, gradients, outputs, batches, gaps];
        items.into_iter().fold(0, u64::saturating_add)
    }
}

/// Free memory lies in pieces between tensors, some too small for the next one: of the bytes of
/// tensors one in so many more is lost.
const GAPS: u64 = 10;

/// How many numbers a loss holds for an output of the network: tensors of its summary, what draws
/// combine to, its value and its gradient.
fn of_outputs(combine: Combine, settings: &Settings) -> u64 {
    match combine {
        Combine::Mean | Combine::Sum | Combine::LogSumExp => 6,
        // Three columns for one, in the fold, as a tensor and with its gradient.
        Combine::Moments => 16,
        // All draws side by side, as they come, as a tensor, with its gradient and in between.
        Combine::Gather => 6 + 5 * settings.samples as u64,
        // The draws of this rank as they are, on their way, and their gradients.
        Combine::Transpose => {
            6 + 3 * settings.samples.div_ceil(settings.mesh.samples_size()) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use bayesmesh_comm::Mesh;

    use super::*;

    const N: u64 = 4 * 200_000_000;
    const SIZES: Sizes = Sizes {
        weights: 100_000_000,
        numbers: 200_000_000,
        activations: 0,
        example: 0,
        outputs: 0,
    };

    fn footprint(change: impl FnOnce(&mut Settings, &mut Sizes)) -> Footprint {
        let (mut settings, mut sizes) = (Settings { batch: 1, ..Settings::default() }, SIZES);
        change(&mut settings, &mut sizes);
        Footprint::of(&settings, Combine::Moments, &sizes)
    }

    fn total(change: impl FnOnce(&mut Settings, &mut Sizes)) -> u64 {
        let footprint = footprint(change);
        footprint.total() - footprint.gaps
    }

    #[test]
    fn items_are_those_of_a_step() {
        assert_eq!(total(|_, _| {}), 5 * N);
        let two = |settings: &mut Settings| {
            settings.samples = 2;
            settings.mesh = Mesh::samples(2).unwrap();
        };
        // Of divided moments each rank has half.
        assert_eq!(total(|settings, _| two(settings)), 5 * N);
        let divided = total(|settings, _| {
            two(settings);
            settings.shard_optimizer = true;
        });
        assert_eq!(divided, 4 * N);
        let sgd = |settings: &mut Settings, _: &mut Sizes| {
            settings.optimizer = OptimizerConfig::sgd();
        };
        assert_eq!(total(sgd), 4 * N);
        // Dropout: no second number, and draws share their weights.
        assert_eq!(total(|_, sizes| sizes.numbers = sizes.weights), 6 * N / 2);
    }

    #[test]
    fn activations_and_the_sum_add() {
        let large = |settings: &mut Settings, sizes: &mut Sizes, draws| {
            settings.samples = draws;
            sizes.activations = 800_000_000;
        };
        // However many draws there are.
        for draws in [1, 2] {
            assert_eq!(
                total(|settings, sizes| large(settings, sizes, draws)),
                4 * N + N / 2 + 4 * N
            );
        }
    }

    #[test]
    fn draws_count_where_they_are_kept_or_summed_by_a_tree() {
        let eight = |settings: &mut Settings| settings.samples = 8;
        assert_eq!(total(|settings, _| eight(settings)), 5 * N);
        let tree = total(|settings, _| {
            eight(settings);
            settings.reduce = Reduce::Reproducible;
        });
        // Sums of four, of two, of one, and the last one.
        assert_eq!(tree, 8 * N);
        let kept = footprint(|settings, sizes| {
            eight(settings);
            settings.memory = Memory::Retain;
            sizes.activations = 100_000_000;
        });
        // When the first backward pass ends its activations are gone, its weights are not.
        assert_eq!((kept.activations, kept.weights), (7 * N / 2, 8 * N / 2));
        // Nothing of any size is too much to count.
        let huge = Sizes { weights: u64::MAX / 2, numbers: u64::MAX, ..SIZES };
        assert_eq!(footprint(|_, sizes| *sizes = huge).total(), u64::MAX);
    }
}
