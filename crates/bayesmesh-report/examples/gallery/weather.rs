//! Made-up weather on the globe, for maps and what belongs to them.

use std::f64::consts::{PI, TAU};

use bayesmesh_report::{
    Axis, Block, Coast, Color, Layer, MapGrid, MapPanel, MapScale, MapSeries, MapTime, MapVariable,
    Plot, Rule, Section, Shape,
};

use super::{START, noise};

const LATITUDES: usize = 61;
const LONGITUDES: usize = 120;

/// Days ahead of the forecast.
const DAYS: [u8; 4] = [1, 2, 3, 5];

const MEMBERS: u8 = 16;

/// The section of a forecast of the weather.
pub fn section() -> Section {
    Section::new("Maps")
        .text("Fields on the globe, with a slider over the lead time.")
        .with(Block::Maps(maps()))
        .with(Block::Plot(spread_and_skill()))
        .with(Block::Plot(ranks()))
}

/// Truth, mean, spread and error of two variables.
pub fn maps() -> MapSeries {
    let time = |day: &u8| {
        let lead = 24.0 * f64::from(*day);
        MapTime::new(lead).valid(START + 3600.0 * lead)
    };
    MapSeries::new("A forecast of five days", MapGrid::global(LATITUDES, LONGITUDES))
        .caption(
            "Mean and spread of 16 draws. Truth and mean share their colours, which are the same \
             at all lead times; the error is forecast minus truth.",
        )
        .coast(Coast::Earth)
        .times(DAYS.iter().map(time))
        .with(variable("2 m temperature", "°C", MapScale::Value, temperature))
        .with(variable("10 m wind, eastward", "m/s", MapScale::SignedValue, wind))
}

/// Temperature by latitude and longitude in radians, and the day.
fn temperature(latitude: f64, longitude: f64, day: f64) -> f64 {
    let wave = (3.0 * longitude - 0.6 * day).sin() + 0.5 * (7.0 * longitude - 1.3 * day).cos();
    42.0 * latitude.cos().powi(2) - 18.0 + 6.0 * (2.0 * latitude).sin().abs() * wave
}

/// Wind towards the east: trade winds, and lows that travel in the westerlies.
fn wind(latitude: f64, longitude: f64, day: f64) -> f64 {
    let belts = -9.0 * (3.0 * latitude).cos() * latitude.cos().sqrt();
    let lows = (5.0 * longitude - 1.1 * day).cos() * (6.0 * latitude).sin();
    belts + 7.0 * lows * (2.0 * latitude).sin().powi(2)
}

fn variable(name: &str, unit: &str, scale: MapScale, at: fn(f64, f64, f64) -> f64) -> MapVariable {
    let field = |value: &dyn Fn(f64, f64) -> f64| -> Vec<f32> {
        let cell = |i: usize| {
            let latitude = PI * (0.5 - (i / LONGITUDES) as f64 / (LATITUDES - 1) as f64);
            value(latitude, TAU * (i % LONGITUDES) as f64 / LONGITUDES as f64) as f32
        };
        (0..LATITUDES * LONGITUDES).map(cell).collect()
    };
    let day = |day: &u8| f64::from(*day);
    // The forecast runs late, the more so the farther ahead.
    let mean = |latitude: f64, longitude: f64, day: f64| at(latitude, longitude, 0.93 * day);
    let spread = |latitude: f64, longitude: f64, day: f64| {
        let late = at(latitude, longitude, 0.86 * day) - at(latitude, longitude, day);
        0.3 + 0.15 * day + late.abs()
    };
    let error =
        |latitude, longitude, day| mean(latitude, longitude, day) - at(latitude, longitude, day);
    let fields = |value: &dyn Fn(f64, f64, f64) -> f64| -> Vec<Vec<f32>> {
        DAYS.iter().map(|d| field(&|lat, lon| value(lat, lon, day(d)))).collect()
    };
    let mut errors = MapPanel::new("Error of the mean", MapScale::Error);
    for values in fields(&error) {
        let squares: f32 = values.iter().map(|v| v * v).sum();
        let rmse = (squares / values.len() as f32).sqrt();
        errors = errors.field(values, format!("RMSE {rmse:.2} {unit}"));
    }
    MapVariable::new(name)
        .unit(unit)
        .with(MapPanel::new("Truth", scale).fields(fields(&at)))
        .with(MapPanel::new("Mean", scale).fields(fields(&mean)))
        .with(MapPanel::new("Spread", MapScale::Spread).fields(fields(&spread)))
        .with(errors)
}

/// Error and spread by lead time.
fn spread_and_skill() -> Plot {
    let curve = |scale: f64, power: f64| {
        (1..=20).map(move |i| (6.0 * f64::from(i), scale * f64::from(i).powf(power)))
    };
    Plot::new(
        "Spread and skill",
        Axis::linear("lead time").unit("h"),
        Axis::linear("2 m temperature").unit("K"),
    )
    .shape(Shape::Half)
    .caption("An honest ensemble spreads as much as its mean is wrong.")
    .with(Layer::line("RMSE of the mean", curve(0.72, 0.52), Color::Blue))
    .with(Layer::line("spread", curve(0.66, 0.54), Color::Orange))
    .with(Layer::line("climatology", curve(3.4, 0.0), Color::Grey))
}

/// How often the truth lies between which members of the ensemble.
fn ranks() -> Plot {
    let mut noise = noise(23);
    let mut share = |rank: u8| {
        let edge = if rank == 0 || rank == MEMBERS { 0.35 } else { 0.0 };
        (f64::from(rank), 1.0 + edge + 0.04 * noise())
    };
    let shares: Vec<_> = (0..=MEMBERS).map(&mut share).collect();
    Plot::new(
        "Rank histogram",
        Axis::linear("rank of the truth among 16 draws"),
        Axis::linear("frequency, 1 is even"),
    )
    .shape(Shape::Half)
    .caption("Higher at both ends: the spread is too small.")
    .with(Layer::bars("test part", shares, 1.0, Color::Blue))
    .with(Layer::rule("even", Rule::Horizontal(1.0)))
}
