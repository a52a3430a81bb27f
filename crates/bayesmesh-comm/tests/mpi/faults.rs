//! Jobs of which a rank fails.

use std::process::{Command, ExitCode, id};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bayesmesh_comm::{
    BucketReducer, CommError, Communicator, MpiCommunicator, Operation, Reduce, agree, mpi,
};

/// A way to fail, and what the one message must contain; `None` where the launcher says it.
pub struct Fault {
    pub name: &'static str,
    pub ranks: usize,
    pub message: Option<&'static [&'static str]>,
    happen: fn(&MpiCommunicator) -> Result<(), String>,
}

/// Faults that a launcher notices, or is told of.
pub const FAULTS: [Fault; 16] = [
    Fault {
        name: "error",
        ranks: 4,
        message: Some(&["rank 2 of 4 on ", ": the disk is full"]),
        happen: |world| match world.rank() {
            2 => late(|| Err("the disk is full".to_owned())),
            _ => work(world),
        },
    },
    Fault {
        name: "error-of-one",
        ranks: 1,
        message: Some(&["rank 0 of 1 on ", ": the disk is full"]),
        happen: |_| Err("the disk is full".to_owned()),
    },
    Fault {
        name: "error-while-others-compute",
        ranks: 3,
        message: Some(&["rank 1 of 3 on ", ": the disk is full"]),
        happen: |world| match world.rank() {
            1 => Err("the disk is full".to_owned()),
            _ => compute(),
        },
    },
    Fault {
        name: "panic",
        ranks: 4,
        message: Some(&["rank 1 of 4 on ", "panicked at ", "faults.rs", ": index 7"]),
        happen: |world| match world.rank() {
            1 => late(|| panic!("index {}", 7)),
            _ => work(world),
        },
    },
    Fault {
        name: "panic-of-a-thread",
        ranks: 2,
        message: Some(&["rank 0 of 2 on ", "panicked at ", ": a worker"]),
        happen: |world| match world.rank() {
            0 => thread::scope(|scope| {
                let worker = scope.spawn(|| late(|| panic!("a worker")));
                worker.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
            }),
            _ => work(world),
        },
    },
    Fault {
        name: "abort",
        ranks: 3,
        message: Some(&["rank 2 of 3 on ", ": not finite"]),
        happen: |world| match world.rank() {
            2 => late(|| {
                world.split(0).map_err(text)?.abort("not finite");
                Ok(())
            }),
            _ => {
                world.split(0).map_err(text)?;
                work(world)
            }
        },
    },
    Fault {
        name: "all-at-once",
        ranks: 4,
        message: Some(&["of 4 on ", ": the loss is not finite"]),
        happen: |world| {
            world.barrier().map_err(text)?;
            Err("the loss is not finite".to_owned())
        },
    },
    Fault {
        name: "all-but-rank-0",
        ranks: 4,
        message: Some(&["of 4 on ", ": no such file"]),
        happen: |world| match world.rank() {
            0 => work(world),
            _ => Err("no such file".to_owned()),
        },
    },
    Fault {
        name: "leaves-early",
        ranks: 3,
        message: Some(&["of 3 on ", ": rank 1 has finished"]),
        happen: |world| match world.rank() {
            1 => Ok(()),
            _ => work(world),
        },
    },
    Fault {
        name: "mismatch",
        ranks: 3,
        message: Some(&["of 3 on ", "called barrier while rank 2 called all_gather"]),
        happen: |world| match world.rank() {
            2 => world.all_gather(&[1.0]).map(drop).map_err(text),
            _ => world.barrier().map_err(text),
        },
    },
    Fault {
        name: "disagreement",
        ranks: 2,
        message: Some(&["of 2 on ", "seed differs", "rank 0 has `0`, rank 1 has `1`"]),
        happen: |world| agree(world, &[("seed", world.rank().to_string())]).map_err(text),
    },
    Fault {
        name: "error-between-buckets",
        ranks: 2,
        message: Some(&["rank 1 of 2 on ", ": bad gradient"]),
        happen: |world| {
            let mut vector = vec![1.0; 100_000];
            let mut reducer = BucketReducer::start(world, 4000, Reduce::Fast).map_err(text)?;
            for start in (0..100_000).step_by(1000) {
                if world.rank() == 1 && start == 50_000 {
                    return Err("bad gradient".to_owned());
                }
                reducer.submit(start, &vector[start..start + 1000]);
            }
            reducer.wait(&mut vector).map(drop).map_err(text)
        },
    },
    Fault { name: "killed-first", ranks: 4, message: None, happen: |world| killed(world, 0, 300) },
    Fault { name: "killed-last", ranks: 4, message: None, happen: |world| killed(world, 3, 700) },
    Fault {
        name: "killed-at-once",
        ranks: 2,
        message: None,
        happen: |world| match world.rank() {
            1 => kill(),
            _ => world.barrier().map_err(text),
        },
    },
    Fault {
        name: "killed-while-others-compute",
        ranks: 3,
        message: None,
        happen: |world| match world.rank() {
            2 => kill(),
            _ => compute(),
        },
    },
];

