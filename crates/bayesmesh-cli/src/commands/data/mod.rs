//! `bayesmesh data`.

mod cifar10;
mod load;

use anyhow::Result;
use serde_json::Value;

use crate::args::{Data, DataCheck, DataFetch, DataSynth};

/// Gets, checks or generates data.
pub fn data(data: Data) -> Result<Value> {
    match data {
        Data::Fetch(DataFetch::Load { out, from }) => load::fetch(&out, from.as_deref()),
        Data::Fetch(DataFetch::Cifar10 { out, from }) => cifar10::fetch(&out, from),
        Data::Check(DataCheck::Load { file }) => load::check(&file),
        Data::Check(DataCheck::Cifar10 { folder }) => cifar10::check(&folder),
        Data::Synth(DataSynth::Load { out, days, seed }) => load::synth(&out, days, seed),
        Data::Synth(DataSynth::Cifar10 { out, count, seed }) => cifar10::synth(&out, count, seed),
    }
}
