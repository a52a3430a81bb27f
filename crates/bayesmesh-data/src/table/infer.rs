//! What the columns of a table are.

use std::fmt;

use rayon::prelude::*;

use super::error::TableError;
use super::frame::{Cells, Column, Frame, MISSING, NEVER, Texts};
use super::slashed::{Order, Slashed, Slashes};
use super::text::number;
use super::time::parse_time;

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Numbers.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of some texts.
    Category,
    /// Points in time.
    Date,
    /// To be predicted.
    Target,
    /// Left out, because the user says so.
    Ignored,
    /// Left out: the same in every row, or nothing in any.
    Constant,
    /// Left out: another in every row.
    Identifier,
    /// Left out: texts of too many kinds.
    Text,
    /// Left out: nearly a copy of the target.
    Leak,
}

impl ColumnKind {
    /// Whether it is learned from.
    pub fn is_input(self) -> bool {
        matches!(self, Self::Number | Self::Boolean | Self::Category | Self::Date)
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Category => "category",
            Self::Date => "date",
            Self::Target => "target",
            Self::Ignored | Self::Constant | Self::Identifier | Self::Text | Self::Leak => {
                "left out"
            }
        })
    }
}

/// What the user says of columns; the others are inferred.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kinds {
    /// To be predicted.
    pub targets: Vec<String>,
    /// Numbers.
    pub numbers: Vec<String>,
    /// Booleans.
    pub booleans: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// Points in time.
    pub dates: Vec<String>,
    /// Not to be learned from.
    pub ignore: Vec<String>,
}

/// What was found about a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ColumnKind,
    /// How many rows have nothing.
    pub missing: usize,
    /// What it has, in a few words.
    pub values: String,
    /// Why it is left out, or what is strange about it.
    pub note: String,
}

/// Categories of more kinds are texts.
const MOST_CATEGORIES: usize = 1000;

/// A correlation with the target of this or more is a copy of it.
const COPY: f64 = 0.999;

impl Kinds {
    /// What is said of a column.
    fn said(&self, name: &str) -> Option<ColumnKind> {
        let lists = [
            (&self.targets, ColumnKind::Target),
            (&self.ignore, ColumnKind::Ignored),
            (&self.numbers, ColumnKind::Number),
            (&self.booleans, ColumnKind::Boolean),
            (&self.categories, ColumnKind::Category),
            (&self.dates, ColumnKind::Date),
        ];
        let holds = |list: &&(&Vec<String>, ColumnKind)| list.0.iter().any(|own| own == name);
        lists.iter().find(holds).map(|(_, kind)| *kind)
    }

    /// Refuses names that the table does not have, or that are there twice.
    fn check(&self, frame: &Frame) -> Result<(), TableError> {
        let lists = [
            &self.targets,
            &self.numbers,
            &self.booleans,
            &self.categories,
            &self.dates,
            &self.ignore,
        ];
        let mut seen: Vec<&str> = Vec::new();
        for name in lists.into_iter().flatten() {
            if frame.column(name).is_none() {
                return Err(TableError::no_column(name, &frame.names()));
            }
            if seen.contains(&name.as_str()) {
                return Err(TableError::Setting(format!(
                    "column `{name}` is said to be two things; name it in one list only"
                )));
            }
            seen.push(name);
        }
        Ok(())
    }
}

/// What every column of a table is: what the user says, else what its cells look like.
pub fn infer(frame: &Frame, said: &Kinds) -> Result<Vec<Found>, TableError> {
    said.check(frame)?;
    let targets: Vec<&Column> = said.targets.iter().filter_map(|name| frame.column(name)).collect();
    let found = frame.columns.par_iter().map(|column| {
        let missing = column.cells.missing(frame.rows);
        let (kind, note) = match said.said(&column.name) {
            // The recipe of a run names what was left out, but not why.
            Some(ColumnKind::Ignored) => {
                let (kind, note) = looks_like(column, frame.rows, missing);
                let why = leak(column, &targets, frame.rows).filter(|_| kind.is_input());
                let why = why.unwrap_or(note);
                let why = if why.is_empty() { "as the recipe says".to_owned() } else { why };
                (ColumnKind::Ignored, why)
            }
            Some(kind) => (kind, String::new()),
            None => {
                let (kind, note) = looks_like(column, frame.rows, missing);
                match kind.is_input().then(|| leak(column, &targets, frame.rows)).flatten() {
                    Some(note) => (ColumnKind::Leak, note),
                    None => (kind, note),
                }
            }
        };
        Found { name: column.name.clone(), kind, missing, values: values(column), note }
    });
    Ok(found.collect())
}

