//! The globe's grid of latitudes and longitudes.

use std::fmt;

/// Latitudes from north to south and longitudes from west to east, in degrees.
///
/// A field on it is `[latitude, longitude]`: row 0 is the northernmost, column 0 the longitude that
/// is nearest to 0° from the east.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    latitudes: Vec<f64>,
    longitudes: Vec<f64>,
}

impl Grid {
    /// Latitudes are strictly descending and longitudes strictly ascending in `[0, 360)`; otherwise
    /// the axis and what is wrong with it.
    pub(super) fn new(
        latitudes: Vec<f64>,
        longitudes: Vec<f64>,
    ) -> Result<Self, (&'static str, String)> {
        let descending = latitudes.windows(2).all(|pair| pair[0] > pair[1]);
        let on_globe = latitudes.iter().all(|latitude| latitude.abs() <= 90.0 + 1e-6);
        if latitudes.len() < 2 || !descending || !on_globe {
            return Err((
                "latitude",
                format!(
                    "{} values from {} to {} that do not go steadily from pole to pole between 90 \
                     and -90 degrees; is it another axis, or in another unit?",
                    latitudes.len(),
                    latitudes.first().copied().unwrap_or(f64::NAN),
                    latitudes.last().copied().unwrap_or(f64::NAN)
                ),
            ));
        }
        let ascending = longitudes.windows(2).all(|pair| pair[0] < pair[1]);
        let step = 360.0 / longitudes.len().max(1) as f64;
        let even = longitudes.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 0.01 * step);
        if longitudes.len() < 2 || !ascending || !even {
            return Err((
                "longitude",
                format!(
                    "{} values that do not go around the globe in equal steps of {step} degrees. \
                     Only global grids are supported: choose a store that has all longitudes",
                    longitudes.len()
                ),
            ));
        }
        Ok(Self { latitudes, longitudes })
    }

    /// An even grid: with an odd number of latitudes those of the poles are among them, as in the
    /// 240×121 grid of the paper; otherwise they are the middles of equal bands. Longitudes begin
    /// at 0°.
    pub fn even(latitudes: usize, longitudes: usize) -> Self {
        let bands = latitudes.max(2) as f64;
        let latitude = |i: usize| match latitudes % 2 {
            1 => 90.0 - 180.0 * i as f64 / (bands - 1.0),
            _ => 90.0 - 180.0 * (i as f64 + 0.5) / bands,
        };
        Self {
            latitudes: (0..latitudes).map(latitude).collect(),
            longitudes: (0..longitudes).map(|i| 360.0 * i as f64 / longitudes as f64).collect(),
        }
    }

    /// In degrees north, north first.
    pub fn latitudes(&self) -> &[f64] {
        &self.latitudes
    }

    /// In degrees east, ascending.
    pub fn longitudes(&self) -> &[f64] {
        &self.longitudes
    }

    /// How many values a field has.
    pub fn points(&self) -> usize {
        self.latitudes.len() * self.longitudes.len()
    }

    /// The weight of each latitude as in WeatherBench2: wᵢ ∝ sin of the upper edge of its cell −
    /// sin of the lower one; edges are half way between rows and at the poles, the mean is 1.
    pub fn weights(&self) -> Vec<f32> {
        let n = self.latitudes.len();
        let edge = |i: usize| match i {
            0 => 90.0,
            i if i == n => -90.0,
            i => 0.5 * (self.latitudes[i - 1] + self.latitudes[i]),
        };
        let sines: Vec<f64> = (0..=n).map(|i| f64::to_radians(edge(i)).sin()).collect();
        // All cells together are 2 = sin 90° − sin −90°.
        sines.windows(2).map(|pair| ((pair[0] - pair[1]) * n as f64 / 2.0) as f32).collect()
    }
}

/// `240×121`: longitudes, latitudes.
impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}", self.longitudes.len(), self.latitudes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_of_the_papers_grid_are_weatherbenchs() {
        // FIDELITY.md section 3.
        let weights = Grid::even(121, 240).weights();
        assert!((weights[0] - 0.00518).abs() < 5e-6, "{}", weights[0]);
        assert!((weights[60] - 1.58384).abs() < 5e-6, "{}", weights[60]);
        assert_eq!(weights[0], weights[120]);
        let mean = weights.iter().sum::<f32>() / 121.0;
        assert!((mean - 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_globe_is_refused() {
        let even = Grid::even(4, 8);
        let (latitudes, longitudes) = (even.latitudes.clone(), even.longitudes.clone());
        assert!(Grid::new(latitudes.clone(), longitudes.clone()).is_ok());
        let (axis, _) = Grid::new(latitudes.clone(), longitudes[..6].to_vec()).unwrap_err();
        assert_eq!(axis, "longitude");
        let (axis, _) = Grid::new(vec![10.0, 20.0], longitudes.clone()).unwrap_err();
        assert_eq!(axis, "latitude");
        let (axis, _) = Grid::new(vec![100.0, 20.0], longitudes).unwrap_err();
        assert_eq!(axis, "latitude");
    }
}
