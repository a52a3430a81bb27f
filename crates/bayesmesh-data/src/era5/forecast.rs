//! Forecasts as a store that xarray and WeatherBench-X read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::error::Era5Error;
use super::grid::Grid;
use super::layout::{Layout, NewFolder, Sink, Spec, attributes, turned};
use super::time::utc;
use super::variable::Variable;

/// What a store of forecasts has.
#[derive(Clone, Debug)]
pub struct ForecastConfig {
    /// Of all fields.
    pub grid: Grid,
    /// In the order in which they are written.
    pub variables: Vec<Variable>,
    /// Of each variable; those that are `None` are ERA5's, if it has the variable.
    pub units: Vec<Option<String>>,
    /// When forecasts begin, in Unix seconds.
    pub times: Vec<i64>,
    /// How far they reach, in seconds.
    pub leads: Vec<i64>,
    /// How many draws each has.
    pub numbers: usize,
    /// What the store says of itself.
    pub attributes: Map<String, Value>,
}

/// Writes a store of forecasts, which appears when it is complete.
///
/// Zarr of version 2 with consolidated metadata; arrays have the dimensions
/// `(time, prediction_timedelta, number, [level,] longitude, latitude)`, latitude ascending, and a
/// chunk for each time, lead and draw. `time` and `prediction_timedelta` are decoded by the CF
/// conventions. Where variables differ in their levels, those that one has not are NaN.
pub struct ForecastWriter {
    folder: NewFolder,
    path: PathBuf,
    layout: Layout,
    config: ForecastConfig,
    /// Of each array: where it is written, and for each of its levels the number of the variable.
    arrays: Vec<(Sink, Vec<Option<usize>>, bool)>,
    /// Which chunks are there.
    written: Mutex<Vec<bool>>,
}

impl ForecastWriter {
    /// Begins a store. One that exists is replaced in the end if that is wanted; anything else that
    /// has the name is refused.
    pub fn create(path: &Path, config: ForecastConfig, replace: bool) -> Result<Self, Era5Error> {
        if config.variables.is_empty() || config.times.is_empty() || config.leads.is_empty() {
            let problem = "a store of forecasts has at least one variable, time and lead";
            return Err(Era5Error::Setting(problem.to_owned()));
        }
        assert_eq!(config.variables.len(), config.units.len(), "a unit or none for each variable");
        let folder = NewFolder::create(path, replace)?;
        let mut layout = Layout::in_folder(folder.folder())?;
        layout.grid(&config.grid)?;
        let (unit, seconds) = unit(&config.times);
        layout.whole(
            "time",
            config.times.iter().map(|time| time / seconds).collect(),
            json!({
                "units": format!("{unit} since 1970-01-01"), "calendar": "proleptic_gregorian",
                "standard_name": "forecast_reference_time", "long_name": "initial time of forecast",
            }),
        )?;
        let (unit, seconds) = self::unit(&config.leads);
        layout.whole(
            "prediction_timedelta",
            config.leads.iter().map(|lead| lead / seconds).collect(),
            json!({
                "units": unit, "standard_name": "forecast_period",
                "long_name": "time since forecast_reference_time", "dtype": "timedelta64[ns]",
            }),
        )?;
        layout.whole(
            "number",
            (0..config.numbers as i64).collect(),
            json!({"standard_name": "realization", "long_name": "number of the draw"}),
        )?;
        let levels: BTreeSet<u32> = config.variables.iter().filter_map(|v| v.level).collect();
        let levels: Vec<u32> = levels.into_iter().collect();
        if !levels.is_empty() {
            layout.levels(&levels)?;
        }
        let names: BTreeSet<(&str, bool)> =
            config.variables.iter().map(|v| (v.name.as_str(), v.level.is_some())).collect();
        let mut arrays = Vec::new();
        for (name, has_levels) in names {
            let place = |wanted: Variable| config.variables.iter().position(|v| *v == wanted);
            let places: Vec<Option<usize>> = match has_levels {
                false => vec![place(Variable::surface(name))],
                true => levels.iter().map(|&level| place(Variable::at(name, level))).collect(),
            };
            let units = places.iter().flatten().find_map(|&place| config.units[place].clone());
            let sink =
                array(&mut layout, &config, name, has_levels.then_some(levels.len()), units)?;
            arrays.push((sink, places, has_levels));
        }
        let count = config.times.len() * config.leads.len() * config.numbers;
        let written = Mutex::new(vec![false; count]);
        Ok(Self { folder, path: path.to_path_buf(), layout, config, arrays, written })
    }

