//! `metrics.csv`: the numbers of a run as a table.

use std::fmt::Write;
use std::path::Path;

use super::RunError;
use super::line_file::{LineFile, read_lines};

/// The first column.
const STEP: &str = "step";

/// Writes a table with the columns `step` and those given, one row at a time.
///
/// Numbers are written so that they read back exactly; a missing one is an empty cell.
#[derive(Debug)]
pub struct MetricsCsv {
    lines: LineFile,
    columns: usize,
}

impl MetricsCsv {
    /// Begins a table whose columns after `step` are given. Refuses a file that exists.
    pub fn create(path: impl AsRef<Path>, columns: &[impl AsRef<str>]) -> Result<Self, RunError> {
        let path = path.as_ref();
        let header = header(path, columns)?;
        let mut lines = LineFile::create(path)?;
        lines.append(&header)?;
        Ok(Self { lines, columns: columns.len() })
    }

    /// Continues a table at a step: later rows and a row cut off by a kill are removed. It must
    /// have the same columns; a file that is missing is begun.
    pub fn resume(
        path: impl AsRef<Path>,
        columns: &[impl AsRef<str>],
        step: u64,
    ) -> Result<Self, RunError> {
        let path = path.as_ref();
        let header = header(path, columns)?;
        let mut lines = LineFile::resume(path, |number, line| {
            if number > 1 {
                return Ok(row(path, number, line, columns.len())?.0 <= step);
            }
            if line != header {
                return Err(RunError::Columns {
                    path: path.into(),
                    found: line.into(),
                    expected: header.clone(),
                });
            }
            Ok(true)
        })?;
        if lines.is_empty() {
            lines.append(&header)?;
        }
        Ok(Self { lines, columns: columns.len() })
    }

    /// Appends a row: a cell for each column after `step`.
    pub fn append(&mut self, step: u64, cells: &[Option<f64>]) -> Result<(), RunError> {
        if cells.len() != self.columns {
            return Err(RunError::Cells {
                path: self.lines.path().into(),
                found: cells.len(),
                expected: self.columns,
            });
        }
        let mut line = step.to_string();
        for cell in cells {
            line.push(',');
            if let Some(value) = cell {
                write!(line, "{value:?}").expect("text takes everything");
            }
        }
        self.lines.append(&line)
    }
}

/// A table read back.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsTable {
    /// The names of the columns after `step`.
    pub columns: Vec<String>,
    /// Step and cells of each row.
    pub rows: Vec<(u64, Vec<Option<f64>>)>,
}

impl MetricsTable {
    /// Reads a table, also one that is being written.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        let text = read_lines(path)?.complete;
        let mut lines = text.lines();
        let mut names = lines.next().unwrap_or_default().split(',');
        if names.next() != Some(STEP) {
            return Err(RunError::Malformed {
                path: path.into(),
                line: 1,
                problem: format!("the first column is not '{STEP}'"),
            });
        }
        let columns: Vec<String> = names.map(String::from).collect();
        let rows: Result<_, _> = lines
            .enumerate()
            .map(|(index, line)| row(path, index + 2, line, columns.len()))
            .collect();
        Ok(Self { rows: rows?, columns })
    }

    /// The steps and values of a column where it has some; `None` if there is no such column.
    pub fn column(&self, name: &str) -> Option<Vec<(u64, f64)>> {
        let index = self.columns.iter().position(|column| column == name)?;
        let points = self.rows.iter();
        Some(points.filter_map(|(step, cells)| Some((*step, cells[index]?))).collect())
    }
}

fn header(path: &Path, columns: &[impl AsRef<str>]) -> Result<String, RunError> {
    let mut header = STEP.to_owned();
    for (index, column) in columns.iter().map(AsRef::as_ref).enumerate() {
        let known = columns[..index].iter().any(|other| other.as_ref() == column);
        if column.is_empty() || column == STEP || known || column.contains([',', '"', '\n', '\r']) {
            return Err(RunError::ColumnName { path: path.into(), name: column.into() });
        }
        header.push(',');
        header.push_str(column);
    }
    Ok(header)
}

