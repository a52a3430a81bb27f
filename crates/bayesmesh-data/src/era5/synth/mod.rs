//! Made-up weather whose best forecast is known.

mod climate;
mod smooth;

use std::collections::BTreeSet;
use std::f64::consts::PI;
use std::path::Path;
use std::sync::Arc;

use bayesmesh_kernels::stream::{Purpose, Stream};
use serde_json::{Map, Value, json};
use zarrs::storage::store::MemoryStore;

use self::climate::Climate;
use self::smooth::{Smooth, Turning};
use super::error::Era5Error;
use super::grid::Grid;
use super::layout::{Layout, NewFolder, Sink, Spec, attributes, turned};
use super::masks;
use super::progress::Progress;
use super::store::{DEFAULT_CACHE, Store};
use super::variable::Variable;

/// Times of a chunk, as in WeatherBench2's stores.
pub(super) const CHUNK: usize = 8;

/// Where masks are in the stream of random numbers: beyond all variables.
const MASKS: u32 = 1 << 20;

/// What a synthetic store is like.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthConfig {
    /// Rows of the grid; with an odd number the poles are among them.
    pub latitudes: usize,
    /// Columns of the grid.
    pub longitudes: usize,
    /// How many times.
    pub steps: usize,
    /// From one to the next, in seconds.
    pub step: i64,
    /// The first one, in Unix seconds.
    pub start: i64,
    /// Another seed makes other weather.
    pub seed: u64,
    /// What there is. All variables with levels get all levels that are named.
    pub variables: Vec<Variable>,
}

impl Default for SynthConfig {
    /// A year of four variables every 6 hours on 64×32.
    fn default() -> Self {
        Self {
            latitudes: 32,
            longitudes: 64,
            steps: 1460,
            step: 6 * 3600,
            start: 1_546_300_800, // 2019-01-01
            seed: 0,
            variables: vec![
                Variable::surface("2m_temperature"),
                Variable::surface("10m_u_component_of_wind"),
                Variable::surface("10m_v_component_of_wind"),
                Variable::at("geopotential", 500),
            ],
        }
    }
}

/// Made-up weather: `climate + a`, where anomalies a go from a time to the next by
///
/// `a(t+1) = ρ·A a(t) + σ·√(1 − ρ²)·n(t+1)`.
///
/// A moves each row east by a number of columns that depends on the latitude, n are smooth fields
/// of deviation 1 that nobody can know, and σ is the deviation of anomalies. So the distribution of
/// the next time, given the present one, is normal with a known mean, and a deviation `σ·√(1 − ρ²)`
/// that is the same everywhere; and so on for the times after it.
#[derive(Clone, Debug)]
pub struct Synthetic {
    config: SynthConfig,
    grid: Grid,
    /// All that is stored, in the order of arrays.
    fields: Vec<Field>,
    levels: Vec<u32>,
}

/// A variable and how it changes.
#[derive(Clone, Debug)]
struct Field {
    variable: Variable,
    climate: Climate,
    best: Best,
    smooth: Smooth,
    turning: Turning,
}

/// What the best forecaster of a synthetic variable can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The deviation of anomalies, in the variable's unit.
    pub deviation: f64,
    /// How much of an anomaly is left after a step of the store.
    pub persistence: f64,
}

impl Best {
    /// As a synthetic store states it; `None` for other stores.
    pub fn of(store: &Store, variable: &Variable) -> Option<Self> {
        let attributes = store.array_attributes(&variable.name)?;
        let stored = store.variables().iter().find(|stored| stored.name == variable.name)?;
        let place = match variable.level {
            None => 0,
            Some(level) => stored.levels.iter().position(|&known| known == level)?,
        };
        let number = |name: &str| match attributes.get(name)? {
            Value::Array(numbers) => numbers.get(place)?.as_f64(),
            number => number.as_f64(),
        };
        Some(Self {
            deviation: number("synthetic_deviation")?,
            persistence: number("synthetic_persistence")?,
        })
    }