    /// Writes a draw of the forecast from a time at a lead, by their numbers: all variables
    /// `[variable, latitude, longitude]`, north first, in their units. In any order, from any
    /// thread.
    ///
    /// # Panics
    ///
    /// If there is no such time, lead or draw, or not as many values.
    pub fn write(
        &self,
        time: usize,
        lead: usize,
        number: usize,
        values: &[f32],
    ) -> Result<(), Era5Error> {
        let config = &self.config;
        let points = config.grid.points();
        assert_eq!(values.len(), config.variables.len() * points, "all variables of the grid");
        let (leads, numbers) = (config.leads.len(), config.numbers);
        assert!(time < config.times.len() && lead < leads && number < numbers, "such a forecast");
        for (sink, places, has_levels) in &self.arrays {
            let mut chunk = Vec::with_capacity(places.len() * points);
            for place in places {
                match place {
                    Some(place) => {
                        chunk.extend(turned(&values[place * points..][..points], &config.grid));
                    }
                    None => chunk.extend(std::iter::repeat_n(f32::NAN, points)),
                }
            }
            let mut indices = vec![time as u64, lead as u64, number as u64, 0, 0];
            if *has_levels {
                indices.push(0);
            }
            sink.put(&indices, chunk)?;
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written[(time * leads + lead) * numbers + number] = true;
        Ok(())
    }

    /// Gives the store its name; refuses if a forecast was not written.
    pub fn finish(self) -> Result<(), Era5Error> {
        let written = self.written.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(missing) = written.iter().position(|written| !written) {
            let (leads, numbers) = (self.config.leads.len(), self.config.numbers);
            let time = self.config.times[missing / numbers / leads];
            let lead = self.config.leads[missing / numbers % leads];
            return Err(Era5Error::Setting(format!(
                "{}: draw {} of the forecast from {} at {} h was not written; nothing was kept",
                self.path.display(),
                missing % numbers,
                utc(time),
                lead / 3600
            )));
        }
        let mut attributes = self.config.attributes;
        attributes.entry("Conventions").or_insert_with(|| json!("CF-1.11"));
        self.layout.finish(attributes)?;
        self.folder.commit()
    }
}

fn array(
    layout: &mut Layout,
    config: &ForecastConfig,
    name: &str,
    levels: Option<usize>,
    units: Option<String>,
) -> Result<Sink, Era5Error> {
    let (columns, rows) = (config.grid.longitudes().len(), config.grid.latitudes().len());
    let mut dimensions = vec!["time", "prediction_timedelta", "number"];
    let mut shape = vec![config.times.len(), config.leads.len(), config.numbers];
    let mut chunks = vec![1, 1, 1];
    if let Some(levels) = levels {
        dimensions.push("level");
        shape.push(levels);
        chunks.push(levels);
    }
    dimensions.extend(["longitude", "latitude"]);
    shape.extend([columns, rows]);
    chunks.extend([columns, rows]);
    let counts = |sizes: Vec<usize>| sizes.into_iter().map(|size| size as u64).collect();
    layout.array(Spec {
        name,
        dimensions: &dimensions,
        shape: counts(shape),
        chunks: counts(chunks),
        dtype: "<f4",
        attributes: attributes(name, units.as_deref()),
    })
}

/// The coarsest of hours and seconds that has all these times, and its seconds.
fn unit(times: &[i64]) -> (&'static str, i64) {
    match times.iter().all(|time| time % 3600 == 0) {
        true => ("hours", 3600),
        false => ("seconds", 1),
    }
}
