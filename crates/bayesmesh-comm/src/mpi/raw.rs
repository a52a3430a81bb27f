//! MPI's C functions behind safe ones: the only unsafe code of the module.
//!
//! Soundness here is about memory alone: lengths are checked on this side, and what the other ranks
//! pass is checked by the callers, with [`RawComm::max_of`], before any values move.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use mpi_sys as ffi;

use crate::error::{CommError, StartError};

/// What MPI knows to move.
pub(super) trait Element: Copy + Default {
    /// As the name in messages.
    const NAME: &'static str;

    /// MPI's name for the type.
    fn datatype() -> ffi::MPI_Datatype;
}

macro_rules! element {
    ($($type:ident = $mpi:ident),*) => {
        $(impl Element for $type {
            const NAME: &'static str = stringify!($type);

            fn datatype() -> ffi::MPI_Datatype {
                // SAFETY: a constant of the C shim.
                unsafe { ffi::$mpi }
            }
        })*
    };
}

element!(f32 = RSMPI_FLOAT, f64 = RSMPI_DOUBLE, u64 = RSMPI_UINT64_T, u8 = RSMPI_UINT8_T);

/// How long a rank that comes early looks for the others before it goes to sleep. A few times what
/// sleeping and waking cost: ranks that do the same work come about that much apart (a step of the
/// load forecast's network on two ranks takes 1.15 ms with 200 µs, 1.35 ms with 50 µs).
const SPIN: Duration = Duration::from_micros(200);
/// Most elements of one broadcast: enough for the network to be busy, and few enough that a test
/// can have more.
const PIECE: usize = 1 << 24;
/// Longest sleep between two looks.
const NAP: Duration = Duration::from_micros(500);

/// A communicator of MPI, freed when dropped.
#[derive(Debug)]
pub(super) struct RawComm {
    handle: ffi::MPI_Comm,
    rank: usize,
    size: usize,
}

// SAFETY: a handle is a name that any thread may use, given the thread level that `run` asks for.
// Where the level is lower, `is_concurrent` says so, and nothing here communicates from two
// threads.
unsafe impl Send for RawComm {}
// SAFETY: as above.
unsafe impl Sync for RawComm {}

impl RawComm {
    /// A duplicate of the world; MPI must have been started.
    pub fn world() -> Result<Self, CommError> {
        // SAFETY: a constant of the C shim.
        Self::duplicate_of(unsafe { ffi::RSMPI_COMM_WORLD })
    }

    /// The same ranks once more, for messages of their own.
    pub fn duplicate(&self) -> Result<Self, CommError> {
        Self::duplicate_of(self.handle)
    }

