//! A period of some variables from any store to a folder.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use bayesmesh_files::{
    AtomicFile, FileError, Lock, LockError, create_folder, create_folder_of, hidden_name,
};
use serde_json::{Map, Value, json};

use super::error::{Era5Error, hours};
use super::layout::{Layout, Sink, Spec, check_free, turned};
use super::masks;
use super::progress::Progress;
use super::store::Store;
use super::synth::CHUNK;
use super::time::utc;
use super::variable::Variable;

/// What is to be copied.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchConfig {
    /// Which fields. All variables with levels get all levels that are named.
    pub variables: Vec<Variable>,
    /// The first time, in Unix seconds.
    pub from: i64,
    /// Times before this one, in Unix seconds.
    pub until: i64,
    /// Seconds from one time to the next, from the first one on; 0 for every time of the store.
    pub stride: i64,
    /// Whether land, soil type and topography are copied too.
    pub masks: bool,
}

/// The folder in which a copy grows.
const CONTENTS: &str = "contents";
/// What it is a copy of.
const PLAN: &str = "plan.json";
/// How many pieces are complete.
const DONE: &str = "done";
/// Held while a process works; a folder that has it was made by this program.
const LOCK: &str = "bayesmesh.lock";

/// Copies a period and variables of a store to a folder in the same layout, Zarr version 2 with
/// chunks of 8 times. Only the chunks that are needed are read. The folder appears when it is
/// complete; a copy that was interrupted goes on where it stopped when the same is asked for again.
pub fn fetch(
    location: &str,
    out: &Path,
    config: &FetchConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<Store, Era5Error> {
    check_free(out, false)?;
    let store = Store::open(location)?;
    let copy = Copy::plan(&store, config)?;
    let staging = Staging::new(out)?;
    let begin = staging.begin(&copy.description(location))?;
    let contents = staging.path.join(CONTENTS);
    create_folder(&contents).map_err(Era5Error::Write)?;
    let mut layout = Layout::in_folder(&contents)?;
    let sinks = copy.begin(&mut layout)?;
    let blocks = copy.times.len().div_ceil(CHUNK);
    for block in begin..blocks {
        progress(Progress { what: "fetching", done: block * CHUNK, of: copy.times.len() });
        copy.block(block, &sinks)?;
        staging.write(DONE, &(block + 1).to_string())?;
    }
    progress(Progress { what: "fetching", done: copy.times.len(), of: copy.times.len() });
    let mut about = store.attributes().clone();
    about.insert("fetched_from".to_owned(), json!(location));
    layout.finish(about)?;
    staging.commit(out)?;
    Store::open(&out.display().to_string())
}

/// What is copied, in detail.
struct Copy<'a> {
    store: &'a Store,
    config: &'a FetchConfig,
    /// Numbers of times in the store.
    times: Vec<usize>,
    /// Each array, with its fields.
    arrays: Vec<(String, Vec<Variable>)>,
    levels: Vec<u32>,
}

