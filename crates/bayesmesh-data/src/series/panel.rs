//! Several series on one grid of time, from the rows of a table.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::period::Period;
use crate::load::format_time;
use crate::table::{
    Cells, Column, Frame, NEVER, TableError, Texts, flag, number, numbers_of, some, times_of,
};

/// Which columns of a table are what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Times, or numbers that count; nothing for the only column of times.
    pub time: Option<String>,
    /// What is forecast. Several columns are several series.
    pub targets: Vec<String>,
    /// Names of series, where the rows are those of several.
    pub series: Option<String>,
    /// Known for the steps that are forecast too: holidays, prices that have been set.
    pub known: Vec<String>,
    /// Known until the forecast only: what else was measured.
    pub past: Vec<String>,
}

/// Series on one grid of time, in the order in which the file has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// From one step to the next.
    pub period: Period,
    /// The time of step 0.
    pub origin: i64,
    /// The series.
    pub series: Vec<Series>,
}

/// A series with what goes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// The step of the grid at which it begins.
    pub first: i64,
    /// Its values; not a number where one is missing.
    pub values: Vec<f64>,
    /// What is known until the forecast, and of that what is known beyond: for each column its
    /// cells at each step. The latter may go on where the values end.
    pub past: Vec<Covariate>,
    /// See `past`.
    pub known: Vec<Covariate>,
    /// The time of each row, where rows are counted.
    pub times: Vec<i64>,
}

/// What goes with a series, at each of its steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Covariate {
    /// Numbers; not a number where one is missing.
    Numbers(Vec<f64>),
    /// Texts; nothing where one is missing.
    Texts(Vec<Option<String>>),
}

/// What was done to bring rows to a grid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Rows between two steps of the grid, which were left out.
    pub off_grid: usize,
    /// Missing values in short gaps, which were interpolated.
    pub filled: usize,
    /// Missing values in longer ones, which no window may have.
    pub missing: usize,
    /// Rows without a time or a name, which were left out.
    pub nameless: usize,
}

impl Covariate {
    /// For how many steps it is there.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether it is there for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Panel {
    /// One series without anything beside it.
    pub fn of_one(period: Period, origin: i64, values: Vec<f64>) -> Self {
        let (name, first) = (String::new(), 0);
        let (past, known, times) = (Vec::new(), Vec::new(), Vec::new());
        Self { period, origin, series: vec![Series { name, first, values, past, known, times }] }
    }

    /// The time of a step of a series, counted from its beginning, also of one that is to come;
    /// nothing for one to come where rows are counted.
    pub fn time(&self, series: usize, step: usize) -> Option<i64> {
        let own = &self.series[series];
        match self.period {
            Period::Rows => own.times.get(step).copied(),
            period => period.time(self.origin, own.first + step as i64),
        }
    }

    /// Steps of the grid from the beginning of the first series to the end of the last.
    pub fn span(&self) -> Range<i64> {
        let ends = self.series.iter().map(|series| series.first + series.values.len() as i64);
        let first = self.series.iter().map(|series| series.first).min().unwrap_or_default();
        first..ends.max().unwrap_or(first)
    }

    /// The series of a table. Gaps of up to `fill` steps are interpolated.
    pub fn gather(
        frame: &Frame,
        roles: &Roles,
        period: Option<Period>,
        fill: usize,
    ) -> Result<(Self, Repairs), TableError> {
        roles.check(frame)?;
        if frame.rows == 0 {
            return Err(TableError::Split(
                "only the names of the columns and no rows; export it again".to_owned(),
            ));
        }
        let time = roles.time_column(frame)?;
        let counts = matches!(time.cells, Cells::Numbers(_));
        let times = match &time.cells {
            Cells::Numbers(numbers) => counted(&time.name, numbers)?,
            _ => times_of(time, frame.rows)?,
        };
        let mut repairs = Repairs::default();
        let groups = roles.rows_of_series(frame, &times, &mut repairs)?;
        let sorted: Vec<Vec<i64>> =
            groups.iter().map(|(_, rows)| rows.iter().map(|&row| times[row]).collect()).collect();
        for ((name, rows), times) in groups.iter().zip(&sorted) {
            if let Some(twice) = times.windows(2).position(|pair| pair[0] == pair[1]) {
                return Err(roles.twice(
                    name,
                    counts,
                    times[twice],
                    [rows[twice], rows[twice + 1]],
                ));
            }
        }
        let found = Period::of(sorted.iter().map(Vec::as_slice), counts);
        let Some(period) = period.or(found) else {
            return Err(TableError::Split(format!(
                "no series has two values, so there is nothing to forecast; if the rows are those \
                 of one series, leave out `data.series`{}",
                roles.series.as_ref().map_or_else(String::new, |name| format!(" (`{name}`)"))
            )));
        };
        let origin = sorted.iter().filter_map(|times| times.first()).min().copied();
        let origin = origin.unwrap_or_default();
        let columns = Read::of(frame, roles)?;
        let mut panel = Self { period, origin, series: Vec::new() };
        for ((name, rows), times) in groups.iter().zip(&sorted) {
            for (target, values) in roles.targets.iter().zip(&columns.targets) {
                let name = match (&roles.series, roles.targets.len()) {
                    (None, 1) => String::new(),
                    (None, _) => target.clone(),
                    (Some(_), 1) => name.clone(),
                    (Some(_), _) => format!("{name} {target}"),
                };
                let series = columns.series(&panel, name, rows, times, values, &mut repairs);
                panel.series.extend(series);
            }
        }
        let all = frame.rows.max(1);
        if repairs.off_grid * 20 > all {
            return Err(TableError::Split(format!(
                "{} of {all} rows are not on a grid of {period}; say by `data.period` how far \
                 apart values are, or `period = \"rows\"` to count rows whatever the time between \
                 them",
                repairs.off_grid
            )));
        }
        for series in &mut panel.series {
            fill_gaps(&mut series.values, fill, &mut repairs);
        }
        if panel.series.is_empty() {
            return Err(TableError::Split(format!(
                "no row has a value of {}; nothing can be learned",
                roles.targets.join(", ")
            )));
        }
        Ok((panel, repairs))
    }
}

