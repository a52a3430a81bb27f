//! Loading batches ahead of the ranks that train on them.
//!
//! Ranks of one process that train on the same rows share a [`Loader`]: every batch is loaded once
//! and each rank gets a copy of the same tensors. That is safe for autodiff: a loaded tensor is not
//! tracked, so it is no parent in any graph, and the graphs of ranks that use it stay apart.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bayesmesh_comm::threads::panic_message;
use bayesmesh_comm::{Communicator, Operation, Reduce, share};
use burn::tensor::Device;

use crate::data::{Batches, Dataset};
use crate::error::{Error, Result};

/// A rank's shard of the batch of a step.
pub struct Loaded<D: Dataset> {
    /// The numbers of the examples.
    pub rows: Arc<[usize]>,
    pub input: D::Input,
    pub target: D::Target,
}

/// Where a rank gets its shard of the batches from. Every rank takes every step once, in order.
///
/// In one process that is a [`Loader`], in a job a [`NodeFeed`](super::node_feed::NodeFeed).
pub trait Feed<D: Dataset> {
    /// The rank's shard of the batch of a step, or why it could not be loaded.
    fn take(&self, step: usize) -> Result<Loaded<D>>;

    /// Called when the rank has done its work of a step and may have to wait for others: a good
    /// moment for what it would have to do before the next one.
    fn pause(&self);
}

/// What a loader loads.
pub struct Load<'a, D> {
    pub data: &'a D,
    pub device: Device,
    /// The steps to load.
    pub steps: Turns,
    /// Which shard of every batch, out of how many.
    pub shard: (usize, usize),
    /// Which share of the shard, out of how many.
    pub share: (usize, usize),
    /// Ranks that take each batch.
    pub takers: usize,
    /// Batches that may be loaded and not yet taken by all of them, where one thread loads.
    pub ahead: usize,
    /// Makes loading slower by so much for each example.
    pub delay: Duration,
}

/// The steps of one of several that take turns.
#[derive(Clone, Debug)]
pub struct Turns {
    /// From the first of its own to the end of the run.
    steps: Range<usize>,
    /// How many take turns.
    all: usize,
}

impl Turns {
    /// Those of `own` out of `all`: the steps whose number leaves `own` when divided by `all`.
    pub fn new(steps: Range<usize>, own: usize, all: usize) -> Self {
        let first = steps.start + (own + all - steps.start % all) % all;
        Self { steps: first..steps.end, all }
    }
}

impl Division {
    /// Which of these steps one of them loads, and which share of each.
    pub fn of(self, steps: Range<usize>) -> (Turns, (usize, usize)) {
        match self {
            Division::None => (Turns::new(steps, 0, 1), (0, 1)),
            Division::Turns { own, all } => (Turns::new(steps, own, all), (0, 1)),
            Division::Shares { own, all } => (Turns::new(steps, 0, 1), (own, all)),
        }
    }
}

/// How several loaders divide the batches of a data shard among them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Division {
    /// Not at all: each loads everything.
    None,
    /// Each loads every batch whose turn it is.
    Turns { own: usize, all: usize },
    /// Each loads a share of every batch.
    Shares { own: usize, all: usize },
}

/// Loading that takes less than this is not worth waking a thread for, which costs the ranks some
/// tens of microseconds where all cores are busy.
pub const QUICK: Duration = Duration::from_micros(100);

/// How many batches are loaded to find out how long that takes.
const TRIALS: usize = 3;

/// Loads a shard of every batch, or a share of one, once for all ranks that take it.
///
/// Where loading takes time, threads in the background do it, each another step: as many as there
/// are takers, so that ranks that share what is loaded have as many hands to load it as if each
/// loaded for itself. Where it is quick, the rank that is first done with its work of a step loads
/// the next batch, which takes the place of waiting for the others.
pub struct Loader<'a, D: Dataset> {
    load: Load<'a, D>,
    order: Mutex<Batches>,
    queue: Mutex<Queue<D>>,
    /// Told when a batch has been loaded.
    loaded: Condvar,
    /// Told when there may be something to do for a thread in the background.
    wanted: Condvar,
}

