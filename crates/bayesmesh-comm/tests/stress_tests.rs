//! Many small collectives in a row, interleaved between the world and both axes of its mesh.

mod common;

use std::sync::Arc;
use std::thread;

use bayesmesh_comm::{
    CommError, Communicator, Mesh, MeshComm, MeshError, Operation, Reduce, threads,
};
use common::watched;

const ROUNDS: usize = 1500;

/// One round on `comm` with every kind of call, checked; `salt` tells rounds and groups apart.
fn round(comm: &dyn Communicator, salt: usize) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let value = |rank: usize| (salt % 1000 + 7 * rank) as f32;
    let total: f32 = (0..size).map(value).sum();
    let length = 1 + salt % 5;

    let mut sum = vec![value(rank); length];
    comm.all_reduce(&mut sum, Operation::Sum, [Reduce::Fast, Reduce::Reproducible][salt % 2])?;
    assert_eq!(sum, vec![total; length]);

    let mut max = [f64::from(value(rank))];
    comm.all_reduce_f64(&mut max, Operation::Max, Reduce::Fast)?;
    assert_eq!(max, [f64::from(value(size - 1))]);

    let mut tree = [value(rank)];
    comm.tree_reduce(&mut tree, &|left, right| left[0] += right[0])?;
    assert_eq!(tree, [total]);

    let gathered = comm.all_gather(&vec![value(rank); rank + salt % 3])?;
    for (rank, part) in gathered.iter().enumerate() {
        assert_eq!(*part, vec![value(rank); rank + salt % 3]);
    }

    let mut copy = [value(rank)];
    comm.broadcast(&mut copy, salt % size)?;
    assert_eq!(copy, [value(salt % size)]);
    comm.barrier()
}

#[test]
fn interleaved_on_all_axes() {
    for (samples, data) in [(1, 2), (2, 2), (4, 2)] {
        let mesh = Mesh::new(samples, data).unwrap();
        watched(move || {
            threads::run(mesh.size(), |world| -> Result<(), MeshError> {
                let comm = MeshComm::new(mesh, Arc::new(world.clone()))?;
                for step in 0..ROUNDS / mesh.size() {
                    round(&*comm.samples, 3 * step)?;
                    round(&*comm.world, 3 * step + 1)?;
                    round(&*comm.data, 3 * step + 2)?;
                    if step % 50 == 0 {
                        // Groups come and go.
                        round(&*comm.world.split(step % (1 + world.rank()))?, step)?;
                    }
                }
                Ok(())
            })
            .unwrap();
        });
    }
}

#[test]
fn each_communicator_from_a_thread_of_its_own() {
    let mesh = Mesh::new(2, 2).unwrap();
    watched(move || {
        threads::run(mesh.size(), |world| -> Result<(), MeshError> {
            let comm = MeshComm::new(mesh, Arc::new(world.clone()))?;
            thread::scope(|scope| {
                let communicators = [&*comm.world, &*comm.samples, &*comm.data];
                let threads: Vec<_> = communicators
                    .into_iter()
                    .enumerate()
                    .map(|(index, comm)| {
                        scope.spawn(move || {
                            (0..ROUNDS / 4).try_for_each(|step| round(comm, 3 * step + index))
                        })
                    })
                    .collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("a round is wrong"))
            })?;
            Ok(())
        })
        .unwrap();
    });
}