impl<'a> Copy<'a> {
    fn plan(store: &'a Store, config: &'a FetchConfig) -> Result<Self, Era5Error> {
        let levels: BTreeSet<u32> = config.variables.iter().filter_map(|v| v.level).collect();
        let names: BTreeSet<(&str, bool)> =
            config.variables.iter().map(|v| (v.name.as_str(), v.level.is_some())).collect();
        if names.is_empty() {
            let problem = "no variables to fetch; name at least one, such as `2m_temperature`";
            return Err(Era5Error::Setting(problem.to_owned()));
        }
        let fields = |&(name, has_levels): &(&str, bool)| match has_levels {
            false => vec![Variable::surface(name)],
            true => levels.iter().map(|&level| Variable::at(name, level)).collect(),
        };
        let arrays: Vec<(String, Vec<Variable>)> =
            names.iter().map(|array| (array.0.to_owned(), fields(array))).collect();
        for variable in arrays.iter().flat_map(|(_, fields)| fields) {
            store.check(variable)?;
        }
        let mut next = config.from;
        let mut times = Vec::new();
        for (number, &time) in store.times().iter().enumerate() {
            if !(config.from..config.until).contains(&time) {
                continue;
            }
            if config.stride > 0 {
                let first = times.first().map_or(time, |&first: &usize| store.times()[first]);
                if (time - first) % config.stride != 0 {
                    continue;
                }
                if time > next && !times.is_empty() {
                    return Err(Era5Error::Gap {
                        store: store.location().to_owned(),
                        from: next - config.stride,
                        to: time,
                        step: config.stride,
                    });
                }
                next = time + config.stride;
            }
            times.push(number);
        }
        if times.is_empty() {
            let known = store.times();
            let span = match (known.first(), known.last()) {
                (Some(first), Some(last)) => format!("{} to {}", utc(*first), utc(*last)),
                _ => "none".to_owned(),
            };
            return Err(Era5Error::TooShort {
                store: store.location().to_owned(),
                problem: format!(
                    "no time from {} to before {}; the store has {span}. Choose another period",
                    utc(config.from),
                    utc(config.until)
                ),
            });
        }
        Ok(Self { store, config, times, arrays, levels: levels.into_iter().collect() })
    }

    /// Tells this copy from another one.
    fn description(&self, location: &str) -> String {
        let fields: Vec<String> =
            self.arrays.iter().flat_map(|(_, fields)| fields).map(Variable::to_string).collect();
        let times: Vec<i64> = self.times.iter().map(|&number| self.store.times()[number]).collect();
        let plan = json!({
            "from": location,
            "variables": fields,
            "first": times.first(),
            "last": times.last(),
            "times": times.len(),
            "stride": hours(self.config.stride),
            "masks": self.config.masks,
        });
        format!("{plan:#}\n")
    }

    /// Writes everything but the fields over time.
    fn begin(&self, layout: &mut Layout) -> Result<Vec<Sink>, Era5Error> {
        let store = self.store;
        layout.grid(store.grid())?;
        let times = self.times.iter().map(|&number| store.times()[number]).collect();
        layout.whole(
            "time",
            times,
            json!({"units": "seconds since 1970-01-01", "calendar": "proleptic_gregorian"}),
        )?;
        if !self.levels.is_empty() {
            layout.levels(&self.levels)?;
        }
        let (columns, rows) = (store.grid().longitudes().len(), store.grid().latitudes().len());
        let (columns, rows) = (columns as u64, rows as u64);
        if self.config.masks {
            for name in masks::NAMES {
                let values = store.constant(name)?;
                let spec = Spec {
                    name,
                    dimensions: &["longitude", "latitude"],
                    shape: vec![columns, rows],
                    chunks: vec![columns, rows],
                    dtype: "<f4",
                    attributes: self.attributes(name),
                };
                layout.array(spec)?.put(&[0, 0], turned(&values, store.grid()))?;
            }
        }
        let times = self.times.len() as u64;
        let array = |(name, fields): &(String, Vec<Variable>)| {
            let has_levels = fields[0].level.is_some();
            let levels = fields.len() as u64;
            let (dimensions, shape, chunks): (&[&str], _, _) = match has_levels {
                false => (
                    &["time", "longitude", "latitude"],
                    vec![times, columns, rows],
                    vec![CHUNK as u64, columns, rows],
                ),
                true => (
                    &["time", "level", "longitude", "latitude"],
                    vec![times, levels, columns, rows],
                    vec![CHUNK as u64, levels, columns, rows],
                ),
            };
            let attributes = self.attributes(name);
            layout.array(Spec { name, dimensions, shape, chunks, dtype: "<f4", attributes })
        };
        self.arrays.iter().map(array).collect()
    }

