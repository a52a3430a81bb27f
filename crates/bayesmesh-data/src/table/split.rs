//! Rows for training, validation and test.

use std::collections::BTreeMap;

use bayesmesh_kernels::stream::{Purpose, Stream};

use super::error::TableError;
use super::frame::{Frame, NEVER};
use super::infer::times_of;

/// How rows are divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// Shares for training, validation and test.
    pub shares: [f64; 3],
    /// Which of all divisions of the kind: the seed of a random one, the number of the fold.
    pub index: u64,
    /// So many folds, each of which is the test part once.
    pub folds: Option<usize>,
    /// What rows are in is divided by.
    pub by: By,
    /// Whether the test part is left out, and the rest divided once more: for choosing settings
    /// without a look at what they are judged by in the end.
    pub tuning: bool,
}

/// What decides in which part a row is.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// Chance.
    Chance,
    /// A column with points in time, or numbers: the last rows are the test part.
    Time(String),
    /// A column: rows with the same in it stay together.
    Group(String),
    /// Lists of the rows for training, validation included, and for test.
    Given(Vec<usize>, Vec<usize>),
}

/// The rows of each part, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// For training.
    pub train: Vec<usize>,
    /// For validation; there may be none.
    pub valid: Vec<usize>,
    /// For test.
    pub test: Vec<usize>,
}

/// Fewer rows cannot be divided.
const LEAST_ROWS: usize = 10;

impl Division {
    /// Divides those rows of a table that can be used.
    pub fn divide(&self, frame: &Frame, usable: &[usize]) -> Result<Parts, TableError> {
        if usable.len() < LEAST_ROWS {
            return Err(TableError::Split(format!(
                "rows with something to predict: {}; at least {LEAST_ROWS} are needed",
                usable.len()
            )));
        }
        let [train, valid, _] = self.shares;
        let within = valid / (train + valid);
        let parts = match &self.by {
            By::Given(train, test) => {
                let usable = |row: &&usize| usable.binary_search(row).is_ok();
                let units = train.iter().filter(usable).map(|&row| vec![row]).collect();
                let [train, valid] = cut(self.shuffled(units), [1.0 - within, within]);
                let mut test: Vec<usize> = test.iter().filter(usable).copied().collect();
                test.sort_unstable();
                Parts { train, valid, test }
            }
            By::Time(column) => {
                let units = ordered(frame, column, usable)?;
                let [train, valid, test] = cut(units, self.shares);
                Parts { train, valid, test }
            }
            by => {
                let units = match by {
                    By::Group(column) => groups(frame, column, usable)?,
                    _ => usable.iter().map(|&row| vec![row]).collect(),
                };
                match self.folds {
                    Some(folds) => self.fold(units, folds, within)?,
                    None => {
                        let [train, valid, test] = cut(self.shuffled(units), self.shares);
                        Parts { train, valid, test }
                    }
                }
            }
        };
        let parts = parts.checked(usable.len(), valid > 0.0)?;
        if !self.tuning {
            return Ok(parts);
        }
        let mut rest = [parts.train, parts.valid].concat();
        rest.sort_unstable();
        let by = match &self.by {
            By::Given(..) => By::Chance,
            by => by.clone(),
        };
        let within = Self { folds: None, by, tuning: false, ..self.clone() };
        within.divide(frame, &rest)
    }

    /// Units of rows in an order by chance.
    fn shuffled(&self, units: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let stream = Stream::new(self.index, Purpose::Shuffle);
        let mut units: Vec<Option<Vec<usize>>> = units.into_iter().map(Some).collect();
        let order = stream.permutation(units.len());
        order.into_iter().filter_map(|place| units[place].take()).collect()
    }

    /// All folds are of one order, and each fold is validated by another choice.
    fn fold(&self, units: Vec<Vec<usize>>, folds: usize, within: f64) -> Result<Parts, TableError> {
        if self.index >= folds as u64 || folds > units.len() {
            return Err(TableError::Split(format!(
                "data.split_index {} of {folds} folds of {} rows or groups: it is below the number \
                 of folds, of which there are not more than rows or groups",
                self.index,
                units.len()
            )));
        }
        let all = Self { index: 0, ..self.clone() }.shuffled(units);
        let (mut test, mut rest) = (Vec::new(), Vec::new());
        for (place, unit) in all.into_iter().enumerate() {
            match (place % folds) as u64 == self.index {
                true => test.extend(unit),
                false => rest.push(unit),
            }
        }
        test.sort_unstable();
        let [train, valid] = cut(self.shuffled(rest), [1.0 - within, within]);
        Ok(Parts { train, valid, test })
    }
}

