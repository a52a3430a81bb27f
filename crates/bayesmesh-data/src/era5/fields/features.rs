//! Channels that follow from time and place.

use std::f64::consts::TAU;

use crate::era5::grid::Grid;
use crate::era5::time::of_day_and_year;

/// How many there are.
pub const FEATURES: usize = 4;

/// What features need of a grid.
#[derive(Clone, Debug)]
pub(super) struct Features {
    /// Of each latitude.
    sines: Vec<f64>,
    /// Of each longitude, in radians.
    angles: Vec<f64>,
    season: bool,
}

impl Features {
    /// With the day of the year, or without.
    pub fn new(grid: &Grid, season: bool) -> Self {
        Self {
            season,
            sines: grid.latitudes().iter().map(|degrees| degrees.to_radians().sin()).collect(),
            angles: grid.longitudes().iter().map(|degrees| degrees.to_radians()).collect(),
        }
    }

    /// Appends the four channels of a time, with φ latitude, λ longitude, h the hour of the day and
    /// d days since the year began: sin and cos of 2πh/24 + λ, and of 2πd/365.25 times sin φ.
    /// Without seasons the last two are sin φ and cos φ.
    pub fn append(&self, time: i64, out: &mut Vec<f32>) {
        let (hour, day) = of_day_and_year(time);
        for function in [f64::sin, f64::cos] {
            let row = self.angles.iter().map(|angle| function(TAU * hour / 24.0 + angle) as f32);
            let row: Vec<f32> = row.collect();
            (0..self.sines.len()).for_each(|_| out.extend_from_slice(&row));
        }
        let year = TAU * day / 365.25;
        let last: [fn(f64, f64) -> f64; 2] = match self.season {
            true => [|sine, year| sine * year.sin(), |sine, year| sine * year.cos()],
            false => [|sine, _| sine, |sine, _| (1.0 - sine * sine).max(0.0).sqrt()],
        };
        for feature in last {
            for sine in &self.sines {
                out.extend(std::iter::repeat_n(feature(*sine, year) as f32, self.angles.len()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era5::time::parse_date;

    #[test]
    fn features_are_what_the_formulas_say() {
        let grid = Grid::even(3, 4);
        let mut out = Vec::new();
        let time = parse_date("2021-04-02T07:30").unwrap();
        Features::new(&grid, true).append(time, &mut out);
        assert_eq!(out.len(), 4 * 12);
        let mut without = Vec::new();
        Features::new(&grid, false).append(time, &mut without);
        assert_eq!(without[..24], out[..24]);
        let (hour, day) = (7.5, 91.0 + 7.5 / 24.0);
        for (i, latitude) in grid.latitudes().iter().enumerate() {
            for (j, longitude) in grid.longitudes().iter().enumerate() {
                let daily = TAU * hour / 24.0 + longitude.to_radians();
                let yearly = TAU * day / 365.25;
                let sine = latitude.to_radians().sin();
                let expected = [daily.sin(), daily.cos(), sine * yearly.sin(), sine * yearly.cos()];
                let [north, equator] = [2, 3].map(|channel| without[channel * 12 + i * 4 + j]);
                assert!((f64::from(north) - sine).abs() < 1e-6);
                assert!((f64::from(equator) - latitude.to_radians().cos()).abs() < 1e-6);
                for (channel, expected) in expected.into_iter().enumerate() {
                    let found = f64::from(out[channel * 12 + i * 4 + j]);
                    assert!((found - expected).abs() < 1e-6, "{channel} {i} {j}");
                }
            }
        }
    }
}
