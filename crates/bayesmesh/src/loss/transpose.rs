//! Draws are transposed, not gathered: every rank gets all draws of some cells.

use std::ops::Range;

use bayesmesh_comm::{Communicator, share};
use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;

use super::Loss;
use crate::data::{Target as _, Truth};
use crate::error::{Error, Result};

/// What all draws say of some cells, for [`Loss::cells`]. A cell is an output of a row; they follow
/// one another as in `[rows, outputs]`.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// How many draws.
    pub draws: usize,
    /// The place of the first cell in `[rows, outputs]`.
    pub first: usize,
    /// How many outputs a row has.
    pub outputs: usize,
    /// What the draws say, `[draws, cells]`.
    pub members: &'a [f32],
    /// The targets, `[cells]`.
    pub targets: &'a [f32],
}

impl<'a> Cells<'a> {
    /// What a draw says of each cell.
    pub fn draw(&self, index: usize) -> &'a [f32] {
        &self.members[index * self.targets.len()..][..self.targets.len()]
    }

    /// The cells row by row: which of them are of a row, and the output of the first.
    pub fn rows(&self) -> impl Iterator<Item = (Range<usize>, usize)> + use<'a> {
        let (first, count, outputs) = (self.first, self.targets.len(), self.outputs);
        let mut start = 0;
        std::iter::from_fn(move || {
            let output = (first + start) % outputs;
            let own = start..count.min(start + outputs - output);
            start = own.end;
            (!own.is_empty()).then_some((own, output))
        })
    }
}

/// The most blocks into which cells are divided. A rank has whole ones, and the loss is the sum of
/// theirs in order: the same bits on any number of ranks.
const BLOCKS: usize = 256;

/// Cells that a loss gets at a time: few enough that all draws of them stay in cache.
const PIECE: usize = 256;

/// How cells are divided among ranks.
#[derive(Clone, Copy, Debug)]
struct Division {
    cells: usize,
    /// Cells of a block.
    size: usize,
    ranks: usize,
}

impl Division {
    fn new(cells: usize, ranks: usize) -> Self {
        Self { cells, size: cells.div_ceil(BLOCKS).max(1), ranks }
    }

    fn blocks(&self) -> usize {
        self.cells.div_ceil(self.size)
    }

    /// The cells of a rank.
    fn of(&self, rank: usize) -> Range<usize> {
        let blocks = share(self.blocks(), self.ranks, rank);
        let cell = |block: usize| self.cells.min(block * self.size);
        cell(blocks.start)..cell(blocks.end)
    }
}

/// The draws of one rank, as they are sent: rank after rank, and for each its cells of draw after
/// draw.
pub(crate) struct Transpose {
    own_draws: usize,
    ranks: usize,
    pushed: usize,
    shape: [usize; 2],
    parts: Vec<f32>,
}

impl Transpose {
    /// For so many draws on this rank, and so many ranks.
    pub fn new(own_draws: usize, ranks: usize) -> Self {
        Self { own_draws, ranks, pushed: 0, shape: [0, 0], parts: Vec::new() }
    }

    /// Adds the summaries of the next `draws` draws, stacked along the rows.
    pub fn push(&mut self, summary: Tensor<2>, draws: usize) {
        let [rows, columns] = summary.dims();
        self.shape = [rows / draws, columns];
        let values = crate::tensors::to_vec(summary);
        let cells = values.len() / draws;
        let division = Division::new(cells, self.ranks);
        if self.ranks == 1 && self.own_draws == draws {
            self.parts = values;
            self.pushed = draws;
            return;
        }
        self.parts.resize(self.own_draws * cells, 0.0);
        for draw in values.chunks_exact(cells.max(1)) {
            for rank in 0..self.ranks {
                let theirs = division.of(rank);
                let place = self.own_draws * theirs.start + self.pushed * theirs.len();
                self.parts[place..][..theirs.len()].copy_from_slice(&draw[theirs]);
            }
            self.pushed += 1;
        }
    }

    /// The loss of all draws of the ranks of `others`, or of the local ones without, and its
    /// gradient for the local ones, multiplied by `factor`. Collective.
    pub fn finish<L: Loss + ?Sized>(
        self,
        loss: &L,
        target: &L::Target,
        others: Option<&dyn Communicator>,
        draws: usize,
        factor: f32,
    ) -> Result<Transposed> {
        let Truth::Values(targets) = target.truth() else {
            return Err(Error::Setting(
                "a loss that transposes draws needs targets of values, not labels".to_owned(),
            ));
        };
        let Self { own_draws, ranks, shape, mut parts, .. } = self;
        let division = Division::new(shape[0] * shape[1], ranks);
        let rank = others.map_or(0, |others| others.rank());
        let cells = division.of(rank);
        if let Some(others) = others {
            let to = |rank: usize| own_draws * division.of(rank).len();
            parts = others.all_to_all(&parts, &(0..ranks).map(to).collect::<Vec<_>>())?;
        }
        let work = Work { loss, targets: &targets, draws, outputs: shape[1], factor };
        let own_values = work.run(&mut parts, cells.clone(), division.size)?;
        let mut values = vec![0.0; division.blocks()];
        values[share(division.blocks(), ranks, rank)].copy_from_slice(&own_values);
        if let Some(others) = others {
            let to = |rank: usize| share(draws, ranks, rank).len() * cells.len();
            parts = others.all_to_all(&parts, &(0..ranks).map(to).collect::<Vec<_>>())?;
            others.all_gather_into(&mut values)?;
        }
        let value = values.iter().map(|value| f64::from(*value)).sum();
        Ok(Transposed { value, own_draws, division, shape, parts })
    }
}

