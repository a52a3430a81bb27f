//! The coordinates of a store.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::chunks::{Chunked, Numbers};
use super::metadata::ArrayInfo;
use crate::era5::error::Era5Error;
use crate::era5::grid::Grid;
use crate::era5::time::Units;

/// What a dimension means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coordinate {
    Time,
    Level,
    Latitude,
    Longitude,
}

/// By the name that a dimension has.
pub(super) fn of(dimension: &str) -> Option<Coordinate> {
    Some(match dimension {
        "time" | "valid_time" => Coordinate::Time,
        "level" | "pressure_level" | "isobaricInhPa" | "plev" => Coordinate::Level,
        "latitude" | "lat" => Coordinate::Latitude,
        "longitude" | "lon" => Coordinate::Longitude,
        _ => return None,
    })
}

/// All coordinates, in our orientation.
#[derive(Debug)]
pub(super) struct Axes {
    pub grid: Grid,
    pub times: Vec<i64>,
    /// Why the times are only numbers, if they are.
    time_problem: Option<String>,
    pub levels: Vec<u32>,
    /// The row of our grid for each index of the store's latitudes.
    pub rows: Vec<usize>,
    /// The column of our grid for each index of the store's longitudes.
    pub columns: Vec<usize>,
}

impl Axes {
    pub fn read(
        store: &str,
        arrays: &BTreeMap<String, ArrayInfo>,
        open: impl Fn(&str, &ArrayInfo) -> Result<Chunked, String>,
    ) -> Result<Self, Era5Error> {
        let find = |wanted: Coordinate| {
            let is = |name: &str, info: &ArrayInfo| {
                of(name) == Some(wanted) && info.dimensions.len() == 1 && info.shape.len() == 1
            };
            arrays.iter().find(|(name, info)| is(name, info))
        };
        let read = |name: &str, info: &ArrayInfo| numbers(store, name, info, &open);
        let (Some(latitude), Some(longitude)) =
            (find(Coordinate::Latitude), find(Coordinate::Longitude))
        else {
            let (store, array) = (store.to_owned(), "the store".to_owned());
            let problem = "have no coordinates `latitude` and `longitude`; is it a store of fields \
                           on a grid, in WeatherBench2's layout?";
            return Err(Era5Error::Metadata { store, array, problem: problem.to_owned() });
        };
        let latitudes = read(latitude.0, latitude.1)?.floats();
        let longitudes = read(longitude.0, longitude.1)?.floats();
        let around = longitudes.iter().map(|degrees| degrees.rem_euclid(360.0)).collect::<Vec<_>>();
        let rows = places(&latitudes, |a, b| b.total_cmp(a));
        let columns = places(&around, f64::total_cmp);
        let grid = Grid::new(placed(&latitudes, &rows), placed(&around, &columns));
        let grid = grid.map_err(|(axis, problem)| Era5Error::Grid {
            store: store.to_owned(),
            axis,
            problem,
        })?;
        let levels = match find(Coordinate::Level) {
            None => Vec::new(),
            Some((name, info)) => {
                let levels = read(name, info)?.floats();
                levels.into_iter().map(|level| level.round().max(0.0) as u32).collect()
            }
        };
        let (times, time_problem) = match find(Coordinate::Time) {
            None => (Vec::new(), Some("there is none".to_owned())),
            Some((name, info)) => times(store, read(name, info)?, info)?,
        };
        Ok(Self { grid, times, time_problem, levels, rows, columns })
    }

    /// Whether times are times.
    pub fn has_units(&self) -> bool {
        self.time_problem.is_none()
    }

    /// See [`Store::step`](super::Store::step).
    pub fn step(&self, store: &str) -> Result<i64, Era5Error> {
        let store = store.to_owned();
        if let Some(problem) = &self.time_problem {
            return Err(Era5Error::Time { store, problem: problem.clone() });
        }
        let mut counts = HashMap::new();
        for pair in self.times.windows(2) {
            *counts.entry(pair[1] - pair[0]).or_insert(0usize) += 1;
        }
        // The most common distance; of equally common ones the shortest.
        let step = counts.into_iter().max_by_key(|&(step, count)| (count, -step));
        let Some((step, _)) = step else {
            let problem = "a single time; two are needed for a step. Choose a longer store";
            return Err(Era5Error::Time { store, problem: problem.to_owned() });
        };
        match self.times.windows(2).find(|pair| pair[1] - pair[0] != step) {
            None => Ok(step),
            Some(&[from, to]) if (to - from) % step == 0 => {
                Err(Era5Error::Gap { store, from, to, step })
            }
            Some(pair) => Err(Era5Error::Irregular { store, from: pair[0], to: pair[1], step }),
        }
    }
}

/// Unix seconds, or the numbers and why they are not times.
fn times(
    store: &str,
    numbers: Numbers,
    info: &ArrayInfo,
) -> Result<(Vec<i64>, Option<String>), Era5Error> {
    let text = |name: &str| info.attributes.get(name).and_then(Value::as_str);
    let units = match text("units") {
        None => {
            Err("it has no attribute `units` such as `hours since 1959-01-01`; add it".to_owned())
        }
        Some(units) => Units::parse(units, text("calendar")),
    };
    let (times, problem): (Vec<i64>, _) = match (units, numbers) {
        (Ok(units), Numbers::Whole(all)) => {
            (all.into_iter().map(|n| units.whole(n)).collect(), None)
        }
        (Ok(units), Numbers::Floats(all)) => {
            (all.into_iter().map(|n| units.float(n)).collect(), None)
        }
        (Err(problem), numbers) => {
            (numbers.floats().into_iter().map(|number| number as i64).collect(), Some(problem))
        }
    };
    match times.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) if problem.is_none() => Err(Era5Error::Time {
            store: store.to_owned(),
            problem: format!(
                "{} stands after {}; times must ascend, each once. Sort the store",
                crate::era5::time::utc(pair[1]),
                crate::era5::time::utc(pair[0])
            ),
        }),
        _ => Ok((times, problem)),
    }
}

/// Reads a coordinate.
pub(super) fn numbers(
    store: &str,
    name: &str,
    info: &ArrayInfo,
    open: &impl Fn(&str, &ArrayInfo) -> Result<Chunked, String>,
) -> Result<Numbers, Era5Error> {
    let (store, array) = (store.to_owned(), name.to_owned());
    let chunked = match open(name, info) {
        Ok(chunked) => chunked,
        Err(problem) => return Err(Era5Error::Metadata { store, array, problem }),
    };
    chunked.coordinate(info.shape[0]).map_err(|trouble| {
        trouble.error(&store, format!("the coordinate `{name}`"), chunked.key(&[0]))
    })
}

/// The place of each value in the sorted order.
fn places(values: &[f64], order: impl Fn(&f64, &f64) -> std::cmp::Ordering) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..values.len()).collect();
    sorted.sort_by(|&a, &b| order(&values[a], &values[b]));
    let mut places = vec![0; values.len()];
    for (place, &index) in sorted.iter().enumerate() {
        places[index] = place;
    }
    places
}

fn placed(values: &[f64], places: &[usize]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    for (value, &place) in values.iter().zip(places) {
        out[place] = *value;
    }
    out
}
