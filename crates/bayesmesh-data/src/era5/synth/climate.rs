//! What the made-up weather is like: its climate, and how its anomalies move.

use std::f64::consts::TAU;

use crate::era5::grid::Grid;
use crate::era5::time::of_day_and_year;
use crate::era5::variable::Variable;

/// The weather of one variable.
///
/// Its climate at latitude φ and longitude λ is
/// `middle + tilt·sin²φ + yearly·sin φ·cos(2π(day − 200)/365.25)
/// + daily·cos φ·cos(2π(hour − 15)/24 + λ)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Climate {
    middle: f64,
    tilt: f64,
    yearly: f64,
    daily: f64,
    /// The deviation of anomalies.
    pub deviation: f64,
    /// How much of an anomaly is left after 6 hours.
    persistence: f64,
    /// How far anomalies reach, in degrees.
    pub reach: f64,
    /// How far an anomaly moves east in 6 hours, in degrees, where it moves fastest.
    speed: f64,
    /// The share of the movement that is fastest at 45° (∝ sin² 2φ); the rest is at the equator
    /// (∝ cos² φ).
    jet: f64,
}

impl Climate {
    /// Of a variable of ERA5, roughly; of others, anomalies of deviation 1 around 0.
    pub fn of(variable: &Variable) -> Self {
        let level = f64::from(variable.level.unwrap_or(1000));
        // The standard atmosphere: temperature falls as this power of the pressure.
        let thin = (level / 1013.25).powf(0.19);
        let height = 44_330.0 * 9.806_65 * (1.0 - thin);
        let aloft = 1.0 - level / 1000.0;
        let row = |middle, tilt, yearly, daily, deviation| (middle, tilt, yearly, daily, deviation);
        let moves = |persistence, reach, speed, jet| (persistence, reach, speed, jet);
        let (values, moves) = match variable.name.as_str() {
            "2m_temperature" => (row(300.0, -35.0, 12.0, 4.0, 4.0), moves(0.90, 14.0, 7.0, 0.6)),
            "temperature" => (
                row((300.0 * thin).max(212.0), -30.0 + 20.0 * aloft, 8.0, 0.5, 3.5),
                moves(0.91, 15.0, 8.0, 0.7),
            ),
            "10m_u_component_of_wind" => {
                (row(-2.0, 5.0, 1.0, 0.3, 4.0), moves(0.86, 11.0, 9.0, 0.8))
            }
            "10m_v_component_of_wind" => {
                (row(0.0, 0.5, -1.0, 0.3, 3.5), moves(0.84, 10.0, 8.0, 0.8))
            }
            "u_component_of_wind" => (
                row(2.0 + 15.0 * aloft, 3.0, -2.0, 0.3, 6.0 + 6.0 * aloft),
                moves(0.88, 12.0, 10.0, 0.8),
            ),
            "v_component_of_wind" => {
                (row(0.0, 0.2, -0.5, 0.3, 5.0 + 5.0 * aloft), moves(0.85, 11.0, 9.0, 0.8))
            }
            "geopotential" => (
                row(
                    height + 2000.0,
                    -6000.0 * (0.3 + 0.7 * aloft),
                    900.0,
                    30.0,
                    700.0 + 600.0 * aloft,
                ),
                moves(0.93, 18.0, 10.0, 0.7),
            ),
            "mean_sea_level_pressure" => {
                (row(101_300.0, -900.0, 200.0, 60.0, 800.0), moves(0.91, 15.0, 9.0, 0.7))
            }
            "specific_humidity" => {
                let moist = 0.016 * (level / 1000.0).powi(3);
                (
                    row(moist, -0.8 * moist, 0.1 * moist, 0.0, 0.15 * moist),
                    moves(0.88, 12.0, 8.0, 0.6),
                )
            }
            _ => (row(0.0, 0.0, 0.0, 0.0, 1.0), moves(0.90, 14.0, 8.0, 0.6)),
        };
        let (middle, tilt, yearly, daily, deviation) = values;
        let (persistence, reach, speed, jet) = moves;
        Self { middle, tilt, yearly, daily, deviation, persistence, reach, speed, jet }
    }

    /// How much of an anomaly is left after a number of seconds.
    pub fn persistence(&self, seconds: i64) -> f64 {
        self.persistence.powf(seconds as f64 / 21_600.0)
    }

    /// How far an anomaly at this latitude moves east in a number of seconds, in degrees.
    pub fn shift(&self, latitude: f64, seconds: i64) -> f64 {
        let latitude = latitude.to_radians();
        let jet = (2.0 * latitude).sin().powi(2);
        let trades = latitude.cos().powi(2);
        let speed = self.speed * (self.jet * jet + (1.0 - self.jet) * trades);
        speed * seconds as f64 / 21_600.0
    }

    /// The climate at a time: `[latitude, longitude]`.
    pub fn at(&self, grid: &Grid, time: i64) -> Vec<f32> {
        let (hour, day) = of_day_and_year(time);
        let season = (TAU * (day - 200.0) / 365.25).cos();
        let clock = TAU * (hour - 15.0) / 24.0;
        let suns: Vec<f64> =
            grid.longitudes().iter().map(|degrees| (clock + degrees.to_radians()).cos()).collect();
        let mut out = Vec::with_capacity(grid.points());
        for latitude in grid.latitudes() {
            let (sin, cos) = latitude.to_radians().sin_cos();
            let row = self.middle + self.tilt * sin * sin + self.yearly * sin * season;
            out.extend(suns.iter().map(|sun| (row + self.daily * cos * sun) as f32));
        }
        out
    }
}
