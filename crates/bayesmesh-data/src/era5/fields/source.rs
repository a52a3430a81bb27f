//! The normalised fields of a store: kept in memory, or read when they are needed.

use super::config::{FieldsConfig, Missing};
use crate::era5::error::{Era5Error, hours};
use crate::era5::progress::Progress;
use crate::era5::statistics::{Statistics, Sum};
use crate::era5::store::Store;

/// The times of a store that examples can be made of, and their fields.
#[derive(Debug)]
pub(super) struct Source {
    pub store: Store,
    pub config: FieldsConfig,
    /// Of each variable.
    pub units: Vec<Option<String>>,
    pub statistics: Statistics,
    /// Numbers of times of the store that examples can be made of.
    pub numbers: Vec<usize>,
    /// Unix seconds of these.
    pub times: Vec<i64>,
    /// Whether something is missing at these.
    pub bad: Vec<bool>,
    /// From one to the next of them, in seconds.
    step: i64,
    /// Normalised, `[time, variable, latitude, longitude]`.
    values: Option<Vec<f32>>,
}

impl Source {
    /// Of the times of a store from `begin` to before `end`; `training` of these (by number in the
    /// store) are what statistics are computed from, if they are not given.
    pub fn new(
        store: &Store,
        config: &FieldsConfig,
        range: std::ops::Range<usize>,
        training: std::ops::Range<usize>,
        statistics: Option<Statistics>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Era5Error> {
        let step = spacing(store, config)?;
        for variable in &config.variables {
            store.check(variable)?;
        }
        let units = config.variables.iter().map(|variable| {
            let stored = store.variables().iter().find(|stored| stored.name == variable.name);
            stored.and_then(|stored| stored.units.clone())
        });
        let begin = range.start;
        let every = (step / step_of(store, config)?) as usize;
        let numbers: Vec<usize> = range.step_by(every).collect();
        let mut source = Self {
            store: store.clone(),
            config: config.clone(),
            units: units.collect(),
            statistics: Statistics::default(),
            times: numbers.iter().map(|&number| store.times()[number]).collect(),
            bad: vec![false; numbers.len()],
            numbers,
            step,
            values: None,
        };
        let bytes = 4 * source.numbers.len() as u64 * source.state_len() as u64;
        let keep = bytes <= config.memory;
        if keep {
            source.keep(progress)?;
        } else if config.missing == Missing::LeaveOut {
            source.scan(progress)?;
        }
        let place = |number: usize| number.saturating_sub(begin).div_ceil(every);
        let training = place(training.start)..place(training.end).min(source.numbers.len());
        source.statistics = match statistics {
            Some(statistics) => statistics.select(&config.variables, "the stored statistics")?,
            None => source.computed(training, progress)?,
        };
        source.normalise();
        Ok(source)
    }

    /// Values of a field.
    pub fn points(&self) -> usize {
        self.store.grid().points()
    }

    /// Values of all variables at a time.
    pub fn state_len(&self) -> usize {
        self.config.variables.len() * self.points()
    }

    /// The place of a time.
    pub fn place(&self, time: i64) -> Option<usize> {
        let first = *self.times.first()?;
        let apart = time.checked_sub(first)?;
        let place = usize::try_from(apart / self.step).ok()?;
        (apart >= 0 && apart % self.step == 0 && place < self.times.len()).then_some(place)
    }

    /// Places from one state of an example to the next.
    pub fn lead(&self) -> usize {
        (self.config.lead / self.step) as usize
    }

    /// Places from one origin to the next.
    pub fn stride(&self) -> usize {
        ((self.config.stride / self.step) as usize).max(1)
    }

    pub fn in_memory(&self) -> bool {
        self.values.is_some()
    }

    /// Normalised values of all times from one place to before another, if they are kept.
    pub fn kept(&self, places: std::ops::Range<usize>) -> Option<&[f32]> {
        let length = self.state_len();
        self.values.as_ref().map(|values| &values[places.start * length..places.end * length])
    }

    /// Appends the normalised fields of a time.
    pub fn append(&self, place: usize, out: &mut Vec<f32>) -> Result<(), Era5Error> {
        if let Some(values) = self.kept(place..place + 1) {
            out.extend_from_slice(values);
            return Ok(());
        }
        for number in 0..self.config.variables.len() {
            let mut values = self.read(number, place)?;
            self.refuse_missing(number, place, &values)?;
            self.statistics.normalise(number, &mut values);
            out.extend_from_slice(&values);
        }
        Ok(())
    }

    fn read(&self, variable: usize, place: usize) -> Result<Vec<f32>, Era5Error> {
        self.store.read(&self.config.variables[variable], self.numbers[place])
    }

    fn refuse_missing(
        &self,
        variable: usize,
        place: usize,
        values: &[f32],
    ) -> Result<(), Era5Error> {
        let count = values.iter().filter(|value| !value.is_finite()).count();
        match count {
            0 => Ok(()),
            _ => Err(Era5Error::NotFinite {
                store: self.store.location().to_owned(),
                variable: self.config.variables[variable].clone(),
                time: self.times[place],
                count,
                points: values.len(),
            }),
        }
    }

    /// Reads everything, and marks times where something is missing.
    fn keep(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), Era5Error> {
        let mut all = Vec::with_capacity(self.numbers.len() * self.state_len());
        self.each(progress, |values| all.extend_from_slice(values))?;
        self.values = Some(all);
        Ok(())
    }

    /// Marks times where something is missing.
    fn scan(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), Era5Error> {
        self.each(progress, |_| ())
    }

    /// Reads all fields, time by time, so that chunks of several times are decoded once.
    fn each(
        &mut self,
        progress: &mut dyn FnMut(Progress),
        mut take: impl FnMut(&[f32]),
    ) -> Result<(), Era5Error> {
        let of = self.numbers.len();
        for place in 0..of {
            progress(Progress { what: "reading", done: place, of });
            for variable in 0..self.config.variables.len() {
                let values = self.read(variable, place)?;
                match (self.refuse_missing(variable, place, &values), self.config.missing) {
                    (Ok(()), _) => {}
                    (Err(_), Missing::LeaveOut) => self.bad[place] = true,
                    (Err(error), Missing::Refuse) => return Err(error),
                }
                take(&values);
            }
        }
        progress(Progress { what: "reading", done: of, of });
        Ok(())
    }

    /// Statistics of the training part: of all its times where they are kept, else of some that do
    /// not depend on anything but how many there are.
    fn computed(
        &self,
        training: std::ops::Range<usize>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Statistics, Era5Error> {
        let good: Vec<usize> = training.filter(|&place| !self.bad[place]).collect();
        if good.is_empty() {
            return Err(Era5Error::TooShort {
                store: self.store.location().to_owned(),
                problem:
                    "no time of the training part to compute statistics from; choose a longer \
                          training part, or give stored statistics"
                        .to_owned(),
            });
        }
        let (variables, points) = (&self.config.variables, self.points());
        let Some(values) = &self.values else {
            let times: Vec<usize> = good.iter().map(|&place| self.numbers[place]).collect();
            return Statistics::sampled(&self.store, variables, &times, progress);
        };
        let mut sums = vec![Sum::default(); variables.len()];
        for place in good {
            let state = &values[place * self.state_len()..][..self.state_len()];
            for (field, sum) in state.chunks_exact(points).zip(&mut sums) {
                sum.add(field);
            }
        }
        Ok(Statistics::of_sums(variables, &sums))
    }

    fn normalise(&mut self) {
        let (points, variables) = (self.points(), self.config.variables.len());
        if let Some(values) = &mut self.values {
            for (number, field) in values.chunks_exact_mut(points).enumerate() {
                self.statistics.normalise(number % variables, field);
            }
        }
    }
}

/// The distance of a store's times; of a single one, which can be forecast from, it is the lead.
fn step_of(store: &Store, config: &FieldsConfig) -> Result<i64, Era5Error> {
    match store.is_a_single_time() && config.lead > 0 && config.stride == 0 {
        true => Ok(config.lead),
        false => store.step(),
    }
}

/// The distance of the times that examples need, in seconds: the greatest of which both lead and
/// stride are multiples. Refuses what does not go together with the store.
fn spacing(store: &Store, config: &FieldsConfig) -> Result<i64, Era5Error> {
    let step = step_of(store, config)?;
    let refused = |problem: String| Err(Era5Error::Setting(problem));
    let store = store.location();
    if config.lead <= 0 || config.lead % step != 0 {
        return refused(format!(
            "a lead of {} does not go with {store}, which has a field every {}; choose a multiple \
             of that",
            hours(config.lead),
            hours(step)
        ));
    }
    if config.stride < 0 || config.stride % step != 0 {
        return refused(format!(
            "a stride of {} does not go with {store}, which has a field every {}; choose a \
             multiple of that, or 0 for every field",
            hours(config.stride),
            hours(step)
        ));
    }
    if config.history == 0 {
        return refused("a history of 0 states; an input has at least 1".to_owned());
    }
    if config.variables.is_empty() {
        return refused("no variables; name at least one, such as `2m_temperature`".to_owned());
    }
    let twice = |(i, variable): (usize, _)| config.variables[..i].contains(variable);
    if let Some((_, variable)) = config.variables.iter().enumerate().find(|&pair| twice(pair)) {
        return refused(format!("the variable `{variable}` is named twice; name it once"));
    }
    let stride = if config.stride == 0 { step } else { config.stride };
    let (mut a, mut b) = (config.lead, stride);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Ok(a)
}
