//! What the weather is usually like: a forecast that needs no present.

use std::collections::BTreeMap;

use bayesmesh_kernels::stream::{Purpose, Stream};

use super::error::Era5Error;
use super::fields::Fields;
use super::progress::Progress;
use super::time::{DAY, month};

/// Of a store that is not kept in memory, so many times of each group are read.
const SAMPLE: usize = 20;

/// Means of the training part for each hour of the day, and, where it is at least a year long, for
/// each hour and month.
#[derive(Clone, Debug)]
pub struct Climatology {
    by_month: bool,
    /// Normalised `[variable, latitude, longitude]`, by month (0 where months are not told apart)
    /// and seconds of the day.
    means: BTreeMap<(u8, i64), Vec<f32>>,
    /// Of everything.
    all: Vec<f32>,
}

impl Climatology {
    /// The means of the complete times of a part: of all of them where the store is kept in memory,
    /// otherwise of at most 20 of each hour and month, always the same.
    pub fn of(train: &Fields, progress: &mut dyn FnMut(Progress)) -> Result<Self, Era5Error> {
        let times: Vec<(i64, usize)> = train.complete_times().collect();
        let span = times.last().map_or(0, |last| last.0) - times.first().map_or(0, |first| first.0);
        let by_month = span >= 365 * DAY - DAY;
        let mut groups: BTreeMap<(u8, i64), Vec<usize>> = BTreeMap::new();
        for (time, place) in times {
            groups.entry(key(time, by_month)).or_default().push(place);
        }
        if !train.in_memory() {
            for (number, places) in groups.values_mut().enumerate() {
                let stream = Stream::new(0, Purpose::Shuffle).at_tensor(3).at_step(number as u32);
                let order = stream.permutation(places.len());
                *places = order.into_iter().take(SAMPLE).map(|i| places[i]).collect();
                places.sort_unstable();
            }
        }
        let of = groups.values().map(Vec::len).sum();
        let (mut means, mut all, mut done) = (BTreeMap::new(), Mean::new(train.outputs()), 0);
        for (key, places) in groups {
            let mut mean = Mean::new(train.outputs());
            for place in places {
                progress(Progress { what: "climatology", done, of });
                let state = train.state_at(place)?;
                mean.add(&state);
                all.add(&state);
                done += 1;
            }
            means.insert(key, mean.values);
        }
        progress(Progress { what: "climatology", done: of, of });
        Ok(Self { by_month, means, all: all.values })
    }

    /// The mean for the hour, and month, of a time: `[variable, latitude, longitude]`, normalised.
    /// Where there is none, the mean of everything.
    pub fn at(&self, time: i64) -> &[f32] {
        self.means.get(&key(time, self.by_month)).unwrap_or(&self.all)
    }

    /// Whether months are told apart.
    pub fn by_month(&self) -> bool {
        self.by_month
    }
}

fn key(time: i64, by_month: bool) -> (u8, i64) {
    (if by_month { month(time) } else { 0 }, time.rem_euclid(DAY))
}

struct Mean {
    count: f32,
    values: Vec<f32>,
}

impl Mean {
    fn new(length: usize) -> Self {
        Self { count: 0.0, values: vec![0.0; length] }
    }

    fn add(&mut self, state: &[f32]) {
        self.count += 1.0;
        let share = 1.0 / self.count;
        for (mean, value) in self.values.iter_mut().zip(state) {
            *mean += (value - *mean) * share;
        }
    }
}
