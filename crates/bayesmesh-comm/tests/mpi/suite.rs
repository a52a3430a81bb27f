//! What every rank of a job runs: calls against the same calls on threads.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bayesmesh_comm::{
    BucketReducer, CommError, Communicator, Mesh, MeshComm, MpiCommunicator, NodeShared, Operation,
    Reduce, agree, all_reduce_buckets, launch, mpi, node_sizes, share, threads,
};

use crate::common::{add, bits, values};

const MODES: [Reduce; 2] = [Reduce::Fast, Reduce::Reproducible];
/// Nothing, fewer than ranks, small (gathered whole), large (in shares) and ragged.
const LENGTHS: [usize; 6] = [0, 1, 7, 1000, 8192, 3 * 2048 * 5 + 13];

type Test = fn(&MpiCommunicator) -> Result<(), CommError>;

const TESTS: [(&str, Test); 12] = [
    ("sums", sums),
    ("maxima", maxima),
    ("tree_reduce", tree_reduce),
    ("gather and broadcast", gather_and_broadcast),
    ("shares", shares),
    ("splits", splits),
    ("mesh", mesh),
    ("mismatches", mismatches),
    ("buckets in the background", buckets),
    ("agreement", agreement),
    ("many small calls", stress),
    ("calls from threads", from_threads),
];

/// The ranks of each node are known beforehand: all on one, or as given.
pub fn run(sizes: Option<&str>) -> ExitCode {
    let outcome = mpi::run(|world| {
        let sizes = match sizes {
            Some(sizes) => sizes.split(',').map(|size| size.parse().expect("a number")).collect(),
            None => vec![world.size()],
        };
        nodes(world, &sizes).map_err(|error| format!("nodes: {error}"))?;
        assert_eq!(launch::ranks(), Some(world.size()));
        assert_eq!(launch::is_launched(), world.size() > 1);
        for (name, test) in TESTS {
            let start = Instant::now();
            test(world).map_err(|error| format!("{name}: {error}"))?;
            world.barrier().map_err(|error| format!("after {name}: {error}"))?;
            if world.rank() == 0 {
                println!("{name}: {:.2} s", start.elapsed().as_secs_f32());
            }
        }
        Ok::<_, String>(world.rank())
    });
    let error = match outcome {
        Ok(0) => {
            println!("suite passed");
            return ExitCode::SUCCESS;
        }
        Ok(_) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    println!("{error}");
    ExitCode::FAILURE
}

/// What ranks that are threads get for the same call.
fn on_threads<T: Send + Clone>(
    world: &MpiCommunicator,
    body: impl Fn(&dyn Communicator) -> Result<T, CommError> + Sync,
) -> T {
    let results = threads::run(world.size(), |comm| body(comm)).unwrap_or_else(|e| panic!("{e}"));
    results[world.rank()].clone()
}

/// The values of rank `rank`.
fn of(rank: usize, length: usize) -> Vec<f32> {
    values(rank as u64, length)
}

/// Whether all ranks hold the same bits.
fn assert_equal_everywhere(world: &MpiCommunicator, values: &[f32]) -> Result<(), CommError> {
    let all = world.all_gather(values)?;
    assert!(all.iter().all(|other| bits(other) == bits(values)));
    Ok(())
}

fn sums(world: &MpiCommunicator) -> Result<(), CommError> {
    for length in LENGTHS {
        let reduce = |comm: &dyn Communicator, mode| {
            let mut mine = of(comm.rank(), length);
            comm.all_reduce(&mut mine, Operation::Sum, mode)?;
            Ok(mine)
        };
        let expected = on_threads(world, |comm| reduce(comm, Reduce::Reproducible));
        assert_eq!(bits(&reduce(world, Reduce::Reproducible)?), bits(&expected), "{length}");
        let fast = reduce(world, Reduce::Fast)?;
        let magnitude = (0..world.size()).map(|rank| of(rank, length)).fold(
            vec![0.0; length],
            |mut sum: Vec<f32>, values| {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.abs());
                sum
            },
        );
        for ((fast, expected), magnitude) in fast.iter().zip(&expected).zip(magnitude) {
            assert!((fast - expected).abs() <= 4.0 * magnitude * f32::EPSILON);
        }
        assert_equal_everywhere(world, &fast)?;

        let reduce_f64 = |comm: &dyn Communicator, mode| {
            let mut mine: Vec<f64> =
                of(comm.rank(), length).iter().map(|&value| f64::from(value) / 3.0).collect();
            comm.all_reduce_f64(&mut mine, Operation::Sum, mode)?;
            Ok(mine)
        };
        let expected = on_threads(world, |comm| reduce_f64(comm, Reduce::Reproducible));
        assert_eq!(reduce_f64(world, Reduce::Reproducible)?, expected);
        let fast = reduce_f64(world, Reduce::Fast)?;
        assert!(fast.iter().zip(&expected).all(|(fast, sum)| (fast - sum).abs() < 1e-9));
    }
    Ok(())
}

