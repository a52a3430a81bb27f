//! `bayesmesh data fetch | check | synth | stats era5`.

use std::path::PathBuf;

use anyhow::Result;
use bayesmesh_data::era5::{
    self, FetchConfig, Statistics, Store, Survey, SynthConfig, Synthetic, Variable, parse_date,
};
use clap::Args;
use serde_json::{Value, json};

use super::super::{DataCommand, DataVerb};
use super::Era5;
use super::forecast::date;
use crate::exit::Usage;
use crate::progress::Reading;
use crate::say::{self, say};

/// WeatherBench2's store on the grid of the paper.
const PUBLIC: &str = "gs://weatherbench2/datasets/era5/\
                      1959-2023_01_10-6h-240x121_equiangular_with_poles_conservative.zarr";

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![
        DataCommand::of::<Era5, _>(
            DataVerb::Fetch,
            "A period of ERA5 from the public store of WeatherBench2, or of any other store",
            fetch,
        ),
        DataCommand::of::<Era5, _>(
            DataVerb::Check,
            "Look at a store of weather: grid, times, variables, units, gaps",
            check,
        ),
        DataCommand::of::<Era5, _>(
            DataVerb::Synth,
            "Generate weather of which the best forecast is known",
            synth,
        ),
        DataCommand::of::<Era5, _>(
            DataVerb::Stats,
            "Mean and deviation of every variable, to normalise by",
            stats,
        ),
    ]
}

#[derive(Args)]
struct Fetch {
    /// The first time, e.g. 2019-01-01
    #[arg(long, value_name = "DATE")]
    from_date: String,
    /// The end, which is not fetched any more
    #[arg(long, value_name = "DATE")]
    until: String,
    /// Variables, e.g. 2m_temperature,geopotential.500 [default: the 69 of Pangu-Weather]
    #[arg(long, value_delimiter = ',')]
    variables: Vec<String>,
    /// Hours from one time to the next [default: every step of the store]
    #[arg(long, value_name = "H")]
    every: Option<u32>,
    /// Leave out land, soil type and topography
    #[arg(long)]
    no_masks: bool,
    /// The store to take it from: a folder, https://, http:// or gs://
    #[arg(long, value_name = "STORE", default_value = PUBLIC)]
    from: String,
    /// Where to write
    #[arg(long, value_name = "DIR", default_value = "data/era5.zarr")]
    out: PathBuf,
}

#[derive(Args)]
struct Check {
    /// The store: a folder, or an address
    store: String,
    /// Do not read every value in search of those that are not numbers
    #[arg(long)]
    quick: bool,
}

#[derive(Args)]
struct Synth {
    /// Where to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Rows of the grid
    #[arg(long, default_value_t = 32)]
    latitudes: usize,
    /// Columns of the grid
    #[arg(long, default_value_t = 64)]
    longitudes: usize,
    /// Steps of six hours
    #[arg(long, default_value_t = 1460)]
    steps: usize,
    /// Variables [default: temperature and wind near the ground, geopotential.500]
    #[arg(long, value_delimiter = ',')]
    variables: Vec<String>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args)]
struct Stats {
    /// The store: a folder, or an address
    store: String,
    /// Variables [default: all of the store]
    #[arg(long, value_delimiter = ',')]
    variables: Vec<String>,
    /// The end of the times that count, so that those of the test part do not
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
    /// At most so many times, evenly chosen
    #[arg(long, value_name = "N", default_value_t = 200)]
    times: usize,
    /// Where to write: .json or .csv
    #[arg(long, value_name = "FILE", default_value = "statistics.json")]
    out: PathBuf,
}

fn named(names: &[String]) -> Result<Vec<Variable>> {
    Ok(names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?)
}

fn fetch(arguments: Fetch) -> Result<Value> {
    let variables = match &arguments.variables[..] {
        [] => era5::pangu69(),
        names => named(names)?,
    };
    let config = FetchConfig {
        variables,
        from: parse_date(&arguments.from_date)?,
        until: parse_date(&arguments.until)?,
        stride: i64::from(arguments.every.unwrap_or(0)) * 3600,
        masks: !arguments.no_masks,
    };
    let out = &arguments.out;
    let mut bar = Reading::new();
    let store =
        era5::fetch(&arguments.from, out, &config, &mut |p| bar.show(p.what, p.done, p.of))?;
    drop(bar);
    say!("{} times on a grid of {}: {}", store.times().len(), store.grid(), out.display());
    Ok(json!({
        "out": say::path(out),
        "times": store.times().len(),
        "variables": config.variables.len(),
    }))
}

fn check(Check { store, quick }: Check) -> Result<Value> {
    let store = Store::open(&store)?;
    let mut bar = Reading::new();
    let most = quick.then_some(0);
    let survey = Survey::of(&store, most, &mut |p| bar.show(p.what, p.done, p.of));
    drop(bar);
    say!("{survey}");
    let times = store.times();
    let variables = store.variables().iter().map(
        |stored| json!({ "name": stored.name, "levels": stored.levels, "units": stored.units }),
    );
    Ok(json!({
        "store": store.location(),
        "latitudes": store.grid().latitudes().len(),
        "longitudes": store.grid().longitudes().len(),
        "times": times.len(),
        "first": times.first().map(|time| date(*time)),
        "last": times.last().map(|time| date(*time)),
        "step_seconds": store.step().ok(),
        "variables": variables.collect::<Vec<_>>(),
    }))
}

fn synth(arguments: Synth) -> Result<Value> {
    let Synth { out, latitudes, longitudes, steps, variables, seed } = arguments;
    let default = SynthConfig::default();
    let variables = match &variables[..] {
        [] => default.variables.clone(),
        names => named(names)?,
    };
    let config = SynthConfig { latitudes, longitudes, steps, seed, variables, ..default };
    let synthetic = Synthetic::new(config)?;
    let mut bar = Reading::new();
    synthetic.write(&out, false, &mut |p| bar.show(p.what, p.done, p.of))?;
    drop(bar);
    say!("{steps} times on a grid of {longitudes}×{latitudes}: {}", out.display());
    Ok(json!({ "out": say::path(&out), "times": steps, "seed": seed }))
}

fn stats(arguments: Stats) -> Result<Value> {
    let store = Store::open(&arguments.store)?;
    let variables = match &arguments.variables[..] {
        [] => store.all_variables(),
        names => named(names)?,
    };
    let until = arguments.until.as_deref().map(parse_date).transpose()?.unwrap_or(i64::MAX);
    let count = store.times().iter().filter(|time| **time < until).count();
    let asked = arguments.times.min(count);
    if asked == 0 {
        let message = "there is no time to compute statistics of; use a later --until, or --times";
        return Err(Usage(message.to_owned()).into());
    }
    let times: Vec<usize> = (0..asked).map(|index| index * count / asked).collect();
    let mut bar = Reading::new();
    let statistics =
        Statistics::of(&store, &variables, &times, &mut |p| bar.show(p.what, p.done, p.of))?;
    drop(bar);
    let out = &arguments.out;
    statistics.save(out)?;
    say!("{} variables over {asked} times: {}", variables.len(), out.display());
    Ok(json!({ "out": say::path(out), "variables": variables.len(), "times": asked }))
}
