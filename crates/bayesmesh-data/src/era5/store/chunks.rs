//! Decoded chunks, as many as there is room for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zarrs::array::{
    Array, ArrayShardedExt as _, ArrayShardedReadableExt as _, ArrayShardedReadableExtCache,
    CodecOptions, ElementOwned,
};
use zarrs::storage::ReadableStorageTraits;

use super::metadata::{ArrayInfo, Kind};
use crate::era5::error::Era5Error;

/// Any array that can be read.
pub(super) type AnyArray = Array<dyn ReadableStorageTraits>;

/// Why there is no chunk.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// It is not in the store.
    Missing,
    /// It is, but cannot be decoded or read.
    Damaged(String),
}

impl Trouble {
    /// As an error of a store, a field of it and the key of the chunk.
    pub fn error(self, store: &str, field: String, chunk: String) -> Era5Error {
        let store = store.to_owned();
        match self {
            Self::Missing => Era5Error::MissingChunk { store, field, chunk },
            Self::Damaged(problem) => Era5Error::Chunk { store, field, chunk, problem },
        }
    }
}

/// An array of which chunks are read: of a sharded one the inner chunks.
pub(super) struct Chunked {
    array: AnyArray,
    kind: Kind,
    /// Indices of shards, where chunks are parts of them.
    shards: Option<ArrayShardedReadableExtCache>,
    /// Of the unit that is read at once.
    pub chunk: Vec<u64>,
    packing: Option<Packing>,
}

/// How stored numbers become values: `scale · number + offset`, and the one that means none.
#[derive(Clone, Copy, Debug)]
struct Packing {
    scale: f64,
    offset: f64,
    missing: Option<f64>,
}

impl Packing {
    fn of(info: &ArrayInfo, kind: Kind) -> Option<Self> {
        let number = |name: &str| info.attributes.get(name).and_then(serde_json::Value::as_f64);
        let (scale, offset) = (number("scale_factor"), number("add_offset"));
        let missing = number("_FillValue").or_else(|| number("missing_value"));
        // Of floats the missing value is mostly NaN, which is what it would become.
        let packed = scale.is_some() || offset.is_some() || missing.is_some();
        let packed = packed && !matches!(kind, Kind::Bool);
        packed.then(|| Self { scale: scale.unwrap_or(1.0), offset: offset.unwrap_or(0.0), missing })
    }

    fn value(self, number: f64) -> f32 {
        match self.missing {
            Some(missing) if missing == number => f32::NAN,
            _ => (self.scale * number + self.offset) as f32,
        }
    }
}

impl Chunked {
    pub fn new(array: AnyArray, info: &ArrayInfo, kind: Kind) -> Result<Self, String> {
        let sharded = array.is_exclusively_sharded();
        let chunk = match array.effective_subchunk_shape().filter(|_| sharded) {
            Some(chunk) => chunk,
            None => {
                let first = vec![0; array.shape().len()];
                array.chunk_shape(&first).map_err(|error| error.to_string())?
            }
        };
        Ok(Self {
            shards: sharded.then(|| ArrayShardedReadableExtCache::new(&array)),
            chunk: chunk.iter().map(|length| length.get()).collect(),
            packing: Packing::of(info, kind),
            array,
            kind,
        })
    }

    /// The key of the file that has a chunk.
    pub fn key(&self, indices: &[u64]) -> String {
        match &self.shards {
            None => self.array.chunk_key(indices).as_str().to_owned(),
            Some(_) => {
                let first = vec![0; indices.len()];
                let shard = self.array.chunk_shape(&first);
                let shard: Vec<u64> = match shard {
                    Ok(shard) => shard.iter().map(|length| length.get()).collect(),
                    Err(_) => self.chunk.clone(),
                };
                let of = |d: usize| indices[d] * self.chunk[d] / shard[d];
                let shard: Vec<u64> = (0..indices.len()).map(of).collect();
                format!("{} (inner chunk {indices:?})", self.array.chunk_key(&shard).as_str())
            }
        }
    }