fn maxima(world: &MpiCommunicator) -> Result<(), CommError> {
    for (length, mode) in LENGTHS.into_iter().flat_map(|length| MODES.map(|mode| (length, mode))) {
        for culprit in 0..=world.size() {
            let reduce = |comm: &dyn Communicator| {
                let mut mine = of(comm.rank(), length);
                if let (true, Some(first)) = (comm.rank() == culprit, mine.first_mut()) {
                    *first = f32::NAN;
                }
                let mut wide: Vec<f64> = mine.iter().map(|&value| f64::from(value)).collect();
                comm.all_reduce(&mut mine, Operation::Max, mode)?;
                comm.all_reduce_f64(&mut wide, Operation::Max, mode)?;
                let narrow: Vec<f32> = wide.iter().map(|&value| value as f32).collect();
                assert_eq!(bits(&mine), bits(&narrow));
                Ok(mine)
            };
            let result = reduce(world)?;
            assert_eq!(bits(&result), bits(&on_threads(world, reduce)));
            let is_nan = result.first().is_some_and(|first| first.is_nan());
            assert_eq!(is_nan, culprit < world.size() && length > 0);
        }
    }
    Ok(())
}

fn tree_reduce(world: &MpiCommunicator) -> Result<(), CommError> {
    for length in LENGTHS {
        let reduce = |comm: &dyn Communicator| {
            let mut mine = of(comm.rank(), length);
            comm.tree_reduce(&mut mine, &|left, right| {
                add(left, right);
                // Depends on the whole slice.
                left.reverse();
            })?;
            Ok(mine)
        };
        assert_eq!(bits(&reduce(world)?), bits(&on_threads(world, reduce)));
    }
    Ok(())
}

fn gather_and_broadcast(world: &MpiCommunicator) -> Result<(), CommError> {
    let size = world.size();
    for step in [0, 3, 5000] {
        // Rank 0 has nothing, or nobody has anything.
        let all = world.all_gather(&of(world.rank(), step * world.rank()))?;
        let expected: Vec<_> = (0..size).map(|rank| of(rank, step * rank)).collect();
        assert_eq!(all, expected);
    }
    for (root, length) in (0..size).flat_map(|root| LENGTHS.map(|length| (root, length))) {
        let mut mine = of(world.rank(), length);
        world.broadcast(&mut mine, root)?;
        assert_eq!(mine, of(root, length));
    }
    Ok(())
}

fn shares(world: &MpiCommunicator) -> Result<(), CommError> {
    let (rank, size) = (world.rank(), world.size());
    for (length, mode) in LENGTHS.into_iter().flat_map(|length| MODES.map(|mode| (length, mode))) {
        let mut whole = of(rank, length);
        world.all_reduce(&mut whole, Operation::Sum, mode)?;
        let mut shared = of(rank, length);
        let own = world.reduce_scatter(&mut shared, mode)?;
        assert_eq!(own, share(length, size, rank));
        if mode == Reduce::Reproducible {
            assert_eq!(bits(&shared[own.clone()]), bits(&whole[own]));
        }
        world.all_gather_into(&mut shared)?;
        assert_equal_everywhere(world, &shared)?;
        match mode {
            Reduce::Reproducible => assert_eq!(bits(&shared), bits(&whole)),
            // Magnitudes are up to 2^12, of which the last bits may differ.
            Reduce::Fast => {
                assert!(shared.iter().zip(&whole).all(|(sum, whole)| (sum - whole).abs() < 5e-3));
            }
        }
    }
    Ok(())
}

