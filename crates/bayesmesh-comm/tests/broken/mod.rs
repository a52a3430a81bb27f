//! A communicator with a fault of one's choice.

use std::ops::Range;

use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, ThreadCommunicator, share};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Defect {
    /// Nothing.
    Forwards,
    SumsOneByOne,
    SumsFromZero,
    SumsFlushed,
    DoublesAsSingles,
    FastSumsDifferByRank,
    FastSumsMissOne,
    OneRankAddsOtherwise,
    MaximaIgnoreNan,
    MaximaFromTheLeastNumber,
    JoinsOneByOne,
    JoinsInPieces,
    JoinsSwapped,
    SharesOfOthers,
    SharesAddOneByOne,
    SharesNotGathered,
    GathersReversed,
    GathersPadded,
    GathersLoseNan,
    PartsReversed,
    PartsOfTheNext,
    PartsLoseTheEnd,
    BroadcastsFromTheFirst,
    BroadcastsLoseTheEnd,
    IntegersAsSingles,
    IntegersAsDoubles,
    IntegersSaturate,
    BytesReversed,
    BytesCut,
    BytesTrimmed,
    BytesKeepTheirLength,
    BytesFromTheFirst,
    EmptyRefused,
    BarrierDoesNotWait,
    SplitReversed,
    SplitMisnumbered,
    SplitIgnoresColour,
    SplitIsTheSame,
    NodesReversed,
    LengthsNotCompared,
    CallsNotCompared,
    AnyRoot,
    AnyParts,
    CallsWithinCalls,
}

use Defect::*;

/// Every defect and the check that finds it.
pub const DEFECTS: [(Defect, &str); 43] = [
    (SumsOneByOne, "all_reduce, reproducible sums"),
    (SumsFromZero, "all_reduce, reproducible sums"),
    (SumsFlushed, "all_reduce, reproducible sums"),
    (DoublesAsSingles, "all_reduce, reproducible sums"),
    (FastSumsDifferByRank, "all_reduce, fast sums"),
    (FastSumsMissOne, "all_reduce, fast sums"),
    (OneRankAddsOtherwise, "all_reduce, reproducible sums"),
    (MaximaIgnoreNan, "all_reduce, maxima"),
    (MaximaFromTheLeastNumber, "all_reduce, maxima"),
    (JoinsOneByOne, "tree_reduce"),
    (JoinsInPieces, "tree_reduce"),
    (JoinsSwapped, "tree_reduce"),
    (SharesOfOthers, "reduce_scatter"),
    (SharesAddOneByOne, "reduce_scatter"),
    (SharesNotGathered, "all_gather_into"),
    (GathersReversed, "all_gather"),
    (GathersPadded, "all_gather"),
    (GathersLoseNan, "all_gather"),
    (PartsReversed, "all_to_all"),
    (PartsOfTheNext, "all_to_all"),
    (PartsLoseTheEnd, "all_to_all"),
    (BroadcastsFromTheFirst, "broadcast"),
    (BroadcastsLoseTheEnd, "broadcast"),
    (IntegersAsSingles, "all_reduce_u64"),
    (IntegersAsDoubles, "all_reduce_u64"),
    (IntegersSaturate, "all_reduce_u64"),
    (BytesReversed, "all_gather_bytes"),
    (BytesCut, "all_gather_bytes"),
    (BytesTrimmed, "all_gather_bytes"),
    (BytesKeepTheirLength, "broadcast_bytes"),
    (BytesFromTheFirst, "broadcast_bytes"),
    (EmptyRefused, "all_gather"),
    (BarrierDoesNotWait, "barrier"),
    (SplitReversed, "split"),
    (SplitMisnumbered, "split"),
    (SplitIgnoresColour, "split"),
    (SplitIsTheSame, "calls from several threads"),
    (NodesReversed, "split_node"),
    (LengthsNotCompared, "different lengths"),
    (CallsNotCompared, "different calls"),
    (AnyRoot, "calls that cannot be made"),
    (AnyParts, "calls that cannot be made"),
    (CallsWithinCalls, "calls that cannot be made"),
];

