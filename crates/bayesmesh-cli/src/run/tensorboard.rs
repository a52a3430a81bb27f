//! Event files for TensorBoard.
//!
//! A file is a sequence of records (TFRecord), each
//!
//! ```text
//! length: u64 | masked CRC-32C of the length: u32 | data | masked CRC-32C of the data: u32
//! ```
//!
//! in little-endian order. The data are the protocol buffer `tensorflow.Event`, of which this needs
//!
//! ```text
//! Event      { double wall_time = 1; int64 step = 2;
//!              oneof { string file_version = 3; Summary summary = 5;
//!                      SessionLog session_log = 7; } }
//! Summary    { repeated Value value = 1; }
//! Value      { string tag = 1; float simple_value = 2; }
//! SessionLog { SessionStatus status = 1; }    // START = 1
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bayesmesh_files::{AppendFile, FileError};

use super::{RunError, clock, crc32c, host};

const PREFIX: &str = "events.out.tfevents.";

/// Writes numbers for TensorBoard (`tensorboard --logdir RUN`) to a file
/// `events.out.tfevents.<unix time>.<host>`.
#[derive(Debug)]
pub struct TensorBoard {
    file: AppendFile,
}

impl TensorBoard {
    /// Begins an event file in a folder.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self, RunError> {
        let now = SystemTime::now();
        let path = next_path(folder.as_ref(), clock::unix_seconds(now) as u64)?;
        let file = AppendFile::create(&path)?;
        let mut board = Self { file };
        board.record(&event(now, 0, 3, b"brain.Event:2"))?;
        Ok(board)
    }

    /// Begins another event file in the folder of a run that goes on after a step. TensorBoard is
    /// told to forget what earlier files say of later steps; files with a torn end it reads anyway.
    pub fn resume(folder: impl AsRef<Path>, step: u64) -> Result<Self, RunError> {
        const START: [u8; 2] = [1 << 3, 1];
        let mut board = Self::create(folder)?;
        board.record(&event(SystemTime::now(), step + 1, 7, &START))?;
        Ok(board)
    }

    /// Writes numbers of a step under their names; a slash in a name makes a group.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<(), RunError> {
        self.record(&event(SystemTime::now(), step, 5, &summary(values)))
    }

    /// The event file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    fn record(&mut self, data: &[u8]) -> Result<(), RunError> {
        Ok(self.file.append(&frame(data))?)
    }
}

/// The file for a time, or for the earliest later one that comes after all files in the folder:
/// TensorBoard reads them in the order of their names.
fn next_path(folder: &Path, now: u64) -> Result<PathBuf, RunError> {
    let io = |error| FileError::new(folder, "read", &error);
    let mut time = now;
    for entry in fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        let other = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse().ok());
        time = time.max(other.map_or(0, |other: u64| other.saturating_add(1)));
    }
    Ok(folder.join(format!("{PREFIX}{time}.{}", host::name())))
}

/// A record around data.
fn frame(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(crc32c::masked(&length).to_le_bytes());
    record.extend(data);
    record.extend(crc32c::masked(data).to_le_bytes());
    record
}

/// An `Event` whose content is in the given field.
fn event(time: SystemTime, step: u64, field: u8, content: &[u8]) -> Vec<u8> {
    const DOUBLE: u8 = 1;
    let mut event = vec![1 << 3 | DOUBLE];
    event.extend(clock::unix_seconds(time).to_le_bytes());
    event.push(2 << 3);
    push_varint(&mut event, step);
    push_bytes(&mut event, field, content);
    event
}

/// A `Summary` of single numbers.
fn summary(values: &[(&str, f64)]) -> Vec<u8> {
    const FLOAT: u8 = 5;
    let mut summary = Vec::new();
    for (tag, number) in values {
        let mut value = Vec::new();
        push_bytes(&mut value, 1, tag.as_bytes());
        value.push(2 << 3 | FLOAT);
        value.extend((*number as f32).to_le_bytes());
        push_bytes(&mut summary, 1, &value);
    }
    summary
}

/// A text or message in a field.
fn push_bytes(message: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    const LENGTH_DELIMITED: u8 = 2;
    message.push(field << 3 | LENGTH_DELIMITED);
    push_varint(message, bytes.len() as u64);
    message.extend(bytes);
}

