//! Whole pieces of work, alone and beside the competition, in alternation on this machine.
//!
//! usage: table [PYTHON] [--epochs] [--mpi MPIRUN] [--rounds N] [--through COMMAND]
//! with a Python that has torch, torch_blue, jax and optax, their figures too; whole epochs instead
//! of steps, or, with an `mpirun`, what ranks that are processes do; every contestant started
//! through a command, such as `taskset -c 0,1`
//! prints a table and saves it with a plot in `target/bench`

mod epochs;
mod mlp;
mod processes;
mod race;
mod report;
mod vit;

use std::path::PathBuf;

use bayesmesh::Precision;
use race::{Bar, Field, Work};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let programs = std::env::current_exe()?.parent().ok_or("no folder")?.to_path_buf();
    let mut field = Field { python: None, mpirun: None, through: Vec::new(), programs, rounds: 3 };
    let mut works: Works = &[vit::four_draws, vit::sixteen_draws, mlp::step, mlp::normals];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => field.rounds = value()?.parse()?,
            "--through" => field.through = value()?.split_whitespace().map(Into::into).collect(),
            "--epochs" => works = &[epochs::vit, epochs::mlp],
            "--mpi" => {
                field.mpirun = Some(value()?);
                works = &[
                    processes::vit,
                    processes::slow_vit,
                    processes::photo_vit,
                    processes::slow_mlp,
                    processes::quick_mlp,
                ];
            }
            _ => field.python = Some(PathBuf::from(argument)),
        }
    }
    if !Precision::Bf16.is_in_hardware() {
        println!("This processor has no AVX-512-BF16: nothing is held to a bar in bf16.");
    }
    let works = works.iter().map(|work| work(&field)).collect::<Outcome<Vec<Work>>>()?;
    report::report(&works, &field.files()?)
}

/// Pieces of work in their order.
type Works = &'static [fn(&Field) -> Outcome<Work>];

impl Field {
    /// The folder of what is written, which is made where it is missing.
    fn files(&self) -> Outcome<PathBuf> {
        let folder = self.programs.parent().ok_or("no folder")?.join("bench");
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// A bar of ours in bf16, which needs a processor that multiplies such numbers.
    fn in_bf16(&self, bar: Bar) -> Bar {
        if Precision::Bf16.is_in_hardware() { bar } else { Bar::None }
    }
}
