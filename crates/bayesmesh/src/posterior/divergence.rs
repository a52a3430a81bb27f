//! The closed-form KL of a part of the flat vector.

use std::ops::Range;

use bayesmesh_kernels::gaussian::{Scale, kl_normal};

/// A Gaussian slot `[μ | ρ]`, its prior `N(m, s²)` and the weight of its KL.
pub(super) struct SlotKl<'a> {
    pub scale: Scale,
    /// μ and ρ.
    pub values: [&'a [f32]; 2],
    /// Where μ starts in the flat vector.
    pub start: usize,
    /// m and s.
    pub prior: (f32, f32),
    pub weight: f32,
}

/// Weights for which only one of μ and ρ is in a range are done so many at a time.
const CHUNK: usize = 1024;

impl SlotKl<'_> {
    /// The KL of the weights whose μ is in `range` of the flat vector; adds `weight` times the
    /// derivatives by each μ and each ρ in it to `gradient`, which has the length of the range.
    pub fn add(&self, range: &Range<usize>, gradient: &mut [f32]) -> f64 {
        let count = self.values[0].len();
        let middle = self.start + count;
        let means = within(self.start..middle, range);
        let rhos = within(middle..middle + count, range);
        // What is in the range of μ ends where ρ begins, or the range does.
        let cut = middle.clamp(range.start, range.end) - range.start;
        let (before, after) = gradient.split_at_mut(cut);
        let grad_means = &mut before[cut - means.len()..];
        let grad_rhos = &mut after[..rhos.len()];

        let start = means.start.max(rhos.start);
        let both = start..means.end.min(rhos.end).max(start);
        let mut kl = 0.0;
        if !both.is_empty() {
            kl += self.term(
                both.clone(),
                &mut grad_means[both.start - means.start..][..both.len()],
                &mut grad_rhos[both.start - rhos.start..][..both.len()],
            );
        }
        let mut idle = [0.0; CHUNK];
        for part in without(&means, &both) {
            let gradient = &mut grad_means[part.start - means.start..][..part.len()];
            for (at, gradient) in (part.start..).step_by(CHUNK).zip(gradient.chunks_mut(CHUNK)) {
                let length = gradient.len();
                kl += self.term(at..at + length, gradient, &mut idle[..length]);
            }
        }
        for part in without(&rhos, &both) {
            let gradient = &mut grad_rhos[part.start - rhos.start..][..part.len()];
            for (at, gradient) in (part.start..).step_by(CHUNK).zip(gradient.chunks_mut(CHUNK)) {
                let length = gradient.len();
                self.term(at..at + length, &mut idle[..length], gradient);
            }
        }
        kl
    }

    fn term(&self, weights: Range<usize>, grad_mean: &mut [f32], grad_rho: &mut [f32]) -> f64 {
        let [mean, rho] = self.values.map(|values| &values[weights.clone()]);
        let (prior_mean, prior_std) = self.prior;
        let weight = self.weight;
        kl_normal(self.scale, mean, rho, prior_mean, prior_std, weight, grad_mean, grad_rho)
    }
}

/// The elements of `part` that are in `range`, counted from the start of `part`.
fn within(part: Range<usize>, range: &Range<usize>) -> Range<usize> {
    let start = range.start.clamp(part.start, part.end);
    let end = range.end.clamp(start, part.end);
    start - part.start..end - part.start
}

/// What of `range` is before and after `hole`.
fn without(range: &Range<usize>, hole: &Range<usize>) -> [Range<usize>; 2] {
    let start = hole.start.clamp(range.start, range.end);
    let end = hole.end.clamp(start, range.end);
    [range.start..start, end..range.end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every division of a vector into two or three ranges gives the bits of the whole.
    #[test]
    fn parts_have_the_gradient_of_the_whole_and_add_up_to_it() {
        let mean: Vec<f32> = (0..7).map(|i| i as f32 * 0.3 - 1.0).collect();
        let rho: Vec<f32> = (0..7).map(|i| -0.2 * i as f32).collect();
        let values = [&mean[..], &rho[..]];
        let (prior, weight) = ((0.1, 0.8), 0.7);
        // The slot lies at 3..17 of a vector of 20 elements.
        let slot = SlotKl { scale: Scale::Softplus, values, start: 3, prior, weight };
        let first: Vec<f32> = (0..20).map(|i| i as f32 * 0.01).collect();
        let mut expected = first.clone();
        let whole = slot.add(&(0..20), &mut expected);
        assert!(expected.iter().zip(&first).filter(|(new, old)| new != old).count() == 14);
        for one in 0..=20 {
            for two in one..=20 {
                let mut gradient = first.clone();
                let mut sum = 0.0;
                for range in [0..one, one..two, two..20] {
                    sum += slot.add(&range, &mut gradient[range.clone()]);
                }
                assert_eq!(gradient, expected, "cut at {one} and {two}");
                assert!((sum - whole).abs() < 1e-12, "{sum} instead of {whole}");
            }
        }
    }

    /// More weights without their partner than are done at a time.
    #[test]
    fn long_parts_have_the_gradient_of_the_whole() {
        let count = 3 * CHUNK + 5;
        let mean: Vec<f32> = (0..count).map(|i| (i as f32).sin()).collect();
        let rho: Vec<f32> = (0..count).map(|i| (i as f32).cos() - 2.0).collect();
        let values = [&mean[..], &rho[..]];
        let slot = SlotKl { scale: Scale::Exp, values, start: 0, prior: (0.0, 1.0), weight: 1.0 };
        let mut expected = vec![0.0; 2 * count];
        let whole = slot.add(&(0..2 * count), &mut expected);
        for cut in [10, CHUNK + 3, count, count + 2 * CHUNK] {
            let mut gradient = vec![0.0; 2 * count];
            let (left, right) = gradient.split_at_mut(cut);
            let sum = slot.add(&(0..cut), left) + slot.add(&(cut..2 * count), right);
            assert!(gradient == expected, "cut at {cut}");
            assert!((sum - whole).abs() < 1e-9 * whole, "{sum} instead of {whole}");
        }
    }
}