/// A whole number in groups of seven bits, the least first; the eighth bit says that more follow.
fn push_varint(message: &mut Vec<u8>, mut number: u64) {
    while number > 0x7F {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use bayesmesh_files::testing::Scratch;

    /// A CRC-32C bit by bit, independent of the table.
    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                let odd = crc % 2 == 1;
                crc /= 2;
                if odd {
                    crc ^= 0x82F6_3B78;
                }
            }
        }
        let crc = !crc;
        crc.rotate_right(15).wrapping_add(0xA282_EAD8)
    }

    /// What one number of one event says: field number, wire type, value or content.
    type Field = (u64, u64, Vec<u8>);

    /// Splits records and checks their sums.
    fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let sum = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(sum(8), crc(&bytes[..8]));
            assert_eq!(sum(12 + length), crc(&bytes[12..12 + length]));
            records.push(bytes[12..12 + length].to_vec());
            bytes = &bytes[16 + length..];
        }
        records
    }

    /// Splits any protocol buffer into its fields.
    fn fields(mut bytes: &[u8]) -> Vec<Field> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let length = 1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
            let (number, rest) = bytes.split_at(length);
            *bytes = rest;
            let digits = number.iter().rev().map(|byte| u64::from(byte & 0x7F));
            digits.fold(0, |sum, digit| sum << 7 | digit)
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let length = match key % 8 {
                0 => {
                    let number = varint(&mut bytes);
                    fields.push((key / 8, 0, number.to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes) as usize,
                5 => 4,
                other => panic!("wire type {other}"),
            };
            fields.push((key / 8, key % 8, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        fields
    }

    fn number(field: &Field) -> u64 {
        u64::from_le_bytes(field.2.clone().try_into().unwrap())
    }

    #[test]
    fn a_reader_finds_what_was_written() {
        let scratch = Scratch::new();
        let before = clock::unix_seconds(SystemTime::now());
        let mut board = TensorBoard::create(scratch.path()).unwrap();
        let steps = [0, 1, 127, 128, 300, 1 << 40];
        for step in steps {
            let values = [("train/loss", step as f64 / 3.0), ("größe", -1.5)];
            board.scalars(step, &values).unwrap();
        }
        let long = "x".repeat(300);
        board.scalars(7, &[(&long, f64::NAN)]).unwrap();

        let bytes = fs::read(board.path()).unwrap();
        let events: Vec<Vec<Field>> = records(&bytes).iter().map(|data| fields(data)).collect();
        assert_eq!(events.len(), 1 + steps.len() + 1);
        assert_eq!(events[0][2], (3, 2, b"brain.Event:2".to_vec()));
        for (event, step) in events[1..].iter().zip(steps) {
            assert_eq!((event[0].0, event[0].1), (1, 1));
            let time = f64::from_bits(number(&event[0]));
            assert!((before..before + 3600.0).contains(&time));
            assert_eq!((event[1].0, number(&event[1])), (2, step));
            assert_eq!((event[2].0, event.len()), (5, 3));
            let values = fields(&event[2].2);
            let expected = [("train/loss", step as f32 / 3.0), ("größe", -1.5f32)];
            assert_eq!(values.len(), 2);
            for (value, (tag, number)) in values.iter().zip(expected) {
                let value = fields(&value.2);
                assert_eq!(value[0], (1, 2, tag.as_bytes().to_vec()));
                assert_eq!(value[1], (2, 5, number.to_le_bytes().to_vec()));
            }
        }
        let value = fields(&fields(&events.last().unwrap()[2].2)[0].2);
        assert_eq!(value[0].2, long.as_bytes());
        assert!(f32::from_le_bytes(value[1].2.clone().try_into().unwrap()).is_nan());
    }

    /// Expected bytes of TensorBoard's own `RecordWriter` and
    /// `Event(wall_time=1.5, step=300, summary=Summary(value=[Value(tag="loss",
    /// simple_value=0.25), Value(tag="a/b", simple_value=-1.0)])).SerializeToString()`.
    #[test]
    fn bytes_are_those_of_tensorboard() {
        let time = UNIX_EPOCH + Duration::from_millis(1500);
        let summary = summary(&[("loss", 0.25), ("a/b", -1.0)]);
        let record = frame(&event(time, 300, 5, &summary));
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "2700000000000000bbe1b14609000000000000f83f10ac022a190a0b0a046c6f737315000080\
             3e0a0a0a03612f6215000080bfe4304e74"
        );
    }

    #[test]
    fn a_resumed_run_gets_a_later_file_that_begins_anew() {
        let scratch = Scratch::new();
        let future = "events.out.tfevents.99999999998.elsewhere";
        fs::write(scratch.path().join(future), b"torn").unwrap();
        fs::write(scratch.path().join("events.out.tfevents.x"), b"").unwrap();
        let first = TensorBoard::resume(scratch.path(), 20).unwrap();
        let second = TensorBoard::resume(scratch.path(), 30).unwrap();
        let name = |time: u64| format!("events.out.tfevents.{time}.{}", host::name());
        assert!(first.path().ends_with(name(99_999_999_999)));
        assert!(second.path().ends_with(name(100_000_000_000)));

        let records = records(&fs::read(second.path()).unwrap());
        assert_eq!(records.len(), 2);
        let start = fields(&records[1]);
        assert_eq!((start[1].0, number(&start[1])), (2, 31));
        assert_eq!(start[2], (7, 2, vec![8, 1]));
    }

    #[test]
    fn a_missing_folder_is_told() {
        let scratch = Scratch::new();
        let folder = scratch.path().join("missing");
        let error = TensorBoard::create(&folder).unwrap_err();
        assert_eq!(error, FileError::Missing { path: folder }.into());
    }
}
