//! `bayesmesh data fetch | check | synth | stats`: what the use cases have.

use anyhow::Result;
use clap::ArgMatches;
use serde_json::Value;

use crate::recipe::Catalogue;
use crate::use_cases::DataVerb;

/// Gets, checks or generates data.
pub fn data(catalogue: &Catalogue, found: &ArgMatches) -> Result<Value> {
    let inner = |found: &ArgMatches| {
        let (name, inner) = found.subcommand().expect("the command line was refused otherwise");
        (name.to_owned(), inner.clone())
    };
    let (_, data) = inner(found);
    let (verb, case) = inner(&data);
    let (name, arguments) = inner(&case);
    let is_meant =
        |own: DataVerb| DataVerb::ALL.iter().any(|(v, text, _)| *v == own && *text == verb);
    let mut commands = catalogue.use_cases().iter().flat_map(|case| case.data_commands());
    let command = commands.find(|c| is_meant(c.verb) && c.command.get_name() == name);
    (command.expect("only these can be typed").run)(&arguments)
}