    /// Decodes a chunk.
    pub fn values(&self, indices: &[u64]) -> Result<Vec<f32>, Trouble> {
        let packing = self.packing;
        let unpack = |number: f64| packing.map_or(number as f32, |packing| packing.value(number));
        let values = match self.kind {
            Kind::F32 => {
                let values = self.elements::<f32>(indices)?;
                match packing {
                    None => values,
                    Some(_) => values.into_iter().map(|value| unpack(f64::from(value))).collect(),
                }
            }
            Kind::F64 => self.elements::<f64>(indices)?.into_iter().map(unpack).collect(),
            Kind::I64 => {
                self.elements::<i64>(indices)?.into_iter().map(|v| unpack(v as f64)).collect()
            }
            Kind::I32 => self.converted::<i32>(indices, unpack)?,
            Kind::I16 => self.converted::<i16>(indices, unpack)?,
            Kind::I8 => self.converted::<i8>(indices, unpack)?,
            Kind::U32 => self.converted::<u32>(indices, unpack)?,
            Kind::U16 => self.converted::<u16>(indices, unpack)?,
            Kind::U8 => self.converted::<u8>(indices, unpack)?,
            Kind::Bool => {
                let values = self.elements::<bool>(indices)?;
                values.into_iter().map(|value| f32::from(u8::from(value))).collect()
            }
        };
        let expected: u64 = self.chunk.iter().product();
        match values.len() as u64 == expected {
            true => Ok(values),
            false => Err(Trouble::Damaged(format!("{} values, not {expected}", values.len()))),
        }
    }

    /// A whole array of one dimension, as it is: whole numbers, or floats.
    pub fn coordinate(&self, length: u64) -> Result<Numbers, Trouble> {
        let chunks = length.div_ceil(self.chunk[0].max(1));
        let (mut whole, mut floats) = (Vec::new(), Vec::new());
        for chunk in 0..chunks {
            match self.kind {
                Kind::I64 => whole.extend(self.elements::<i64>(&[chunk])?),
                Kind::F64 => floats.extend(self.elements::<f64>(&[chunk])?),
                Kind::I32 => {
                    whole.extend(self.elements::<i32>(&[chunk])?.into_iter().map(i64::from));
                }
                Kind::I16 => {
                    whole.extend(self.elements::<i16>(&[chunk])?.into_iter().map(i64::from));
                }
                Kind::U32 => {
                    whole.extend(self.elements::<u32>(&[chunk])?.into_iter().map(i64::from));
                }
                _ => floats.extend(self.values(&[chunk])?.into_iter().map(f64::from)),
            }
        }
        whole.truncate(length as usize);
        floats.truncate(length as usize);
        Ok(if floats.is_empty() { Numbers::Whole(whole) } else { Numbers::Floats(floats) })
    }

    fn converted<T: ElementOwned + Into<f64>>(
        &self,
        indices: &[u64],
        unpack: impl Fn(f64) -> f32,
    ) -> Result<Vec<f32>, Trouble> {
        Ok(self.elements::<T>(indices)?.into_iter().map(|value| unpack(value.into())).collect())
    }

    fn elements<T: ElementOwned>(&self, indices: &[u64]) -> Result<Vec<T>, Trouble> {
        let damaged = |error: zarrs::array::ArrayError| Trouble::Damaged(error.to_string());
        // Batches are loaded by threads of their own beside a training that uses all cores.
        let options = CodecOptions::default().with_concurrent_target(1);
        let values = match &self.shards {
            None => self.array.retrieve_chunk_if_exists_opt(indices, &options).map_err(damaged)?,
            Some(shards) => {
                let place = self.array.subchunk_byte_range(shards, indices).map_err(damaged)?;
                match place {
                    None => None,
                    Some(_) => {
                        let values = self.array.retrieve_subchunk_opt(shards, indices, &options);
                        Some(values.map_err(damaged)?)
                    }
                }
            }
        };
        values.ok_or(Trouble::Missing)
    }
}

/// The numbers of a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Numbers {
    Whole(Vec<i64>),
    Floats(Vec<f64>),
}

impl Numbers {
    pub fn floats(self) -> Vec<f64> {
        match self {
            Self::Whole(numbers) => numbers.into_iter().map(|number| number as f64).collect(),
            Self::Floats(numbers) => numbers,
        }
    }
}