impl Roles {
    /// Refuses names that the table does not have, or that have two roles.
    fn check(&self, frame: &Frame) -> Result<(), TableError> {
        let single = self.time.iter().chain(&self.series);
        let all = single.chain(&self.targets).chain(&self.known).chain(&self.past);
        let mut seen: Vec<&str> = Vec::new();
        for name in all {
            if frame.column(name).is_none() {
                return Err(TableError::no_column(name, &frame.names()));
            }
            if seen.contains(&name.as_str()) {
                return Err(TableError::Setting(format!(
                    "column `{name}` has two roles; name it once among `data.time`, `data.target`, \
                     `data.series`, `data.known` and `data.past`"
                )));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// The column of times: the one that is named, or the only one that has any.
    pub fn time_column<'a>(&self, frame: &'a Frame) -> Result<&'a Column, TableError> {
        if let Some(name) = &self.time {
            return frame.column(name).ok_or_else(|| TableError::no_column(name, &frame.names()));
        }
        let with_times = |column: &&Column| {
            matches!(column.cells, Cells::Times(_)) && !self.is_taken(&column.name)
        };
        let mut found = frame.columns.iter().filter(with_times);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (Some(first), Some(second)) => Err(TableError::Setting(format!(
                "both `{}` and `{}` are times; say by `data.time` which one orders the rows",
                first.name, second.name
            ))),
            (None, _) => Err(TableError::Setting(format!(
                "no column has times such as 2024-01-31 or 2024-01-31 12:00; say by `data.time` \
                 which one orders the rows, which may also be one of numbers that count: there are \
                 {}",
                some(&frame.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>())
            ))),
        }
    }

    fn is_taken(&self, name: &str) -> bool {
        let lists = [&self.targets, &self.known, &self.past];
        lists.into_iter().flatten().chain(&self.series).any(|own| own == name)
    }

    /// The rows of each series in the order of time, with its name.
    fn rows_of_series(
        &self,
        frame: &Frame,
        times: &[i64],
        repairs: &mut Repairs,
    ) -> Result<Vec<(String, Vec<usize>)>, TableError> {
        let dated = |row: &usize| times[*row] != NEVER;
        let mut groups: Vec<(String, Vec<usize>)> = match &self.series {
            None => vec![(String::new(), (0..frame.rows).filter(dated).collect())],
            Some(name) => {
                let column = frame
                    .column(name)
                    .ok_or_else(|| TableError::no_column(name, &frame.names()))?;
                let texts = column.cells.to_texts(frame.rows);
                let names = texts.names.iter().map(|name| (name.clone(), Vec::new()));
                let mut groups: Vec<(String, Vec<usize>)> = names.collect();
                for row in (0..frame.rows).filter(dated) {
                    if let Some((_, rows)) = groups.get_mut(texts.codes[row] as usize) {
                        rows.push(row);
                    }
                }
                groups
            }
        };
        let kept: usize = groups.iter().map(|(_, rows)| rows.len()).sum();
        repairs.nameless = frame.rows - kept;
        if kept == 0 {
            return Err(TableError::Split("no row has a time; nothing can be ordered".to_owned()));
        }
        groups.iter_mut().for_each(|(_, rows)| rows.sort_by_key(|&row| times[row]));
        Ok(groups)
    }