fn row(
    path: &Path,
    number: usize,
    line: &str,
    columns: usize,
) -> Result<(u64, Vec<Option<f64>>), RunError> {
    let malformed =
        |problem: String| RunError::Malformed { path: path.into(), line: number, problem };
    let mut cells = line.split(',');
    let step = cells.next().unwrap_or_default();
    let step =
        step.parse().map_err(|_| malformed(format!("the step '{step}' is not a whole number")))?;
    let cells: Vec<Option<f64>> = cells
        .map(|cell| match cell {
            "" => Ok(None),
            _ => cell.parse().map(Some).map_err(|_| malformed(format!("'{cell}' is not a number"))),
        })
        .collect::<Result<_, _>>()?;
    if cells.len() != columns {
        return Err(malformed(format!("{} cells for {columns} columns", cells.len())));
    }
    Ok((step, cells))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use bayesmesh_files::testing::Scratch;

    const COLUMNS: [&str; 2] = ["loss", "valid_rmse"];

    #[test]
    fn rows_read_back_exactly() {
        let scratch = Scratch::new();
        let path = scratch.path().join("metrics.csv");
        let rows = vec![
            (0, vec![Some(0.1 + 0.2), None]),
            (1, vec![Some(f64::MIN_POSITIVE), Some(-1.0)]),
            (u64::MAX, vec![Some(f64::INFINITY), Some(1e300)]),
        ];
        let mut csv = MetricsCsv::create(&path, &COLUMNS).unwrap();
        for (step, cells) in &rows {
            csv.append(*step, cells).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("step,loss,valid_rmse\n0,0.30000000000000004,\n1,"), "{text}");
        let table = MetricsTable::read(&path).unwrap();
        assert_eq!(table.columns, COLUMNS);
        assert_eq!(table.rows, rows);
        let points = table.column("valid_rmse").unwrap();
        assert_eq!(points, [(1, -1.0), (u64::MAX, 1e300)]);
        assert_eq!(table.column("other"), None);
        csv.append(2, &[Some(f64::NAN), None]).unwrap();
        let table = MetricsTable::read(&path).unwrap();
        assert!(table.rows[3].1[0].unwrap().is_nan());
    }

    #[test]
    fn a_resumed_table_forgets_later_and_torn_rows() {
        let scratch = Scratch::new();
        let path = scratch.path().join("metrics.csv");
        let whole = "step,loss,valid_rmse\n10,1.5,\n20,0.5,2.0\n30,0.25,\n";
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut csv = MetricsCsv::resume(&path, &COLUMNS, 20).unwrap();
            csv.append(25, &[None, Some(1.0)]).unwrap();
            let mut expected = String::from("step,loss,valid_rmse\n");
            for (line, end) in [("10,1.5,\n", 29), ("20,0.5,2.0\n", 40)] {
                if cut >= end {
                    expected.push_str(line);
                }
            }
            expected.push_str("25,,1.0\n");
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{cut}");
        }
        assert_eq!(scratch.names(), ["metrics.csv"]);
        fs::remove_file(&path).unwrap();
        MetricsCsv::resume(&path, &COLUMNS, 20).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "step,loss,valid_rmse\n");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path().join("metrics.csv");
        let mut csv = MetricsCsv::create(&path, &COLUMNS).unwrap();
        let error = csv.append(1, &[None]).unwrap_err();
        assert!(matches!(error, RunError::Cells { found: 1, .. }));
        assert!(MetricsCsv::create(&path, &COLUMNS).is_err());
        let error = MetricsCsv::resume(&path, &["loss"], 1).unwrap_err();
        assert!(error.to_string().contains("'step,loss,valid_rmse'"), "{error}");
        for name in ["", "step", "a,b", "a\"b", "a\nb"] {
            let error = MetricsCsv::resume(&path, &["a", name], 1).unwrap_err();
            assert!(matches!(error, RunError::ColumnName { .. }), "{name}");
        }
        assert!(MetricsCsv::resume(&path, &["a", "a"], 1).is_err());

        for (row, problem) in [
            ("1,2", "1 cells for 2 columns"),
            ("x,1,2", "'x' is not a whole number"),
            ("1,y,2", "'y' is not a number"),
        ] {
            let text = format!("step,loss,valid_rmse\n0,1,2\n{row}\n");
            fs::write(&path, &text).unwrap();
            for error in [
                MetricsCsv::resume(&path, &COLUMNS, 0).unwrap_err(),
                MetricsTable::read(&path).unwrap_err(),
            ] {
                let message = error.to_string();
                assert!(message.contains("metrics.csv:3: "), "{message}");
                assert!(message.contains(problem), "{message}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, b"step,loss,valid_rmse\n\xff\n").unwrap();
        let error = MetricsTable::read(&path).unwrap_err();
        assert!(error.to_string().contains("metrics.csv:2: not UTF-8"));
        fs::write(&path, b"loss\n").unwrap();
        assert!(MetricsTable::read(&path).is_err());
    }
}
