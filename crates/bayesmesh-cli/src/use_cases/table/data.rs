//! A table, its rows divided and encoded.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bayesmesh::Dataset;
use bayesmesh_data::table::{
    self, ColumnKind, Encoder, Examples, Folder, Found, Frame, Labels, Parts, Reading, Scale,
    TableError, Values,
};
use bayesmesh_report::{Block, Cell, Section, Table};

use super::settings::TableConfig;
use crate::exit::Usage;
use crate::recipe::Recipe;
use crate::say::{self, say};

/// A table whose columns are understood and whose rows are divided.
pub struct Prepared {
    pub frame: Frame,
    /// What each column is.
    pub found: Vec<Found>,
    /// What is predicted.
    pub targets: Vec<String>,
    pub parts: Parts,
    /// What was learned from the training part, but for the targets.
    pub encoder: Encoder,
    /// Where the target is a class: the class of each row.
    labels: Option<Vec<usize>>,
    /// Rows without anything to predict.
    dropped: usize,
    /// Whether the rows for test are left out altogether.
    tuning: bool,
}

/// Reads a file; of the processes of a job one says what is waited for.
pub fn read(path: &Path, texts: &[String], missing: &[String]) -> Result<Frame, TableError> {
    table::read(path, &Reading { texts, missing }, &mut |words| say!("{words}"))
}

impl Prepared {
    /// Reads the table of a recipe, whose targets are `classes` or numbers.
    pub fn new(config: &TableConfig, recipe: &Recipe, classes: bool) -> Result<Self> {
        let path = recipe.data_path().unwrap_or_default();
        let mut columns = config.columns();
        let mut division = config.division();
        let frame = match Folder::at(&path) {
            Some(folder) => {
                let (frame, targets) = folder.read()?;
                if columns.targets.is_empty() {
                    columns.targets = targets;
                }
                division.by = folder.split(config.split_index, frame.rows)?;
                division.folds = None;
                // Its columns are chosen already.
                let said =
                    [&columns.targets, &columns.categories, &columns.ignore].map(Clone::clone);
                let rest = frame.names().into_iter().filter(|name| {
                    !said.iter().chain([&columns.numbers]).flatten().any(|own| own == name)
                });
                let rest: Vec<String> = rest.map(str::to_owned).collect();
                columns.numbers.extend(rest);
                frame
            }
            None if path.is_dir() => {
                return Err(Usage(format!(
                    "{}: a folder without `data.txt`; name a CSV or Parquet file, or a folder of \
                     the UCI benchmark",
                    path.display()
                ))
                .into());
            }
            None => read(&path, &config.categories, &config.missing)?,
        };
        let named =
            |error: TableError| anyhow::Error::from(error).context(path.display().to_string());
        if columns.targets.is_empty() {
            let names: Vec<String> = frame.names().iter().map(|name| format!("`{name}`")).collect();
            return Err(Usage(format!(
                "which column is to be predicted? Say so by `--target NAME` or the key \
                 `data.target`; {} has {}",
                path.display(),
                names.join(", ")
            ))
            .into());
        }
        if frame.rows == 0 {
            return Err(named(TableError::Split(
                "only the names of the columns and no rows; export it again".to_owned(),
            )));
        }
        // The recipe of a run has every column; what is in no list was not there.
        if config.inputs.is_some() {
            let said = [
                &columns.targets,
                &columns.numbers,
                &columns.booleans,
                &columns.categories,
                &columns.dates,
                &columns.ignore,
            ];
            let new = frame
                .names()
                .into_iter()
                .filter(|name| !said.iter().any(|list| list.iter().any(|own| own == name)));
            let new: Vec<String> = new.map(str::to_owned).collect();
            columns.ignore.extend(new);
        }
        let found = table::infer(&frame, &columns).map_err(named)?;
        let targets = columns.targets;
        let (classes, labels) = match classes {
            false => (Vec::new(), None),
            true => {
                let [target] = targets.as_slice() else {
                    return Err(Usage(format!(
                        "one class can be predicted, not {}; name one column in `data.target`, or \
                         use a loss for numbers",
                        targets.len()
                    ))
                    .into());
                };
                let (classes, labels) = table::target_classes(&frame, target).map_err(named)?;
                check_classes(target, &classes, frame.rows).map_err(named)?;
                (classes, Some(labels))
            }
        };
        let present = |row: &usize| match &labels {
            Some(labels) => labels[*row].is_some(),
            None => {
                let column = |name: &String| frame.column(name);
                targets.iter().filter_map(column).all(|c| !c.cells.is_missing(*row))
            }
        };
        let usable: Vec<usize> = (0..frame.rows).filter(present).collect();
        if usable.is_empty() {
            let problem = "no row has anything in it; name another column to predict".to_owned();
            return Err(named(TableError::Column { column: targets.join("`, `"), problem }));
        }
        let parts = division.divide(&frame, &usable).map_err(named)?;
        let encoder = Encoder::fit(&frame, &found, &parts.train, &targets, &config.missing);
        let mut encoder = encoder.map_err(named)?;
        encoder.classes = classes;
        let labels =
            labels.map(|labels| labels.into_iter().map(Option::unwrap_or_default).collect());
        let dropped = frame.rows - usable.len();
        let tuning = config.tuning;
        Ok(Self { frame, found, targets, parts, encoder, labels, dropped, tuning })
    }

