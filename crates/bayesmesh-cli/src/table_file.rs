//! Predictions as files: text, numbers for NumPy, or columns with types for data frames.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bayesmesh_data::load::format_time;
use bayesmesh_files::{AtomicFile, FileError};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::exit::Usage;

/// What kind of file predictions are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFile {
    /// Text with a header.
    Csv,
    /// NumPy's format.
    Npy,
    /// Parquet.
    Parquet,
}

impl TableFile {
    /// As the name of the file says.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("npy") => Ok(Self::Npy),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Usage(format!(
                "{}: write to a file that ends in .csv, .npy or .parquet",
                path.display()
            ))
            .into()),
        }
    }
}

/// Refuses to write over the file that is read.
pub fn refuse_same_file(input: &Path, out: &Path) -> Result<()> {
    // A file that is not there yet is no other file.
    let real = |path: &Path| path.canonicalize().ok();
    if let (Some(from), Some(to)) = (real(input), real(out))
        && from == to
    {
        return Err(Usage(format!(
            "{}: this is what is read, and would be replaced; write to another file",
            out.display()
        ))
        .into());
    }
    Ok(())
}

/// Writes a file, complete or not at all.
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    Ok(AtomicFile::write(path, contents).map_err(|error| FileError::new(path, "write", &error))?)
}

/// Refuses predictions that are not numbers: a file of them would look like a result.
pub fn refuse_not_finite(values: &[f32]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => bail!(
            "the network predicts {}, which is not finite (value {index} of {}), and nothing is \
             written; look for values in the data that are far from those of the training",
            values[index],
            values.len()
        ),
    }
}

/// NumPy's format, version 1: little-endian single precision.
pub fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = shape.join(", ");
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length are 10 bytes; all of it is padded to a multiple of 64.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header += &" ".repeat(padding);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// The values of a column; every row has one.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Points in time, in seconds since 1970 UTC.
    Time(Vec<i64>),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Numbers in single precision.
    Number(Vec<f32>),
    /// Texts.
    Text(Vec<String>),
}

/// A table of predictions: columns that say what a row is about, then numbers, then what else is
/// said in words.
pub struct Table {
    leading: Vec<(String, Column)>,
    trailing: Vec<(String, Column)>,
    names: Vec<String>,
    /// `[rows, names]`
    values: Vec<f32>,
    /// What the numbers are in NumPy's format, which has nothing else.
    shape: Vec<usize>,
}

impl Table {
    /// With these leading columns and numbers.
    pub fn new(
        leading: Vec<(&str, Column)>,
        names: Vec<String>,
        values: Vec<f32>,
        shape: Vec<usize>,
    ) -> Self {
        let leading = leading.into_iter().map(|(name, column)| (name.to_owned(), column));
        Self { leading: leading.collect(), trailing: Vec::new(), names, values, shape }
    }

    /// With another column at the end.
    pub fn ending_with(mut self, name: String, column: Column) -> Self {
        self.trailing.push((name, column));
        self
    }

    /// The names of the numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// As a file; text has so many digits after the point.
    pub fn bytes(&self, format: TableFile, decimals: usize) -> Result<Vec<u8>> {
        match format {
            TableFile::Npy => Ok(npy(&self.shape, &self.values)),
            TableFile::Csv => Ok(self.csv(decimals)),
            TableFile::Parquet => {
                let mut columns = self.leading.clone();
                columns.extend(number_columns(&self.names, &self.values));
                columns.extend(self.trailing.clone());
                parquet(&columns)
            }
        }
    }

    fn csv(&self, decimals: usize) -> Vec<u8> {
        let names = |columns: &[(String, Column)]| -> Vec<String> {
            columns.iter().map(|(name, _)| name.clone()).collect()
        };
        let header = [names(&self.leading), self.names.clone(), names(&self.trailing)].concat();
        let header: Vec<String> = header.iter().map(|name| quoted(name)).collect();
        let mut text = header.join(",") + "\n";
        for (row, values) in self.values.chunks_exact(self.names.len()).enumerate() {
            let words = |columns: &[(String, Column)]| -> Vec<String> {
                columns.iter().map(|(_, column)| column.text(row)).collect()
            };
            let numbers = values.iter().map(|value| format!("{value:.decimals$}")).collect();
            text += &[words(&self.leading), numbers, words(&self.trailing)].concat().join(",");
            text.push('\n');
        }
        text.into_bytes()
    }
}

/// A text as a cell of CSV: in quotes where it needs them.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// The columns of a row-major table `[rows, names]` of numbers.
fn number_columns(names: &[String], values: &[f32]) -> Vec<(String, Column)> {
    let column = |k| values.iter().skip(k).step_by(names.len()).copied().collect();
    names.iter().enumerate().map(|(k, name)| (name.clone(), Column::Number(column(k)))).collect()
}