    fn duplicate_of(handle: ffi::MPI_Comm) -> Result<Self, CommError> {
        Self::create("MPI_Comm_dup", |new| {
            // SAFETY: `new` points to a handle.
            unsafe { ffi::MPI_Comm_dup(handle, new) }
        })
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Ranks of equal colour form a new communicator.
    pub fn split(&self, colour: usize) -> Result<Self, CommError> {
        self.split_ordered(colour, self.rank)
    }

    /// The same, ordered by `key`.
    fn split_ordered(&self, colour: usize, key: usize) -> Result<Self, CommError> {
        let (colour, key) = (count("split", colour)?, count("split", key)?);
        Self::create("MPI_Comm_split", |new| {
            // SAFETY: `new` points to a handle.
            unsafe { ffi::MPI_Comm_split(self.handle, colour, key, new) }
        })
    }

    /// Ranks that share memory form a new communicator.
    pub fn split_node(&self) -> Result<Self, CommError> {
        let key = count("split_node", self.rank)?;
        Self::create("MPI_Comm_split_type", |new| {
            // SAFETY: `new` points to a handle, the others are constants of the C shim.
            unsafe {
                let (kind, info) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
                ffi::MPI_Comm_split_type(self.handle, kind, key, info, new)
            }
        })
    }

    /// The same ranks, those of a node next to each other; the nodes and the ranks of each keep
    /// their order.
    pub fn by_node(&self) -> Result<Self, CommError> {
        let node = self.split_node()?;
        let mut first = [self.rank as u64];
        node.broadcast(&mut first, 0)?;
        let nodes = self.gather_one(first[0])?;
        let mut order: Vec<usize> = (0..self.size).collect();
        order.sort_by_key(|&rank| nodes[rank]);
        let place = order.iter().position(|&rank| rank == self.rank);
        self.split_ordered(0, place.expect("every rank has a place"))
    }

    fn create(
        call: &'static str,
        make: impl FnOnce(*mut ffi::MPI_Comm) -> c_int,
    ) -> Result<Self, CommError> {
        // SAFETY: a constant of the C shim; the functions write to the places they are given.
        unsafe {
            let mut handle = ffi::RSMPI_COMM_NULL;
            check(call, make(&mut handle))?;
            let (mut rank, mut size) = (0, 0);
            // Errors come back as values instead of ending the process.
            let code = ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            check("MPI_Comm_set_errhandler", code)?;
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(handle, &mut rank))?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(handle, &mut size))?;
            Ok(RawComm { handle, rank: rank as usize, size: size as usize })
        }
    }

    /// The largest of every element over the ranks. Comes back when all ranks have called it, and
    /// sleeps until then, but for a moment at the beginning.
    pub fn max_of<const N: usize>(&self, values: [u64; N]) -> Result<[u64; N], CommError> {
        let mut result = [0; N];
        let length = count("header", N)?;
        let start = Instant::now();
        let nap = || {
            let waited = start.elapsed();
            if waited < SPIN {
                yield_now();
            } else {
                // Too late by an eighth of the wait at most, but for the clock's own steps.
                sleep((waited / 8).min(NAP));
            }
        };
        // SAFETY: both buffers hold N elements.
        unsafe {
            let (send, receive) = (place(&values), place_mut(&mut result));
            let (kind, operation) = (u64::datatype(), ffi::RSMPI_MAX);
            complete("MPI_Iallreduce", nap, |request| {
                ffi::MPI_Iallreduce(send, receive, length, kind, operation, self.handle, request)
            })?;
        }
        Ok(result)
    }

    /// The sum over the ranks, as MPI does it.
    pub fn sum<T: Element>(&self, values: &[T], sums: &mut [T]) -> Result<(), CommError> {
        assert_eq!(values.len(), sums.len());
        let length = count("all_reduce", values.len())?;
        // SAFETY: both buffers hold `length` elements and do not overlap.
        unsafe {
            let (send, receive) = (place(values), place_mut(sums));
            let (kind, operation) = (T::datatype(), ffi::RSMPI_SUM);
            complete("MPI_Iallreduce", yield_now, |request| {
                ffi::MPI_Iallreduce(send, receive, length, kind, operation, self.handle, request)
            })
        }
    }

    /// Sends the r-th of parts with these lengths to rank r; what all ranks sent to this one, one
    /// after another, of which `incoming[r]` elements come from rank r.
    pub fn exchange_parts<T: Element>(
        &self,
        call: &str,
        values: &[T],
        parts: &[usize],
        received: &mut [T],
        incoming: &[usize],
    ) -> Result<(), CommError> {
        assert_eq!((parts.len(), parts.iter().sum()), (self.size, values.len()));
        assert_eq!((incoming.len(), incoming.iter().sum()), (self.size, received.len()));
        let (counts, places) = layout(call, parts)?;
        let (own_counts, own_places) = layout(call, incoming)?;
        // SAFETY: the buffers hold as many elements as counts and places say and do not overlap.
        unsafe {
            complete("MPI_Ialltoallv", yield_now, |request| {
                ffi::MPI_Ialltoallv(
                    place(values),
                    counts.as_ptr(),
                    places.as_ptr(),
                    T::datatype(),
                    place_mut(received),
                    own_counts.as_ptr(),
                    own_places.as_ptr(),
                    T::datatype(),
                    self.handle,
                    request,
                )
            })
        }
    }

    /// The values of all ranks one after another, where rank r has `parts[r]`.
    pub fn gather<T: Element>(
        &self,
        values: &[T],
        parts: &[usize],
        all: &mut [T],
    ) -> Result<(), CommError> {
        assert_eq!((parts.len(), parts.iter().sum()), (self.size, all.len()));
        assert_eq!(parts[self.rank], values.len());
        let (counts, places) = layout("all_gather", parts)?;
        // SAFETY: the buffers hold as many elements as counts and places say and do not overlap.
        unsafe {
            complete("MPI_Iallgatherv", yield_now, |request| {
                ffi::MPI_Iallgatherv(
                    place(values),
                    counts[self.rank],
                    T::datatype(),
                    place_mut(all),
                    counts.as_ptr(),
                    places.as_ptr(),
                    T::datatype(),
                    self.handle,
                    request,
                )
            })
        }
    }

    /// The value of every rank.
    pub fn gather_one<T: Element>(&self, value: T) -> Result<Vec<T>, CommError> {
        let mut all = vec![T::default(); self.size];
        self.gather(&[value], &vec![1; self.size], &mut all)?;
        Ok(all)
    }

    /// The values of every rank, of which rank r has `lengths[r]`.
    pub fn gather_ragged<T: Element>(
        &self,
        values: &[T],
        lengths: &[usize],
    ) -> Result<Vec<Vec<T>>, CommError> {
        let total = lengths.iter().sum();
        if total > PIECE {
            // Perhaps more than MPI counts in one call.
            let mut parts: Vec<Vec<T>> =
                lengths.iter().map(|&length| vec![T::default(); length]).collect();
            parts[self.rank].copy_from_slice(values);
            for (root, part) in parts.iter_mut().enumerate() {
                self.broadcast(part, root)?;
            }
            return Ok(parts);
        }
        let mut all = vec![T::default(); total];
        self.gather(values, lengths, &mut all)?;
        let mut rest = all.as_slice();
        let mut take = |&length: &usize| {
            let (part, others) = rest.split_at(length);
            rest = others;
            part.to_vec()
        };
        Ok(lengths.iter().map(&mut take).collect())
    }

    /// The values of rank `root`; all ranks have room for as many.
    pub fn broadcast<T: Element>(&self, values: &mut [T], root: usize) -> Result<(), CommError> {
        let root = count("broadcast", root)?;
        // MPI counts in one call no further than an `int` does.
        for piece in values.chunks_mut(PIECE) {
            let length = count("broadcast", piece.len())?;
            // SAFETY: the buffer holds `length` elements.
            unsafe {
                let buffer = place_mut(piece);
                complete("MPI_Ibcast", yield_now, |request| {
                    ffi::MPI_Ibcast(buffer, length, T::datatype(), root, self.handle, request)
                })?;
            }
        }
        Ok(())
    }

    pub fn send<T: Element>(&self, values: &[T], to: usize) -> Result<(), CommError> {
        let (length, to) = (count("send", values.len())?, count("send", to)?);
        // SAFETY: the buffer holds `length` elements.
        unsafe {
            let buffer = place(values);
            complete("MPI_Isend", yield_now, |request| {
                ffi::MPI_Isend(buffer, length, T::datatype(), to, 0, self.handle, request)
            })
        }
    }

    pub fn receive<T: Element>(&self, values: &mut [T], from: usize) -> Result<(), CommError> {
        let (length, from) = (count("receive", values.len())?, count("receive", from)?);
        // SAFETY: the buffer holds `length` elements; a longer message is an error of MPI.
        unsafe {
            let buffer = place_mut(values);
            complete("MPI_Irecv", yield_now, |request| {
                ffi::MPI_Irecv(buffer, length, T::datatype(), from, 0, self.handle, request)
            })
        }
    }

    /// Sends an empty message to rank `to` without waiting until it arrives.
    pub fn notify(&self, to: usize) -> Result<(), CommError> {
        let to = count("notify", to)?;
        // SAFETY: no buffer is needed for no elements. The request is given up, which MPI allows
        // and completes by itself.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (buffer, kind) = (null_mut::<c_void>(), u8::datatype());
            let code = ffi::MPI_Isend(buffer, 0, kind, to, 0, self.handle, &mut request);
            check("MPI_Isend", code)?;
            check("MPI_Request_free", ffi::MPI_Request_free(&mut request))
        }
    }

    /// The rank that has sent an empty message, if there is one by now.
    pub fn notified(&self) -> Result<Option<usize>, CommError> {
        // SAFETY: the places are of the types asked for; plain numbers may be zero.
        let source = unsafe {
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            let (mut arrived, any) = (0, ffi::RSMPI_ANY_SOURCE);
            let code = ffi::MPI_Iprobe(any, 0, self.handle, &mut arrived, &mut status);
            check("MPI_Iprobe", code)?;
            (arrived != 0).then_some(status.MPI_SOURCE as usize)
        };
        match source {
            None => Ok(None),
            Some(source) => self.receive::<u8>(&mut [], source).map(|()| Some(source)),
        }
    }
}

