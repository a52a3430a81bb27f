//! From the cells of a table to the numbers that a network takes, and what has to be known for it.
//!
//! An encoded row is `[numbers…, codes…]`: numbers scaled to mean zero and deviation one, with an
//! indicator beside each that may be missing; then a whole number for each category, of which 0
//! stands for one that is missing, was never seen, or was seen once only, so that a network learns
//! what to make of it.
//!
//! Everything is learned from the rows for training and stored with a run, as JSON.

use std::collections::HashMap;
use std::f64::consts::TAU;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::error::TableError;
use super::frame::{Cells, Column, Frame, MISSING, NEVER, Texts};
use super::infer::{
    ColumnKind, Found, flags_of, nearly_numbers, numbers_of, order_of, short, times_like, times_of,
};
use super::slashed::Order;
use super::time::day_of;

/// How rows are encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    /// What is learned from, in the order of the table.
    pub inputs: Vec<Input>,
    /// What is predicted.
    pub targets: Vec<String>,
    /// Where the targets are numbers: how they are scaled.
    pub scales: Vec<Scale>,
    /// Where the target is a class: their names.
    pub classes: Vec<String>,
    /// Words for nothing, besides the usual ones.
    pub missing: Vec<String>,
}

/// How a column is encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Whether rows for training had nothing, which an indicator then says.
    pub indicated: bool,
    /// What it is made of.
    pub code: Code,
}

/// What the cells of a column become.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Code {
    /// A scaled number.
    Number(Scale),
    /// 0 or 1.
    Boolean,
    /// Parts of a date.
    Date {
        /// Of the time itself, in days.
        scale: Scale,
        /// The others.
        cycles: Vec<Cycle>,
        /// What comes first where dates have slashes.
        #[serde(default)]
        first: Option<Order>,
    },
    /// The place of its text in this list, from 1.
    Category(Vec<String>),
}

/// Something that comes back: as sine and cosine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cycle {
    /// The day of the year.
    Year,
    /// The day of the week.
    Week,
    /// The time of the day.
    Day,
}

/// Where numbers are, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Their mean.
    #[serde(with = "exact")]
    pub mean: f64,
    /// Their deviation; 1 where all are equal.
    #[serde(with = "exact")]
    pub std: f64,
    /// The smallest.
    #[serde(with = "exact")]
    pub low: f64,
    /// The largest.
    #[serde(with = "exact")]
    pub high: f64,
}

/// Numbers as texts, which come back to the last bit.
mod exact {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{x:?}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Rows as a network takes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// `[rows, width]`
    pub inputs: Vec<f32>,
    /// Numbers of a row, codes included.
    pub width: usize,
    /// Rows that are unlike all for training, with what is strange about each, in their order.
    pub unlike: Vec<(usize, String)>,
}

impl Scale {
    /// Of the numbers that are there.
    pub fn of(numbers: impl Iterator<Item = f64> + Clone) -> Self {
        let there = || numbers.clone().filter(|x| !x.is_nan());
        let (mut count, mut sum) = (0.0, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in there() {
            count += 1.0;
            sum += x;
            low = low.min(x);
            high = high.max(x);
        }
        if count == 0.0 {
            return Self { mean: 0.0, std: 1.0, low: 0.0, high: 0.0 };
        }
        let mean = sum / count;
        let variance = there().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        // Equal numbers, up to the rounding of their mean.
        let equal = low == high || variance.sqrt() <= 1e-12 * mean.abs();
        let std = if equal { 1.0 } else { variance.sqrt() };
        Self { mean, std, low, high }
    }

    fn apply(&self, x: f64) -> f32 {
        ((x - self.mean) / self.std) as f32
    }

    /// Whether a number is outside the range of those known by more than a quarter of it.
    fn is_far(&self, x: f64) -> bool {
        let margin = 0.25 * (self.high - self.low);
        x < self.low - margin || x > self.high + margin
    }
}

impl Input {
    /// How many numbers it becomes, besides a code.
    fn numbers(&self) -> usize {
        let own = match &self.code {
            Code::Number(_) | Code::Boolean => 1,
            Code::Date { cycles, .. } => 1 + 2 * cycles.len(),
            Code::Category(_) => return 0,
        };
        own + usize::from(self.indicated)
    }
}

impl Encoder {
    /// Learned from some rows of a table, of which it is known what the columns are.
    pub fn fit(
        frame: &Frame,
        found: &[Found],
        rows: &[usize],
        targets: &[String],
        missing: &[String],
    ) -> Result<Self, TableError> {
        let learned: Vec<Result<Option<Input>, TableError>> = found
            .par_iter()
            .map(|found| {
                let column = frame.column(&found.name).filter(|_| found.kind.is_input());
                column.map(|column| learn(column, found.kind, frame.rows, rows)).transpose()
            })
            .collect();
        let inputs = learned.into_iter().collect::<Result<Vec<_>, _>>()?;
        let inputs: Vec<Input> = inputs.into_iter().flatten().collect();
        if inputs.is_empty() {
            return Err(TableError::Setting(
                "no column is left to learn from; name some in data.numbers, data.categories or \
                 data.dates"
                    .to_owned(),
            ));
        }
        let (targets, missing) = (targets.to_vec(), missing.to_vec());
        Ok(Self { inputs, targets, scales: Vec::new(), classes: Vec::new(), missing })
    }

