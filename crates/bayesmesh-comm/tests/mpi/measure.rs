//! `mpirun -n 2 mpi_tests-… rank measure`: what the calls cost here. Not a test.

use std::process::ExitCode;
use std::time::Instant;

use bayesmesh_comm::{
    BucketReducer, CommError, Communicator, MpiCommunicator, NodeShared, Operation, Reduce, mpi,
};

pub fn run() -> ExitCode {
    match mpi::run(measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints the milliseconds that `call` takes, as rank 0 sees it: the least and the median.
fn time(
    world: &MpiCommunicator,
    name: &str,
    mut call: impl FnMut() -> Result<(), CommError>,
) -> Result<(), CommError> {
    let mut times = Vec::new();
    for _ in 0..50 {
        world.barrier()?;
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    if world.rank() == 0 {
        println!("{name:<44} {:8.3} {:8.3} ms", times[0], times[times.len() / 2]);
    }
    Ok(())
}

fn measure(world: &MpiCommunicator) -> Result<(), CommError> {
    let world = &world.clone();
    time(world, "barrier", || world.barrier())?;
    for mode in [Reduce::Fast, Reduce::Reproducible] {
        for length in [16, 5_348_084] {
            let mut values = vec![1.0; length];
            time(world, &format!("all_reduce of {length}, {mode}"), || {
                values.fill(1.0);
                world.all_reduce(&mut values, Operation::Sum, mode)
            })?;
        }
        let mut values = vec![1.0; 5_348_084];
        time(world, &format!("reduce_scatter of 5348084, {mode}"), || {
            values.fill(1.0);
            world.reduce_scatter(&mut values, mode).map(drop)
        })?;
        let mut reducer = BucketReducer::start(world, 25 << 20, mode)?;
        time(world, &format!("submit and wait of 5348084, {mode}"), || {
            reducer.submit(0, &values);
            reducer.wait(&mut values)?;
            values.fill(1.0);
            Ok(())
        })?;
    }
    let mut values = vec![1.0; 5_348_084];
    time(world, "all_gather_into of 5348084", || world.all_gather_into(&mut values))?;
    let node = NodeShared::new(world)?;
    for rows in [64, 256] {
        let mut turn = 0;
        time(world, &format!("shared batch of {rows} x 3072"), || {
            turn += 1;
            node.share(turn, || Ok(vec![1.0; rows * 3072])).map(drop)
        })?;
        let mut batch = vec![1.0; rows * 3072];
        time(world, &format!("broadcast of {rows} x 3072"), || world.broadcast(&mut batch, 0))?;
    }
    Ok(())
}