fn splits(world: &MpiCommunicator) -> Result<(), CommError> {
    let colours = [9, usize::MAX, 9, 0];
    let colour = |rank: usize| colours[rank % colours.len()];
    let part = world.split(colour(world.rank()))?;
    let members = part.all_gather(&[world.rank() as f32])?.concat();
    let expected = (0..world.size()).filter(|&rank| colour(rank) == colour(world.rank()));
    assert_eq!(members, expected.map(|rank| rank as f32).collect::<Vec<_>>());
    assert_eq!(members[part.rank()], world.rank() as f32);
    // Parts do not wait for each other, and may be split again.
    (0..colour(world.rank()).min(20)).try_for_each(|_| part.barrier())?;
    let single = part.split(part.rank())?;
    assert_eq!((single.rank(), single.size()), (0, 1));
    single.barrier()?;
    Ok(())
}

fn mesh(world: &MpiCommunicator) -> Result<(), CommError> {
    let size = world.size();
    for samples in (1..=size).filter(|samples| size.is_multiple_of(*samples)) {
        let mesh = Mesh::new(samples, size / samples).expect("two axes");
        let comm = MeshComm::new(mesh, Arc::new(world.clone())).expect("a mesh that fits");
        let mut twice = [world.rank() as f32];
        comm.samples.all_reduce(&mut twice, Operation::Sum, Reduce::Fast)?;
        comm.data.all_reduce(&mut twice, Operation::Sum, Reduce::Fast)?;
        assert_eq!(twice, [(size * (size - 1) / 2) as f32]);
    }
    let wrong = MeshComm::new(Mesh::samples(size + 1).expect("ranks"), Arc::new(world.clone()));
    assert!(wrong.is_err());
    Ok(())
}

fn mismatches(world: &MpiCommunicator) -> Result<(), CommError> {
    let busy = world.tree_reduce(&mut [1.0], &|_, _| {
        assert_eq!(world.barrier(), Err(CommError::Busy));
    });
    assert_eq!(busy, Ok(()));
    let size = world.size();
    assert_eq!(
        world.broadcast(&mut [1.0], size),
        Err(CommError::RootOutOfRange { root: size, size })
    );
    if size == 1 {
        return Ok(());
    }
    let other_rank = size - 1;
    let last = world.rank() == other_rank;
    let length = if last { 70 } else { 50 };
    let error = world.all_reduce(&mut vec![0.0; length], Operation::Sum, Reduce::Fast);
    let call = "all_reduce(f32, sum, fast)".to_owned();
    let (length, other_length) = (50, 70);
    assert_eq!(
        error,
        Err(CommError::LengthMismatch { call, rank: 0, length, other_rank, other_length })
    );
    let error = if last { world.all_gather_into(&mut [1.0]) } else { world.barrier() };
    let (call, other_call) = ("barrier".to_owned(), "all_gather_into".to_owned());
    assert_eq!(error, Err(CommError::CallMismatch { rank: 0, call, other_rank, other_call }));
    // A mismatch breaks nothing.
    world.barrier()
}

fn buckets(world: &MpiCommunicator) -> Result<(), CommError> {
    const LENGTH: usize = 40_009;
    for (mode, bucket) in MODES.into_iter().flat_map(|mode| [4000, 1 << 20].map(|b| (mode, b))) {
        let mut reducer = BucketReducer::start(world, bucket, mode)?;
        for step in 0..4 {
            let mine = values((world.rank() + 10 * step) as u64, LENGTH);
            let mut expected = mine.clone();
            all_reduce_buckets(world, &mut expected, bucket, mode)?;
            // From the back as a backward pass does, in slices of many sizes.
            let mut end = LENGTH;
            let mut slice = 1;
            while end > 0 {
                let start = end.saturating_sub(slice);
                reducer.submit(start, &mine[start..end]);
                // The caller goes on communicating.
                let mut one = [1.0];
                world.all_reduce(&mut one, Operation::Sum, Reduce::Fast)?;
                assert_eq!(one, [world.size() as f32]);
                (end, slice) = (start, slice * 3);
            }
            let mut sums = vec![f32::NAN; LENGTH];
            let time = reducer.wait(&mut sums)?;
            assert_eq!(time.buckets, LENGTH.div_ceil(bucket / 4));
            match mode {
                Reduce::Reproducible => assert_eq!(bits(&sums), bits(&expected)),
                Reduce::Fast => {
                    let mut pairs = sums.iter().zip(&expected);
                    assert!(pairs.all(|(sum, expected)| (sum - expected).abs() < 1e-2));
                    assert_equal_everywhere(world, &sums)?;
                }
            }
        }
    }
    Ok(())
}

