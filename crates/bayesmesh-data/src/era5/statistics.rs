//! Mean and deviation of each variable, by which fields are normalised.

use std::path::Path;

use bayesmesh_files::{AtomicFile, FileError, create_folder_of, read_text};
use bayesmesh_kernels::stream::{Purpose, Stream};
use serde_json::{Value, json};

use super::error::Era5Error;
use super::progress::Progress;
use super::store::Store;
use super::variable::{Variable, nearest};

/// Statistics of a large store are of so many times.
const SAMPLE: usize = 200;

/// Mean and standard deviation of a variable, over all points and times alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// In the variable's unit.
    pub mean: f64,
    /// In the variable's unit, above 0.
    pub std: f64,
}

/// [`Moments`] of some variables, in an order.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Statistics(Vec<(Variable, Moments)>);

impl Statistics {
    /// Of variables and their moments.
    pub fn new(entries: Vec<(Variable, Moments)>) -> Self {
        Self(entries)
    }

    /// Over these times of a store, all of their points. A field that has a value that is not a
    /// number is an error.
    pub fn of(
        store: &Store,
        variables: &[Variable],
        times: &[usize],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Era5Error> {
        let mut sums = vec![Sum::default(); variables.len()];
        for (done, &time) in times.iter().enumerate() {
            progress(Progress { what: "statistics", done, of: times.len() });
            for (variable, sum) in variables.iter().zip(&mut sums) {
                let values = store.read(variable, time)?;
                let count = values.iter().filter(|value| !value.is_finite()).count();
                if count > 0 {
                    return Err(Era5Error::NotFinite {
                        store: store.location().to_owned(),
                        variable: variable.clone(),
                        time: store.times()[time],
                        count,
                        points: values.len(),
                    });
                }
                sum.add(&values);
            }
        }
        progress(Progress { what: "statistics", done: times.len(), of: times.len() });
        Ok(Self::of_sums(variables, &sums))
    }

    /// Over 200 of these times, always the same of so many, or all if there are no more.
    pub fn sampled(
        store: &Store,
        variables: &[Variable],
        times: &[usize],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Era5Error> {
        // Tensors 0 and 1 of this purpose order epochs and divide images.
        let order = Stream::new(0, Purpose::Shuffle).at_tensor(2).permutation(times.len());
        let mut some: Vec<usize> = order.into_iter().take(SAMPLE).map(|i| times[i]).collect();
        some.sort_unstable();
        Self::of(store, variables, &some, progress)
    }

    pub(super) fn of_sums(variables: &[Variable], sums: &[Sum]) -> Self {
        Self(variables.iter().cloned().zip(sums.iter().map(Sum::moments)).collect())
    }

    /// Each variable with its moments.
    pub fn entries(&self) -> &[(Variable, Moments)] {
        &self.0
    }

    /// Those of a variable.
    pub fn get(&self, variable: &Variable) -> Option<Moments> {
        self.0.iter().find(|(known, _)| known == variable).map(|(_, moments)| *moments)
    }

    /// Those of these variables, in their order; `file` is where they are from, for the message if
    /// one is missing.
    pub fn select(&self, variables: &[Variable], file: &str) -> Result<Self, Era5Error> {
        let select = |variable: &Variable| {
            let moments = self.get(variable).ok_or_else(|| {
                let names: Vec<String> =
                    self.0.iter().map(|(known, _)| known.to_string()).collect();
                let like = nearest(&variable.to_string(), names.iter().map(String::as_str));
                let like = like.map_or(String::new(), |name| format!(" (it has `{name}`)"));
                Era5Error::Statistics {
                    file: file.to_owned(),
                    problem: format!(
                        "no statistics of `{variable}`{like}. Compute them with `bayesmesh data \
                         stats era5`"
                    ),
                }
            })?;
            Ok((variable.clone(), moments))
        };
        variables.iter().map(select).collect::<Result<_, _>>().map(Self)
    }

    /// Normalises a field of the variable of this number.
    ///
    /// # Panics
    ///
    /// If there are not so many variables.
    pub fn normalise(&self, variable: usize, values: &mut [f32]) {
        let Moments { mean, std } = self.0[variable].1;
        let (mean, scale) = (mean as f32, (1.0 / std) as f32);
        values.iter_mut().for_each(|value| *value = (*value - mean) * scale);
    }

    /// Brings normalised fields `[variable, latitude, longitude]` back to their units.
    ///
    /// # Panics
    ///
    /// If there are not as many values for each variable.
    pub fn restore(&self, values: &mut [f32]) {
        assert!(values.len().is_multiple_of(self.0.len().max(1)), "as many values a variable");
        let points = values.len() / self.0.len().max(1);
        for (field, (_, Moments { mean, std })) in
            values.chunks_exact_mut(points.max(1)).zip(&self.0)
        {
            let (mean, std) = (*mean as f32, *std as f32);
            field.iter_mut().for_each(|value| *value = *value * std + mean);
        }
    }

    /// As `statistics.json` has it.
    pub fn to_json(&self) -> Value {
        let entry = |(variable, moments): &(Variable, Moments)| {
            let variable = variable.to_string();
            json!({"variable": variable, "mean": moments.mean, "std": moments.std})
        };
        json!({"variables": self.0.iter().map(entry).collect::<Vec<_>>()})
    }

    /// What [`to_json`](Self::to_json) gave; `file` is where it is from, for messages.
    pub fn from_json(value: &Value, file: &str) -> Result<Self, Era5Error> {
        let entry = |entry: &Value| {
            let number = |name: &str| entry.get(name).and_then(Value::as_f64);
            let variable = entry.get("variable")?.as_str()?.parse().ok()?;
            Some((variable, Moments { mean: number("mean")?, std: number("std")? }))
        };
        let entries = value.get("variables").and_then(Value::as_array);
        let entries = entries.and_then(|entries| entries.iter().map(entry).collect());
        let entries = entries.ok_or_else(|| Era5Error::Statistics {
            file: file.to_owned(),
            problem: "expected {\"variables\": [{\"variable\": …, \"mean\": …, \"std\": …}, …]}. \
                      Compute it again with `bayesmesh data stats era5`"
                .to_owned(),
        })?;
        Self(entries).checked(file)
    }

    /// Reads JSON, or a CSV of the columns `variable,level_hpa,mean,std`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Era5Error> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let text = read_text(path, 1 << 26, &mut |_| ()).map_err(Era5Error::Read)?;
        match text.trim_start().starts_with('{') {
            false => Self::of_csv(&text, &file),
            true => match serde_json::from_str(&text) {
                Ok(value) => Self::from_json(&value, &file),
                Err(error) => Err(Era5Error::Statistics {
                    file,
                    problem: format!("this is no JSON: {error}"),
                }),
            },
        }
    }

    /// Writes a CSV if the name ends in `.csv`, else JSON.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Era5Error> {
        let path = path.as_ref();
        let text = match path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv")) {
            true => self.to_csv(),
            false => format!("{:#}\n", self.to_json()),
        };
        create_folder_of(path).map_err(Era5Error::Write)?;
        AtomicFile::write(path, text)
            .map_err(|error| Era5Error::Write(FileError::new(path, "write", &error)))
    }

    fn to_csv(&self) -> String {
        let row = |(variable, moments): &(Variable, Moments)| {
            let level = variable.level.map_or(String::new(), |level| level.to_string());
            format!("{},{level},{},{}\n", variable.name, moments.mean, moments.std)
        };
        "variable,level_hpa,mean,std\n".to_owned() + &self.0.iter().map(row).collect::<String>()
    }

    fn of_csv(text: &str, file: &str) -> Result<Self, Era5Error> {
        let refused = |line: usize, problem: &str| Era5Error::Statistics {
            file: file.to_owned(),
            problem: format!("line {line}: {problem}"),
        };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut entries = Vec::new();
        for (number, record) in reader.records().enumerate() {
            let line = number + 1;
            let record = record.map_err(|error| refused(line, &error.to_string()))?;
            let cells: Vec<&str> = record.iter().map(str::trim).collect();
            if line == 1 {
                match cells[..] {
                    ["variable", "level_hpa", "mean", "std"] => continue,
                    _ => {
                        let problem = "expected the columns variable,level_hpa,mean,std";
                        return Err(refused(line, problem));
                    }
                }
            }
            let [name, level, mean, std] = cells[..] else {
                return Err(refused(line, "expected four cells"));
            };
            let dot = if level.is_empty() { "" } else { "." };
            let variable = format!("{name}{dot}{level}").parse();
            let (Ok(variable), Ok(mean), Ok(std)) = (variable, mean.parse(), std.parse()) else {
                return Err(refused(line, "expected a name, a level or nothing, and two numbers"));
            };
            entries.push((variable, Moments { mean, std }));
        }
        Self(entries).checked(file)
    }

    fn checked(self, file: &str) -> Result<Self, Era5Error> {
        let bad = |moments: &Moments| {
            !moments.mean.is_finite() || !moments.std.is_finite() || moments.std <= 0.0
        };
        match self.0.iter().find(|(_, moments)| bad(moments)) {
            None => Ok(self),
            Some((variable, Moments { mean, std })) => Err(Era5Error::Statistics {
                file: file.to_owned(),
                problem: format!(
                    "`{variable}` has the mean {mean} and the deviation {std}; a deviation is \
                     above 0. Compute them again with `bayesmesh data stats era5`"
                ),
            }),
        }
    }
}

