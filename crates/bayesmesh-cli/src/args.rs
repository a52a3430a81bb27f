//! What can be typed. Its documentation is what `--help` says.
#![expect(missing_docs, reason = "the help is for people who type")]

use std::path::PathBuf;
use std::str::FromStr;

use bayesmesh::Mesh;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::exit;
use crate::recipe::Catalogue;
use crate::use_cases::DataVerb;

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
    /// Train on a built-in series and write a report: the whole program in a minute
    Demo(Demo),
    /// Train what a recipe says, or on data without one: `train houses.csv --target price`, or a
    /// folder of images
    Train(Train),
    /// Score a trained run on its test data and write its report anew
    Evaluate(Evaluate),
    /// Forecast, classify, or predict values with a trained run
    Predict(Predict),
    /// Train a recipe with several values of some keys, each with several seeds, and compare
    Compare(Compare),
    /// Look into checkpoint files, and export their weights
    #[command(subcommand)]
    Checkpoint(Checkpoint),
    /// Get, check and generate data
    Data,
    /// Print a built-in recipe, list them, or explain every key
    Recipe {
        /// The name; without one, all names are listed
        name: Option<String>,
        /// Every key with its values, default and meaning, as Markdown
        #[arg(long, conflicts_with = "name")]
        keys: bool,
    },
    /// Print shell completions, e.g. `bayesmesh completions bash >
    /// ~/.local/share/bash-completion/completions/bayesmesh`
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

/// What is to be predicted of data that come without a recipe.
#[derive(Debug, Args)]
pub struct Aim {
    /// The column of a table to predict; can be repeated
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// Take the table as series and forecast so many steps of the target
    #[arg(long, value_name = "STEPS")]
    pub horizon: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Train {
    /// The recipe file, or the name of a built-in one; or data for which a recipe is chosen and
    /// written down: a table or series, .csv or .parquet, or a folder with a folder of images for
    /// each class
    #[arg(value_name = "RECIPE.toml|DATA")]
    pub recipe: PathBuf,
    #[command(flatten)]
    pub aim: Aim,
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

/// How many draws a prediction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// So many.
    Number(usize),
    /// As many as it takes until scores depend on them by less than a tenth of what they depend on
    /// the examples.
    Auto,
}

impl FromStr for Draws {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => text.parse().map(Self::Number).map_err(|_| "a number, or `auto`".to_owned()),
        }
    }
}

/// How many divisions of a table are trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisions {
    /// So many.
    Number(u64),
    /// As many as there are.
    All,
}

impl FromStr for Divisions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            _ => text.parse().map(Self::Number).map_err(|_| "a number, or `all`".to_owned()),
        }
    }
}

#[derive(Debug, Args)]
pub struct Evaluate {
    /// The folder of a run
    pub run: PathBuf,
    /// Draws of each prediction, or `auto`: until scores depend on them by less than a tenth of
    /// their standard error over examples [default: those of the recipe]
    #[arg(long, value_name = "S|auto")]
    pub draws: Option<Draws>,
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
    /// For a table, a .csv or .parquet file of rows with the same columns, with or without the
    /// target; for a forecast, series as the network was trained on; for
    /// images, a folder of them, or one of CIFAR-10 whose test images are classified; for weather,
    /// a store [default: that of the recipe, of tables and images the test part]
    pub input: Option<PathBuf>,
    /// Where to write: a .csv, .npy or .parquet file; for weather, a .zarr store or .npy
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Draws of each prediction [default: those of the recipe]
    #[arg(long, value_name = "S")]
    pub draws: Option<usize>,
    /// Forecast not only after the end of the series but also every N steps within it
    #[arg(long, value_name = "N")]
    pub every: Option<usize>,
    /// How many steps a forecast of weather goes on from itself [default: 1]
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Write N joint sample paths of each forecast instead of its mean, deviation and quantiles
    #[arg(long, value_name = "N", conflicts_with = "quantiles")]
    pub paths: Option<usize>,
    /// The level of the band that holds all values of a forecast at once, or of the set of classes
    /// that holds the right one
    #[arg(long, value_name = "L", default_value_t = 0.9)]
    pub band: f64,
    /// Quantiles of a forecast to write [default: 0.05,0.25,0.5,0.75,0.95]
    #[arg(long, value_delimiter = ',')]
    pub quantiles: Vec<f64>,
    /// Predict the first N examples only
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
    /// The recipe file, or the name of a built-in one; or a table, .csv or .parquet
    #[arg(value_name = "RECIPE.toml|TABLE")]
    pub recipe: PathBuf,
    #[command(flatten)]
    pub aim: Aim,
    /// A key and its values, e.g. train.augment=per-draw,shared; several give every combination
    #[arg(long, value_name = "KEY=A,B,…", required_unless_present = "splits")]
    pub vary: Vec<String>,
    /// Train with the first N divisions of a table into training and test rows, or with all: those
    /// of its folder, its data.folds, or as many by chance
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "all")]
    pub splits: Option<Divisions>,
    /// How many seeds each is trained with, from that of the recipe on [default: 3, or 1 with
    /// --splits]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,
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

/// What can be typed, with what the use cases add to `bayesmesh data`.
pub fn command(catalogue: &Catalogue) -> clap::Command {
    let needs_more =
        |command: clap::Command| command.subcommand_required(true).arg_required_else_help(true);
    let verbs = DataVerb::ALL.into_iter().map(|(verb, name, about)| {
        let cases = catalogue.use_cases().iter().flat_map(|case| case.data_commands());
        let commands = cases.filter(|command| command.verb == verb).map(|command| command.command);
        needs_more(clap::Command::new(name).about(about)).subcommands(commands)
    });
    Arguments::command().mut_subcommand("data", |data| needs_more(data).subcommands(verbs))
}
