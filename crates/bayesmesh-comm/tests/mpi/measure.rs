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
    overlap(world)?;
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

/// A gradient that becomes final in eight pieces during 200 ms of work, summed meanwhile.
fn overlap(world: &MpiCommunicator) -> Result<(), CommError> {
    const PIECES: usize = 8;
    const LENGTH: usize = 5_348_084 / PIECES;
    let mut vector = vec![1.0; PIECES * LENGTH];
    let mut reducer = BucketReducer::start(world, 4 << 20, Reduce::Fast)?;
    // Steps of arithmetic that take 25 ms here.
    let start = Instant::now();
    arithmetic(10_000_000);
    let steps = (10_000_000.0 * 0.025 / start.elapsed().as_secs_f64()) as u64;
    let mut best = [f64::INFINITY; 2];
    let mut exposed = f64::INFINITY;
    let mut communication = f64::INFINITY;
    for round in 0..20 {
        world.barrier()?;
        let start = Instant::now();
        for piece in (0..PIECES).rev() {
            arithmetic(steps);
            if round % 2 == 1 {
                let begin = piece * LENGTH;
                reducer.submit(begin, &vector[begin..begin + LENGTH]);
            }
        }
        if round % 2 == 1 {
            let time = reducer.wait(&mut vector)?;
            exposed = exposed.min(time.exposed.as_secs_f64() * 1e3);
            communication = communication.min(time.communication.as_secs_f64() * 1e3);
            vector.fill(1.0);
        }
        let took = start.elapsed().as_secs_f64() * 1e3;
        best[round % 2] = best[round % 2].min(took);
    }
    if world.rank() == 0 {
        println!("work of 8 pieces alone {:.1} ms, with their sums {:.1} ms;", best[0], best[1]);
        println!("  of {communication:.1} ms of communication {exposed:.1} ms were waited for");
    }
    Ok(())
}

fn arithmetic(steps: u64) {
    let mut sum = 1u64;
    for step in 0..steps {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(step));
    }
}
