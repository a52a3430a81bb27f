//! Daily sales of some shops, made up: something to forecast without any file.

use std::io::Write as _;
use std::path::Path;

use bayesmesh::{Purpose, Stream};
use bayesmesh_files::{AtomicFile, FileError, create_folder_of};

use crate::load::format_time;
use crate::table::TableError;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthConfig {
    /// How many shops.
    pub shops: usize,
    /// How long.
    pub days: usize,
    /// The seed.
    pub seed: u64,
}

impl Default for SynthConfig {
    fn default() -> Self {
        Self { shops: 8, days: 1095, seed: 1 }
    }
}

/// A day of a shop.
#[derive(Clone, Debug, PartialEq)]
pub struct Day {
    /// The day, in seconds since 1970.
    pub time: i64,
    /// The number of the shop.
    pub shop: usize,
    /// What is sold.
    pub sales: f64,
    /// The standard deviation of what no forecaster can know.
    pub noise: f64,
    /// Whether prices are low, which is decided long before.
    pub promotion: bool,
    /// The temperature, which nobody knows before.
    pub temperature: f64,
}

/// 1 January 2022.
const START: i64 = 1_640_995_200;
const DAY: i64 = 86_400;

/// The days of all shops. With the level of a shop, the day of the week w, the temperature T and
/// the promotion p,
///
/// `sales = level · week(w) · (1 + 0.5 p) · exp(0.015 (T − 10) + trend + drift) · (1 + 0.08 noise)`
///
/// where T has a yearly cycle and a weather that lasts some days, and the drift of a shop one that
/// lasts weeks.
pub fn shops(config: &SynthConfig) -> Vec<Day> {
    const WEEK: [f64; 7] = [0.9, 0.85, 0.9, 1.0, 1.25, 1.4, 0.7];
    let mut days = Vec::with_capacity(config.shops * config.days);
    let normals = |place: usize| {
        let mut numbers = vec![0.0f32; config.days];
        let stream = Stream::new(config.seed, Purpose::Synthesis).at_step(place as u32);
        stream.fill_normal(0, &mut numbers);
        numbers.into_iter().map(f64::from).collect::<Vec<_>>()
    };
    // An autoregressive process of variance one.
    let lasting = |numbers: Vec<f64>, memory: f64| {
        let (keep, mut last) = ((-1.0 / memory).exp(), 0.0);
        let fresh = (1.0 - keep * keep).sqrt();
        let next = |number: f64| {
            last = keep * last + fresh * number;
            last
        };
        numbers.into_iter().map(next).collect::<Vec<_>>()
    };
    let weather = lasting(normals(0), 4.0);
    for shop in 0..config.shops {
        let drift = lasting(normals(3 * shop + 1), 60.0);
        let (noise, chance) = (normals(3 * shop + 2), normals(3 * shop + 3));
        let level = 50.0 * 1.6f64.powi(shop as i32 % 8);
        for day in 0..config.days {
            let time = START + day as i64 * DAY;
            let year = std::f64::consts::TAU * (day as f64 - 110.0) / 365.25;
            let temperature = 10.0 + 9.0 * year.sin() + 3.5 * weather[day];
            // A promotion lasts a week, from Monday on.
            let promotion = chance[day.saturating_sub((day + 5) % 7)] > 1.2;
            let trend = 0.1 * day as f64 / 365.25;
            let week = WEEK[((time / DAY + 3) % 7) as usize];
            let expected = level
                * week
                * (1.0 + 0.5 * f64::from(u8::from(promotion)))
                * (0.015 * (temperature - 10.0) + trend + 0.1 * drift[day]).exp();
            let sales = (expected * (1.0 + 0.08 * noise[day])).max(0.0);
            days.push(Day { time, shop, sales, noise: 0.08 * expected, promotion, temperature });
        }
    }
    days
}

/// Writes them as `date,shop,sales,promotion,temperature`; the file is there as a whole or not at
/// all.
pub fn write(config: &SynthConfig, path: &Path) -> Result<(), TableError> {
    let failed = |error| TableError::Write(FileError::new(path, "write", &error));
    create_folder_of(path).map_err(TableError::Write)?;
    let mut text = b"date,shop,sales,promotion,temperature\n".to_vec();
    for Day { time, shop, sales, promotion, temperature, .. } in shops(config) {
        let date = format_time(time);
        let date = date.split('T').next().unwrap_or_default();
        let promotion = u8::from(promotion);
        writeln!(text, "{date},shop {},{sales:.1},{promotion},{temperature:.1}", shop + 1)
            .map_err(failed)?;
    }
    AtomicFile::write(path, &text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shops_have_weeks_promotions_and_noise_of_eight_percent() {
        let days = shops(&SynthConfig { shops: 2, days: 700, seed: 3 });
        assert_eq!(days.len(), 1400);
        let again = shops(&SynthConfig { shops: 2, days: 700, seed: 3 });
        assert_eq!(days, again);
        let mean = |keep: &dyn Fn(&Day) -> bool| {
            let kept: Vec<f64> = days.iter().filter(|d| keep(d)).map(|d| d.sales).collect();
            kept.iter().sum::<f64>() / kept.len() as f64
        };
        let weekday = |day: &Day| (day.time / DAY + 3) % 7;
        let saturdays = mean(&|day| weekday(day) == 5 && !day.promotion && day.shop == 0);
        let sundays = mean(&|day| weekday(day) == 6 && !day.promotion && day.shop == 0);
        assert!((1.7..2.4).contains(&(saturdays / sundays)), "{saturdays} {sundays}");
        let with = mean(&|day| day.promotion && day.shop == 1);
        let without = mean(&|day| !day.promotion && day.shop == 1);
        assert!((1.2..1.8).contains(&(with / without)), "{with} {without}");
        // A promotion that has begun lasts until Sunday.
        let changes = days.windows(2).filter(|d| d[0].shop == d[1].shop);
        for pair in changes.filter(|pair| pair[0].promotion != pair[1].promotion) {
            assert_eq!(weekday(&pair[1]), 0);
        }
    }
}