/// Faults that the other ranks must notice, since their launcher does not care.
pub const UNNOTICED: [Fault; 3] = [
    Fault {
        name: "lost-while-others-communicate",
        ranks: 4,
        message: Some(&["rank 2 of 4 on ", ": process ", " is gone without a word"]),
        happen: |world| killed(world, 2, 300),
    },
    Fault {
        name: "lost-while-others-compute",
        ranks: 3,
        message: Some(&["rank 0 of 3 on ", ": process ", " is gone without a word"]),
        happen: |world| match world.rank() {
            0 => kill(),
            _ => compute(),
        },
    },
    Fault {
        name: "lost-but-one",
        ranks: 3,
        message: Some(&["rank 2 of 3 on ", ": process ", " is gone without a word"]),
        happen: |world| match world.rank() {
            1 => work(world),
            _ => kill(),
        },
    },
];

pub fn run(name: &str) -> ExitCode {
    let fault =
        FAULTS.iter().chain(&UNNOTICED).find(|fault| fault.name == name).expect("a known fault");
    match mpi::run(fault.happen) {
        Ok(()) => println!("nothing failed"),
        Err(error) => println!("{error}"),
    }
    ExitCode::SUCCESS
}

/// Collective calls of all kinds until the job ends.
fn work(world: &MpiCommunicator) -> Result<(), String> {
    let endless = || -> Result<(), CommError> {
        let mut reducer = BucketReducer::start(world, 4096, Reduce::Reproducible)?;
        let mut values = vec![1.0; 50_000];
        loop {
            reducer.submit(0, &values);
            world.all_reduce(&mut [1.0; 5000], Operation::Sum, Reduce::Fast)?;
            world.all_reduce_f64(&mut [1.0], Operation::Max, Reduce::Fast)?;
            world.tree_reduce(&mut [1.0], &|left, right| left[0] += right[0])?;
            world.broadcast(&mut [1.0; 3000], 0)?;
            world.broadcast_bytes(&mut vec![1; 3000], 0)?;
            world.all_reduce_u64(&mut [1], Operation::Sum)?;
            world.barrier()?;
            reducer.wait(&mut values)?;
            values.fill(1.0);
        }
    };
    endless().map_err(text)
}

/// No communication for longer than a job may take to end.
fn compute() -> Result<(), String> {
    let start = Instant::now();
    let mut sum = 0u64;
    while start.elapsed() < Duration::from_secs(20) {
        sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
    }
    Ok(())
}

/// Time for the others to be in the middle of things.
fn late<T>(then: impl FnOnce() -> T) -> T {
    sleep(Duration::from_millis(300));
    then()
}

/// Rank `victim` is killed from outside while all communicate.
fn killed(world: &MpiCommunicator, victim: usize, after: u64) -> Result<(), String> {
    if world.rank() == victim {
        thread::spawn(move || {
            sleep(Duration::from_millis(after));
            kill()
        });
    }
    work(world)
}

fn kill() -> Result<(), String> {
    let _ = Command::new("kill").args(["-9", &id().to_string()]).status();
    sleep(Duration::from_secs(20));
    Ok(())
}

fn text(error: CommError) -> String {
    error.to_string()
}
