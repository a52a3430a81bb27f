//! A Zarr store of weather in WeatherBench2's layout, brought to one orientation.

mod axis;
mod chunks;
mod http;
mod location;
mod metadata;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use zarrs::storage::ReadableStorage;

use self::axis::{Axes, Coordinate};
use self::chunks::{AnyArray, Cache, Chunked};
use self::metadata::ArrayInfo;
use super::error::Era5Error;
use super::grid::Grid;
use super::time::utc;
use super::variable::{Variable, nearest, wrong_units};

pub(super) use self::location::Place;

/// Bytes of decoded chunks that a store keeps, unless told otherwise.
pub const DEFAULT_CACHE: usize = 512 << 20;

/// A variable that a store has at every time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The name of its array.
    pub name: String,
    /// Its pressure levels in hPa, in the store's order; none for a variable of the surface.
    pub levels: Vec<u32>,
    /// As the store states it.
    pub units: Option<String>,
}

impl Stored {
    /// One for each level, or one.
    pub fn fields(&self) -> Vec<Variable> {
        match self.levels.is_empty() {
            true => vec![Variable::surface(&self.name)],
            false => self.levels.iter().map(|&level| Variable::at(&self.name, level)).collect(),
        }
    }
}

/// A store of fields over time, opened for reading.
///
/// Arrays may have their dimensions in any order and latitudes in either direction; what is read is
/// always `[latitude, longitude]`, north first, longitude ascending from 0°. Zarr of version 2 and
/// 3, with consolidated metadata or in a folder that can be listed; sharded arrays are read by
/// their inner chunks. Chunks are decoded once and kept as long as there is room. Cheap to clone,
/// and clones share what is decoded.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    location: String,
    storage: ReadableStorage,
    arrays: BTreeMap<String, ArrayInfo>,
    attributes: Map<String, Value>,
    axes: Axes,
    variables: Vec<Stored>,
    constants: Vec<String>,
    /// Of each array, in their order, when it was first read.
    opened: Vec<OnceLock<Result<Chunked, String>>>,
    cache: Cache,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.0.location)
    }
}

/// Where a field lies in its array.
struct Field<'a> {
    name: &'a str,
    number: usize,
    info: &'a ArrayInfo,
    /// For each dimension: what it is, and the index in it if it is fixed.
    dimensions: Vec<(Dimension, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Fixed,
    Latitude,
    Longitude,
}

impl Store {
    /// Opens a store: a folder, `file://`, `http://`, `https://`, or `gs://` for a public bucket.
    pub fn open(location: &str) -> Result<Self, Era5Error> {
        Self::open_with(location, DEFAULT_CACHE)
    }

    /// Opens a store that keeps so many bytes of decoded chunks.
    pub fn open_with(location: &str, cache: usize) -> Result<Self, Era5Error> {
        let place = Place::of(location)?;
        let storage = place.storage(location)?;
        Self::of(location, Some(&place), storage, cache)
    }