    /// What the store says of an array, without what says how it is stored there.
    fn attributes(&self, name: &str) -> Map<String, Value> {
        const STORED: [&str; 5] =
            ["_ARRAY_DIMENSIONS", "scale_factor", "add_offset", "_FillValue", "missing_value"];
        let attributes = self.store.array_attributes(name).cloned().unwrap_or_default();
        attributes.into_iter().filter(|(key, _)| !STORED.contains(&key.as_str())).collect()
    }

    /// Copies eight times of all variables.
    fn block(&self, block: usize, sinks: &[Sink]) -> Result<(), Era5Error> {
        let grid = self.store.grid();
        let times = &self.times[block * CHUNK..];
        for ((_, fields), sink) in self.arrays.iter().zip(sinks) {
            let mut chunk = Vec::with_capacity(CHUNK * fields.len() * grid.points());
            for &time in times.iter().take(CHUNK) {
                for variable in fields {
                    chunk.extend(turned(&self.store.read(variable, time)?, grid));
                }
            }
            chunk.resize(CHUNK * fields.len() * grid.points(), f32::NAN);
            let mut place = vec![block as u64, 0, 0];
            if fields[0].level.is_some() {
                place.push(0);
            }
            sink.put(&place, chunk)?;
        }
        Ok(())
    }
}

/// A hidden folder beside the one that is asked for. It stays when a copy is interrupted.
struct Staging {
    path: PathBuf,
    _lock: Lock,
}

impl Staging {
    fn new(out: &Path) -> Result<Self, Era5Error> {
        let name = out.file_name().ok_or_else(|| {
            Era5Error::Setting(format!("{}: this is no name for a store", out.display()))
        })?;
        create_folder_of(out).map_err(Era5Error::Write)?;
        let path = out.with_file_name(hidden_name(name, ".part"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_empty =
                    || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
                if !path.join(LOCK).is_file() && !is_empty() {
                    return Err(Era5Error::Write(FileError::NotOurs { path }));
                }
            }
            created => created
                .map_err(|error| Era5Error::Write(FileError::new(&path, "create", &error)))?,
        }
        let lock = Lock::take(&path.join(LOCK), &format!("process {}", process::id()));
        let lock = lock.map_err(|error| match error {
            LockError::Busy { .. } => Era5Error::Setting(format!(
                "{}: another process is fetching this. Wait until it is done",
                out.display()
            )),
            LockError::File(error) => Era5Error::Write(error),
        })?;
        Ok(Self { path, _lock: lock })
    }

    /// How many pieces of this plan are complete; those of another plan are removed.
    fn begin(&self, plan: &str) -> Result<usize, Era5Error> {
        let known = fs::read_to_string(self.path.join(PLAN)).ok();
        if known.as_deref() == Some(plan) {
            let done = fs::read_to_string(self.path.join(DONE)).ok();
            return Ok(done.and_then(|done| done.trim().parse().ok()).unwrap_or(0));
        }
        // The plan comes last: it is never that of another beginning.
        for name in [PLAN, DONE] {
            let _ = fs::remove_file(self.path.join(name));
        }
        let contents = self.path.join(CONTENTS);
        match fs::remove_dir_all(&contents) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Era5Error::Write(FileError::new(&contents, "remove", &error)));
            }
            _ => {}
        }
        self.write(PLAN, plan)?;
        Ok(0)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Era5Error> {
        let path = self.path.join(name);
        AtomicFile::write(&path, text)
            .map_err(|error| Era5Error::Write(FileError::new(&path, "write", &error)))
    }

    /// Gives the copy its name and removes the rest.
    fn commit(self, out: &Path) -> Result<(), Era5Error> {
        check_free(out, false)?;
        fs::rename(self.path.join(CONTENTS), out)
            .and_then(|()| bayesmesh_files::sync_folder_of(out))
            .map_err(|error| Era5Error::Write(FileError::new(out, "write", &error)))?;
        for name in [PLAN, DONE, LOCK] {
            let _ = fs::remove_file(self.path.join(name));
        }
        // Not with anything in it that somebody else has put there.
        let _ = fs::remove_dir(&self.path);
        Ok(())
    }
}
