//! What every rank of a job runs: the suite for communicators, and what is built on them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bayesmesh_comm::{
    BucketReducer, CommError, Communicator, Mesh, MeshComm, MpiCommunicator, NodeShared, Operation,
    Reduce, agree, all_reduce_buckets, conformance, launch, mpi, node_sizes,
};

use crate::common::{bits, values};

const MODES: [Reduce; 2] = [Reduce::Fast, Reduce::Reproducible];

type Test = fn(&MpiCommunicator) -> Result<(), CommError>;

const TESTS: [(&str, Test); 5] = [
    ("long messages", long_messages),
    ("mesh", mesh),
    ("buckets in the background", buckets),
    ("agreement", agreement),
    ("many small calls", stress),
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
        // Whether the suite may call from several threads.
        let in_turns = std::env::var_os("BAYESMESH_MPI_SERIALIZED").is_some();
        assert_eq!(world.is_concurrent(), !in_turns);
        conformance::check(world)?;
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

/// More than goes into one message.
fn long_messages(world: &MpiCommunicator) -> Result<(), CommError> {
    const LENGTH: usize = (1 << 25) + 3;
    let bytes = |rank: usize, length: usize| -> Vec<u8> {
        (0..length).map(|i| (i % 251 + i / 251 + rank) as u8).collect()
    };
    let last = world.size() - 1;
    let mut mine = if world.rank() == last { bytes(last, LENGTH) } else { Vec::new() };
    world.broadcast_bytes(&mut mine, last)?;
    assert!(mine == bytes(last, LENGTH));
    // Together too long; one rank has nothing.
    let length = |rank: usize| if rank == last { LENGTH / 2 + 7 } else { rank * LENGTH / 8 };
    let all = world.all_gather_bytes(&bytes(world.rank(), length(world.rank())))?;
    assert_eq!(all.len(), world.size());
    assert!(all.iter().enumerate().all(|(rank, part)| *part == bytes(rank, length(rank))));
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