impl Drop for RawComm {
    fn drop(&mut self) {
        // Freeing may be collective, and MPI may be over: then the end of the process frees it.
        if !std::thread::panicking() && !OVER.load(Ordering::Acquire) {
            // SAFETY: made by `create` and used by nobody any more.
            unsafe { ffi::MPI_Comm_free(&mut self.handle) };
        }
    }
}

/// Whether MPI has been started; it can be once.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether MPI has been ended.
static OVER: AtomicBool = AtomicBool::new(false);

/// Starts MPI; whether threads may communicate at the same time. They may not where
/// `BAYESMESH_MPI_SERIALIZED` is set, for libraries that promise it but do not do it well.
pub(super) fn start() -> Result<bool, StartError> {
    if STARTED.swap(true, Ordering::AcqRel) {
        return Err(StartError::Again);
    }
    // SAFETY: constants of the C shim.
    let (in_turns, at_once) = unsafe { (ffi::RSMPI_THREAD_SERIALIZED, ffi::RSMPI_THREAD_MULTIPLE) };
    let is_set = std::env::var_os("BAYESMESH_MPI_SERIALIZED").is_some_and(|value| value != "0");
    let wanted = if is_set { in_turns } else { at_once };
    // SAFETY: the places are of the types asked for; MPI needs no arguments.
    let level = unsafe {
        let (mut started, mut level) = (0, ffi::RSMPI_THREAD_SINGLE);
        check("MPI_Initialized", ffi::MPI_Initialized(&mut started))?;
        if started != 0 {
            return Err(StartError::Again);
        }
        let code = ffi::MPI_Init_thread(null_mut(), null_mut(), wanted, &mut level);
        check("MPI_Init_thread", code)?;
        level
    };
    match level {
        _ if level < in_turns => Err(StartError::Threading { library: library() }),
        _ => Ok(level.min(wanted) >= at_once),
    }
}