    /// A store of anything that has keys; one that is not in a folder has consolidated metadata.
    pub(super) fn of(
        location: &str,
        place: Option<&Place>,
        storage: ReadableStorage,
        cache: usize,
    ) -> Result<Self, Era5Error> {
        let contents = metadata::read(location, place, &storage)?;
        let arrays = contents.arrays;
        let chunked = |name: &str, info: &ArrayInfo| open_array(&storage, name, info);
        let axes = Axes::read(location, &arrays, chunked)?;
        let is_field = |info: &&ArrayInfo| {
            let has = |wanted| info.dimensions.iter().any(|name| axis::of(name) == Some(wanted));
            has(Coordinate::Latitude) && has(Coordinate::Longitude) && info.kind.is_some()
        };
        let has = |info: &ArrayInfo, wanted| {
            info.dimensions.iter().any(|name| axis::of(name) == Some(wanted))
        };
        let text = |info: &ArrayInfo, name: &str| {
            info.attributes.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let fields = || arrays.iter().filter(|(_, info)| is_field(info));
        let variables = fields().filter(|(_, info)| has(info, Coordinate::Time));
        let variables = variables.map(|(name, info)| Stored {
            name: name.clone(),
            levels: if has(info, Coordinate::Level) { axes.levels.clone() } else { Vec::new() },
            units: text(info, "units"),
        });
        let variables = variables.collect();
        let constants = fields().filter(|(_, info)| info.dimensions.len() == 2);
        let constants = constants.map(|(name, _)| name.clone()).collect();
        let opened = arrays.iter().map(|_| OnceLock::new()).collect();
        Ok(Self(Arc::new(Inner {
            location: location.to_owned(),
            attributes: contents.attributes,
            cache: Cache::new(cache),
            storage,
            arrays,
            axes,
            variables,
            constants,
            opened,
        })))
    }

    /// The location as it was given.
    pub fn location(&self) -> &str {
        &self.0.location
    }

    /// The grid of all its fields.
    pub fn grid(&self) -> &Grid {
        &self.0.axes.grid
    }

    /// All times, ascending, in Unix seconds. Where the store does not say what its times mean,
    /// these are their numbers, and [`step`](Self::step) refuses.
    pub fn times(&self) -> &[i64] {
        &self.0.axes.times
    }

    /// The distance of times in seconds; refuses an axis that has gaps or is irregular.
    pub fn step(&self) -> Result<i64, Era5Error> {
        self.0.axes.step(self.location())
    }

    /// Whether the only thing that keeps the times from having a distance is that there is one.
    pub(super) fn is_a_single_time(&self) -> bool {
        self.0.axes.has_units() && self.times().len() == 1
    }

    /// The variables, by name.
    pub fn variables(&self) -> &[Stored] {
        &self.0.variables
    }

    /// All fields of a time: each level of each variable.
    pub fn all_variables(&self) -> Vec<Variable> {
        self.0.variables.iter().flat_map(Stored::fields).collect()
    }

    /// The fields that have no time.
    pub fn constants(&self) -> &[String] {
        &self.0.constants
    }

    /// What the store says of itself.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.0.attributes
    }

    /// What the store says of an array.
    pub fn array_attributes(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.arrays.get(name).map(|info| &info.attributes)
    }

    /// Refuses a variable that is not there, not at this level, of another shape than the grid, or
    /// in a unit that ERA5 does not have it in.
    pub fn check(&self, variable: &Variable) -> Result<(), Era5Error> {
        let field = self.field(variable, Some(0), &[])?;
        let units = field.info.attributes.get("units").and_then(Value::as_str);
        match units.and_then(|units| Some((units, wrong_units(&variable.name, units)?))) {
            None => Ok(()),
            Some((found, (expected, hint))) => Err(Era5Error::Units {
                store: self.location().to_owned(),
                variable: variable.to_string(),
                found: found.to_owned(),
                expected,
                hint,
            }),
        }
    }

    /// A field at the time of this number: `[latitude, longitude]`. What is missing in the array is
    /// NaN; a chunk that is missing is an error.
    ///
    /// # Panics
    ///
    /// If there are not so many times.
    pub fn read(&self, variable: &Variable, time: usize) -> Result<Vec<f32>, Era5Error> {
        self.read_at(variable, time, &[])
    }

    /// A field of an array that has dimensions beyond time, level, latitude and longitude: of a
    /// forecast, `[("prediction_timedelta", 2), ("number", 0)]`.
    ///
    /// # Panics
    ///
    /// If there are not so many times.
    pub fn read_at(
        &self,
        variable: &Variable,
        time: usize,
        others: &[(&str, usize)],
    ) -> Result<Vec<f32>, Era5Error> {
        assert!(time < self.times().len(), "time {time} of {}", self.times().len());
        let field = self.field(variable, Some(time), others)?;
        let when = || match self.0.axes.has_units() {
            true => format!(" at {}", utc(self.times()[time])),
            false => format!(" at step {time}"),
        };
        self.gather(&field, &variable.to_string(), &when)
    }

