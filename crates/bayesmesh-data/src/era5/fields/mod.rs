//! Parts of a store as data sets.

mod config;
mod features;
mod source;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bayesmesh::data::Checksum;
use bayesmesh::{Dataset, Error};
use bayesmesh_kernels::stream::Stream;
use burn::tensor::{Device, Int, Tensor, TensorData};

use self::features::Features;
use self::source::Source;
use super::climatology::Climatology;
use super::error::Era5Error;
use super::grid::Grid;
use super::masks::Masks;
use super::progress::Progress;
use super::statistics::Statistics;
use super::store::Store;
use super::variable::Variable;

pub use self::config::{FieldsConfig, Missing, Split};
pub use self::features::FEATURES;

/// Training, validation and test.
#[derive(Clone, Debug)]
pub struct Parts {
    /// To train with; the one that turns the globe.
    pub train: Fields,
    /// To choose by.
    pub valid: Fields,
    /// To score.
    pub test: Fields,
}

/// Examples of forecasting the fields of a store: a data set.
///
/// An input is `[rows, channels, latitudes, longitudes]` and, for each row, by how many columns the
/// globe is turned before the network sees it. Channels are the V variables at the origin t, those
/// at t − lead, t − 2·lead … (`history` states in all), what is usual at t and at t + lead and the
/// masks land, soil type and topography if they are wanted, and four features: sin and cos of
/// 2π·hour/24 + longitude, and sin(latitude) times sin and cos of 2π·day/365.25. A target is
/// `[rows, V·latitudes·longitudes]`, the variables at t + lead. Values are normalised by
/// [`Statistics`]; land is as it is, the other masks have mean 0 and deviation 1. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fields {
    all: Arc<All>,
    /// Places of origins, ascending.
    origins: Vec<usize>,
    turn: bool,
    checksum: Arc<OnceLock<String>>,
}

/// What parts of a store share.
#[derive(Debug)]
struct All {
    source: Source,
    masks: Masks,
    features: Features,
    /// Where it is in the channels; set once the training part is known.
    climatology: OnceLock<Climatology>,
}