    /// The deviation of the best forecast a number of steps ahead, `σ·√(1 − ρ²ⁿ)`, the same
    /// everywhere: also the least possible root mean squared error.
    pub fn std(&self, steps: usize) -> f64 {
        self.deviation * (1.0 - self.persistence.powi(2 * steps as i32)).sqrt()
    }

    /// The least possible CRPS a number of steps ahead, [`std`](Self::std)`/√π`.
    pub fn crps(&self, steps: usize) -> f64 {
        self.std(steps) / PI.sqrt()
    }
}

impl Synthetic {
    /// Refuses what cannot be made.
    pub fn new(config: SynthConfig) -> Result<Self, Era5Error> {
        let refused = |problem: &str| Err(Era5Error::Setting(problem.to_owned()));
        let sizes = [config.latitudes, config.longitudes];
        if sizes.iter().any(|size| !(4..=4096).contains(size)) {
            return refused("a synthetic store has 4 to 4096 latitudes and longitudes");
        }
        if config.steps < 2 || config.steps > 1 << 24 || config.step < 60 {
            return refused("a synthetic store has at least 2 steps of at least a minute");
        }
        if config.variables.is_empty() {
            return refused("a synthetic store has at least one variable, such as 2m_temperature");
        }
        let levels: BTreeSet<u32> = config.variables.iter().filter_map(|v| v.level).collect();
        let names: BTreeSet<&str> = config.variables.iter().map(|v| v.name.as_str()).collect();
        let grid = Grid::even(config.latitudes, config.longitudes);
        let mut fields = Vec::new();
        for name in names {
            let of_name = || config.variables.iter().filter(|variable| variable.name == name);
            let has_levels = of_name().all(|variable| variable.level.is_some());
            if !has_levels && of_name().any(|variable| variable.level.is_some()) {
                return Err(Era5Error::Setting(format!(
                    "`{name}` is named with and without a level"
                )));
            }
            match has_levels {
                false => fields.push(Field::new(Variable::surface(name), &grid, config.step)),
                true => fields.extend(
                    levels
                        .iter()
                        .map(|&level| Field::new(Variable::at(name, level), &grid, config.step)),
                ),
            }
        }
        let levels = levels.into_iter().collect();
        Ok(Self { config, grid, fields, levels })
    }

    /// What it was made by.
    pub fn config(&self) -> &SynthConfig {
        &self.config
    }

    /// Its grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The time of a step, in Unix seconds.
    pub fn time(&self, step: usize) -> i64 {
        self.config.start + step as i64 * self.config.step
    }

    /// What the best forecaster of a variable can do; `None` if there is no such variable.
    pub fn best(&self, variable: &Variable) -> Option<Best> {
        self.field(variable).map(|field| field.best)
    }

    /// The mean of the best forecast of a variable a number of steps after a time, from its field
    /// at that time: `[latitude, longitude]`, in its unit. `None` if there is no such variable.
    pub fn best_mean(
        &self,
        variable: &Variable,
        field: &[f32],
        time: i64,
        steps: usize,
    ) -> Option<Vec<f32>> {
        let Field { climate, turning, best, .. } = self.field(variable)?;
        let now = climate.at(&self.grid, time);
        let mut anomaly: Vec<f32> =
            field.iter().zip(&now).map(|(value, now)| value - now).collect();
        for _ in 0..steps {
            anomaly = turning.apply(&anomaly);
            anomaly.iter_mut().for_each(|value| *value *= best.persistence as f32);
        }
        let then = climate.at(&self.grid, time + steps as i64 * self.config.step);
        Some(then.iter().zip(&anomaly).map(|(then, anomaly)| then + anomaly).collect())
    }

    fn field(&self, variable: &Variable) -> Option<&Field> {
        self.fields.iter().find(|field| field.variable == *variable)
    }