/// The batches of steps one after another.
struct Queue<D: Dataset> {
    /// The step of the first one.
    first: usize,
    stages: VecDeque<Stage<D>>,
    /// Whether the last batch was quickly loaded.
    quick: bool,
    /// Whether nobody will take any more.
    closed: bool,
}

/// What there is of the batch of a step.
enum Stage<D: Dataset> {
    Loading,
    Ready {
        rows: Arc<[usize]>,
        batch: (D::Input, D::Target),
        /// Ranks that have not taken it yet.
        takers: usize,
    },
    Failed(Error),
}

impl<'a, D: Dataset> Loader<'a, D> {
    pub fn new(load: Load<'a, D>, batches: Batches) -> Self {
        let first = load.steps.steps.start;
        Self {
            load,
            order: Mutex::new(batches),
            queue: Mutex::new(Queue {
                first,
                stages: VecDeque::new(),
                quick: false,
                closed: false,
            }),
            loaded: Condvar::new(),
            wanted: Condvar::new(),
        }
    }

    /// How long a batch takes on the slowest of the ranks. Loads the next ones to find out: the
    /// quickest counts, since the first may find caches cold. Collective.
    pub fn trial(&self, ranks: &dyn Communicator) -> Result<Duration> {
        let mut quickest = [f64::INFINITY];
        for step in (self.load.steps.steps.clone()).take(TRIALS) {
            let started = Instant::now();
            if let Stage::Failed(error) = self.fetch(step) {
                return Err(error);
            }
            quickest[0] = started.elapsed().as_secs_f64().min(quickest[0]);
        }
        ranks.all_reduce_f64(&mut quickest, Operation::Max, Reduce::Fast)?;
        // No step is left where it is infinite.
        Ok(Duration::try_from_secs_f64(quickest[0]).unwrap_or_default())
    }

    /// The examples of the data shard in the batch of a step.
    pub fn rows(&self, step: usize) -> Arc<[usize]> {
        let (shard, shards) = self.load.shard;
        let mut order = lock(&self.order);
        let batch = order.rows(step);
        batch[share(batch.len(), shards, shard)].into()
    }

    pub fn device(&self) -> &Device {
        &self.load.device
    }

    /// The step after the last of them.
    fn next(&self, queue: &Queue<D>) -> usize {
        queue.first + queue.stages.len() * self.load.steps.all
    }

    /// Where that of a step is.
    fn index(&self, queue: &Queue<D>, step: usize) -> usize {
        (step - queue.first) / self.load.steps.all
    }

    /// Whether the run has this step.
    pub fn has(&self, step: usize) -> bool {
        step < self.load.steps.steps.end
    }

    /// Threads that load in the background.
    fn threads(&self) -> usize {
        self.load.takers
    }

    /// Loads step after step until there are no more or the loader is closed.
    fn work(&self) {
        // What the other threads are loading does not count.
        let ahead = self.load.ahead.max(1) + self.threads() - 1;
        loop {
            let idle = |queue: &mut Queue<D>| {
                let room = queue.stages.len() < ahead && self.has(self.next(queue));
                !queue.closed && (queue.quick || !room)
            };
            let queue = self.wanted.wait_while(lock(&self.queue), idle);
            let queue = queue.unwrap_or_else(PoisonError::into_inner);
            if queue.closed {
                return;
            }
            drop(self.load_next(queue));
        }
    }