    /// The keys of `[data]` that were found.
    pub fn keys(&self) -> toml::Table {
        let list = |names: Vec<String>| toml::Value::from(names);
        let of = |wanted: ColumnKind| {
            let these = self.found.iter().filter(|found| found.kind == wanted);
            list(these.map(|found| found.name.clone()).collect())
        };
        let left = |found: &&Found| !found.kind.is_input() && found.kind != ColumnKind::Target;
        let ignored = self.found.iter().filter(left).map(|found| found.name.clone());
        let sizes = self.encoder.sizes();
        let inputs = self.encoder.numbers() + sizes.len();
        let sizes: Vec<toml::Value> = sizes.iter().map(|&size| (size as i64).into()).collect();
        let mut keys = toml::Table::from_iter([
            ("target".to_owned(), list(self.targets.clone())),
            ("numbers".to_owned(), of(ColumnKind::Number)),
            ("booleans".to_owned(), of(ColumnKind::Boolean)),
            ("categories".to_owned(), of(ColumnKind::Category)),
            ("dates".to_owned(), of(ColumnKind::Date)),
            ("ignore".to_owned(), list(ignored.collect())),
            ("inputs".to_owned(), (inputs as i64).into()),
            ("codes".to_owned(), sizes.into()),
        ]);
        if !self.encoder.classes.is_empty() {
            keys.insert("classes".to_owned(), list(self.encoder.classes.clone()));
        }
        keys
    }

    /// Everything encoded, with targets as numbers, scaled if they are to be.
    pub fn values(mut self, scaled: bool, refit: bool) -> Result<Case<Values>> {
        let raw = table::target_values(&self.frame, &self.targets)?;
        let outputs = self.targets.len();
        let usable = |cell: &usize| {
            let row = cell / outputs;
            let Parts { train, valid, test } = &self.parts;
            [train, valid, test].iter().any(|part| part.binary_search(&row).is_ok())
        };
        let no_count = |cell: &usize| raw[*cell] < 0.0 || raw[*cell].fract() != 0.0;
        let wrong = (0..raw.len()).filter(no_count).find(usable);
        if let (false, Some(cell)) = (scaled, wrong) {
            return Err(TableError::Column {
                column: self.targets[cell % outputs].clone(),
                problem: format!(
                    "row {} has {}, which is no count; use a loss for any numbers, such as \
                     `loss.kind = \"gaussian-mixture\"`",
                    cell / outputs + 1,
                    raw[cell]
                ),
            }
            .into());
        }
        let column = |output: usize| {
            let rows = self.parts.train.clone().into_iter();
            let raw = &raw;
            rows.map(move |row| raw[row * outputs + output])
        };
        let unscaled = |scale: Scale| Scale { mean: 0.0, std: 1.0, ..scale };
        let scales: Vec<Scale> = (0..outputs)
            .map(|output| Scale::of(column(output)))
            .map(|scale| if scaled { scale } else { unscaled(scale) })
            .collect();
        for (name, scale) in self.targets.iter().zip(&scales) {
            if scale.low == scale.high {
                let shown = scale.low;
                return Err(Usage(format!(
                    "column `{name}`: every row for training has {shown}; there is nothing to learn"
                ))
                .into());
            }
        }
        let scale = |(cell, y): (usize, &f64)| {
            let Scale { mean, std, .. } = scales[cell % outputs];
            ((y - mean) / std) as f32
        };
        let values = raw.iter().enumerate().map(scale).collect();
        self.encoder.scales = scales.clone();
        self.encoded(Values { values, outputs }, refit)
    }

    /// Everything encoded, with targets as classes.
    pub fn classes(mut self, refit: bool) -> Result<Case<Labels>> {
        let labels = self.labels.take().unwrap_or_default();
        let mut counts = vec![0usize; self.encoder.classes.len()];
        self.parts.train.iter().for_each(|&row| counts[labels[row]] += 1);
        if let Some(class) = counts.iter().position(|count| *count == 0) {
            say::warn(format!(
                "no row for training is of the class `{}`; it will not be predicted",
                self.encoder.classes[class]
            ));
        }
        self.encoded(Labels(labels), refit)
    }

