//! Weights that are single numbers.

use bayesmesh_kernels::stream::Stream;

use super::Family;

/// A weight is one number, the same in every draw: `w = θ`, `∂L/∂θ = g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point;

impl Family for Point {
    fn names(&self) -> &[&str] {
        &[""]
    }

    fn sample(&self, _noise: &Stream, numbers: &[f32], weights: &mut [f32]) {
        weights.copy_from_slice(numbers);
    }

    fn pull_back(&self, _noise: &Stream, _numbers: &[f32], gradient: &[f32], into: &mut [f32]) {
        into.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
    }

    fn deviations(&self, numbers: &[f32]) -> Vec<f32> {
        vec![0.0; numbers.len()]
    }

    fn is_certain(&self) -> bool {
        true
    }

    fn id(&self) -> String {
        "point".to_owned()
    }
}