    /// Loads the step after the last of them.
    fn load_next<'q>(&'q self, mut queue: MutexGuard<'q, Queue<D>>) -> MutexGuard<'q, Queue<D>> {
        let step = self.next(&queue);
        queue.stages.push_back(Stage::Loading);
        drop(queue);
        let started = Instant::now();
        let stage = self.fetch(step);
        let quick = started.elapsed() < QUICK;
        let mut queue = lock(&self.queue);
        let index = self.index(&queue, step);
        queue.stages[index] = stage;
        if queue.quick && !quick {
            self.wanted.notify_all();
        }
        queue.quick = quick;
        self.loaded.notify_all();
        queue
    }

    fn fetch(&self, step: usize) -> Stage<D> {
        let Load { data, device, delay, takers, share: (own, all), .. } = &self.load;
        let rows = self.rows(step);
        let rows: Arc<[usize]> = rows[share(rows.len(), *all, *own)].into();
        if !delay.is_zero() {
            std::thread::sleep(delay.saturating_mul(rows.len() as u32));
        }
        match catch_unwind(AssertUnwindSafe(|| data.batch(&rows, device))) {
            Ok(Ok(batch)) => Stage::Ready { rows, batch, takers: *takers },
            Ok(Err(error)) => Stage::Failed(error),
            Err(payload) => Stage::Failed(Error::Rank(format!(
                "loading the batch of step {step} panicked: {}",
                panic_message(&*payload)
            ))),
        }
    }

    fn close(&self) {
        lock(&self.queue).closed = true;
        self.wanted.notify_all();
    }
}

impl<D: Dataset> Feed<D> for Loader<'_, D> {
    fn take(&self, step: usize) -> Result<Loaded<D>> {
        let mut queue = lock(&self.queue);
        if step == self.next(&queue) {
            queue = self.load_next(queue);
        }
        let loading = |queue: &mut Queue<D>| {
            let index = self.index(queue, step);
            matches!(queue.stages[index], Stage::Loading)
        };
        let queue = self.loaded.wait_while(queue, loading);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let index = self.index(&queue, step);
        let (rows, (input, target)) = match &mut queue.stages[index] {
            Stage::Ready { rows, batch, takers } if *takers > 1 => {
                *takers -= 1;
                (rows.clone(), batch.clone())
            }
            Stage::Failed(error) => return Err(error.clone()),
            // The last to take it. Ranks take in order, so it is the first one.
            _ => match queue.stages.pop_front() {
                Some(Stage::Ready { rows, batch, .. }) => {
                    queue.first += self.load.steps.all;
                    if !queue.quick {
                        self.wanted.notify_one();
                    }
                    (rows, batch)
                }
                _ => unreachable!("waited until it was ready"),
            },
        };
        Ok(Loaded { rows, input, target })
    }

    fn pause(&self) {
        let queue = lock(&self.queue);
        if queue.quick && queue.stages.is_empty() && self.has(queue.first) {
            drop(self.load_next(queue));
        }
    }
}

/// Runs `body` while the loaders load in the background; they stop when it ends, however it does.
pub fn while_loading<D: Dataset, T>(
    loaders: &[Loader<'_, D>],
    body: impl FnOnce() -> Result<T>,
) -> Result<T> {
    struct Closing<'a, 'b, D: Dataset>(&'a [Loader<'b, D>]);
    impl<D: Dataset> Drop for Closing<'_, '_, D> {
        fn drop(&mut self) {
            self.0.iter().for_each(Loader::close);
        }
    }
    let threads: Vec<&Loader<'_, D>> =
        loaders.iter().flat_map(|loader| std::iter::repeat_n(loader, loader.threads())).collect();
    // A pool of their own: what they load with parallel operations does not occupy that of a rank.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.len())
        .thread_name(|index| format!("loader {index}"))
        .build()
        .map_err(|error| Error::Rank(format!("could not start threads for loading: {error}")))?;
    pool.in_place_scope(|scope| {
        let _closing = Closing(loaders);
        scope.spawn_broadcast(|_, thread| threads[thread.index()].work());
        body()
    })
}

/// Locks a mutex of a loader. What panics with one held is a rank's own copying of a batch, which
/// changes nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