/// Moments that grow field by field, without the loss of digits that sums of squares have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    count: f64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
}

impl Sum {
    pub fn add(&mut self, values: &[f32]) {
        let count = values.len() as f64;
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum();
        let all = self.count + count;
        let apart = mean - self.mean;
        self.squares += squares + apart * apart * self.count * count / all;
        self.mean += apart * count / all;
        self.count = all;
    }

    /// A variable that never changes has the deviation 1, so that it becomes 0 everywhere.
    pub fn moments(&self) -> Moments {
        let std = (self.squares / self.count.max(1.0)).sqrt();
        // What rounding leaves of a constant is none.
        let constant = std <= 1e-7 * self.mean.abs() || std == 0.0;
        Moments { mean: self.mean, std: if constant { 1.0 } else { std } }
    }
}

#[cfg(test)]
mod tests {
    use bayesmesh_files::testing::Scratch;

    use super::*;

    fn some() -> Statistics {
        Statistics::new(vec![
            (
                Variable::surface("2m_temperature"),
                Moments { mean: 278.443_450_927_734_4, std: 0.1 + 0.2 },
            ),
            (
                Variable::at("geopotential", 500),
                Moments { mean: -1.0 / 3.0, std: 3_357.073_486_328_125 },
            ),
        ])
    }

