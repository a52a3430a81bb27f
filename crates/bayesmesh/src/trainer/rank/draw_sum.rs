//! Sums over the draws of a rank.

use std::ops::Range;

use bayesmesh_comm::{Reduce, TreeFold};

/// Sums vectors over the draws of a rank: in place, or by the fixed tree over the draw index.
#[derive(Debug)]
pub enum DrawSum {
    Fast(Vec<f32>),
    Reproducible(TreeFold<Vec<f32>>, usize),
}

impl DrawSum {
    pub fn new(reduce: Reduce, len: usize) -> Self {
        match reduce {
            Reduce::Fast => Self::Fast(vec![0.0; len]),
            Reduce::Reproducible => Self::Reproducible(TreeFold::new(), len),
        }
    }

    /// Adds one draw, which `add` writes by adding to the vector it is given.
    pub fn add(&mut self, add: impl FnOnce(&mut [f32])) {
        match self {
            Self::Fast(sum) => add(sum),
            Self::Reproducible(tree, len) => {
                let mut one = vec![0.0; *len];
                add(&mut one);
                tree.push(one, add_vectors);
            }
        }
    }

    pub fn finish(self) -> Vec<f32> {
        match self {
            Self::Fast(sum) => sum,
            Self::Reproducible(tree, len) => {
                tree.finish(add_vectors).unwrap_or_else(|| vec![0.0; len])
            }
        }
    }

    /// For the last draw, whose parts are wanted as soon as they are known.
    pub fn last(self) -> LastSum {
        match self {
            Self::Fast(sum) => LastSum { earlier: Vec::new(), own: sum },
            Self::Reproducible(tree, len) => {
                LastSum { earlier: tree.into_partials(), own: vec![0.0; len] }
            }
        }
    }
}

fn add_vectors(mut left: Vec<f32>, right: Vec<f32>) -> Vec<f32> {
    left.iter_mut().zip(&right).for_each(|(l, r)| *l += r);
    left
}

/// The sum over draws while the last one is being added, finished part by part. To the bit what
/// [`DrawSum::add`] and [`DrawSum::finish`] give.
#[derive(Debug, Default)]
pub struct LastSum {
    /// What the earlier draws came to, from left to right in the tree.
    earlier: Vec<Vec<f32>>,
    /// To which the last draw is added; where a part is finished, the sum over all.
    pub own: Vec<f32>,
}

impl LastSum {
    /// Makes a part in which the last draw is complete the sum over all draws.
    pub fn finish(&mut self, part: Range<usize>) {
        for earlier in self.earlier.iter().rev() {
            let pairs = self.own[part.clone()].iter_mut().zip(&earlier[part.clone()]);
            pairs.for_each(|(sum, left)| *sum += left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_finished_in_parts_has_the_bits_of_one_finished_at_once() {
        let draw = |index: usize| {
            move |into: &mut [f32]| {
                let add = |(place, sum): (usize, &mut f32)| {
                    *sum +=
                        1.0 / (3.0 + index as f32) * 10f32.powi(place as i32 % 7 - index as i32);
                };
                into.iter_mut().enumerate().for_each(add);
            }
        };
        for reduce in [Reduce::Fast, Reduce::Reproducible] {
            for draws in 1..12 {
                let (mut at_once, mut in_parts) =
                    (DrawSum::new(reduce, 20), DrawSum::new(reduce, 20));
                (0..draws).for_each(|index| at_once.add(draw(index)));
                (0..draws - 1).for_each(|index| in_parts.add(draw(index)));
                let mut last = in_parts.last();
                draw(draws - 1)(&mut last.own);
                for part in [13..20, 5..13, 0..5] {
                    last.finish(part);
                }
                assert_eq!(last.own, at_once.finish(), "{reduce} sum of {draws}");
            }
        }
    }
}