impl Fields {
    /// The three parts of a store. `statistics` are those to normalise by; `None`: computed from
    /// the training part, all of its times if the store is kept in memory, else at most 200 of
    /// them.
    ///
    /// Values that are not numbers are looked for when a store is kept in memory, and also
    /// otherwise where they are to be left out, which reads the store once; else they are an error
    /// when an example that needs them is loaded.
    pub fn split(
        store: &Store,
        config: &FieldsConfig,
        split: &Split,
        statistics: Option<Statistics>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Parts, Era5Error> {
        store.step()?;
        let cuts = cuts(store, split)?;
        let all =
            All::new(store, config, cuts[0]..cuts[3], cuts[0]..cuts[1], statistics, progress)?;
        let all = Arc::new(all);
        let part = |k: usize, name: &str, turn: bool| {
            let part = Self::of(&all, cuts[k]..cuts[k + 1], true, turn);
            match part.is_empty() {
                false => Ok(part),
                true => Err(Era5Error::TooShort {
                    store: store.location().to_owned(),
                    problem: format!(
                        "no example in the {name} part: of its {} times, none has all that it \
                         needs at its own time, before and {} s later. Choose another split, or a \
                         longer store",
                        cuts[k + 1] - cuts[k],
                        config.lead
                    ),
                }),
            }
        };
        let train = part(0, "training", config.turn)?;
        if config.climatology {
            let climatology = Climatology::of(&train, progress)?;
            all.climatology.get_or_init(|| climatology);
        }
        Ok(Parts { train, valid: part(1, "validation", false)?, test: part(2, "test", false)? })
    }

    /// Every time that has the history of an input as an origin, whether its target is in the store
    /// or not: to forecast from. [`batch`](Dataset::batch) refuses rows that have no target. Where
    /// the climatology of a training part is in the channels, `climatology` is that.
    pub fn origins(
        store: &Store,
        config: &FieldsConfig,
        statistics: Statistics,
        climatology: Option<Climatology>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Era5Error> {
        let range = 0..store.times().len();
        let all = All::new(store, config, range.clone(), 0..0, Some(statistics), progress)?;
        if config.climatology {
            let missing = "a climatology in the channels is that of the training part; give it";
            let climatology = climatology.ok_or_else(|| Era5Error::Setting(missing.to_owned()))?;
            all.climatology.get_or_init(|| climatology);
        }
        let part = Self::of(&Arc::new(all), range, false, false);
        match part.origins.is_empty() {
            false => Ok(part),
            true => Err(Era5Error::TooShort {
                store: store.location().to_owned(),
                problem: format!(
                    "no time to forecast from: an input needs {} complete states, {} s apart",
                    config.history, config.lead
                ),
            }),
        }
    }

    /// The examples with their origin, and their target if it is needed, among these times of the
    /// store.
    fn of(all: &Arc<All>, range: Range<usize>, target: bool, turn: bool) -> Self {
        let source = &all.source;
        let (lead, history) = (source.lead(), source.config.history);
        let inside =
            |place: usize| source.numbers.get(place).is_some_and(|number| range.contains(number));
        let good = |place: usize| source.bad.get(place).is_some_and(|bad| !bad);
        let is_origin = |&place: &usize| {
            let mut past = (0..history).map(|k| place.checked_sub(k * lead));
            let history = past.all(|place| place.is_some_and(good));
            let target = !target || inside(place + lead) && good(place + lead);
            inside(place) && history && target
        };
        let places = (0..source.times.len()).step_by(source.stride());
        Self {
            all: all.clone(),
            origins: places.filter(is_origin).collect(),
            turn,
            checksum: Arc::default(),
        }
    }

    /// The store that the examples are of.
    pub fn store(&self) -> &Store {
        &self.all.source.store
    }

    /// What examples are made of.
    pub fn config(&self) -> &FieldsConfig {
        &self.all.source.config
    }

    /// The grid of fields.
    pub fn grid(&self) -> &Grid {
        self.store().grid()
    }

    /// The variables, in the order of channels and outputs.
    pub fn variables(&self) -> &[Variable] {
        &self.config().variables
    }

    /// Their units, where the store states them.
    pub fn units(&self) -> &[Option<String>] {
        &self.all.source.units
    }

    /// What values are normalised by.
    pub fn statistics(&self) -> &Statistics {
        &self.all.source.statistics
    }

    /// Channels of an input.
    pub fn channels(&self) -> usize {
        let config = self.config();
        let usual = if config.climatology { 2 } else { 0 };
        let states = self.variables().len() * (config.history + usual);
        states + self.all.masks.channels.len() / self.grid().points() + FEATURES
    }

    /// Numbers of a target: V·latitudes·longitudes.
    pub fn outputs(&self) -> usize {
        self.all.source.state_len()
    }

    /// Whether all fields are kept in memory.
    pub fn in_memory(&self) -> bool {
        self.all.source.in_memory()
    }

    /// Land where 1, sea where 0, if the store says so.
    pub fn land(&self) -> Option<&[f32]> {
        self.all.masks.land.as_deref()
    }

    /// Times of the whole store, in Unix seconds, that were left out because a value is missing.
    pub fn left_out(&self) -> Vec<i64> {
        let source = &self.all.source;
        let marked = source.times.iter().zip(&source.bad).filter(|(_, bad)| **bad);
        marked.map(|(time, _)| *time).collect()
    }

    /// The time that the forecast of an example begins at, in Unix seconds.
    ///
    /// # Panics
    ///
    /// This and the other functions of a row panic if there are not so many.
    pub fn origin_time(&self, row: usize) -> i64 {
        self.all.source.times[self.origins[row]]
    }

    /// The time that the target of an example is of, in Unix seconds.
    pub fn target_time(&self, row: usize) -> i64 {
        self.origin_time(row) + self.config().lead
    }

    /// The example of which the forecast begins at this time.
    pub fn row_at(&self, time: i64) -> Option<usize> {
        self.origins.binary_search(&self.all.source.place(time)?).ok()
    }

    /// The normalised fields at the origin of an example: `[variable, latitude, longitude]`.
    pub fn state(&self, row: usize) -> Result<Vec<f32>, Era5Error> {
        self.at(self.origins[row])
    }

    /// The states of an example's input, newest first.
    pub fn states(&self, row: usize) -> Result<Vec<Vec<f32>>, Era5Error> {
        self.past(row).map(|place| self.at(place)).collect()
    }

    /// The normalised truth a number of leads after the origin of an example; `None` where it is
    /// not in the store, or not complete.
    pub fn truth(&self, row: usize, leads: usize) -> Result<Option<Vec<f32>>, Era5Error> {
        let place = self.origins[row] + leads * self.all.source.lead();
        if self.all.source.bad.get(place).is_none_or(|&bad| bad) {
            return Ok(None);
        }
        match self.at(place) {
            Ok(state) => Ok(Some(state)),
            Err(Era5Error::NotFinite { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the truth so many leads after the origin of an example is in the store, as far as is
    /// known without reading it.
    pub fn has_truth(&self, row: usize, leads: usize) -> bool {
        let place = self.origins[row] + leads * self.all.source.lead();
        self.all.source.bad.get(place).is_some_and(|&bad| !bad)
    }

    /// The channels of an input, `[channel, latitude, longitude]`, of states that are given, newest
    /// first, as at this time: for forecasts that go on from forecasts.
    ///
    /// # Panics
    ///
    /// If there are not as many states as an input has, each of [`outputs`](Self::outputs) numbers.
    pub fn input(&self, states: &[&[f32]], time: i64) -> Vec<f32> {
        assert_eq!(states.len(), self.config().history, "as many states as an input has");
        let mut out = Vec::with_capacity(self.channels() * self.grid().points());
        for state in states {
            assert_eq!(state.len(), self.outputs(), "a state has all variables of the grid");
            out.extend_from_slice(state);
        }
        self.append_rest(time, &mut out);
        out
    }

    /// Appends all channels that are no states.
    fn append_rest(&self, time: i64, out: &mut Vec<f32>) {
        if let Some(climatology) = self.all.climatology.get() {
            out.extend_from_slice(climatology.at(time));
            out.extend_from_slice(climatology.at(time + self.config().lead));
        }
        out.extend_from_slice(&self.all.masks.channels);
        self.all.features.append(time, out);
    }

    /// Places of the states of an input, newest first.
    fn past(&self, row: usize) -> impl Iterator<Item = usize> {
        let (origin, lead) = (self.origins[row], self.all.source.lead());
        (0..self.config().history).map(move |k| origin - k * lead)
    }

    fn at(&self, place: usize) -> Result<Vec<f32>, Era5Error> {
        let mut state = Vec::with_capacity(self.outputs());
        self.all.source.append(place, &mut state)?;
        Ok(state)
    }

    /// Places of all times from the first state to the last target.
    fn places(&self) -> Range<usize> {
        let source = &self.all.source;
        let back = (source.config.history - 1) * source.lead();
        let begin = self.origins.first().map_or(0, |origin| origin - back);
        let end = self.origins.last().map_or(0, |origin| origin + source.lead() + 1);
        begin..end.min(source.times.len())
    }

    /// Unix seconds and normalised fields of the times of this part that have everything, each
    /// once.
    pub(super) fn complete_times(&self) -> impl Iterator<Item = (i64, usize)> {
        let source = &self.all.source;
        self.places().filter(|&place| !source.bad[place]).map(|place| (source.times[place], place))
    }

    /// The normalised fields at a place of [`complete_times`](Self::complete_times).
    pub(super) fn state_at(&self, place: usize) -> Result<Vec<f32>, Era5Error> {
        self.at(place)
    }

    fn made_checksum(&self) -> Result<String, Era5Error> {
        let source = &self.all.source;
        let places = self.places();
        let config = FieldsConfig { memory: 0, turn: self.turn, ..source.config.clone() };
        let said = format!(
            "{config:?} {:?} {:?} {:?} {:?}",
            source.statistics,
            self.origins,
            self.grid(),
            &source.times[places.clone()]
        );
        let checksum = Checksum::default().bytes(said.as_bytes()).floats(&self.all.masks.channels);
        if let Some(values) = source.kept(places.clone()) {
            return Ok(checksum.floats(values).text());
        }
        let some = [0, self.origins.len() / 2, self.origins.len().saturating_sub(1)];
        let mut checksum = checksum;
        for row in some.into_iter().filter(|&row| row < self.origins.len()) {
            checksum = checksum.floats(&self.state(row)?);
        }
        Ok(checksum.text())
    }
}

impl All {
    fn new(
        store: &Store,
        config: &FieldsConfig,
        range: Range<usize>,
        training: Range<usize>,
        statistics: Option<Statistics>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Era5Error> {
        // What can be refused quickly comes first.
        let masks = Masks::read(store, config.masks)?;
        let source = Source::new(store, config, range, training, statistics, progress)?;
        let features = Features::new(store.grid(), config.season);
        Ok(Self { source, masks, features, climatology: OnceLock::new() })
    }
}

/// The numbers of times where parts begin, and where the last one ends.
fn cuts(store: &Store, split: &Split) -> Result<[usize; 4], Era5Error> {
    let times = store.times();
    let n = times.len();
    let cuts = match split {
        Split::Shares(shares) => {
            let sum: f64 = shares.iter().sum();
            if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || sum > 1.0 + 1e-9 {
                return Err(Era5Error::Setting(format!(
                    "a split into shares of {shares:?}; they are from 0 to 1 and add up to at most \
                     1"
                )));
            }
            // 0.7 + 0.1 is a little less than 0.8.
            let cut = |k: usize| {
                let share: f64 = shares[..k].iter().sum();
                ((share * n as f64 + 1e-9).floor() as usize).min(n)
            };
            [0, cut(1), cut(2), cut(3)]
        }
        Split::Until { from, train, valid, test } => {
            let at = |time: i64| times.partition_point(|&known| known < time);
            let (from, test) = (from.map_or(0, at), test.map_or(n, at));
            [from, at(*train), at(*valid), test]
        }
    };
    match cuts.is_sorted() {
        true => Ok(cuts),
        false => Err(Era5Error::Setting(
            "the dates of the split are not in order; training ends before validation, and \
             validation before test"
                .to_owned(),
        )),
    }
}

impl Dataset for Fields {
    type Input = (Tensor<4>, Tensor<1, Int>);
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.origins.len()
    }

    fn batch(
        &self,
        rows: &[usize],
        device: &Device,
    ) -> bayesmesh::Result<(Self::Input, Self::Target)> {
        let source = &self.all.source;
        let (channels, outputs) = (self.channels(), self.outputs());
        let [high, wide] = [self.grid().latitudes().len(), self.grid().longitudes().len()];
        let mut inputs = Vec::with_capacity(rows.len() * channels * high * wide);
        let mut targets = Vec::with_capacity(rows.len() * outputs);
        for &row in rows {
            if row >= self.origins.len() {
                return Err(Error::Data(format!(
                    "example {row} of {}: they are numbered from 0",
                    self.origins.len()
                )));
            }
            for place in self.past(row) {
                source.append(place, &mut inputs)?;
            }
            self.append_rest(self.origin_time(row), &mut inputs);
            let target = self.origins[row] + source.lead();
            if source.bad.get(target).is_none_or(|&bad| bad) {
                return Err(Error::Data(format!(
                    "{}: nothing, or not all, is known at {}, the target of example {row}. Choose \
                     origins whose targets are in the store",
                    self.store().location(),
                    super::time::utc(self.target_time(row))
                )));
            }
            source.append(target, &mut targets)?;
        }
        let n = rows.len();
        let turns = TensorData::new(vec![0i64; n], [n]);
        let inputs = TensorData::new(inputs, [n, channels, high, wide]);
        let targets = TensorData::new(targets, [n, outputs]);
        let inputs = (Tensor::from_data(inputs, device), Tensor::from_data(turns, device));
        Ok((inputs, Tensor::from_data(targets, device)))
    }

    /// Of everything where fields are in memory; otherwise of the settings, the statistics, all
    /// times, and the fields of three of them.
    fn checksum(&self) -> Option<String> {
        if let Some(known) = self.checksum.get() {
            return Some(known.clone());
        }
        // A field that cannot be read is told when it is loaded.
        let made = self.made_checksum().ok()?;
        Some(self.checksum.get_or_init(|| made).clone())
    }

    /// Turns the globe: example `row` by a number of columns that is uniform in `0..longitudes`,
    /// from element `row` of the stream.
    fn augment(&self, input: &Self::Input, rows: &[usize], stream: &Stream) -> Option<Self::Input> {
        if !self.turn {
            return None;
        }
        let columns = self.grid().longitudes().len() as u32;
        let turns = rows.iter().map(|&row| i64::from(stream.below(row as u64, columns))).collect();
        let turns = TensorData::new::<i64, _>(turns, [rows.len()]);
        Some((input.0.clone(), Tensor::from_data(turns, &input.1.device())))
    }
}