    fn twice(&self, name: &str, counts: bool, time: i64, rows: [usize; 2]) -> TableError {
        let time = if counts { time.to_string() } else { format_time(time) };
        let of = if name.is_empty() { String::new() } else { format!(" of `{name}`") };
        let cure = match self.series {
            None => {
                "if they are different series, name the column that tells them apart in \
                     `data.series`"
            }
            Some(_) => "keep one of them",
        };
        TableError::Split(format!(
            "rows {} and {}{of} have the same time, {time}; {cure}",
            rows[0] + 1,
            rows[1] + 1
        ))
    }
}

/// Times of a column that counts.
fn counted(name: &str, numbers: &[f64]) -> Result<Vec<i64>, TableError> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
    let odd = |number: &&f64| !number.is_nan() && !whole(number);
    if let Some(odd) = numbers.iter().find(odd) {
        return Err(TableError::column(
            name,
            format!("{odd} is neither a time nor a whole number; rows cannot be ordered by it"),
        ));
    }
    let step = |number: &f64| if number.is_nan() { NEVER } else { *number as i64 };
    Ok(numbers.iter().map(step).collect())
}

/// The columns that have a role.
struct Read {
    targets: Vec<Vec<f64>>,
    past: Vec<Covariate>,
    known: Vec<Covariate>,
}

impl Read {
    fn of(frame: &Frame, roles: &Roles) -> Result<Self, TableError> {
        let column = |name: &String| {
            frame.column(name).ok_or_else(|| TableError::no_column(name, &frame.names()))
        };
        let numbers = |name: &String| numbers_of(column(name)?, frame.rows);
        let covariate = |name: &String| {
            let column = column(name)?;
            let plain =
                |name: &String| number(name.as_bytes(), true).is_some() || flag(name).is_some();
            let is_text = |texts: &Texts| !texts.names.iter().all(plain);
            match &column.cells {
                Cells::Texts(texts) if is_text(texts) => Ok(Covariate::Texts(
                    (0..frame.rows).map(|row| texts.get(row).map(str::to_owned)).collect(),
                )),
                Cells::Times(_) => Err(TableError::column(
                    name,
                    "it has times; what goes with a series must be numbers, booleans or texts",
                )),
                _ => Ok(Covariate::Numbers(numbers_of(column, frame.rows)?)),
            }
        };
        Ok(Self {
            targets: roles.targets.iter().map(numbers).collect::<Result<_, _>>()?,
            past: roles.past.iter().map(covariate).collect::<Result<_, _>>()?,
            known: roles.known.iter().map(covariate).collect::<Result<_, _>>()?,
        })
    }

    /// A series from some rows, from its first value to its last; nothing where it has none.
    fn series(
        &self,
        panel: &Panel,
        name: String,
        rows: &[usize],
        times: &[i64],
        values: &[f64],
        repairs: &mut Repairs,
    ) -> Option<Series> {
        // The place of each row on the grid.
        let placed: Vec<(i64, usize)> = match panel.period {
            Period::Rows => (0..).zip(rows.iter().copied()).collect(),
            period => {
                let places = times.iter().map(|&time| period.step(panel.origin, time));
                let placed = places.zip(rows).filter_map(|(step, &row)| Some((step?, row)));
                placed.collect()
            }
        };
        repairs.off_grid += rows.len() - placed.len();
        let valued = |(_, row): &&(i64, usize)| !values[*row].is_nan();
        let first = placed.iter().find(valued)?.0;
        let last = placed.iter().rfind(valued)?.0;
        let from = placed.partition_point(|(step, _)| *step < first);
        let placed = &placed[from..];
        let end = placed.last()?.0;
        let cells = |last: i64| (last - first + 1) as usize;
        let mut own = vec![f64::NAN; cells(last)];
        for &(step, row) in placed.iter().filter(|(step, _)| *step <= last) {
            own[(step - first) as usize] = values[row];
        }
        let spread = |covariate: &Covariate, last: i64| match covariate {
            Covariate::Numbers(numbers) => {
                let mut own = vec![f64::NAN; cells(last)];
                for &(step, row) in placed.iter().filter(|(step, _)| *step <= last) {
                    own[(step - first) as usize] = numbers[row];
                }
                Covariate::Numbers(own)
            }
            Covariate::Texts(texts) => {
                let mut own = vec![None; cells(last)];
                for &(step, row) in placed.iter().filter(|(step, _)| *step <= last) {
                    own[(step - first) as usize].clone_from(&texts[row]);
                }
                Covariate::Texts(own)
            }
        };
        let past = self.past.iter().map(|covariate| spread(covariate, last)).collect();
        let known = self.known.iter().map(|covariate| spread(covariate, end)).collect();
        let times = match panel.period {
            Period::Rows => times[from..].to_vec(),
            _ => Vec::new(),
        };
        Some(Series { name, first, values: own, past, known, times })
    }
}