/// What a rank computes of its cells.
struct Work<'a, L: ?Sized> {
    loss: &'a L,
    targets: &'a [f32],
    draws: usize,
    outputs: usize,
    factor: f32,
}

/// Room for a piece.
#[derive(Default)]
struct Room {
    members: Vec<f32>,
    gradient: Vec<f32>,
    values: Vec<f32>,
}

impl<L: Loss + ?Sized> Work<'_, L> {
    /// Replaces what the draws say of `cells`, `[draws, cells]`, by the gradient; the loss of each
    /// block.
    fn run(&self, members: &mut [f32], cells: Range<usize>, size: usize) -> Result<Vec<f32>> {
        let draws = members.chunks_exact_mut(cells.len().max(1));
        let mut draws: Vec<_> = draws.map(|draw| draw.chunks_mut(size)).collect();
        let blocks = (0..cells.len().div_ceil(size)).map(|index| {
            let of_draws = draws.iter_mut().map(|draw| draw.next().expect("a block of each draw"));
            (cells.start + index * size, of_draws.collect::<Vec<&mut [f32]>>())
        });
        let blocks: Vec<_> = blocks.collect();
        let of_block = |room: &mut Room, (first, mut block): (usize, Vec<&mut [f32]>)| {
            let (mut value, length) = (0.0, block[0].len());
            for start in (0..length).step_by(PIECE) {
                let piece = start..length.min(start + PIECE);
                value += self.piece(room, first + start, &mut block, piece)?;
            }
            Ok(value as f32)
        };
        blocks.into_par_iter().map_init(Room::default, of_block).collect()
    }

    fn piece(
        &self,
        room: &mut Room,
        first: usize,
        block: &mut [&mut [f32]],
        piece: Range<usize>,
    ) -> Result<f64> {
        let count = piece.len();
        room.members.clear();
        block.iter().for_each(|draw| room.members.extend_from_slice(&draw[piece.clone()]));
        room.gradient.clear();
        room.gradient.resize(room.members.len(), 0.0);
        room.values.clear();
        room.values.resize(count, 0.0);
        let cells = Cells {
            draws: self.draws,
            first,
            outputs: self.outputs,
            members: &room.members,
            targets: &self.targets[first..][..count],
        };
        self.loss.cells(&cells, &mut room.values, &mut room.gradient)?;
        for (draw, gradient) in block.iter_mut().zip(room.gradient.chunks_exact(count)) {
            let pairs = draw[piece.clone()].iter_mut().zip(gradient);
            pairs.for_each(|(place, gradient)| *place = self.factor * gradient);
        }
        Ok(room.values.iter().map(|value| f64::from(*value)).sum())
    }
}

/// The loss and its gradient for the draws of a rank.
pub(crate) struct Transposed {
    /// Sum over all rows.
    pub value: f64,
    own_draws: usize,
    division: Division,
    shape: [usize; 2],
    /// In the order of [`Transpose`].
    parts: Vec<f32>,
}

impl Transposed {
    /// The gradient for some of the draws of this rank, stacked along the rows.
    pub fn gradient(&self, draws: Range<usize>, device: &Device) -> Tensor<2> {
        let [rows, columns] = self.shape;
        let mut values = Vec::with_capacity(draws.len() * rows * columns);
        for draw in draws.clone() {
            for rank in 0..self.division.ranks {
                let theirs = self.division.of(rank);
                let place = self.own_draws * theirs.start + draw * theirs.len();
                values.extend_from_slice(&self.parts[place..][..theirs.len()]);
            }
        }
        Tensor::from_data(TensorData::new(values, [draws.len() * rows, columns]), device)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bayesmesh_comm::{CommError, Operation, Reduce, ThreadCommunicator, threads};

    use super::super::testing::{evaluate, tensor};
    use super::super::{EnsembleCrps, OutputWeights, Weighted};
    use super::*;

    type Told<T> = std::result::Result<T, CommError>;

    /// Counts what a rank sends and receives, and refuses what would gather.
    #[derive(Debug)]
    struct Counting<'a> {
        inner: &'a ThreadCommunicator,
        moved: [AtomicUsize; 2],
    }