fn looks_like(column: &Column, rows: usize, missing: usize) -> (ColumnKind, String) {
    let present = rows - missing;
    let constant = |what: &str| (ColumnKind::Constant, what.to_owned());
    match &column.cells {
        Cells::Empty => constant("no row has anything"),
        Cells::Numbers(numbers) => {
            let there = || numbers.iter().copied().filter(|x| !x.is_nan());
            let (low, high) = there().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            if low == high && missing == 0 {
                return constant("the same in every row");
            }
            let name = column.name.to_lowercase();
            let called_id = name == "id" || name.ends_with("_id") || name.ends_with(" id");
            let counts = high - low == (present as f64 - 1.0) || called_id;
            if present > 20 && counts && there().all(|x| x.fract() == 0.0) && distinct(numbers) {
                return (ColumnKind::Identifier, "another number in every row".to_owned());
            }
            (ColumnKind::Number, String::new())
        }
        Cells::Times(times) => {
            let mut there = times.iter().filter(|time| **time != NEVER);
            let first = there.next();
            match there.all(|time| Some(time) == first) && missing == 0 {
                true => constant("the same in every row"),
                false => (ColumnKind::Date, String::new()),
            }
        }
        Cells::Texts(texts) => of_texts(texts, present, missing),
    }
}

fn of_texts(texts: &Texts, present: usize, missing: usize) -> (ColumnKind, String) {
    let kinds = texts.names.len();
    if kinds == 1 && missing == 0 {
        return (ColumnKind::Constant, "the same in every row".to_owned());
    }
    if kinds <= 2 && texts.names.iter().all(|name| flag(name).is_some()) {
        return (ColumnKind::Boolean, String::new());
    }
    match Slashes::of(&texts.names) {
        Slashes::None => {}
        Slashes::Known(Order::Day) => return (ColumnKind::Date, "day first".to_owned()),
        Slashes::Known(Order::Month) => return (ColumnKind::Date, "month first".to_owned()),
        open => return (ColumnKind::Text, open.problem().unwrap_or_default()),
    }
    if nearly_numbers(texts) {
        let shown: Vec<String> =
            not_numbers(texts).take(3).map(|name| format!("`{name}`")).collect();
        if shown.is_empty() {
            let note = "numbers that are written as texts; name it in data.numbers or in \
                        data.categories";
            return (ColumnKind::Text, note.to_owned());
        }
        let note = format!(
            "numbers but for {}; if these are missing values, name them in data.missing",
            shown.join(", ")
        );
        return (ColumnKind::Text, note);
    }
    if kinds == present && present > 20 {
        return (ColumnKind::Identifier, "another text in every row".to_owned());
    }
    if kinds > MOST_CATEGORIES || (kinds > 20 && kinds * 2 > present) {
        let note = format!("{kinds} texts in {present} rows are no categories");
        return (ColumnKind::Text, note);
    }
    (ColumnKind::Category, String::new())
}

/// The distinct texts that are no numbers.
fn not_numbers(texts: &Texts) -> impl Iterator<Item = &str> {
    let odd = texts.names.iter().filter(|name| number(name.as_bytes(), true).is_none());
    odd.map(String::as_str)
}

/// Whether there are many texts, and nearly all of them are numbers.
pub fn nearly_numbers(texts: &Texts) -> bool {
    let kinds = texts.names.len();
    kinds > 20 && not_numbers(texts).count() * 20 < kinds
}

