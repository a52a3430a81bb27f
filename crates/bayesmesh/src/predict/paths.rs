//! Joint samples of all outputs of an example.

use std::slice::from_ref;

use rayon::prelude::*;

use super::Predictive;
use super::predictive::Components;
use crate::error::{Error, Result};
use crate::metrics::{Stairs, normal};
use crate::{Purpose, Stream};

impl Predictive {
    /// So many joint samples of the outputs of each row, `[rows, paths, outputs]`.
    ///
    /// A path is what one draw says, plus noise that hangs together from output to output as the
    /// errors on validation data did (the calibration has learned it; without one, noise is
    /// independent): `x = ŷ_s + √v_s ∘ ε` with `ε ~ N(0, C)`. Then every value is moved to where
    /// its level is after calibration, `y = G⁻¹(F(x))`, so that the paths have the calibrated
    /// distribution at every output and the dependence of draws and noise between them.
    ///
    /// Path i is that of draw i, counted round where there are fewer draws. `seed` and the number
    /// of the first row say which noise it is: the same paths wherever they are made.
    pub fn paths(&self, count: usize, seed: u64, first_row: usize) -> Result<Vec<f32>> {
        if self.predicts_classes() {
            return Err(Error::Setting("paths are of values; these are classes".to_owned()));
        }
        if count == 0 || count > u32::MAX as usize {
            return Err(Error::Setting(format!("{count} paths are not possible; use 1 or more")));
        }
        let rows = (0..self.rows()).into_par_iter();
        let paths = rows.flat_map_iter(|row| {
            let row_of = u32::try_from((first_row + row) % u32::MAX as usize).expect("it fits");
            self.paths_of(row, count, Stream::new(seed, Purpose::Paths).at_step(row_of))
        });
        Ok(paths.collect())
    }

    /// The paths of one row, `[paths, outputs]`.
    fn paths_of(&self, row: usize, count: usize, stream: Stream) -> Vec<f32> {
        let outputs = self.outputs();
        let root = self.lens().map(|lens| lens.root()).filter(|root| !root.is_empty());
        let cells: Vec<(Vec<f64>, Vec<f64>)> =
            (0..outputs).map(|output| self.mixture(row * outputs + output)).collect();
        let mixtures: Vec<Components<'_>> =
            cells.iter().map(|(means, variances)| Components::new(means, variances)).collect();
        let mut paths = vec![0.0; count * outputs];
        let mut noise = vec![0.0f32; outputs];
        for (path, values) in paths.chunks_exact_mut(outputs).enumerate() {
            let draw = path % self.draws();
            stream.at_draw(path as u32).fill_normal(0, &mut noise);
            for (output, value) in values.iter_mut().enumerate() {
                let correlated: f64 = match root {
                    Some(root) => {
                        let weights = &root[output * outputs..][..=output];
                        weights.iter().zip(&noise).map(|(w, e)| w * f64::from(*e)).sum()
                    }
                    None => noise[output].into(),
                };
                let (means, variances) = &cells[output];
                let std = variances.get(draw).copied().unwrap_or(0.0).sqrt();
                if self.predicts_counts() {
                    *value = self.count_at(row * outputs + output, draw, correlated) as f32;
                    continue;
                }
                let x = means[draw] + std * correlated;
                let map = self.lens().map(|lens| lens.map(row * outputs + output));
                *value = match map.filter(|_| std > 0.0) {
                    Some(map) => {
                        let (tail, above) = mixtures[output].tail(x);
                        mixtures[output].quantile((map.raw_tail(tail), above), x)
                    }
                    None => x,
                } as f32;
            }
        }
        paths
    }

    /// The count of a draw that lies as far out in it as a normal number does, moved to where its
    /// level is after calibration.
    fn count_at(&self, cell: usize, draw: usize, normal_number: f64) -> f64 {
        let (means, variances) = self.mixture(cell);
        let of_draw =
            Stairs::new(&means[draw..=draw], &variances[draw..=draw], from_ref(&(0..1)), 0.0);
        let tail = |level: f64| (2.0 * level.min(1.0 - level), level > 0.5);
        let (outside, above) = tail(normal::cdf(normal_number));
        let count = of_draw.quantile(outside, above);
        let Some(lens) = self.lens() else { return count };
        let mixture = Stairs::new(&means, &variances, from_ref(&(0..means.len())), count);
        let (outside, above) = tail(mixture.say(count, None, None).pit());
        mixture.quantile(lens.map(cell).raw_tail(outside), above)
    }
}