    macro_rules! unused {
        ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
            $(fn $name(&self, $($argument: $type),*) -> $result {
                $(let _ = $argument;)*
                unreachable!("{}", stringify!($name))
            })*
        };
    }

    impl Communicator for Counting<'_> {
        fn rank(&self) -> usize {
            self.inner.rank()
        }

        fn size(&self) -> usize {
            self.inner.size()
        }

        fn all_to_all(&self, values: &[f32], parts: &[usize]) -> Told<Vec<f32>> {
            let received = self.inner.all_to_all(values, parts)?;
            self.moved[0].fetch_add(values.len(), Ordering::Relaxed);
            self.moved[1].fetch_add(received.len(), Ordering::Relaxed);
            Ok(received)
        }

        fn all_gather_into(&self, values: &mut [f32]) -> Told<()> {
            assert!(values.len() <= BLOCKS, "{} values gathered", values.len());
            self.inner.all_gather_into(values)
        }

        unused! {
            fn all_reduce(v: &mut [f32], o: Operation, r: Reduce) -> Told<()>;
            fn all_reduce_f64(v: &mut [f64], o: Operation, r: Reduce) -> Told<()>;
            fn all_reduce_u64(v: &mut [u64], o: Operation) -> Told<()>;
            fn tree_reduce(v: &mut [f32], c: &dyn Fn(&mut [f32], &[f32])) -> Told<()>;
            fn reduce_scatter(v: &mut [f32], r: Reduce) -> Told<Range<usize>>;
            fn all_gather(v: &[f32]) -> Told<Vec<Vec<f32>>>;
            fn all_gather_bytes(v: &[u8]) -> Told<Vec<Vec<u8>>>;
            fn broadcast(v: &mut [f32], r: usize) -> Told<()>;
            fn broadcast_bytes(v: &mut Vec<u8>, r: usize) -> Told<()>;
            fn barrier() -> Told<()>;
            fn split(c: usize) -> Told<Box<dyn Communicator>>;
            fn split_node() -> Told<Box<dyn Communicator>>;
            fn abort(r: &str) -> ();
        }
    }

    /// Two rows of outputs that do not divide evenly, on ranks that do not either: the loss and the
    /// gradient of one rank, to the bit; and no rank moves or holds more than its own draws and its
    /// share of all.
    #[test]
    fn ranks_have_the_bits_of_one_and_the_numbers_of_their_own_draws() {
        const DRAWS: usize = 7;
        for outputs in [1, 5, 401, 70_000] {
            let cells = 2 * outputs;
            let value = |i: usize| ((i * 7919 % 1009) as f32 - 500.0) / 331.0;
            let draws: Vec<Vec<f32>> = (0..DRAWS)
                .map(|s| (0..cells).map(|k| value(s * 611 + k * (s + 3))).collect())
                .collect();
            let target: Vec<f32> = (0..cells).map(|k| value(13 * k + 5)).collect();
            let weights = (0..outputs).map(|k| 1.0 + (k % 5) as f32).collect();
            let crps = EnsembleCrps::almost_fair(0.95).unwrap();
            let loss = Weighted::new(crps, OutputWeights::new(weights).unwrap());
            let serial = evaluate(&loss, &draws, 0..DRAWS, &tensor(&target, 2), None).unwrap();
            for ranks in [1, 2, 3, 5, 7] {
                let found = threads::run(ranks, |samples| {
                    let counting = Counting { inner: samples, moved: Default::default() };
                    let own = share(DRAWS, ranks, samples.rank());
                    let target = tensor(&target, 2);
                    let found = evaluate(&loss, &draws, own.clone(), &target, Some(&counting))?;
                    assert_eq!(found.1, serial.1[own.clone()]);
                    // There and back; a share of cells is larger than the mean by less than a
                    // block.
                    let least = own.len() * cells + DRAWS * (cells / ranks);
                    let most = least + DRAWS * (cells.div_ceil(BLOCKS) + 1);
                    let moved = counting.moved.map(|count| count.into_inner());
                    assert!(moved.iter().all(|moved| *moved <= most), "{moved:?}, not {most}");
                    assert!(moved[0] > own.len() * cells - 1);
                    Ok::<f32, Error>(found.0)
                });
                let values = found.unwrap();
                assert!(values.iter().all(|value| value.to_bits() == serial.0.to_bits()));
            }
        }
    }

    #[test]
    fn cells_know_their_rows() {
        let cells =
            Cells { draws: 1, first: 8, outputs: 5, members: &[0.0; 9], targets: &[0.0; 9] };
        assert_eq!(cells.rows().collect::<Vec<_>>(), [(0..2, 3), (2..7, 0), (7..9, 0)]);
    }

    #[test]
    fn a_loss_that_forgets_its_cells_is_told() {
        struct Forgets;
        impl Loss for Forgets {
            type Target = Tensor<2>;
            fn combine(&self) -> super::super::Combine {
                super::super::Combine::Transpose
            }
            fn summary(&self, output: Tensor<2>, _: &Tensor<2>) -> Tensor<2> {
                output
            }
        }
        let draws = [vec![0.0], vec![1.0]];
        let error = evaluate(&Forgets, &draws, 0..2, &tensor(&[0.0], 1), None).unwrap_err();
        assert!(error.to_string().contains("implement `Loss::cells`"), "{error}");
    }
}
