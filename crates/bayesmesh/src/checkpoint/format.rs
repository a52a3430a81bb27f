//! Checkpoints as safetensors files; the layout is documented at the [module](super).

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde_json::{Map, Value, json};

use super::{Checkpoint, CheckpointError, Group, NamedTensor, digest, tensor};
use bayesmesh_files::FileError;

const VERSION: u64 = 1;
const VERSION_KEY: &str = "bayesmesh_checkpoint";
/// The file starts with the length of its header.
const LENGTH: usize = size_of::<u64>();
/// A header is at least a pair of braces, and the safetensors format allows none above 100 MB.
const LEAST_HEADER: u64 = 2;
const MOST_HEADER: u64 = 100_000_000;

/// The JSON text before the data, padded to a multiple of eight bytes.
pub(super) fn header(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut notes = Map::new();
    let mut note = |key: String, value: String| notes.insert(key, Value::String(value));
    let digest = checkpoint.digest();
    note(VERSION_KEY.into(), VERSION.to_string());
    note("step".into(), checkpoint.step.to_string());
    note("seed".into(), checkpoint.seed.to_string());
    note("checksum".into(), digest::of_content(checkpoint, &digest));
    note("digest".into(), digest);
    for (name, value) in &checkpoint.counters {
        note(format!("counters/{name}"), value.to_string());
    }
    for (key, value) in &checkpoint.metadata {
        note(format!("metadata/{key}"), value.clone());
    }

    let mut entries = Map::new();
    let mut offset = 0;
    for group in Group::ALL {
        let mut names = Vec::new();
        for tensor in checkpoint.group(group) {
            let start = offset;
            offset += 4 * tensor.values.len();
            let entry = json!({
                "dtype": "F32", "shape": tensor.shape, "data_offsets": [start, offset],
            });
            entries.insert(format!("{group}/{}", tensor.name), entry);
            names.push(tensor.name.as_str());
        }
        note(group.name().into(), json!(names).to_string());
    }
    entries.insert("__metadata__".into(), Value::Object(notes));

    let mut header = Value::Object(entries).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    header
}

/// Writes the whole file.
pub(super) fn write(
    checkpoint: &Checkpoint,
    header: &[u8],
    file: &mut impl Write,
) -> io::Result<()> {
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header)?;
    for group in Group::ALL {
        for tensor in checkpoint.group(group) {
            tensor::for_each_bytes(&tensor.values, |bytes| file.write_all(bytes))?;
        }
    }
    Ok(())
}

/// Reads and verifies a file.
pub(super) fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
    let mut reader = Reader::open(path)?;
    let header = reader.header()?;
    let notes = Notes::of(path, &header)?;
    reader.check_size(&header)?;

    let mut groups = Vec::new();
    for (group, names) in notes.lists(&header)? {
        let tensors = names.into_iter().map(|name| reader.tensor(&header, group, name));
        groups.push(tensors.collect::<Result<Vec<_>, _>>()?);
    }
    let [parameters, buffers, optimizer] =
        groups.try_into().expect("as many groups as Group::ALL has");

    let mut counters = BTreeMap::new();
    for (name, key) in notes.with_prefix("counters/") {
        counters.insert(name, notes.number(&key)?);
    }
    let mut metadata = BTreeMap::new();
    for (name, key) in notes.with_prefix("metadata/") {
        metadata.insert(name, notes.text(&key)?.to_owned());
    }
    let checkpoint = Checkpoint {
        step: notes.number("step")?,
        seed: notes.number("seed")?,
        parameters,
        buffers,
        optimizer,
        counters,
        metadata,
    };
    let digest = checkpoint.digest();
    if notes.text("digest")? != digest {
        return Err(reader.damaged("the parameters do not match their digest"));
    }
    if notes.text("checksum")? != digest::of_content(&checkpoint, &digest) {
        return Err(reader.damaged("the content does not match its checksum"));
    }
    Ok(checkpoint)
}

/// The file while it is read.
struct Reader<'a> {
    path: &'a Path,
    file: File,
    size: u64,
    /// Where the data begin.
    start: u64,
}

impl<'a> Reader<'a> {
    fn open(path: &'a Path) -> Result<Self, CheckpointError> {
        let io = |error| FileError::new(path, "read", &error);
        let file = File::open(path).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        if about.is_dir() {
            return Err(io(io::ErrorKind::IsADirectory.into()).into());
        }
        Ok(Self { path, file, size: about.len(), start: 0 })
    }

    fn header(&mut self) -> Result<Metadata, CheckpointError> {
        let mut length = [0; LENGTH];
        self.fill(&mut length)?;
        let length = u64::from_le_bytes(length);
        if !(LEAST_HEADER..=MOST_HEADER).contains(&length) {
            return Err(self.alien("it does not begin with the length of a header".into()));
        }
        // The brace first: what has none is not a cut-off file but something else.
        let mut brace = [0];
        self.fill(&mut brace)?;
        if brace != *b"{" {
            return Err(self.alien("its header does not begin with a brace".into()));
        }
        self.start = LENGTH as u64 + length;
        if self.size < self.start {
            return Err(self.truncated(self.start));
        }
        let mut text = vec![b'{'; length as usize];
        self.fill(&mut text[1..])?;
        serde_json::from_slice(&text).map_err(|error| self.alien(error.to_string()))
    }