    /// A field that has no time: `[latitude, longitude]`.
    pub fn constant(&self, name: &str) -> Result<Vec<f32>, Era5Error> {
        if !self.0.constants.iter().any(|known| known == name) {
            let has = match self.0.constants.is_empty() {
                true => "none".to_owned(),
                false => self.0.constants.join(", "),
            };
            let (store, name) = (self.location().to_owned(), name.to_owned());
            return Err(Era5Error::NoConstant { store, name, has });
        }
        let field = self.field(&Variable::surface(name), None, &[])?;
        self.gather(&field, name, &String::new)
    }

    /// The numbers of a coordinate.
    pub fn coordinate(&self, name: &str) -> Result<Vec<f64>, Era5Error> {
        let Some(info) = self.0.arrays.get(name).filter(|info| info.dimensions.len() == 1) else {
            let one = |info: &ArrayInfo| info.dimensions.len() == 1;
            let known = self.0.arrays.iter().filter(|(_, info)| one(info));
            return Err(self.unknown(name, known.map(|(name, _)| name.as_str())));
        };
        let open = |name: &str, info: &ArrayInfo| open_array(&self.0.storage, name, info);
        Ok(axis::numbers(self.location(), name, info, &open)?.floats())
    }

    fn unknown<'a>(&self, name: &str, names: impl Iterator<Item = &'a str>) -> Era5Error {
        let names: Vec<&str> = names.collect();
        Era5Error::NoVariable {
            store: self.location().to_owned(),
            name: name.to_owned(),
            nearest: nearest(name, names.iter().copied()),
            has: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        }
    }

    /// Finds a field, and refuses what is no field of this grid.
    fn field(
        &self,
        variable: &Variable,
        time: Option<usize>,
        others: &[(&str, usize)],
    ) -> Result<Field<'_>, Era5Error> {
        let inner = &*self.0;
        let names = || inner.variables.iter().map(|stored| stored.name.as_str());
        let known = time.is_none() || names().any(|name| name == variable.name);
        let place = inner.arrays.iter().enumerate().find(|(_, (name, _))| **name == variable.name);
        let Some((number, (name, info))) = place.filter(|_| known) else {
            return Err(self.unknown(&variable.name, names()));
        };
        let store = || self.location().to_owned();
        let level_refused = |problem: String| {
            Err(Era5Error::Level { store: store(), variable: variable.clone(), problem })
        };
        let mut dimensions = Vec::new();
        let mut expected = Vec::new();
        let mut found_level = false;
        for (dimension, &length) in info.dimensions.iter().zip(&info.shape) {
            let other = others.iter().find(|(other, _)| other == dimension);
            let (place, expect) = match (axis::of(dimension), other) {
                (_, Some((_, index))) => ((Dimension::Fixed, *index as u64), length),
                (Some(Coordinate::Latitude), _) => {
                    ((Dimension::Latitude, 0), inner.axes.grid.latitudes().len() as u64)
                }
                (Some(Coordinate::Longitude), _) => {
                    ((Dimension::Longitude, 0), inner.axes.grid.longitudes().len() as u64)
                }
                (Some(Coordinate::Time), _) if time.is_some() => {
                    ((Dimension::Fixed, time.unwrap_or(0) as u64), inner.axes.times.len() as u64)
                }
                (Some(Coordinate::Level), _) => {
                    found_level = true;
                    let levels = &inner.axes.levels;
                    let Some(level) = variable.level else {
                        return level_refused(format!(
                            "this variable has levels; name one, such as `{name}.{}`",
                            levels.first().copied().unwrap_or(500)
                        ));
                    };
                    let Some(index) = levels.iter().position(|&known| known == level) else {
                        return level_refused(format!(
                            "no level {level}; the store has {levels:?}. Choose one of these"
                        ));
                    };
                    ((Dimension::Fixed, index as u64), levels.len() as u64)
                }
                _ => {
                    return Err(Era5Error::Dimensions {
                        store: store(),
                        variable: name.clone(),
                        dimensions: info.dimensions.clone(),
                    });
                }
            };
            dimensions.push(place);
            expected.push(expect);
        }
        if variable.level.is_some() && !found_level {
            return level_refused(format!("this variable has no levels; write `{name}`"));
        }
        let outside = dimensions.iter().zip(&info.shape).any(|((_, index), size)| index >= size);
        if expected != info.shape || info.dimensions.len() != info.shape.len() || outside {
            return Err(Era5Error::Shape {
                store: store(),
                variable: name.clone(),
                dimensions: info.dimensions.clone(),
                sizes: format!(
                    "the shape {:?}, but its coordinates have {expected:?} values",
                    info.shape
                ),
            });
        }
        Ok(Field { name, number, info, dimensions })
    }

    /// Brings the chunks that have a field together, in our orientation.
    fn gather(
        &self,
        field: &Field<'_>,
        variable: &str,
        when: &dyn Fn() -> String,
    ) -> Result<Vec<f32>, Era5Error> {
        let inner = &*self.0;
        let opened = inner.opened[field.number]
            .get_or_init(|| open_array(&inner.storage, field.name, field.info));
        let chunked = opened.as_ref().map_err(|problem| Era5Error::Metadata {
            store: self.location().to_owned(),
            array: field.name.to_owned(),
            problem: problem.clone(),
        })?;
        let (rows, columns) = (&inner.axes.rows, &inner.axes.columns);
        let of = |wanted: Dimension| {
            let found = field.dimensions.iter().position(|(dimension, _)| *dimension == wanted);
            found.expect("every field has latitude and longitude")
        };
        let (latitude, longitude) = (of(Dimension::Latitude), of(Dimension::Longitude));
        let (high, wide) = (chunked.chunk[latitude] as usize, chunked.chunk[longitude] as usize);
        // Elements of a chunk from one index of a dimension to the next.
        let mut strides = vec![1usize; chunked.chunk.len()];
        for d in (1..strides.len()).rev() {
            strides[d - 1] = strides[d] * chunked.chunk[d] as usize;
        }
        let fixed: usize = field
            .dimensions
            .iter()
            .zip(&chunked.chunk)
            .zip(&strides)
            .map(|(((_, index), chunk), stride)| (index % chunk) as usize * stride)
            .sum();
        let mut values = vec![f32::NAN; rows.len() * columns.len()];
        for top in (0..rows.len()).step_by(high) {
            for left in (0..columns.len()).step_by(wide) {
                let mut indices: Vec<u64> = field
                    .dimensions
                    .iter()
                    .zip(&chunked.chunk)
                    .map(|((_, index), chunk)| index / chunk)
                    .collect();
                indices[latitude] = (top / high) as u64;
                indices[longitude] = (left / wide) as u64;
                let id = (field.number, indices);
                let chunk = inner.cache.get(&id, || chunked.values(&id.1));
                let chunk = chunk.map_err(|trouble| {
                    let field = format!("`{variable}`{}", when());
                    trouble.error(self.location(), field, chunked.key(&id.1))
                })?;
                for (i, &row) in rows[top..].iter().take(high).enumerate() {
                    let from = fixed + i * strides[latitude];
                    let into = &mut values[row * columns.len()..][..columns.len()];
                    for (j, &column) in columns[left..].iter().take(wide).enumerate() {
                        into[column] = chunk[from + j * strides[longitude]];
                    }
                }
            }
        }
        Ok(values)
    }
}

/// Opens an array of numbers, or says why not.
fn open_array(storage: &ReadableStorage, name: &str, info: &ArrayInfo) -> Result<Chunked, String> {
    let kind = info.kind.ok_or("have a data type that is no plain number")?;
    let array =
        AnyArray::new_with_metadata(storage.clone(), &format!("/{name}"), info.metadata.clone());
    let array = array.map_err(|error| {
        format!("cannot be used: {error}. Supported are Blosc, gzip, zlib, Zstandard and sharding")
    })?;
    Chunked::new(array, info, kind)
}