    #[test]
    fn files_keep_every_digit() {
        let scratch = Scratch::new();
        for name in ["statistics.json", "statistics.csv"] {
            let path = scratch.path().join(name);
            some().save(&path).unwrap();
            assert_eq!(Statistics::load(&path).unwrap(), some(), "{name}");
        }
        let csv = std::fs::read_to_string(scratch.path().join("statistics.csv")).unwrap();
        assert!(csv.starts_with("variable,level_hpa,mean,std\n2m_temperature,,278.4"), "{csv}");
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path().join("statistics");
        for (text, words) in [
            ("a,b\n", "expected the columns"),
            ("variable,level_hpa,mean,std\nt,,1\n", "line 2: expected four cells"),
            ("variable,level_hpa,mean,std\nt,,1,x\n", "line 2: expected a name"),
            ("variable,level_hpa,mean,std\nt,,1,0\n", "a deviation is above 0"),
            ("{\"variables\": 3}", "expected {\"variables\""),
            ("{", "no JSON"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Statistics::load(&path).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let error = some().select(&[Variable::at("geopotential", 50)], "a.json").unwrap_err();
        assert!(error.to_string().contains("it has `geopotential.500`"), "{error}");
    }

    #[test]
    fn moments_are_those_of_all_values() {
        let mut sum = Sum::default();
        sum.add(&[1e6, 1e6 + 1.0]);
        sum.add(&[1e6 + 2.0, 1e6 + 3.0, 1e6 + 4.0]);
        let Moments { mean, std } = sum.moments();
        assert!(
            (mean - (1e6 + 2.0)).abs() < 1e-6 && (std - 2f64.sqrt()).abs() < 1e-9,
            "{mean} {std}"
        );
        let mut sum = Sum::default();
        sum.add(&[0.1; 1000]);
        assert_eq!(sum.moments().std, 1.0);
    }
}