/// An array, by its number, and a chunk of it.
pub(super) type ChunkId = (usize, Vec<u64>);

/// A chunk that is decoded, or being decoded by whoever has the lock.
type Slot = Arc<Mutex<Option<Arc<Vec<f32>>>>>;

/// Decoded chunks that were used last, up to a number of bytes. Threads that want the same chunk
/// wait for the one that decodes it; others are not held up.
#[derive(Debug)]
pub(super) struct Cache {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<ChunkId, Entry>,
    bytes: usize,
    /// Counts uses, by which the least recent one is found.
    clock: u64,
}

#[derive(Debug, Default)]
struct Entry {
    slot: Slot,
    /// When it was last used.
    used: u64,
    /// As many are counted in `State::bytes`; none before it is decoded.
    bytes: usize,
}

impl Cache {
    pub fn new(most: usize) -> Self {
        Self { most, state: Mutex::default() }
    }

    /// The chunk, decoded by `decode` if it is not here.
    pub fn get(
        &self,
        id: &ChunkId,
        decode: impl FnOnce() -> Result<Vec<f32>, Trouble>,
    ) -> Result<Arc<Vec<f32>>, Trouble> {
        let slot = {
            let mut state = lock(&self.state);
            state.clock += 1;
            let now = state.clock;
            let entry = state.slots.entry(id.clone()).or_default();
            entry.used = now;
            entry.slot.clone()
        };
        let mut place = lock(&slot);
        if let Some(chunk) = &*place {
            return Ok(chunk.clone());
        }
        let chunk = Arc::new(decode()?);
        *place = Some(chunk.clone());
        drop(place);
        self.make_room(id, chunk.len() * size_of::<f32>());
        Ok(chunk)
    }

    /// Counts a chunk in and drops the least recently used ones that there is no room for.
    fn make_room(&self, id: &ChunkId, bytes: usize) {
        let mut state = lock(&self.state);
        let Some(entry) = state.slots.get_mut(id) else { return };
        entry.bytes = bytes;
        state.bytes += bytes;
        while state.bytes > self.most {
            let counted = state.slots.iter().filter(|(other, e)| *other != id && e.bytes > 0);
            let oldest =
                counted.min_by_key(|(_, entry)| entry.used).map(|(other, _)| other.clone());
            let Some(oldest) = oldest else { break };
            let removed = state.slots.remove(&oldest).map_or(0, |entry| entry.bytes);
            state.bytes -= removed;
        }
    }

    /// Bytes of decoded chunks.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }
}

/// A panic of another thread leaves nothing half done here: a slot is filled at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_bytes_are_bounded() {
        let cache = Cache::new(3 * 40);
        let decoded = Cell::new(0);
        let get = |chunk: u64| {
            let values = cache.get(&(0, vec![chunk]), || {
                decoded.set(decoded.get() + 1);
                Ok(vec![chunk as f32; 10])
            });
            assert_eq!(*values.unwrap(), [chunk as f32; 10]);
            assert!(cache.bytes() <= 120);
        };
        (0..3).for_each(get);
        get(0); // 1 is now the oldest
        get(3);
        assert_eq!(decoded.get(), 4);
        get(0);
        assert_eq!(decoded.get(), 4);
        get(1);
        assert_eq!(decoded.get(), 5);
    }

    #[test]
    fn what_failed_is_tried_again() {
        let cache = Cache::new(100);
        let id = (1, vec![0]);
        assert!(matches!(cache.get(&id, || Err(Trouble::Missing)), Err(Trouble::Missing)));
        assert_eq!(*cache.get(&id, || Ok(vec![1.0])).unwrap(), [1.0]);
    }

    #[test]
    fn threads_decode_a_chunk_once() {
        let cache = Cache::new(1 << 20);
        let count = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let chunk = cache.get(&(0, vec![7]), || {
                        *count.lock().unwrap() += 1;
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        Ok(vec![7.0; 4])
                    });
                    assert_eq!(*chunk.unwrap(), [7.0; 4]);
                });
            }
        });
        assert_eq!(*count.lock().unwrap(), 1);
    }
}