    /// How many numbers a row has, before its codes.
    pub fn numbers(&self) -> usize {
        self.inputs.iter().map(Input::numbers).sum()
    }

    /// For each code how many there are, 0 included.
    pub fn sizes(&self) -> Vec<usize> {
        let size = |input: &Input| match &input.code {
            Code::Category(names) => Some(names.len() + 1),
            _ => None,
        };
        self.inputs.iter().filter_map(size).collect()
    }

    /// The columns that are to be read as texts.
    pub fn texts(&self) -> Vec<String> {
        let categories = self.inputs.iter().filter(|input| matches!(input.code, Code::Category(_)));
        categories.map(|input| input.name.clone()).collect()
    }

    /// As text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From [`to_json`](Self::to_json).
    pub fn from_json(text: &str) -> Result<Self, TableError> {
        serde_json::from_str(text).map_err(|error| {
            TableError::Setting(format!(
                "what the run says of its columns cannot be read ({error}); train it again"
            ))
        })
    }

    /// Encodes all rows of a table, whose columns may come in any order. `notice` says whether to
    /// look for rows that are unlike all for training.
    pub fn encode(&self, frame: &Frame, notice: bool) -> Result<Encoded, TableError> {
        let parts: Vec<Result<Part, TableError>> = self
            .inputs
            .par_iter()
            .map(|input| {
                let column = frame
                    .column(&input.name)
                    .ok_or_else(|| TableError::no_column(&input.name, &frame.names()))?;
                input.encode(column, frame.rows, notice)
            })
            .collect();
        let mut parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut unlike: Vec<(usize, String)> =
            parts.iter_mut().flat_map(|part| std::mem::take(&mut part.unlike)).collect();
        unlike.sort_by_key(|(row, _)| *row);
        unlike.dedup_by(|next, first| {
            let same = next.0 == first.0;
            if same {
                first.1 = format!("{}; {}", first.1, next.1);
            }
            same
        });
        let (codes, numbers): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(|p| p.is_code);
        let columns: Vec<&Vec<f32>> =
            numbers.iter().chain(&codes).flat_map(|part| &part.columns).collect();
        let width = columns.len();
        let mut inputs = vec![0.0; frame.rows * width];
        const BLOCK: usize = 1024;
        inputs.par_chunks_mut((BLOCK * width).max(1)).enumerate().for_each(|(block, rows)| {
            for (index, column) in columns.iter().enumerate() {
                let values = &column[block * BLOCK..];
                let cells = rows.iter_mut().skip(index).step_by(width);
                cells.zip(values).for_each(|(cell, value)| *cell = *value);
            }
        });
        Ok(Encoded { inputs, width, unlike })
    }
}

/// The columns of one input, encoded.
struct Part {
    columns: Vec<Vec<f32>>,
    is_code: bool,
    unlike: Vec<(usize, String)>,
}

fn learn(
    column: &Column,
    kind: ColumnKind,
    all: usize,
    rows: &[usize],
) -> Result<Input, TableError> {
    let code = match kind {
        ColumnKind::Number => {
            let numbers = numbers_of(column, all)?;
            Code::Number(Scale::of(rows.iter().map(|&row| numbers[row])))
        }
        ColumnKind::Boolean => {
            flags_of(column, all)?;
            Code::Boolean
        }
        ColumnKind::Date => {
            let times = times_of(column, all)?;
            let there = || rows.iter().map(|&row| times[row]).filter(|time| *time != NEVER);
            let days = |time: i64| time as f64 / 86_400.0;
            let scale = Scale::of(there().map(days).collect::<Vec<_>>().into_iter());
            let mut cycles = vec![Cycle::Week];
            if scale.high - scale.low > 60.0 {
                cycles.push(Cycle::Year);
            }
            if there().any(|time| time.rem_euclid(86_400) != 0) {
                cycles.push(Cycle::Day);
            }
            Code::Date { scale, cycles, first: order_of(column) }
        }
        _ => {
            let owned;
            let texts = match &column.cells {
                Cells::Texts(texts) => texts,
                cells => {
                    owned = cells.to_texts(all);
                    &owned
                }
            };
            Code::Category(categories(texts, rows))
        }
    };
    let indicated = rows.iter().any(|&row| column.cells.is_missing(row));
    let indicated = indicated && !matches!(code, Code::Category(_));
    if !matches!(code, Code::Category(_)) && rows.iter().all(|&r| column.cells.is_missing(r)) {
        return Err(TableError::column(
            &column.name,
            "no row for training has anything in it; leave it out by data.ignore",
        ));
    }
    Ok(Input { name: column.name.clone(), indicated, code })
}

/// The texts that are there more than once, sorted.
fn categories(texts: &Texts, rows: &[usize]) -> Vec<String> {
    let mut counts = vec![0usize; texts.names.len()];
    for &row in rows {
        if let Some(count) = counts.get_mut(texts.codes[row] as usize) {
            *count += 1;
        }
    }
    let names = texts.names.iter().zip(counts);
    let mut names: Vec<String> =
        names.filter(|(_, count)| *count > 1).map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

impl Input {
    fn encode(&self, column: &Column, rows: usize, notice: bool) -> Result<Part, TableError> {
        let name = &self.name;
        let mut unlike = Vec::new();
        let mut columns = match &self.code {
            Code::Category(names) => {
                let owned;
                let texts = match &column.cells {
                    Cells::Texts(texts) => texts,
                    cells => {
                        owned = cells.to_texts(rows);
                        &owned
                    }
                };
                let places: HashMap<&str, usize> =
                    names.iter().enumerate().map(|(k, name)| (name.as_str(), k + 1)).collect();
                let code = |name: &String| places.get(name.as_str()).copied().unwrap_or(0) as f32;
                let codes: Vec<f32> = texts.names.iter().map(code).collect();
                let code = |own: &u32| codes.get(*own as usize).copied().unwrap_or(0.0);
                let own = texts.codes.iter().map(code).collect();
                if notice {
                    let new = |(row, own): (usize, &u32)| {
                        let new = *own != MISSING && codes[*own as usize] == 0.0;
                        new.then(|| {
                            let text = bayesmesh_files::shown(&texts.names[*own as usize]);
                            (row, format!("{name} is `{text}`, which is new"))
                        })
                    };
                    unlike.extend(texts.codes.iter().enumerate().filter_map(new));
                }
                return Ok(Part { columns: vec![own], is_code: true, unlike });
            }
            Code::Boolean => {
                let flags = flags_of(column, rows)?;
                // Between the two where it is missing.
                let own = |x: &f64| if x.is_nan() { 0.0 } else { 2.0 * *x as f32 - 1.0 };
                vec![flags.iter().map(own).collect()]
            }
            Code::Number(scale) => {
                let owned;
                let numbers = match &column.cells {
                    Cells::Numbers(numbers) => numbers,
                    _ => {
                        owned = numbers_of(column, rows)?;
                        &owned
                    }
                };
                if notice {
                    let far = numbers.iter().enumerate().filter(|(_, x)| scale.is_far(**x));
                    let words = |(row, x): (usize, &f64)| (row, scale.words(name, *x, &short));
                    unlike.extend(far.map(words));
                }
                let own = |x: &f64| if x.is_nan() { 0.0 } else { scale.apply(*x) };
                vec![numbers.iter().map(own).collect()]
            }
            Code::Date { scale, cycles, first } => {
                let times = times_like(column, rows, *first)?;
                let days = |time: i64| time as f64 / 86_400.0;
                if notice {
                    let there = times.iter().enumerate().filter(|(_, time)| **time != NEVER);
                    let far = there.filter(|(_, time)| scale.is_far(days(**time)));
                    let day = |days: f64| {
                        let text = crate::load::format_time((days * 86_400.0) as i64);
                        text.chars().take(10).collect::<String>()
                    };
                    let words =
                        |(row, time): (usize, &i64)| (row, scale.words(name, days(*time), &day));
                    unlike.extend(far.map(words));
                }
                let each = |f: &dyn Fn(i64) -> f64| -> Vec<f32> {
                    let own = |time: &i64| if *time == NEVER { 0.0 } else { f(*time) as f32 };
                    times.iter().map(own).collect()
                };
                let mut columns = vec![each(&|time| f64::from(scale.apply(days(time))))];
                for cycle in cycles {
                    columns.extend(cycle.columns(&times));
                }
                columns
            }
        };
        let nothing: Vec<bool> = (0..rows).map(|row| column.cells.is_missing(row)).collect();
        if self.indicated {
            columns.push(nothing.iter().map(|nothing| f32::from(u8::from(*nothing))).collect());
        } else if notice {
            let new = nothing.iter().enumerate().filter(|(_, nothing)| **nothing);
            unlike.extend(new.map(|(row, _)| (row, format!("{name} is missing"))));
        }
        Ok(Part { columns, is_code: false, unlike })
    }
}

impl Scale {
    fn words(&self, name: &str, x: f64, shown: &dyn Fn(f64) -> String) -> String {
        let [x, low, high] = [x, self.low, self.high].map(shown);
        format!("{name} is {x}, but was {low} to {high}")
    }
}

impl Cycle {
    /// Sine and cosine of each time; zero where it is missing.
    fn columns(self, times: &[i64]) -> [Vec<f32>; 2] {
        let parts = |time: i64| {
            let (sine, cosine) = self.phase(time).sin_cos();
            [sine as f32, cosine as f32]
        };
        let there = || times.iter().copied().filter(|time| *time != NEVER);
        let day = |time: i64| time.div_euclid(86_400);
        let first = there().min().map_or(0, day);
        let days = there().max().map_or(0, day) - first + 1;
        // Of each day once, where there are fewer days than rows.
        let known: Vec<[f32; 2]> = match self {
            Self::Year | Self::Week if days <= times.len() as i64 => {
                (first..first + days).map(|day| parts(day * 86_400)).collect()
            }
            _ => Vec::new(),
        };
        let of = |time: &i64| match known.is_empty() {
            _ if *time == NEVER => [0.0; 2],
            true => parts(*time),
            false => known[(day(*time) - first) as usize],
        };
        let both: Vec<[f32; 2]> = times.iter().map(of).collect();
        [0, 1].map(|part| both.iter().map(|both| both[part]).collect())
    }

    /// The angle of a point in time.
    fn phase(self, time: i64) -> f64 {
        let (day, weekday) = day_of(time);
        match self {
            Self::Year => TAU * day as f64 / 365.25,
            Self::Week => TAU * weekday as f64 / 7.0,
            Self::Day => TAU * time.rem_euclid(86_400) as f64 / 86_400.0,
        }
    }
}

/// The numbers of the targets, `[rows, targets]`; NaN where one is missing.
pub fn target_values(frame: &Frame, targets: &[String]) -> Result<Vec<f64>, TableError> {
    let mut columns = Vec::new();
    for name in targets {
        let column =
            frame.column(name).ok_or_else(|| TableError::no_column(name, &frame.names()))?;
        columns.push(numbers_of(column, frame.rows).map_err(|error| match &column.cells {
            Cells::Texts(texts) if !nearly_numbers(texts) => TableError::column(
                name,
                format!(
                    "it has texts, but a number is to be predicted; use a loss for classes, \
                         such as `loss.kind = \"expected-cross-entropy\"` ({error})"
                ),
            ),
            _ => error,
        })?);
    }
    let rows = 0..frame.rows;
    Ok(rows.flat_map(|row| columns.iter().map(move |column| column[row])).collect())
}

/// The classes of a target, sorted, numbers by size; and the class of each row that has one.
pub fn target_classes(
    frame: &Frame,
    target: &str,
) -> Result<(Vec<String>, Vec<Option<usize>>), TableError> {
    let column =
        frame.column(target).ok_or_else(|| TableError::no_column(target, &frame.names()))?;
    let texts = column.cells.to_texts(frame.rows);
    let mut used = vec![false; texts.names.len()];
    for code in &texts.codes {
        if let Some(used) = used.get_mut(*code as usize) {
            *used = true;
        }
    }
    let mut order: Vec<usize> = (0..used.len()).filter(|&code| used[code]).collect();
    let size = |code: &usize| texts.names[*code].parse::<f64>().ok();
    match order.iter().map(size).collect::<Option<Vec<f64>>>() {
        Some(_) => order.sort_by(|a, b| {
            let [a, b] = [a, b].map(|code| size(code).unwrap_or_default());
            a.total_cmp(&b)
        }),
        None => order.sort_by(|a, b| texts.names[*a].cmp(&texts.names[*b])),
    }
    let mut class = vec![0; used.len()];
    for (place, &code) in order.iter().enumerate() {
        class[code] = place;
    }
    let classes: Vec<String> = order.iter().map(|&code| texts.names[code].clone()).collect();
    let of_row = texts.codes.iter().map(|code| class.get(*code as usize).copied());
    Ok((classes, of_row.collect()))
}
