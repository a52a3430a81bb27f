//! Writing stores of Zarr version 2 with consolidated metadata, as WeatherBench2 has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bayesmesh_files::{FileError, create_folder_of, hidden_name, sync_folder_of};
use serde_json::{Map, Value, json};
use zarrs::array::{Array, ArrayError, ArrayMetadata, CodecOptions, IntoArrayBytes};
use zarrs::filesystem::FilesystemStore;
use zarrs::storage::{StorageError, StoreKey, WritableStorage, WritableStorageTraits};

use super::error::Era5Error;
use super::grid::Grid;
use super::variable::known_of;

/// An array to be written.
pub(super) struct Spec<'a> {
    pub name: &'a str,
    pub dimensions: &'a [&'a str],
    pub shape: Vec<u64>,
    pub chunks: Vec<u64>,
    /// `<f4`, `<f8` or `<i8`.
    pub dtype: &'static str,
    pub attributes: Map<String, Value>,
}

/// A store that is being written.
pub(super) struct Layout {
    storage: WritableStorage,
    /// For messages.
    path: PathBuf,
    metadata: Map<String, Value>,
    compressed: bool,
}

/// An array that takes chunks.
pub(super) struct Sink {
    array: Array<dyn WritableStorageTraits>,
    path: PathBuf,
}

impl Layout {
    /// Begins a store. Compression takes longer than it saves where a store stays in memory.
    pub fn new(storage: WritableStorage, path: &Path, compressed: bool) -> Self {
        Self { storage, path: path.to_path_buf(), metadata: Map::new(), compressed }
    }

    /// Begins one in a folder.
    pub fn in_folder(folder: &Path) -> Result<Self, Era5Error> {
        let store = FilesystemStore::new(folder)
            .map_err(|error| Era5Error::Write(other(folder, &error.to_string())))?;
        Ok(Self::new(Arc::new(store), folder, true))
    }

    /// Writes the metadata of an array, and takes its chunks from then on.
    pub fn array(&mut self, spec: Spec<'_>) -> Result<Sink, Era5Error> {
        let compressor = match self.compressed {
            true => {
                json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0})
            }
            false => Value::Null,
        };
        let zarray = json!({
            "chunks": spec.chunks,
            "compressor": compressor,
            "dtype": spec.dtype,
            "fill_value": if spec.dtype.contains('f') { json!("NaN") } else { Value::Null },
            "filters": null,
            "order": "C",
            "shape": spec.shape,
            "zarr_format": 2,
        });
        let mut attributes = spec.attributes;
        attributes.insert("_ARRAY_DIMENSIONS".to_owned(), json!(spec.dimensions));
        let refused = |problem: String| Era5Error::Write(other(&self.path, &problem));
        let metadata = serde_json::from_value(zarray.clone()).map(ArrayMetadata::V2);
        let metadata = metadata.map_err(|error| refused(error.to_string()))?;
        let node = format!("/{}", spec.name);
        let array = Array::new_with_metadata(self.storage.clone(), &node, metadata);
        let array = array.map_err(|error| refused(error.to_string()))?;
        self.put(&format!("{}/.zarray", spec.name), zarray)?;
        self.put(&format!("{}/.zattrs", spec.name), Value::Object(attributes))?;
        Ok(Sink { array, path: self.path.clone() })
    }

    /// Writes a coordinate of whole numbers.
    pub fn whole(
        &mut self,
        name: &str,
        values: Vec<i64>,
        attributes: Value,
    ) -> Result<(), Era5Error> {
        self.coordinate(name, "<i8", values.len(), attributes)?.put(&[0], values)
    }

    /// Writes latitudes, ascending as WeatherBench2 has them, and longitudes.
    pub fn grid(&mut self, grid: &Grid) -> Result<(), Era5Error> {
        let mut latitudes = grid.latitudes().to_vec();
        latitudes.reverse();
        let longitudes = grid.longitudes().to_vec();
        let axes =
            [("latitude", "degrees_north", latitudes), ("longitude", "degrees_east", longitudes)];
        for (name, units, values) in axes {
            let attributes = json!({"units": units, "standard_name": name, "long_name": name});
            self.coordinate(name, "<f8", values.len(), attributes)?.put(&[0], values)?;
        }
        Ok(())
    }

    /// Writes pressure levels.
    pub fn levels(&mut self, levels: &[u32]) -> Result<(), Era5Error> {
        let attributes = json!({
            "units": "hPa", "standard_name": "air_pressure", "long_name": "pressure level",
            "positive": "down",
        });
        self.whole("level", levels.iter().map(|&level| i64::from(level)).collect(), attributes)
    }

    fn coordinate(
        &mut self,
        name: &str,
        dtype: &'static str,
        length: usize,
        attributes: Value,
    ) -> Result<Sink, Era5Error> {
        let attributes = match attributes {
            Value::Object(attributes) => attributes,
            _ => Map::new(),
        };
        let length = length as u64;
        let (shape, chunks) = (vec![length], vec![length.max(1)]);
        self.array(Spec { name, dimensions: &[name], shape, chunks, dtype, attributes })
    }

    /// Writes the metadata of the whole. A store in a folder is not complete before.
    pub fn finish(mut self, attributes: Map<String, Value>) -> Result<(), Era5Error> {
        self.put(".zattrs", Value::Object(attributes))?;
        self.put(".zgroup", json!({"zarr_format": 2}))?;
        let metadata = std::mem::take(&mut self.metadata);
        let all = json!({"metadata": metadata, "zarr_consolidated_format": 1});
        self.put(".zmetadata", all)
    }

    fn put(&mut self, key: &str, value: Value) -> Result<(), Era5Error> {
        let text = serde_json::to_string_pretty(&value).expect("JSON values can be written");
        let failed = |error: &StorageError| storage_error(&self.path.join(key), error);
        let name = StoreKey::new(key).map_err(|error| failed(&error.into()))?;
        self.storage.set(&name, text.into_bytes().into()).map_err(|error| failed(&error))?;
        self.metadata.insert(key.to_owned(), value);
        Ok(())
    }
}