/// Interpolates gaps of up to `fill` values.
fn fill_gaps(values: &mut [f64], fill: usize, repairs: &mut Repairs) {
    let mut at = 0;
    while at < values.len() {
        if !values[at].is_nan() {
            at += 1;
            continue;
        }
        let end = (at..values.len()).find(|&i| !values[i].is_nan()).unwrap_or(values.len());
        let gap = end - at;
        if gap <= fill && at > 0 && end < values.len() {
            let (left, right) = (values[at - 1], values[end]);
            for (k, value) in values[at..end].iter_mut().enumerate() {
                *value = left + (right - left) * (k + 1) as f64 / (gap + 1) as f64;
            }
            repairs.filled += gap;
        } else {
            repairs.missing += gap;
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Reading, parse_text};

    fn frame(text: &str) -> Frame {
        parse_text(std::path::Path::new("x.csv"), text.as_bytes(), &Reading::default()).unwrap()
    }

    fn roles(target: &[&str]) -> Roles {
        let targets = target.iter().map(|&name| name.to_owned()).collect();
        Roles { targets, ..Roles::default() }
    }

    #[test]
    fn rows_of_several_series_in_any_order_come_on_one_grid() {
        let text = "day,shop,sold,promo,why\n\
                    2024-01-03,a,3,0,x\n2024-01-01,a,1,1,\n2024-01-02,b,20,0,y\n\
                    2024-01-06,a,6,0,x\n2024-01-02,a,2,0,x\n2024-01-03,b,,1,y\n\
                    2024-01-04,b,40,1,y\n2024-01-05,b,,1,y\n";
        let series = Some("shop".to_owned());
        let (known, past) = (vec!["promo".to_owned()], vec!["why".to_owned()]);
        let roles = Roles { series, known, past, ..roles(&["sold"]) };
        let (panel, repairs) = Panel::gather(&frame(text), &roles, None, 1).unwrap();
        assert_eq!(panel.period, Period::Seconds(86_400));
        let [a, b] = &panel.series[..] else { panic!("{panel:?}") };
        assert_eq!((a.name.as_str(), a.first, b.name.as_str(), b.first), ("a", 0, "b", 1));
        // Two missing days of `a` are too many to fill, one of `b` is not.
        assert_eq!(a.values[..3], [1.0, 2.0, 3.0]);
        assert!(a.values[3].is_nan() && a.values[4].is_nan() && a.values[5] == 6.0);
        assert_eq!(b.values, [20.0, 30.0, 40.0]);
        assert_eq!((repairs.filled, repairs.missing), (1, 2));
        // What is known goes on where the values end.
        assert_eq!(b.known, [Covariate::Numbers(vec![0.0, 1.0, 1.0, 1.0])]);
        assert_eq!((a.past[0].len(), b.past[0].len()), (6, 3));
        assert_eq!(panel.time(1, 0), Some(1_704_153_600));
        assert_eq!(panel.span(), 0..6);
    }

    #[test]
    fn columns_beside_each_other_are_series_too() {
        let text = "n,a,b\n2,1,5\n4,2,6\n8,3,\n6,,7\n";
        let roles = Roles { time: Some("n".to_owned()), ..roles(&["a", "b"]) };
        let (panel, _) = Panel::gather(&frame(text), &roles, None, 4).unwrap();
        assert_eq!(panel.period, Period::Counts(2));
        assert_eq!(panel.series[0].values, [1.0, 2.0, 2.5, 3.0]);
        assert_eq!((panel.series[1].name.as_str(), panel.series[1].values.len()), ("b", 3));
    }

    #[test]
    fn what_cannot_be_a_series_is_refused_in_words() {
        let refused = |text: &str, roles: &Roles| {
            Panel::gather(&frame(text), roles, None, 4).unwrap_err().to_string()
        };
        let sold = roles(&["sold"]);
        let twice = "day,sold\n2024-01-01,1\n2024-01-01,2\n";
        assert!(refused(twice, &sold).contains("rows 1 and 2 have the same time"));
        assert!(refused("x,sold\na,1\nb,2\n", &sold).contains("no column has times"));
        assert!(refused("day,sold\n2024-01-01,1\n", &sold).contains("no series has two values"));
        assert!(refused("day,sale\n2024-01-01,1\n", &sold).contains("no column `sold`"));
        let texts = "day,sold\n2024-01-01,a lot\n2024-01-02,little\n";
        assert!(refused(texts, &sold).contains("`a lot`, which is not a number"));
    }
}