/// Cuts units, in their order, into parts with these shares of the rows. A unit is in the part that
/// its middle lies in, but every part with a share has one, as long as there are enough.
fn cut<const N: usize>(units: Vec<Vec<usize>>, shares: [f64; N]) -> [Vec<usize>; N] {
    let rows: usize = units.iter().map(Vec::len).sum();
    let mut parts = [const { Vec::new() }; N];
    let (mut sum, mut ends) = (0.0, Vec::new());
    for share in shares {
        sum += share;
        ends.push((sum * rows as f64).round() as usize);
    }
    let wanted: Vec<usize> = (0..N).filter(|&part| shares[part] > 0.0).collect();
    let (mut done, count) = (0, units.len());
    for (place, unit) in units.into_iter().enumerate() {
        let middle = 2 * done + unit.len();
        let part = ends.iter().position(|end| middle < 2 * end + 1).unwrap_or(N - 1);
        // No part is passed over, and none left without a unit.
        let empty = wanted.iter().copied().find(|&part| parts[part].is_empty());
        let part = part.min(empty.unwrap_or(N - 1));
        let after = |part: usize| wanted.iter().filter(|&&other| other > part).count();
        let part = (part..N).find(|&part| after(part) < count - place).unwrap_or(N - 1);
        done += unit.len();
        parts[part].extend(unit);
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

/// Rows by the time in a column, those of one time together.
fn ordered(frame: &Frame, name: &str, usable: &[usize]) -> Result<Vec<Vec<usize>>, TableError> {
    let column = frame.column(name).ok_or_else(|| TableError::no_column(name, &frame.names()))?;
    let keys: Vec<Option<f64>> = match &column.cells {
        super::Cells::Numbers(numbers) => {
            numbers.iter().map(|x| (!x.is_nan()).then_some(*x)).collect()
        }
        _ => {
            let times = times_of(column, frame.rows)?;
            times.iter().map(|time| (*time != NEVER).then_some(*time as f64)).collect()
        }
    };
    let mut rows = Vec::with_capacity(usable.len());
    for &row in usable {
        let key = keys[row].ok_or_else(|| {
            let problem = format!("row {} has no time to divide the rows by; fill it in", row + 1);
            TableError::column(name, problem)
        })?;
        rows.push((key, row));
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut units: Vec<Vec<usize>> = Vec::new();
    let mut last = None;
    for (key, row) in rows {
        match units.last_mut().filter(|_| last == Some(key)) {
            Some(unit) => unit.push(row),
            None => units.push(vec![row]),
        }
        last = Some(key);
    }
    Ok(units)
}

/// Rows by what a column has; those with nothing are a group too.
fn groups(frame: &Frame, name: &str, usable: &[usize]) -> Result<Vec<Vec<usize>>, TableError> {
    let column = frame.column(name).ok_or_else(|| TableError::no_column(name, &frame.names()))?;
    let texts = column.cells.to_texts(frame.rows);
    let mut groups: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for &row in usable {
        groups.entry(texts.get(row)).or_default().push(row);
    }
    Ok(groups.into_values().collect())
}

impl Parts {
    fn checked(self, rows: usize, validated: bool) -> Result<Self, TableError> {
        let parts = [
            ("training", &self.train, true),
            ("validation", &self.valid, validated),
            ("test", &self.test, true),
        ];
        for (name, part, needed) in parts {
            if part.is_empty() && needed {
                return Err(TableError::Split(format!(
                    "the {name} part of {rows} rows would have none; use other shares in \
                     data.split, or another column to divide by"
                )));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cells, Column, Texts};
    use super::*;

    fn frame(rows: usize) -> Frame {
        let group = |row: usize| (row / 3) as u32;
        let names = (0..rows.div_ceil(3)).map(|group| format!("g{group}")).collect();
        let groups = Texts { codes: (0..rows).map(group).collect(), names };
        let times = (0..rows).map(|row| ((row * 7) % rows) as i64).collect();
        let columns = vec![
            Column { name: "group".into(), cells: Cells::Texts(groups) },
            Column { name: "time".into(), cells: Cells::Times(times) },
        ];
        Frame { columns, rows }
    }

    fn division(by: By) -> Division {
        Division { shares: [0.6, 0.2, 0.2], index: 0, folds: None, by, tuning: false }
    }

    fn all(parts: &Parts) -> Vec<usize> {
        let mut all = [parts.train.clone(), parts.valid.clone(), parts.test.clone()].concat();
        all.sort_unstable();
        all
    }

    #[test]
    fn every_row_is_in_one_part() {
        let (frame, rows) = (frame(50), (0..50).collect::<Vec<_>>());
        for by in [By::Chance, By::Time("time".into()), By::Group("group".into())] {
            let parts = division(by.clone()).divide(&frame, &rows).unwrap();
            assert_eq!(all(&parts), rows, "{by:?}");
            assert!(parts.test.len().abs_diff(10) <= 3, "{by:?}");
        }
        let one = division(By::Chance).divide(&frame, &rows).unwrap();
        let other = Division { index: 1, ..division(By::Chance) }.divide(&frame, &rows).unwrap();
        assert_ne!(one, other);
    }

    #[test]
    fn groups_stay_together_and_time_goes_on() {
        let (frame, rows) = (frame(60), (0..60).collect::<Vec<_>>());
        let parts = division(By::Group("group".into())).divide(&frame, &rows).unwrap();
        let group = |row: &usize| row / 3;
        assert!(!parts.test.iter().any(|row| parts.train.iter().map(group).any(|g| g == row / 3)));
        let parts = division(By::Time("time".into())).divide(&frame, &rows).unwrap();
        let time = |row: &usize| (row * 7) % 60;
        let last = parts.train.iter().map(time).max().unwrap();
        assert!(parts.valid.iter().all(|row| time(row) > last));
        let last = parts.valid.iter().map(time).max().unwrap();
        assert!(parts.test.iter().all(|row| time(row) > last));
    }

    #[test]
    fn every_part_has_one_of_few_groups() {
        for sizes in [&[300, 300, 300, 300, 300][..], &[10, 10, 10], &[500, 1, 1], &[1, 1, 500]] {
            let units: Vec<Vec<usize>> = sizes.iter().map(|size| vec![0; *size]).collect();
            let parts = cut(units, [0.7, 0.15, 0.15]);
            assert!(parts.iter().all(|part| !part.is_empty()), "{sizes:?}");
        }
        let sizes = |shares| cut(vec![vec![0; 4]; 10], shares).map(|part| part.len());
        assert_eq!(sizes([0.6, 0.2, 0.2]), [24, 8, 8]);
        assert_eq!(sizes([0.8, 0.0, 0.2]), [32, 0, 8]);
    }

    #[test]
    fn each_row_is_in_the_test_part_of_one_fold() {
        let (frame, rows) = (frame(53), (0..53).collect::<Vec<_>>());
        let fold = |index| {
            let division = Division { index, folds: Some(5), ..division(By::Chance) };
            division.divide(&frame, &rows)
        };
        let mut tested: Vec<usize> = (0..5).flat_map(|index| fold(index).unwrap().test).collect();
        tested.sort_unstable();
        assert_eq!(tested, rows);
        assert!(fold(5).unwrap_err().to_string().contains("split_index 5 of 5 folds"));
    }

    #[test]
    fn tuning_leaves_the_test_part_alone() {
        let (frame, rows) = (frame(100), (0..100).collect::<Vec<_>>());
        let given = By::Given((0..80).collect(), (80..100).collect());
        let folds = Division { folds: Some(4), index: 2, ..division(By::Chance) };
        let all_ways = [
            division(By::Chance),
            division(By::Time("time".into())),
            division(By::Group("group".into())),
            division(given),
            folds,
        ];
        for division in all_ways {
            let apart = division.divide(&frame, &rows).unwrap().test;
            let tuning = Division { tuning: true, ..division.clone() };
            let parts = tuning.divide(&frame, &rows).unwrap();
            let rest: Vec<usize> = rows.iter().copied().filter(|r| !apart.contains(r)).collect();
            assert_eq!(all(&parts), rest, "{division:?}");
            assert!(!parts.test.is_empty() && !parts.valid.is_empty(), "{division:?}");
        }
    }

    #[test]
    fn too_few_rows_are_told() {
        let frame = frame(50);
        let told = |rows: &[usize], by| division(by).divide(&frame, rows).unwrap_err().to_string();
        assert!(told(&[0], By::Chance).contains("rows with something to predict: 1;"));
        let one_group = By::Given((0..20).collect(), vec![49]);
        assert!(told(&(0..20).collect::<Vec<_>>(), one_group).contains("test part of 20 rows"));
    }
}