impl Sink {
    /// Writes a chunk, of which all values are given, also those beyond the end of the array.
    pub fn put<'a>(&self, chunk: &[u64], values: impl IntoArrayBytes<'a>) -> Result<(), Era5Error> {
        // Also a chunk of nothing but NaN is written: one that is missing is an error to our
        // reader.
        let options = CodecOptions::default().with_store_empty_chunks(true);
        let key = self.path.join(self.array.chunk_key(chunk).as_str());
        self.array.store_chunk_opt(chunk, values, &options).map_err(|error| match error {
            ArrayError::StorageError(error) => storage_error(&key, &error),
            error => Era5Error::Write(other(&key, &error.to_string())),
        })
    }
}

fn storage_error(path: &Path, error: &StorageError) -> Era5Error {
    Era5Error::Write(match error {
        StorageError::IOError(error) => FileError::new(path, "write", error),
        error => other(path, &error.to_string()),
    })
}

fn other(path: &Path, reason: &str) -> FileError {
    FileError::Other { path: path.to_path_buf(), action: "write", reason: reason.to_owned() }
}

/// The attributes of a variable: its unit, or the one that ERA5 has it in, and names by the CF
/// conventions.
pub(super) fn attributes(name: &str, units: Option<&str>) -> Map<String, Value> {
    let mut attributes = Map::new();
    let known = known_of(name);
    if let Some(known) = known {
        attributes.insert("long_name".to_owned(), json!(known.long_name));
        if let Some(standard_name) = known.standard_name {
            attributes.insert("standard_name".to_owned(), json!(standard_name));
        }
    }
    if let Some(units) = units.or(known.map(|known| known.units)) {
        attributes.insert("units".to_owned(), json!(units));
    }
    attributes
}

/// Fields `[latitude, longitude]`, north first, one after the other, turned to
/// `[longitude, latitude]` with latitude ascending, as WeatherBench2 has them.
pub(super) fn turned(values: &[f32], grid: &Grid) -> Vec<f32> {
    let (rows, columns) = (grid.latitudes().len(), grid.longitudes().len());
    let mut out = Vec::with_capacity(values.len());
    for field in values.chunks_exact(rows * columns) {
        for column in 0..columns {
            out.extend((0..rows).rev().map(|row| field[row * columns + column]));
        }
    }
    out
}

/// A folder that gets its name only when it is complete; dropped before, it is removed.
#[derive(Debug)]
pub(super) struct NewFolder {
    path: PathBuf,
    temporary: PathBuf,
    replace: bool,
}

impl NewFolder {
    /// Begins a folder. If something has the name, it is refused, or replaced in the end; only a
    /// Zarr store or an empty folder is ever replaced.
    pub fn create(path: &Path, replace: bool) -> Result<Self, Era5Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        check_free(path, replace)?;
        let name = path.file_name().ok_or_else(|| {
            Era5Error::Setting(format!("{}: this is no name for a store", path.display()))
        })?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".{}-{count}.bayesmesh-tmp", process::id());
        let temporary = path.with_file_name(hidden_name(name, &suffix));
        create_folder_of(path).map_err(Era5Error::Write)?;
        fs::create_dir(&temporary)
            .map_err(|error| Era5Error::Write(FileError::new(&temporary, "create", &error)))?;
        Ok(Self { path: path.to_path_buf(), temporary, replace })
    }

    /// Where to write.
    pub fn folder(&self) -> &Path {
        &self.temporary
    }

    /// Gives the folder its name.
    pub fn commit(self) -> Result<(), Era5Error> {
        let failed = |error| Era5Error::Write(FileError::new(&self.path, "write", &error));
        check_free(&self.path, self.replace)?;
        let old = self.path.exists().then(|| {
            let name = self.temporary.file_name().unwrap_or_default();
            self.path.with_file_name(hidden_name(name, ".old"))
        });
        if let Some(old) = &old {
            fs::rename(&self.path, old).map_err(failed)?;
        }
        fs::rename(&self.temporary, &self.path).map_err(failed)?;
        sync_folder_of(&self.path).map_err(failed)?;
        if let Some(old) = &old {
            fs::remove_dir_all(old).map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // Nobody is left to tell; after a commit there is nothing.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

pub(super) fn check_free(path: &Path, replace: bool) -> Result<(), Era5Error> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    if !replace {
        return Err(Era5Error::Exists { path: path.to_path_buf() });
    }
    let is_store =
        [".zgroup", ".zmetadata", "zarr.json"].iter().any(|name| path.join(name).is_file());
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match !is_link && (is_store || is_empty()) {
        true => Ok(()),
        false => Err(Era5Error::Write(FileError::NotOurs { path: path.to_path_buf() })),
    }
}