/// Thread ranks with a defect.
#[derive(Debug)]
pub struct Broken {
    inner: Inner,
    defect: Defect,
    /// Whether ranks count from the other end.
    reversed: bool,
}

#[derive(Debug)]
enum Inner {
    World(ThreadCommunicator),
    Part(Box<dyn Communicator>),
}

impl Broken {
    pub fn new(comm: &ThreadCommunicator, defect: Defect) -> Self {
        Broken { inner: Inner::World(comm.clone()), defect, reversed: false }
    }

    fn part(&self, inner: Box<dyn Communicator>, reversed: bool) -> Box<dyn Communicator> {
        Box::new(Broken { inner: Inner::Part(inner), defect: self.defect, reversed })
    }

    fn inner(&self) -> &dyn Communicator {
        match &self.inner {
            Inner::World(world) => world,
            Inner::Part(part) => &**part,
        }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    /// What the ranks have, if all bring as much; otherwise the error of `call`.
    fn rows(
        &self,
        values: &[f32],
        call: impl FnOnce() -> Result<(), CommError>,
    ) -> Result<Vec<Vec<f32>>, CommError> {
        call()?;
        self.inner().all_gather(values)
    }

    /// Forgets errors that a careless implementation does not notice.
    fn forgive<T>(&self, result: Result<T, CommError>, otherwise: T) -> Result<T, CommError> {
        match (self.defect, &result) {
            (LengthsNotCompared, Err(CommError::LengthMismatch { .. }))
            | (CallsNotCompared, Err(CommError::CallMismatch { .. }))
            | (AnyRoot, Err(CommError::RootOutOfRange { .. }))
            | (AnyParts, Err(CommError::PartsMismatch { .. }))
            | (CallsWithinCalls, Err(CommError::Busy)) => Ok(otherwise),
            _ => result,
        }
    }

    /// The sum of rows in the order given.
    fn sum(rows: &[Vec<f32>], order: impl Iterator<Item = usize>) -> Vec<f32> {
        let add = |mut sum: Vec<f32>, row: Vec<f32>| {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            sum
        };
        order.map(|rank| rows[rank].clone()).reduce(add).expect("ranks")
    }
}

impl Communicator for Broken {
    fn rank(&self) -> usize {
        let (rank, size) = (self.inner().rank(), self.inner().size());
        if self.reversed { size - 1 - rank } else { rank }
    }

    fn size(&self) -> usize {
        self.inner().size()
    }

    fn all_reduce(
        &self,
        values: &mut [f32],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let (rank, size) = (self.rank(), self.size());
        let before = values.to_vec();
        let result = self.inner().all_reduce(values, operation, reduce);
        if result.is_err() {
            return self.forgive(result, ());
        }
        let is_max = operation == Operation::Max;
        let is_tree = !is_max && reduce == Reduce::Reproducible;
        let is_fast = !is_max && reduce == Reduce::Fast;
        let rows = || self.inner().all_gather(&before);
        match self.defect {
            SumsOneByOne if is_tree => {
                values.copy_from_slice(&Broken::sum(&rows()?, 0..size));
            }
            OneRankAddsOtherwise if is_tree => {
                let rows = rows()?;
                if rank == 3 {
                    values.copy_from_slice(&Broken::sum(&rows, 0..size));
                }
            }
            SumsFromZero if is_tree => values.iter_mut().for_each(|value| *value += 0.0),
            SumsFlushed if is_tree => {
                let tiny = |value: &&mut f32| value.is_subnormal();
                values.iter_mut().filter(tiny).for_each(|value| *value = 0.0);
            }
            FastSumsDifferByRank if is_fast => {
                let order = (0..size).map(|other| (rank + other) % size);
                values.copy_from_slice(&Broken::sum(&rows()?, order));
            }
            FastSumsMissOne if is_fast => {
                values.copy_from_slice(&Broken::sum(&rows()?, 0..size.max(2) - 1));
            }
            MaximaIgnoreNan if is_max => {
                let rows = rows()?;
                for (i, value) in values.iter_mut().enumerate() {
                    *value = rows.iter().map(|row| row[i]).fold(f32::NEG_INFINITY, f32::max);
                }
            }
            MaximaFromTheLeastNumber if is_max => {
                values.iter_mut().filter(|v| **v < f32::MIN).for_each(|v| *v = f32::MIN);
            }
            _ => {}
        }
        Ok(())
    }