/// Ends MPI.
pub(super) fn end() -> Result<(), CommError> {
    OVER.store(true, Ordering::Release);
    // SAFETY: communicators are not used from here on.
    check("MPI_Finalize", unsafe { ffi::MPI_Finalize() })
}

/// Ends all processes of the job.
pub(super) fn abort(code: u8) -> ! {
    // SAFETY: the world is a constant of the C shim.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code.into()) };
    std::process::exit(code.into())
}

/// Ends this process without a word to MPI or to anything else.
pub(super) fn exit_at_once(code: u8) -> ! {
    // SAFETY: nothing of this process is used afterwards.
    unsafe { libc::_exit(code.into()) }
}

/// What the MPI library calls itself, in one line, e.g. `Open MPI v4.1.4, …`.
pub fn library() -> String {
    // SAFETY: the buffer has the length that MPI asks for; may be called at any time.
    let text = unsafe {
        let mut buffer = vec![0u8; ffi::RSMPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
        let mut length = 0;
        ffi::MPI_Get_library_version(buffer.as_mut_ptr().cast(), &mut length);
        buffer.truncate(length as usize);
        buffer
    };
    let text = String::from_utf8_lossy(&text);
    // MPICH goes on with how it was compiled.
    let line = text.lines().next().unwrap_or_default();
    line.replace('\t', " ").trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned()
}

/// The name of this node.
pub(super) fn node_name() -> String {
    // SAFETY: the buffer has the length that MPI asks for.
    let text = unsafe {
        let mut buffer = vec![0u8; ffi::RSMPI_MAX_PROCESSOR_NAME as usize + 1];
        let mut length = 0;
        ffi::MPI_Get_processor_name(buffer.as_mut_ptr().cast(), &mut length);
        buffer.truncate(length as usize);
        buffer
    };
    String::from_utf8_lossy(&text).into_owned()
}

/// Starts an operation and looks after it until it is done, with `idle` between two looks.
///
/// Operations that wait by themselves would do so without giving up their core, though it may be
/// the very one that the other rank or the other thread needs.
///
/// # Safety
///
/// `start` writes a request to the place it is given, and the buffers it names live until this
/// returns.
unsafe fn complete(
    call: &'static str,
    idle: impl Fn(),
    start: impl FnOnce(*mut ffi::MPI_Request) -> c_int,
) -> Result<(), CommError> {
    // SAFETY: constants of the C shim, and places of the types asked for.
    unsafe {
        let mut request = ffi::RSMPI_REQUEST_NULL;
        check(call, start(&mut request))?;
        loop {
            let mut done = 0;
            check(call, ffi::MPI_Test(&mut request, &mut done, ffi::RSMPI_STATUS_IGNORE))?;
            if done != 0 {
                return Ok(());
            }
            idle();
        }
    }
}

/// An error unless `code` is that of success.
fn check(call: &'static str, code: c_int) -> Result<(), CommError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    // SAFETY: the buffer has the length that MPI asks for.
    let text = unsafe {
        let mut buffer = vec![0u8; ffi::MPI_MAX_ERROR_STRING as usize + 1];
        let mut length = 0;
        ffi::MPI_Error_string(code, buffer.as_mut_ptr().cast(), &mut length);
        buffer.truncate(length as usize);
        buffer
    };
    Err(CommError::Mpi { call, message: String::from_utf8_lossy(&text).into_owned() })
}

/// Where `values` lie. The address of no bytes would be 1 in Rust, which OpenMPI takes for
/// `MPI_IN_PLACE`: nothing gets the address of something.
fn place<T>(values: &[T]) -> *const c_void {
    static SOMETHING: u64 = 0;
    if values.is_empty() { (&raw const SOMETHING).cast() } else { values.as_ptr().cast() }
}

/// The same, to write.
fn place_mut<T>(values: &mut [T]) -> *mut c_void {
    if values.is_empty() { place(values).cast_mut() } else { values.as_mut_ptr().cast() }
}

/// Counts and places of parts that follow one another.
fn layout(call: &str, parts: &[usize]) -> Result<(Vec<c_int>, Vec<c_int>), CommError> {
    let mut place = 0;
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        places.push(count(call, place)?);
        place += part;
    }
    count(call, place)?;
    let counts = parts.iter().map(|&part| count(call, part)).collect::<Result<_, _>>()?;
    Ok((counts, places))
}

fn count(call: &str, length: usize) -> Result<c_int, CommError> {
    let too_long = |_| CommError::TooLong { call: call.to_owned(), length };
    c_int::try_from(length).map_err(too_long)
}