/// `true` or `false`, in any case.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match () {
        () if text.eq_ignore_ascii_case("true") => Some(true),
        () if text.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

/// Whether no number is there twice.
fn distinct(numbers: &[f64]) -> bool {
    let mut sorted: Vec<f64> = numbers.iter().copied().filter(|x| !x.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Why a column is nearly a copy of a target, if it is.
fn leak(column: &Column, targets: &[&Column], rows: usize) -> Option<String> {
    targets.iter().find_map(|target| match (&column.cells, &target.cells) {
        (Cells::Numbers(own), Cells::Numbers(truth)) => {
            let correlation = correlation(own, truth)?;
            (correlation.abs() >= COPY).then(|| {
                format!("nearly a copy of `{}`: their correlation is {correlation:.5}", target.name)
            })
        }
        (Cells::Texts(_) | Cells::Numbers(_), Cells::Texts(truth)) => {
            let own = column.cells.to_texts(rows);
            tells(&own, truth).then(|| format!("each of its values tells `{}`", target.name))
        }
        _ => None,
    })
}

/// Of the rows that have both numbers, if there are enough to say.
fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let both = || x.iter().zip(y).filter(|(x, y)| !x.is_nan() && !y.is_nan());
    let count = both().count() as f64;
    if count < 10.0 {
        return None;
    }
    let (sum_x, sum_y) = both().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in both() {
        let (x, y) = (x - mean_x, y - mean_y);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    let correlation = xy / (xx * yy).sqrt();
    correlation.is_finite().then_some(correlation)
}

/// Whether every text stands for one class, and not because there are so many of them.
fn tells(own: &Texts, truth: &Texts) -> bool {
    let mut class: Vec<Option<u32>> = vec![None; own.names.len()];
    let mut rows = 0;
    for (code, truth) in own.codes.iter().zip(&truth.codes) {
        if *code == MISSING || *truth == MISSING {
            continue;
        }
        rows += 1;
        match &mut class[*code as usize] {
            Some(known) if known != truth => return false,
            known => *known = Some(*truth),
        }
    }
    let kinds = class.iter().flatten().count();
    rows >= 20 && truth.names.len() > 1 && kinds > 1 && kinds <= 2 * truth.names.len()
}

/// What a column has, in a few words.
fn values(column: &Column) -> String {
    match &column.cells {
        Cells::Empty => String::new(),
        Cells::Numbers(numbers) => {
            let there = numbers.iter().copied().filter(|x| !x.is_nan());
            let (low, high) = there.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            format!("{} to {}", short(low), short(high))
        }
        Cells::Times(times) => {
            let there = || times.iter().copied().filter(|time| *time != NEVER);
            let day = |time: Option<i64>| {
                let text = time.map(crate::load::format_time).unwrap_or_default();
                text.chars().take(10).collect::<String>()
            };
            format!("{} to {}", day(there().min()), day(there().max()))
        }
        Cells::Texts(texts) => {
            let name = |name: &String| {
                let short: String = name.chars().take(12).collect();
                if short.len() < name.len() { format!("{short}…") } else { short }
            };
            let some: Vec<String> = texts.names.iter().take(3).map(name).collect();
            match texts.names.len() {
                0..=3 => some.join(", "),
                kinds => format!("{kinds}: {} …", some.join(", ")),
            }
        }
    }
}

/// A number with the digits that a reader wants.
pub(super) fn short(x: f64) -> String {
    if x == 0.0 || (x.fract() == 0.0 && x.abs() < 1e7) {
        return format!("{x}");
    }
    match x.abs() {
        size if (1e-3..1e6).contains(&size) => {
            let decimals = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            let text = format!("{x:.decimals$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        _ => format!("{x:.3e}"),
    }
}

/// The numbers of a column that is to have some; refuses what is none.
pub(crate) fn numbers_of(column: &Column, rows: usize) -> Result<Vec<f64>, TableError> {
    match &column.cells {
        Cells::Empty => Ok(vec![f64::NAN; rows]),
        Cells::Numbers(numbers) => Ok(numbers.clone()),
        Cells::Times(times) => {
            let seconds = |time: &i64| if *time == NEVER { f64::NAN } else { *time as f64 };
            Ok(times.iter().map(seconds).collect())
        }
        Cells::Texts(texts) => {
            let mut values = Vec::with_capacity(texts.names.len());
            for (code, name) in texts.names.iter().enumerate() {
                let as_flag = flag(name).map(f64::from);
                match number(name.as_bytes(), true).or(as_flag) {
                    Some(value) => values.push(value),
                    None => return Err(not(column, texts, code, "a number")),
                }
            }
            let value = |code: &u32| values.get(*code as usize).copied().unwrap_or(f64::NAN);
            Ok(texts.codes.iter().map(value).collect())
        }
    }
}

/// The booleans of a column that is to have some, as 0 and 1; NaN where one is missing.
pub(super) fn flags_of(column: &Column, rows: usize) -> Result<Vec<f64>, TableError> {
    let numbers = numbers_of(column, rows)?;
    match numbers.iter().position(|x| !x.is_nan() && *x != 0.0 && *x != 1.0) {
        None => Ok(numbers),
        Some(row) => Err(TableError::column(
            &column.name,
            format!(
                "row {} has {}, which is neither true nor false; make it a number or a category",
                row + 1,
                short(numbers[row])
            ),
        )),
    }
}

/// The points in time of a column that is to have some.
pub(crate) fn times_of(column: &Column, rows: usize) -> Result<Vec<i64>, TableError> {
    times_like(column, rows, None)
}

/// What comes first in the dates of a column, if they have slashes and say so.
pub(super) fn order_of(column: &Column) -> Option<Order> {
    match &column.cells {
        Cells::Texts(texts) => match Slashes::of(&texts.names) {
            Slashes::Known(order) => Some(order),
            _ => None,
        },
        _ => None,
    }
}

/// The same where dates with slashes do not say what comes first, but others of the kind did.
pub(super) fn times_like(
    column: &Column,
    rows: usize,
    known: Option<Order>,
) -> Result<Vec<i64>, TableError> {
    match &column.cells {
        Cells::Empty => Ok(vec![NEVER; rows]),
        Cells::Times(times) => Ok(times.clone()),
        Cells::Numbers(_) => Err(TableError::column(
            &column.name,
            "it has numbers and not dates; write dates as 2024-01-31 or 2024-01-31 12:00, or make \
             it a number",
        )),
        Cells::Texts(texts) => {
            let slashes = match (Slashes::of(&texts.names), known) {
                (Slashes::Open, Some(order)) => Slashes::Known(order),
                (slashes, _) => slashes,
            };
            if let Some(problem) = slashes.problem() {
                return Err(TableError::column(&column.name, problem));
            }
            let parse = |text: &[u8]| match slashes {
                Slashes::Known(order) => Slashed::parse(text)?.time(order),
                _ => parse_time(text),
            };
            let mut values = Vec::with_capacity(texts.names.len());
            for (code, name) in texts.names.iter().enumerate() {
                match parse(name.as_bytes()) {
                    Some(value) => values.push(value),
                    None => return Err(not(column, texts, code, "a date such as 2024-01-31")),
                }
            }
            let value = |code: &u32| values.get(*code as usize).copied().unwrap_or(NEVER);
            Ok(texts.codes.iter().map(value).collect())
        }
    }
}

fn not(column: &Column, texts: &Texts, code: usize, what: &str) -> TableError {
    let row = texts.codes.iter().position(|own| *own as usize == code).unwrap_or_default();
    TableError::column(
        &column.name,
        format!(
            "row {} has `{}`, which is not {what}; correct it, name it in data.missing if it \
             stands for nothing, or make the column a category",
            row + 1,
            bayesmesh_files::shown(&texts.names[code])
        ),
    )
}