    fn all_reduce_f64(
        &self,
        values: &mut [f64],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let result = self.inner().all_reduce_f64(values, operation, reduce);
        if self.has(DoublesAsSingles) {
            values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
        }
        self.forgive(result, ())
    }

    fn all_reduce_u64(&self, values: &mut [u64], operation: Operation) -> Result<(), CommError> {
        let before = values.to_vec();
        let result = self.inner().all_reduce_u64(values, operation);
        if result.is_err() {
            return self.forgive(result, ());
        }
        match self.defect {
            IntegersAsSingles => values.iter_mut().for_each(|v| *v = *v as f32 as u64),
            IntegersAsDoubles => values.iter_mut().for_each(|v| *v = *v as f64 as u64),
            IntegersSaturate if operation == Operation::Sum => {
                let bytes: Vec<u8> =
                    before.iter().flat_map(|number| number.to_le_bytes()).collect();
                let rows = self.inner().all_gather_bytes(&bytes)?;
                for (i, value) in values.iter_mut().enumerate() {
                    let number = |row: &Vec<u8>| u64::from_le_bytes(row.as_chunks().0[i]);
                    *value = rows.iter().map(number).fold(0, u64::saturating_add);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn tree_reduce(
        &self,
        values: &mut [f32],
        combine: &dyn Fn(&mut [f32], &[f32]),
    ) -> Result<(), CommError> {
        match self.defect {
            JoinsOneByOne => {
                let nothing = || self.inner().tree_reduce(&mut values.to_vec(), &|_, _| ());
                let rows = self.rows(values, nothing)?;
                values.copy_from_slice(&rows[0]);
                rows[1..].iter().for_each(|row| combine(values, row));
                Ok(())
            }
            JoinsInPieces => values
                .chunks_mut(100)
                .try_for_each(|piece| self.inner().tree_reduce(piece, combine)),
            JoinsSwapped => self.inner().tree_reduce(values, &|left, right| {
                let mut swapped = right.to_vec();
                combine(&mut swapped, left);
                left.copy_from_slice(&swapped);
            }),
            _ => {
                let result = self.inner().tree_reduce(values, combine);
                self.forgive(result, ())
            }
        }
    }

    fn reduce_scatter(
        &self,
        values: &mut [f32],
        reduce: Reduce,
    ) -> Result<Range<usize>, CommError> {
        let (rank, size) = (self.rank(), self.size());
        let before = values.to_vec();
        let result = self.inner().reduce_scatter(values, reduce);
        match self.defect {
            SharesOfOthers => {
                values.copy_from_slice(&before);
                self.inner().all_reduce(values, Operation::Sum, reduce)?;
                Ok(share(values.len(), size, size - 1 - rank))
            }
            SharesAddOneByOne if result.is_ok() => {
                let rows = self.inner().all_gather(&before)?;
                values.copy_from_slice(&Broken::sum(&rows, 0..size));
                result
            }
            _ => self.forgive(result, 0..0),
        }
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<Vec<f32>>, CommError> {
        if self.has(EmptyRefused) && values.is_empty() {
            return Err(CommError::BucketTooSmall { bytes: 0 });
        }
        let result = self.inner().all_gather(values);
        let mut rows = self.forgive(result, Vec::new())?;
        if self.has(GathersReversed) != self.reversed {
            rows.reverse();
        }
        if self.has(GathersPadded) {
            let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
            rows.iter_mut().for_each(|row| row.resize(longest, 0.0));
        }
        if self.has(GathersLoseNan) {
            let nan = |value: &&mut f32| value.is_nan();
            rows.iter_mut().flatten().filter(nan).for_each(|value| *value = f32::NAN);
        }
        Ok(rows)
    }

    fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let result = self.inner().all_gather_bytes(bytes);
        let mut rows = self.forgive(result, Vec::new())?;
        if self.has(BytesReversed) != self.reversed {
            rows.reverse();
        }
        match self.defect {
            BytesCut => rows.iter_mut().for_each(|row| row.truncate(65_536)),
            BytesTrimmed => {
                rows.iter_mut().for_each(|row| while row.pop_if(|byte| *byte == 0).is_some() {});
            }
            _ => {}
        }
        Ok(rows)
    }

    fn all_gather_into(&self, values: &mut [f32]) -> Result<(), CommError> {
        let before = values.to_vec();
        let result = self.inner().all_gather_into(values);
        if self.has(SharesNotGathered) {
            let last = share(values.len(), self.size(), self.size() - 1);
            values[last.clone()].copy_from_slice(&before[last]);
        }
        self.forgive(result, ())
    }

    fn all_to_all(&self, values: &[f32], parts: &[usize]) -> Result<Vec<f32>, CommError> {
        let mut moved = (values.to_vec(), parts.to_vec());
        if self.has(PartsOfTheNext) && parts.len() == self.size() {
            moved.0.rotate_left(parts[0]);
            moved.1.rotate_left(1);
        }
        let result = self.inner().all_to_all(&moved.0, &moved.1);
        let mut received = self.forgive(result, Vec::new())?;
        match self.defect {
            PartsReversed => received.reverse(),
            PartsLoseTheEnd => received.truncate(65_536),
            _ => {}
        }
        Ok(received)
    }

    fn broadcast(&self, values: &mut [f32], root: usize) -> Result<(), CommError> {
        let before = values.to_vec();
        let root = if self.has(BroadcastsFromTheFirst) { 0 } else { root };
        let result = self.inner().broadcast(values, root);
        if self.has(BroadcastsLoseTheEnd) && values.len() > 65_536 {
            values[65_536..].copy_from_slice(&before[65_536..]);
        }
        self.forgive(result, ())
    }

    fn broadcast_bytes(&self, bytes: &mut Vec<u8>, root: usize) -> Result<(), CommError> {
        let length = bytes.len();
        let root = if self.has(BytesFromTheFirst) { 0 } else { root };
        let result = self.inner().broadcast_bytes(bytes, root);
        if self.has(BytesKeepTheirLength) {
            bytes.resize(length, 0);
        }
        self.forgive(result, ())
    }

    fn barrier(&self) -> Result<(), CommError> {
        if self.has(BarrierDoesNotWait) {
            return Ok(());
        }
        let result = self.inner().barrier();
        self.forgive(result, ())
    }

    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>, CommError> {
        let colour = if self.has(SplitIgnoresColour) { 0 } else { colour };
        match (&self.inner, self.defect) {
            // Saves the work where all are of one colour, as those of the threads are.
            (Inner::World(world), SplitIsTheSame) if colour == 0 => {
                let colours = [colour as u64, !colour as u64];
                let mut largest = colours;
                world.all_reduce_u64(&mut largest, Operation::Max)?;
                if largest == colours {
                    return Ok(Box::new(Broken::new(world, SplitIsTheSame)));
                }
            }
            (_, SplitIsTheSame) => {
                self.inner()
                    .all_reduce_u64(&mut [colour as u64, !colour as u64], Operation::Max)?;
            }
            _ => {}
        }
        let part = self.inner().split(colour)?;
        if self.has(SplitMisnumbered) {
            // Says that it is another rank than the one whose values it has.
            return Ok(Box::new(Broken {
                inner: Inner::Part(part),
                defect: BytesReversed,
                reversed: true,
            }));
        }
        Ok(self.part(part, self.has(SplitReversed)))
    }

    fn split_node(&self) -> Result<Box<dyn Communicator>, CommError> {
        let node = self.inner().split_node()?;
        Ok(self.part(node, self.has(NodesReversed)))
    }

    fn is_concurrent(&self) -> bool {
        self.inner().is_concurrent()
    }

    fn abort(&self, reason: &str) {
        self.inner().abort(reason);
    }
}