    fn encoded<T>(self, targets: T, refit: bool) -> Result<Case<T>> {
        let Self { frame, found, parts, encoder, dropped, tuning, .. } = self;
        let encoded = encoder.encode(&frame, false)?;
        let (inputs, targets) = (Arc::new(encoded.inputs), Arc::new(targets));
        let part = |rows: Vec<usize>| {
            Examples::new(Arc::clone(&inputs), encoded.width, Arc::clone(&targets), rows)
        };
        let mut all = [parts.train.clone(), parts.valid.clone()].concat();
        all.sort_unstable();
        let refit = refit.then(|| part(all));
        let valid = Some(parts.valid).filter(|rows| !rows.is_empty());
        Ok(Case {
            refit,
            train: part(parts.train),
            valid: valid.map(part),
            test: part(parts.test),
            rows: frame.rows,
            found,
            encoder,
            dropped,
            tuning,
            frame,
        })
    }
}

/// Refuses a target of one class, or of as many as rows.
fn check_classes(target: &str, classes: &[String], rows: usize) -> Result<(), TableError> {
    let problem = match classes.len() {
        0 => "no row has anything in it",
        1 => "every row has the same class; there is nothing to learn",
        many if many > 1000 || many * 2 > rows => {
            "it has too many classes for its rows; for a number use a loss for numbers, such as \
             `loss.kind = \"gaussian-mixture\"`"
        }
        _ => return Ok(()),
    };
    Err(TableError::Column { column: target.to_owned(), problem: problem.to_owned() })
}

/// The data of a run.
pub struct Case<T> {
    /// What is learned from.
    pub train: Examples<T>,
    /// What is scored after every epoch.
    pub valid: Option<Examples<T>>,
    /// Both of them, where a network is trained on both in the end.
    pub refit: Option<Examples<T>>,
    /// What is scored in the end.
    pub test: Examples<T>,
    /// What each column is.
    pub found: Vec<Found>,
    /// How rows are encoded.
    pub encoder: Encoder,
    /// The table.
    pub frame: Frame,
    rows: usize,
    dropped: usize,
    tuning: bool,
}

impl<T> Case<T>
where
    Examples<T>: Dataset,
{
    /// How many rows of what width there are.
    pub fn describe(&self) -> String {
        let (numbers, codes) = (self.encoder.numbers(), self.encoder.sizes().len());
        let apart = match self.tuning {
            true => ", all from those that are not for test (data.tuning)",
            false => "",
        };
        format!(
            "{} training, {} validation, {} test rows of {numbers} numbers and {codes} \
             categories{apart}",
            self.train.len(),
            self.valid.as_ref().map_or(0, Dataset::len),
            self.test.len()
        )
    }

    /// What the columns are, for a terminal.
    pub fn findings(&self) -> String {
        columns(&self.found, self.rows, self.dropped)
    }

    /// The same for a report.
    pub fn section(&self) -> Section {
        let row = |found: &Found| {
            let Found { name, kind, missing, values, note } = found;
            let cells = [name.as_str(), &kind.to_string(), values, note];
            let [name, kind, values, note] = cells.map(Cell::from);
            vec![name, kind, values, Cell::number(*missing as f64, 0), note]
        };
        let header = ["Column", "Taken as", "Values", "Missing", "Note"].map(Into::into);
        Section::new("Columns").with(Block::Table(Table {
            caption: format!("{} rows; {} without a target are left out.", self.rows, self.dropped),
            header: header.into(),
            rows: self.found.iter().map(row).collect(),
            highlight: None,
        }))
    }
}

/// What the columns of a table are, for a terminal.
pub fn columns(found: &[Found], rows: usize, dropped: usize) -> String {
    /// Of wide tables, those of which there is something to say come first.
    const SHOWN: usize = 40;
    let mut order: Vec<&Found> = found.iter().collect();
    if order.len() > SHOWN {
        order.sort_by_key(|found| found.note.is_empty() && found.kind != ColumnKind::Target);
    }
    let row = |found: &&Found| {
        let missing = if found.missing == 0 { String::new() } else { found.missing.to_string() };
        vec![
            found.name.clone(),
            found.kind.to_string(),
            missing,
            match found.note.as_str() {
                "" => found.values.clone(),
                note => format!("{} ({note})", found.values),
            },
        ]
    };
    let shown: Vec<Vec<String>> = order.iter().take(SHOWN).map(row).collect();
    let more = match order.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("\nand {more} columns more, all of them learned from as the others"),
    };
    let dropped = match dropped {
        0 => String::new(),
        dropped => format!("; {dropped} of them have nothing to predict and are left out"),
    };
    let table = say::table(&["column", "taken as", "missing", "values"], &shown);
    format!("{rows} rows{dropped}\n{table}{more}")
}

/// What checkpoints call the encoding.
pub const ENCODER: &str = "table";

/// The encoder that a run has noted.
pub fn noted(note: Option<String>) -> Result<Encoder> {
    let note = note.context("this run has not noted how its rows are encoded; train it again")?;
    Ok(Encoder::from_json(&note)?)
}