fn agreement(world: &MpiCommunicator) -> Result<(), CommError> {
    agree(world, &[("recipe", "vit"), ("seed", "7")])?;
    agree(world, &[] as &[(&str, &str)])?;
    if world.size() > 1 {
        let seed = if world.rank() == 1 { "8" } else { "7" };
        let error = agree(world, &[("recipe", "vit"), ("seed", seed)]);
        let (first, other) = ("`7`".to_owned(), "`8`".to_owned());
        let key = "seed".to_owned();
        assert_eq!(error, Err(CommError::Disagreement { key, first, rank: 1, other }));
    }
    Ok(())
}

fn nodes(world: &MpiCommunicator, sizes: &[usize]) -> Result<(), CommError> {
    // Next to each other, wherever the launcher has put them.
    assert_eq!(node_sizes(world)?, sizes);
    let (mut first, mut own) = (0, 0);
    for &size in sizes {
        own = size;
        if first + size > world.rank() {
            break;
        }
        first += size;
    }
    assert_eq!((world.node()?.size(), world.node()?.rank()), (own, world.rank() - first));
    let node = NodeShared::new(world)?;
    for turn in 0..6 {
        let mut read = false;
        let length = 1 + turn * 5000;
        let shared = node.share(turn, || {
            read = true;
            Ok::<_, CommError>(of(turn, length))
        })?;
        assert_eq!(shared, of(turn, length));
        let reads = turn % own == world.rank() - first;
        assert_eq!((read, read), (node.reads(turn), reads));
    }
    Ok(())
}

/// One round of calls on `comm`, checked; `salt` tells rounds apart.
fn round(comm: &dyn Communicator, salt: usize) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let value = |rank: usize| (salt % 1000 + 7 * rank) as f32;
    let total: f32 = (0..size).map(value).sum();
    let mut sum = vec![value(rank); 1 + salt % 5];
    comm.all_reduce(&mut sum, Operation::Sum, MODES[salt % 2])?;
    assert_eq!(sum, vec![total; 1 + salt % 5]);
    let mut tree = [value(rank)];
    comm.tree_reduce(&mut tree, &|left, right| left[0] += right[0])?;
    assert_eq!(tree, [total]);
    let mut copy = [value(rank)];
    comm.broadcast(&mut copy, salt % size)?;
    assert_eq!(copy, [value(salt % size)]);
    comm.barrier()
}

fn stress(world: &MpiCommunicator) -> Result<(), CommError> {
    let part = world.split(world.rank() % 2)?;
    for step in 0..100 {
        round(&*part, 2 * step)?;
        round(world, 2 * step + 1)?;
        // Groups come and go.
        round(&*world.split(step % (1 + world.rank()))?, step)?;
    }
    Ok(())
}

fn from_threads(world: &MpiCommunicator) -> Result<(), CommError> {
    let in_turns = std::env::var_os("BAYESMESH_MPI_SERIALIZED").is_some();
    assert_eq!(world.is_concurrent(), !in_turns);
    if in_turns {
        return Ok(());
    }
    let communicators = [world.split(0)?, world.split(0)?, world.split(0)?];
    std::thread::scope(|scope| {
        let rounds = |index: usize, comm| {
            move || (0..100).try_for_each(|step| round(comm, 3 * step + index))
        };
        let threads: Vec<_> = (communicators.iter().enumerate())
            .map(|(index, comm)| scope.spawn(rounds(index, &**comm)))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a round is wrong"))
    })
}