/// Columns of the same length as a Parquet file, compressed by Snappy, which every reader knows.
/// Times are timestamps in UTC to the millisecond, the coarsest unit that the format has.
fn parquet(columns: &[(String, Column)]) -> Result<Vec<u8>> {
    let mut fields = Vec::new();
    for (index, (name, column)) in columns.iter().enumerate() {
        // Readers find columns by name.
        if columns[..index].iter().any(|(other, _)| other == name) {
            let message = format!("two columns would be called {name}, which .parquet cannot hold");
            return Err(Usage(message).into());
        }
        fields.push(Arc::new(column.field(name)?));
    }
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut rows = file.next_row_group()?;
    for (name, column) in columns {
        let mut writer = rows.next_column()?.context("the schema has a field for every column")?;
        column.write(&mut writer).with_context(|| format!("column {name}"))?;
        writer.close()?;
    }
    rows.close()?;
    Ok(file.into_inner()?)
}

impl Column {
    /// The value of a row as a cell of CSV.
    fn text(&self, row: usize) -> String {
        match self {
            Self::Time(seconds) => format_time(seconds[row]),
            Self::Integer(values) => values[row].to_string(),
            Self::Number(values) => values[row].to_string(),
            Self::Text(texts) => quoted(&texts[row]),
        }
    }

    /// How the schema describes it.
    fn field(&self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Self::Time(_) => {
                (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS)))
            }
            Self::Integer(_) => (Physical::INT64, None),
            Self::Number(_) => (Physical::FLOAT, None),
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Ok(field.with_repetition(Repetition::REQUIRED).build()?)
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Time(seconds) => {
                let millis = seconds.iter().map(|second| second.checked_mul(1000));
                let millis: Option<Vec<i64>> = millis.collect();
                let millis = millis.context("a time is beyond what milliseconds can count")?;
                writer.typed::<Int64Type>().write_batch(&millis, None, None)?;
            }
            Self::Integer(values) => {
                writer.typed::<Int64Type>().write_batch(values, None, None)?;
            }
            Self::Number(values) => {
                writer.typed::<FloatType>().write_batch(values, None, None)?;
            }
            Self::Text(texts) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
                writer.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn named(name: &str, column: Column) -> (String, Column) {
        (name.to_owned(), column)
    }

    /// What the file has, row by row.
    fn read(bytes: Vec<u8>) -> Vec<Vec<(String, Field)>> {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect()
    }

    #[test]
    fn columns_are_read_back_with_their_types() {
        let texts = ["cat", "", "Zürich"].map(str::to_owned);
        let numbers = [1.5, f32::MIN_POSITIVE, -1e30];
        let times = [0, 1_420_329_600, -86_400];
        let columns = [
            named("time", Column::Time(times.to_vec())),
            named("example", Column::Integer(vec![i64::MIN, 0, 1 << 60])),
            named("q97.5", Column::Number(numbers.to_vec())),
            named("class", Column::Text(texts.to_vec())),
        ];
        let bytes = parquet(&columns).unwrap();
        // The same table is the same file.
        assert_eq!(bytes, parquet(&columns).unwrap());
        let rows = read(bytes);
        assert_eq!(rows.len(), 3);
        for (row, integer) in [i64::MIN, 0, 1 << 60].into_iter().enumerate() {
            let expected = [
                ("time".to_owned(), Field::TimestampMillis(1000 * times[row])),
                ("example".to_owned(), Field::Long(integer)),
                ("q97.5".to_owned(), Field::Float(numbers[row])),
                ("class".to_owned(), Field::Str(texts[row].clone())),
            ];
            assert_eq!(rows[row], expected);
        }
    }

    /// More than a page, so that dictionaries overflow.
    #[test]
    fn many_rows_are_read_back() {
        let numbers: Vec<f32> = (0..300_000).map(|i: u32| (i as f32).sqrt()).collect();
        let names = ["a", "b"].map(str::to_owned);
        let rows = read(parquet(&number_columns(&names, &numbers)).unwrap());
        assert_eq!(rows.len(), numbers.len() / 2);
        for (row, numbers) in rows.iter().zip(numbers.chunks_exact(2)) {
            let expected = [numbers[0], numbers[1]].map(Field::Float);
            assert_eq!([&row[0].1, &row[1].1], [&expected[0], &expected[1]]);
        }
    }

    #[test]
    fn times_are_in_utc() {
        let bytes = parquet(&[named("time", Column::Time(vec![0]))]).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let column = reader.metadata().file_metadata().schema_descr().column(0);
        let expected = LogicalType::timestamp(true, TimeUnit::MILLIS);
        assert_eq!(column.logical_type_ref(), Some(&expected));
    }

    #[test]
    fn tables_that_no_reader_could_use_are_refused() {
        let number = |values: &[f32]| Column::Number(values.to_vec());
        let twice = [named("q50", number(&[1.0])), named("q50", number(&[1.0]))];
        let error = parquet(&twice).unwrap_err();
        assert!(error.is::<Usage>() && error.to_string().contains("q50"), "{error}");
        assert!(parquet(&[named("a", number(&[1.0])), named("b", number(&[]))]).is_err());
        let error = parquet(&[named("time", Column::Time(vec![i64::MAX]))]).unwrap_err();
        assert!(format!("{error:#}").contains("column time: a time is beyond"), "{error:#}");
    }
}
