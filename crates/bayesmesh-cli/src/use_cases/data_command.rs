//! `bayesmesh data fetch | check | synth | stats`, as use cases say it.

use anyhow::Result;
use clap::{ArgMatches, Args, Command};
use serde_json::Value;

use super::UseCase;

/// What is done with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataVerb {
    /// Bring it here.
    Fetch,
    /// Say what is in it.
    Check,
    /// Generate it.
    Synth,
    /// Compute what it is normalised by.
    Stats,
}

impl DataVerb {
    /// All of them, with what they are called and what they do.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Fetch, "fetch", "Download data, or take it from a file, and check it"),
        (Self::Check, "check", "Check data and say what is in it"),
        (Self::Synth, "synth", "Generate data"),
        (Self::Stats, "stats", "Compute what data are normalised by"),
    ];
}

/// Does a command with what was typed.
type Run = Box<dyn Fn(&ArgMatches) -> Result<Value>>;

/// A command about the data of a use case.
pub struct DataCommand {
    /// What is done.
    pub(crate) verb: DataVerb,
    /// What can be typed.
    pub(crate) command: Command,
    /// Does it; the result is what `--json` prints.
    pub(crate) run: Run,
}

impl DataCommand {
    /// `bayesmesh data VERB NAME` of a use case, with these arguments.
    pub fn of<U: UseCase, A: Args + 'static>(
        verb: DataVerb,
        about: &'static str,
        run: fn(A) -> Result<Value>,
    ) -> Self {
        let command = A::augment_args(Command::new(U::NAME)).about(about);
        let run = move |found: &ArgMatches| run(A::from_arg_matches(found)?);
        Self { verb, command, run: Box::new(run) }
    }
}