    fn check_size(&self, header: &Metadata) -> Result<(), CheckpointError> {
        let expected = self.start + header.data_len() as u64;
        if self.size < expected {
            Err(self.truncated(expected))
        } else if self.size > expected {
            Err(self.damaged(&format!("{} bytes follow its end", self.size - expected)))
        } else {
            Ok(())
        }
    }

    fn tensor(
        &mut self,
        header: &Metadata,
        group: Group,
        name: String,
    ) -> Result<NamedTensor, CheckpointError> {
        let info = header.info(&format!("{group}/{name}")).expect("`Notes::lists` has found it");
        let TensorInfo { dtype, shape, data_offsets: (from, to) } = info;
        if *dtype != Dtype::F32 {
            return Err(self.damaged(&format!("{group}: '{name}' has type {dtype}, not F32")));
        }
        self.file
            .seek(SeekFrom::Start(self.start + *from as u64))
            .map_err(|error| FileError::new(self.path, "read", &error))?;
        let mut values = Vec::with_capacity((to - from) / 4);
        let mut bytes = vec![0; (to - from).min(1 << 18)];
        let mut left = to - from;
        while left > 0 {
            let piece = &mut bytes[..left.min(1 << 18)];
            self.fill(piece)?;
            values.extend(piece.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            left -= piece.len();
        }
        Ok(NamedTensor { name, shape: shape.clone(), values })
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            // Before the header is known, this much is certain: a length and a brace.
            io::ErrorKind::UnexpectedEof => self.truncated(self.start.max(LENGTH as u64 + 1)),
            _ => FileError::new(self.path, "read", &error).into(),
        })
    }

    fn truncated(&self, expected: u64) -> CheckpointError {
        CheckpointError::Truncated { path: self.path.into(), expected, actual: self.size }
    }

    fn damaged(&self, problem: &str) -> CheckpointError {
        damaged(self.path, problem)
    }

    fn alien(&self, reason: String) -> CheckpointError {
        CheckpointError::NotSafetensors { path: self.path.into(), reason }
    }
}

/// The `__metadata__` of a file.
struct Notes<'a> {
    path: &'a Path,
    entries: BTreeMap<&'a str, &'a str>,
}

impl<'a> Notes<'a> {
    /// Takes the metadata of a checkpoint of a version that can be read.
    fn of(path: &'a Path, header: &'a Metadata) -> Result<Self, CheckpointError> {
        let entries = header
            .metadata()
            .iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let notes = Self { path, entries };
        if !notes.entries.contains_key(VERSION_KEY) {
            return Err(CheckpointError::NotACheckpoint { path: path.into(), key: VERSION_KEY });
        }
        match notes.number(VERSION_KEY)? {
            VERSION => Ok(notes),
            0 => Err(damaged(path, "its format version is 0")),
            found => Err(CheckpointError::Newer { path: path.into(), found, supported: VERSION }),
        }
    }

    fn text(&self, key: &str) -> Result<&'a str, CheckpointError> {
        let missing = || damaged(self.path, &format!("no '{key}' in its metadata"));
        self.entries.get(key).copied().ok_or_else(missing)
    }

    fn number(&self, key: &str) -> Result<u64, CheckpointError> {
        let text = self.text(key)?;
        text.parse().map_err(|_| {
            let problem = format!("'{key}' in its metadata is '{text}', not a whole number");
            damaged(self.path, &problem)
        })
    }

    /// The names of the tensors of every group in order: each tensor of the file once. A file that
    /// lists a tensor more often could ask for any amount of memory, so this is known before any
    /// tensor is read.
    fn lists(&self, header: &Metadata) -> Result<Vec<(Group, Vec<String>)>, CheckpointError> {
        let mut lists = Vec::new();
        let mut count = 0;
        for group in Group::ALL {
            let names = self.names(group)?;
            let mut seen = HashSet::new();
            for name in &names {
                if header.info(&format!("{group}/{name}")).is_none() {
                    let problem = format!("{group}: '{name}' is listed, but absent");
                    return Err(damaged(self.path, &problem));
                }
                if !seen.insert(name) {
                    let problem = format!("{group}: '{name}' is listed twice");
                    return Err(damaged(self.path, &problem));
                }
            }
            count += names.len();
            lists.push((group, names));
        }
        if count != header.tensors().len() {
            let problem = "it holds tensors that its metadata does not list";
            return Err(damaged(self.path, problem));
        }
        Ok(lists)
    }

    /// The names of the tensors of a group in order.
    fn names(&self, group: Group) -> Result<Vec<String>, CheckpointError> {
        serde_json::from_str(self.text(group.name())?).map_err(|error| {
            let problem = format!("'{group}' in its metadata is not a list of names: {error}");
            damaged(self.path, &problem)
        })
    }

    /// What follows the prefix in each key that has it, and the key.
    fn with_prefix(&self, prefix: &str) -> Vec<(String, String)> {
        self.entries
            .keys()
            .filter_map(|key| Some((key.strip_prefix(prefix)?.to_owned(), (*key).to_owned())))
            .collect()
    }
}

fn damaged(path: &Path, problem: &str) -> CheckpointError {
    CheckpointError::Damaged { path: path.into(), problem: problem.to_owned() }
}
