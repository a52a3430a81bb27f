//! What is in a store, in words.

use std::fmt;

use super::error::{Era5Error, hours};
use super::grid::Grid;
use super::progress::Progress;
use super::store::{Store, Stored};
use super::time::utc;

/// What a store has, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Survey {
    /// As it was given.
    pub location: String,
    /// Of all fields.
    pub grid: Grid,
    /// How many times.
    pub times: usize,
    /// The first and the last one, in Unix seconds.
    pub span: Option<(i64, i64)>,
    /// The distance of times in seconds, or why there is none.
    pub step: Result<i64, String>,
    /// Each variable.
    pub variables: Vec<Surveyed>,
    /// Names of the fields without time.
    pub constants: Vec<String>,
}

/// A variable of a store.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// What it is.
    pub stored: Stored,
    /// What is wrong with it: its unit, its shape, a chunk.
    pub problem: Option<String>,
    /// How many of its fields were looked at.
    pub fields: usize,
    /// How many of these have values that are not numbers.
    pub missing: usize,
    /// The time of the first of those.
    pub first_missing: Option<i64>,
    /// The least and the greatest value.
    pub range: Option<(f32, f32)>,
}

impl Survey {
    /// Looks at a store. Of each variable the fields of at most so many times, evenly spread, are
    /// read; `None` for all.
    pub fn of(store: &Store, most: Option<usize>, progress: &mut dyn FnMut(Progress)) -> Self {
        let n = store.times().len();
        let looked = most.unwrap_or(n).min(n);
        let times: Vec<usize> = (0..looked).map(|k| k * n / looked.max(1)).collect();
        let mut survey = Self {
            location: store.location().to_owned(),
            grid: store.grid().clone(),
            times: n,
            span: store.times().first().copied().zip(store.times().last().copied()),
            step: store.step().map_err(|error| error.to_string()),
            variables: store.variables().iter().map(Surveyed::new).collect(),
            constants: store.constants().to_vec(),
        };
        let checked = |stored: &Stored| stored.fields().iter().try_for_each(|v| store.check(v));
        for variable in &mut survey.variables {
            variable.problem = checked(&variable.stored).err().map(|error| error.to_string());
        }
        for (done, &time) in times.iter().enumerate() {
            progress(Progress { what: "looking at", done, of: looked });
            for variable in &mut survey.variables {
                if let Err(error) = variable.look(store, time)
                    && variable.problem.is_none()
                {
                    variable.problem = Some(error.to_string());
                }
            }
        }
        progress(Progress { what: "looking at", done: looked, of: looked });
        survey
    }

    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        let good = |v: &Surveyed| v.problem.is_none() && v.missing == 0;
        self.step.is_ok() && self.variables.iter().all(good)
    }
}

impl Surveyed {
    fn new(stored: &Stored) -> Self {
        let (problem, first_missing, range) = (None, None, None);
        Self { stored: stored.clone(), problem, fields: 0, missing: 0, first_missing, range }
    }

    fn look(&mut self, store: &Store, time: usize) -> Result<(), Era5Error> {
        for variable in self.stored.fields() {
            let values = store.read(&variable, time)?;
            self.fields += 1;
            if values.iter().any(|value| !value.is_finite()) {
                self.missing += 1;
                self.first_missing = self.first_missing.or(Some(store.times()[time]));
            }
            for &value in values.iter().filter(|value| value.is_finite()) {
                let (least, most) = self.range.unwrap_or((value, value));
                self.range = Some((least.min(value), most.max(value)));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.location)?;
        let latitudes = self.grid.latitudes();
        writeln!(
            f,
            "grid: {} (longitudes × latitudes), {:.2} to {:.2} degrees north",
            self.grid,
            latitudes[0],
            latitudes[latitudes.len() - 1]
        )?;
        match (self.span, &self.step) {
            (None, _) => writeln!(f, "times: none")?,
            (Some((first, last)), Ok(step)) => writeln!(
                f,
                "times: {} from {} to {}, every {}",
                self.times,
                utc(first),
                utc(last),
                hours(*step)
            )?,
            (Some(_), Err(problem)) => writeln!(f, "times: {}; {problem}", self.times)?,
        }
        for variable in &self.variables {
            write!(
                f,
                "{}: {}",
                variable.stored.name,
                variable.stored.units.as_deref().unwrap_or("no unit")
            )?;
            if !variable.stored.levels.is_empty() {
                write!(f, ", levels {:?}", variable.stored.levels)?;
            }
            if let Some((least, most)) = variable.range {
                write!(f, ", {least} to {most} in {} fields", variable.fields)?;
            }
            if let Some(first) = variable.first_missing {
                write!(
                    f,
                    ", {} with missing values, the first at {}",
                    variable.missing,
                    utc(first)
                )?;
            }
            writeln!(f)?;
            if let Some(problem) = &variable.problem {
                writeln!(f, "  {problem}")?;
            }
        }
        match self.constants.is_empty() {
            true => write!(f, "constant fields: none"),
            false => write!(f, "constant fields: {}", self.constants.join(", ")),
        }
    }
}
