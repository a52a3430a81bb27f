//! The layout of the UCI benchmark: a folder with `data.txt`, which columns are what, and twenty
//! divisions of its rows.
//!
//! | file | what it has |
//! |---|---|
//! | `data.txt` | numbers, separated by blanks, tabs or commas, a row a line, without names |
//! | `index_features.txt`, `index_target.txt` | numbers of columns, from 0 |
//! | `index_train_K.txt`, `index_test_K.txt` | numbers of rows, from 0, of division K |
//!
//! Numbers of columns and rows may be written as `1.0e+00`; blank lines count for nothing.

use std::path::{Path, PathBuf};

use bayesmesh_files::read_text;

use super::error::TableError;
use super::frame::{Cells, Column, Frame};
use super::split::By;

/// No file of the benchmark is as large.
const MOST: u64 = 4 << 30;

/// A folder of the benchmark.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder, or that of the name `data` within it, if it has a `data.txt`.
    pub fn at(path: &Path) -> Option<Self> {
        let places = [path.to_path_buf(), path.join("data")];
        let path = places.into_iter().find(|place| place.join("data.txt").is_file())?;
        Some(Self { path })
    }

    /// The table, with columns `x0`, `x1` … by their numbers and `y` for what is predicted, or
    /// `y0`, `y1` … where that is more than one; and the names of those.
    pub fn read(&self) -> Result<(Frame, Vec<String>), TableError> {
        let file = self.path.join("data.txt");
        let text = read_text(&file, MOST, &mut |_| {}).map_err(TableError::Read)?;
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let mut rows = 0;
        for (index, line) in text.lines().enumerate() {
            let cells = || {
                let separators = |c: char| c.is_whitespace() || c == ',' || c == ';';
                line.split(separators).filter(|cell| !cell.is_empty())
            };
            let refuse = |problem: String| TableError::Line {
                file: file.clone(),
                line: index as u64 + 1,
                problem,
            };
            let count = cells().count();
            if count == 0 {
                continue;
            }
            if rows == 0 {
                columns = vec![Vec::new(); count];
            }
            if count != columns.len() {
                let before = columns.len();
                return Err(refuse(format!("{count} numbers, but the lines before have {before}")));
            }
            for (column, cell) in columns.iter_mut().zip(cells()) {
                let number: f64 = match cell.parse() {
                    Ok(number) => number,
                    Err(_) => return Err(refuse(format!("`{cell}` is not a number"))),
                };
                column.push(if number.is_finite() { number } else { f64::NAN });
            }
            rows += 1;
        }
        let [features, targets] = ["index_features.txt", "index_target.txt"]
            .map(|name| self.indices(name, columns.len(), "columns of data.txt"));
        let (features, targets) = (features?, targets?);
        let name = |(place, _): (usize, &usize)| match targets.len() {
            1 => "y".to_owned(),
            _ => format!("y{place}"),
        };
        let names: Vec<String> = targets.iter().enumerate().map(name).collect();
        let named = features
            .iter()
            .map(|column| (format!("x{column}"), *column))
            .chain(names.iter().cloned().zip(targets.iter().copied()));
        let columns = named
            .map(|(name, column)| Column { name, cells: Cells::Numbers(columns[column].clone()) });
        Ok((Frame { columns: columns.collect(), rows }, names))
    }

    /// How many divisions there are.
    pub fn splits(&self) -> usize {
        (0..).take_while(|k| self.path.join(format!("index_train_{k}.txt")).is_file()).count()
    }

    /// A division of so many rows.
    pub fn split(&self, index: u64, rows: usize) -> Result<By, TableError> {
        let splits = self.splits();
        if index >= splits as u64 {
            return Err(TableError::Setting(format!(
                "data.split_index {index}: {} has {splits} divisions, counted from 0",
                self.path.display()
            )));
        }
        let of = |part: &str| {
            self.indices(&format!("index_{part}_{index}.txt"), rows, "rows of data.txt")
        };
        Ok(By::Given(of("train")?, of("test")?))
    }

    /// The whole numbers of a file, all below a limit.
    fn indices(&self, name: &str, limit: usize, what: &str) -> Result<Vec<usize>, TableError> {
        let file = self.path.join(name);
        let text = read_text(&file, MOST, &mut |_| {}).map_err(TableError::Read)?;
        let mut indices = Vec::new();
        for (line, word) in text
            .lines()
            .enumerate()
            .flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)))
        {
            let number: Option<f64> = word.parse().ok();
            let fits = number.filter(|x| x.fract() == 0.0 && *x >= 0.0 && *x < limit as f64);
            match fits {
                Some(number) => indices.push(number as usize),
                None => {
                    return Err(TableError::Line {
                        file,
                        line: line as u64 + 1,
                        problem: format!("`{word}` is none of the {limit} {what}, from 0"),
                    });
                }
            }
        }
        Ok(indices)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bayesmesh_files::testing::Scratch;

    use super::*;

    #[test]
    fn a_folder_is_read_with_its_blank_lines() {
        let scratch = Scratch::new();
        let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
        write("data.txt", " 1 2.5\t3 \n4,5,6\n\n");
        write("index_features.txt", "0.0e+00\n2\n");
        write("index_target.txt", "1\n");
        write("index_train_0.txt", "1\n\n");
        write("index_test_0.txt", "0.0\n");
        let folder = Folder::at(scratch.path()).unwrap();
        let (frame, targets) = folder.read().unwrap();
        assert_eq!((frame.names(), frame.rows), (vec!["x0", "x2", "y"], 2));
        assert_eq!(frame.columns[2].cells, Cells::Numbers(vec![2.5, 5.0]));
        assert_eq!((targets, folder.splits()), (vec!["y".to_owned()], 1));
        assert_eq!(folder.split(0, 2).unwrap(), By::Given(vec![1], vec![0]));
        let told = folder.split(1, 2).unwrap_err().to_string();
        assert!(told.contains("has 1 divisions"), "{told}");
        write("index_test_0.txt", "2\n");
        let told = folder.split(0, 2).unwrap_err().to_string();
        assert!(told.contains("`2` is none of the 2 rows of data.txt"), "{told}");
        assert!(Folder::at(&scratch.path().join("none")).is_none());
    }
}