    /// The weather as a store that is in memory only.
    pub fn store(&self, progress: &mut dyn FnMut(Progress)) -> Result<Store, Era5Error> {
        let memory = Arc::new(MemoryStore::new());
        let location = "synthetic weather";
        self.fill(Layout::new(memory.clone(), Path::new(location), false), progress)?;
        Store::of(location, None, memory, DEFAULT_CACHE)
    }

    /// Writes the weather to a folder, which appears when it is complete. An existing store is
    /// replaced if that is wanted, and anything else that has the name is refused.
    pub fn write(
        &self,
        folder: &Path,
        replace: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Era5Error> {
        let new = NewFolder::create(folder, replace)?;
        self.fill(Layout::in_folder(new.folder())?, progress)?;
        new.commit()
    }

    fn fill(
        &self,
        mut layout: Layout,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Era5Error> {
        let times = (0..self.config.steps).map(|step| self.time(step)).collect();
        layout.grid(&self.grid)?;
        layout.whole(
            "time",
            times,
            json!({"units": "seconds since 1970-01-01", "calendar": "proleptic_gregorian"}),
        )?;
        if !self.levels.is_empty() {
            layout.levels(&self.levels)?;
        }
        self.fill_masks(&mut layout)?;
        let sinks = self.sinks(&mut layout)?;
        let mut state: Vec<Vec<f32>> = Vec::new();
        for begin in (0..self.config.steps).step_by(CHUNK) {
            progress(Progress { what: "making weather", done: begin, of: self.config.steps });
            // The fields of each variable, time by time; beyond the end NaN.
            let mut blocks = vec![Vec::new(); self.fields.len()];
            for step in begin..begin + CHUNK {
                if step < self.config.steps {
                    state = self.next(step, &state);
                }
                for ((block, field), anomaly) in blocks.iter_mut().zip(&self.fields).zip(&state) {
                    let values = match step < self.config.steps {
                        false => vec![f32::NAN; self.grid.points()],
                        true => {
                            let mut values = field.climate.at(&self.grid, self.time(step));
                            values.iter_mut().zip(anomaly).for_each(|(value, a)| *value += a);
                            turned(&values, &self.grid)
                        }
                    };
                    block.push(values);
                }
            }
            let mut blocks = blocks.into_iter();
            for (sink, count, rank) in &sinks {
                let blocks: Vec<Vec<Vec<f32>>> = blocks.by_ref().take(*count).collect();
                // Levels of a time follow one another.
                let chunk: Vec<f32> = (0..CHUNK)
                    .flat_map(|t| blocks.iter().flat_map(move |b| &b[t]))
                    .copied()
                    .collect();
                let mut place = vec![0; *rank];
                place[0] = (begin / CHUNK) as u64;
                sink.put(&place, chunk)?;
            }
        }
        progress(Progress {
            what: "making weather",
            done: self.config.steps,
            of: self.config.steps,
        });
        let mut about = Map::new();
        about.insert("source".to_owned(), json!("synthetic weather of bayesmesh"));
        about.insert("seed".to_owned(), json!(self.config.seed));
        layout.finish(about)
    }

    /// The anomalies of a step, from those of the one before.
    fn next(&self, step: usize, before: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let anomaly = |(number, field): (usize, &Field)| {
            let stream = self.stream().at_step(step as u32).at_tensor(number as u32);
            let mut noise = field.smooth.field(&stream);
            let Some(before) = before.get(number) else {
                let deviation = field.best.deviation as f32;
                noise.iter_mut().for_each(|value| *value *= deviation);
                return noise;
            };
            let (kept, new) = (field.best.persistence as f32, field.best.std(1) as f32);
            let moved = field.turning.apply(before);
            noise
                .iter_mut()
                .zip(&moved)
                .for_each(|(noise, moved)| *noise = kept * moved + new * *noise);
            noise
        };
        self.fields.iter().enumerate().map(anomaly).collect()
    }

    fn stream(&self) -> Stream {
        // Other draws of this purpose and seed are other use cases'.
        Stream::new(self.config.seed, Purpose::Synthesis).at_draw(3)
    }

    /// The array of each variable, with the number of its levels and of its dimensions.
    fn sinks(&self, layout: &mut Layout) -> Result<Vec<(Sink, usize, usize)>, Era5Error> {
        let (columns, rows) = (self.config.longitudes as u64, self.config.latitudes as u64);
        let steps = self.config.steps as u64;
        let mut sinks = Vec::new();
        let mut rest = &self.fields[..];
        while let Some(first) = rest.first() {
            let name = first.variable.name.as_str();
            let count = rest.iter().take_while(|field| field.variable.name == name).count();
            let (of_name, others) = rest.split_at(count);
            rest = others;
            let mut attributes = attributes(name, None);
            let mut state = |key: &str, number: &dyn Fn(&Best) -> f64| {
                let numbers: Vec<f64> = of_name.iter().map(|field| number(&field.best)).collect();
                let value = match first.variable.level {
                    None => json!(numbers[0]),
                    Some(_) => json!(numbers),
                };
                attributes.insert(key.to_owned(), value);
            };
            state("synthetic_deviation", &|best| best.deviation);
            state("synthetic_persistence", &|best| best.persistence);
            state("noise_std", &|best| best.std(1));
            state("best_crps", &|best| best.crps(1));
            let chunk = CHUNK as u64;
            let levels = count as u64;
            let (dimensions, shape, chunks): (&[&str], _, _) = match first.variable.level {
                None => (
                    &["time", "longitude", "latitude"],
                    vec![steps, columns, rows],
                    vec![chunk, columns, rows],
                ),
                Some(_) => (
                    &["time", "level", "longitude", "latitude"],
                    vec![steps, levels, columns, rows],
                    vec![chunk, levels, columns, rows],
                ),
            };
            let rank = shape.len();
            let spec = Spec { name, dimensions, shape, chunks, dtype: "<f4", attributes };
            sinks.push((layout.array(spec)?, count, rank));
        }
        Ok(sinks)
    }

    /// A few continents, with seven soils and mountains.
    fn fill_masks(&self, layout: &mut Layout) -> Result<(), Era5Error> {
        let field = |reach: f64, number: u32| {
            Smooth::new(&self.grid, reach).field(&self.stream().at_tensor(MASKS + number))
        };
        let (land, soil) = (field(25.0, 0), field(15.0, 1));
        const SHORE: f32 = 0.35;
        let masks: [Vec<f32>; 3] = [
            land.iter().map(|&height| f32::from(u8::from(height > SHORE))).collect(),
            land.iter()
                .zip(&soil)
                .map(|(&height, &soil)| match height > SHORE {
                    false => 0.0,
                    true => (4.0 + 1.5 * soil).round().clamp(1.0, 7.0),
                })
                .collect(),
            land.iter().map(|&height| 9806.65 * 1.5 * (height - SHORE).max(0.0)).collect(),
        ];
        let shape = vec![self.config.longitudes as u64, self.config.latitudes as u64];
        for (name, values) in masks::NAMES.into_iter().zip(masks) {
            let spec = Spec {
                name,
                dimensions: &["longitude", "latitude"],
                shape: shape.clone(),
                chunks: shape.clone(),
                dtype: "<f4",
                attributes: attributes(name, None),
            };
            layout.array(spec)?.put(&[0, 0], turned(&values, &self.grid))?;
        }
        Ok(())
    }
}

impl Field {
    fn new(variable: Variable, grid: &Grid, step: i64) -> Self {
        let climate = Climate::of(&variable);
        let columns = grid.longitudes().len();
        let column = 360.0 / columns as f64;
        let shift = |latitude: &f64| climate.shift(*latitude, step) / column;
        let shifts: Vec<f64> = grid.latitudes().iter().map(shift).collect();
        Self {
            best: Best { deviation: climate.deviation, persistence: climate.persistence(step) },
            smooth: Smooth::new(grid, climate.reach),
            turning: Turning::new(&shifts, columns),
            variable,
            climate,
        }
    }
}
