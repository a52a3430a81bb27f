//! Errors of fields on the globe, every area counting by its size.

use super::batch::{check_count, check_finite};
use super::{Metric, MetricError, Score, statistics_field};

/// Share of the sphere of each row of an equiangular grid that includes both poles, relative to the
/// mean row: `w_i = (sin θ_up − sin θ_low) / mean`, the bounds of a row lying midway to its
/// neighbours and at ±90° at the ends (the weights of WeatherBench 2). Their mean is 1. A single
/// row has weight 1.
pub fn latitude_weights(rows: usize) -> Vec<f64> {
    let step = std::f64::consts::PI / (rows.max(2) - 1) as f64;
    // The bound below row i, counted from the south pole, clipped to the poles.
    let bound = |i: usize| {
        let latitude = (i as f64 - 0.5) * step - std::f64::consts::FRAC_PI_2;
        latitude.clamp(-std::f64::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_2)
    };
    if rows == 1 {
        return vec![1.0];
    }
    // The areas add to 2, from pole to pole.
    (0..rows).map(|i| (bound(i + 1).sin() - bound(i).sin()) * rows as f64 / 2.0).collect()
}

/// `latitude_rmse`: `√( mean_t mean_ij w_i (mean_tij − target_tij)² )` with [`latitude_weights`]
/// `w_i`, over fields t on a grid of latitudes i and longitudes j.
#[derive(Clone, Debug)]
pub struct LatitudeRmse {
    weights: Vec<f64>,
    columns: usize,
    /// Σ w, Σ w e².
    statistics: [f64; 2],
}

impl LatitudeRmse {
    /// Fields of `rows` latitudes, both poles included, and `columns` longitudes.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { weights: latitude_weights(rows), columns, statistics: [0.0; 2] }
    }

    /// Adds fields; changes nothing if they are invalid.
    ///
    /// # Shapes
    ///
    /// - `mean`, `target`: `[fields, rows, columns]`, row-major; rows from south to north or from
    ///   north to south
    pub fn add(&mut self, mean: &[f32], target: &[f32]) -> Result<(), MetricError> {
        check_count("means", mean.len(), target.len())?;
        let field = self.weights.len() * self.columns;
        let fields = target.len().checked_div(field).unwrap_or(0);
        check_count("values of whole fields", target.len(), fields * field)?;
        check_finite("mean", mean)?;
        check_finite("target", target)?;
        let rows = mean.chunks_exact(self.columns.max(1));
        let rows = rows.zip(target.chunks_exact(self.columns.max(1)));
        for ((mean, target), weight) in rows.zip(self.weights.iter().cycle()) {
            let errors = mean.iter().zip(target).map(|(&m, &y)| f64::from(m) - f64::from(y));
            self.statistics[0] += weight * self.columns as f64;
            self.statistics[1] += weight * errors.map(|e| e * e).sum::<f64>();
        }
        Ok(())
    }
}

impl Metric for LatitudeRmse {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let [weight, squares] = self.statistics;
        vec![Score::new("latitude_rmse", (squares / weight).sqrt())]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    #[test]
    fn weights_are_areas() {
        // The 1.5° grid of 121 latitudes.
        let weights = latitude_weights(121);
        assert_close(weights[0], 0.00518, 5e-6);
        assert_close(weights[60], 1.58384, 5e-6);
        for rows in [1, 2, 3, 121] {
            let weights = latitude_weights(rows);
            assert_close(weights.iter().sum::<f64>() / rows as f64, 1.0, 1e-13);
            for (south, north) in weights.iter().zip(weights.iter().rev()) {
                assert_close(*south, *north, 1e-13);
            }
        }
        // Bounds at ±45° leave √2 of 2 to the middle row.
        assert_close(latitude_weights(3)[1], 1.5 * 2f64.sqrt(), 1e-14);
        assert!(latitude_weights(0).is_empty());
    }

    #[test]
    fn hand_computed_field() {
        let mut rmse = LatitudeRmse::new(3, 2);
        // Squared errors 1 and 3 at a pole, 4 and 0 at the equator, 0 at the other pole.
        let mean = [1.0, 3f32.sqrt(), 2.0, 0.0, 0.0, 0.0];
        rmse.add(&mean, &[0.0; 6]).unwrap();
        let (pole, equator) = (1.5 * (1.0 - 0.5f64.sqrt()), 1.5 * 2f64.sqrt());
        let expected = ((4.0 * pole + 4.0 * equator) / 6.0).sqrt();
        assert_close(score(&rmse, "latitude_rmse"), expected, 1e-7);
    }

    #[test]
    fn invalid_fields_change_nothing() {
        let mut rmse = LatitudeRmse::new(2, 2);
        rmse.add(&[1.0; 4], &[0.0; 4]).unwrap();
        let before = rmse.statistics().to_vec();
        assert!(rmse.add(&[1.0; 6], &[0.0; 6]).is_err());
        assert!(rmse.add(&[1.0; 4], &[0.0; 8]).is_err());
        assert!(rmse.add(&[1.0, 1.0, 1.0, f32::NAN], &[0.0; 4]).is_err());
        assert_eq!(rmse.statistics(), before);
        assert!(LatitudeRmse::new(0, 2).add(&[1.0], &[1.0]).is_err());
    }

    #[test]
    fn parts_merge() {
        let [mean, _, target] = Lcg(16).regression(6 * 20);
        assert_merges(
            20,
            || LatitudeRmse::new(3, 2),
            |metric, fields| {
                let values = 6 * fields.start..6 * fields.end;
                metric.add(&mean[values.clone()], &target[values]).unwrap();
            },
        );
    }
}
