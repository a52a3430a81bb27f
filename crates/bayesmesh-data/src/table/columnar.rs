//! Reading Parquet, column by column.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use rayon::prelude::*;

use super::error::TableError;
use super::frame::{Cells, Column, Frame, MISSING, NEVER, Texts};
use super::read::Reading;
use super::text::is_missing;
use super::time::parse_time;

/// Reads a table from the bytes of a file. Columns are read in parallel, which readers of the file
/// itself could not be: they share the place in it.
pub(super) fn parse(
    path: &Path,
    bytes: Vec<u8>,
    reading: &Reading<'_>,
) -> Result<Frame, TableError> {
    let damaged = |error: &ParquetError| TableError::File {
        file: path.into(),
        problem: format!("cannot be read as Parquet ({error}); write it again"),
    };
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(|error| damaged(&error))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let rows = reader.metadata().row_groups().iter().map(|group| group.num_rows()).sum::<i64>();
    let rows = usize::try_from(rows).unwrap_or_default();
    let columns: Vec<Result<Column, TableError>> = (0..schema.num_columns())
        .into_par_iter()
        .map(|index| {
            let description = schema.column(index);
            let name = description.path().parts().join(".");
            if description.path().parts().len() > 1 || description.max_rep_level() > 0 {
                return Err(TableError::column(
                    &name,
                    "it holds lists or tables, which cannot be learned from; leave it out of the \
                     file, or divide it into columns",
                ));
            }
            let mut builder = Builder::new(&description, &name, rows)?;
            for group in 0..reader.num_row_groups() {
                let group = reader.get_row_group(group).map_err(|error| damaged(&error))?;
                let count = group.metadata().num_rows() as usize;
                let column = group.get_column_reader(index).map_err(|error| damaged(&error))?;
                builder.read(column, count, &description).map_err(|error| damaged(&error))?;
            }
            let cells = builder.cells(reading);
            let cells = match (reading.texts.contains(&name), cells) {
                (true, cells) => Cells::Texts(cells.to_texts(rows)),
                (false, Cells::Texts(texts)) => dates(&texts).unwrap_or(Cells::Texts(texts)),
                (false, cells) => cells,
            };
            Ok(Column { name, cells })
        })
        .collect();
    let columns = columns.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Frame { columns, rows })
}

/// What the numbers of a column mean.
#[derive(Clone, Copy)]
enum Meaning {
    /// Themselves, divided by this.
    Number(f64),
    /// Whole numbers without a sign.
    Unsigned,
    /// So many of these are a second.
    Time(i64),
    /// Days.
    Days,
}

/// A column while it is read.
struct Builder {
    meaning: Meaning,
    cells: Cells,
    known: HashMap<Vec<u8>, u32>,
    rows: usize,
}

impl Builder {
    fn new(column: &ColumnDescriptor, name: &str, rows: usize) -> Result<Self, TableError> {
        let per_second = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        let meaning = match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Timestamp(time)), _) => Meaning::Time(per_second(&time.unit)),
            (_, ConvertedType::TIMESTAMP_MILLIS) => Meaning::Time(1000),
            (_, ConvertedType::TIMESTAMP_MICROS) => Meaning::Time(1_000_000),
            (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => Meaning::Days,
            (Some(LogicalType::Decimal(decimal)), _) => Meaning::Number(10f64.powi(decimal.scale)),
            (_, ConvertedType::DECIMAL) => Meaning::Number(10f64.powi(column.type_scale())),
            (Some(LogicalType::Integer(integer)), _) if !integer.is_signed => Meaning::Unsigned,
            (_, ConvertedType::UINT_32 | ConvertedType::UINT_64) => Meaning::Unsigned,
            (Some(LogicalType::Float16), _) => {
                let problem = "it has numbers of 16 bits; write it with 32 bits";
                return Err(TableError::column(name, problem));
            }
            _ => Meaning::Number(1.0),
        };
        Ok(Self { meaning, cells: Cells::Empty, known: HashMap::new(), rows })
    }

    /// Takes the rows of a group in.
    fn read(
        &mut self,
        reader: ColumnReader,
        rows: usize,
        column: &ColumnDescriptor,
    ) -> Result<(), ParquetError> {
        let nullable = column.max_def_level() > 0;
        match reader {
            ColumnReader::BoolColumnReader(reader) => {
                let word = |flag: bool| ByteArray::from(if flag { "true" } else { "false" });
                let values = values(reader, rows, nullable)?;
                self.texts(values.into_iter().map(|value| value.map(word)));
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let unsigned = matches!(self.meaning, Meaning::Unsigned);
                let wide = |x: i32| if unsigned { i64::from(x as u32) } else { i64::from(x) };
                let values = values(reader, rows, nullable)?;
                self.integers(values.into_iter().map(|value| value.map(wide)));
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let values = values(reader, rows, nullable)?;
                self.integers(values.into_iter());
            }
            ColumnReader::Int96ColumnReader(reader) => {
                let values = values(reader, rows, nullable)?;
                let seconds = values.into_iter().map(|value| value.map(|time| time.to_seconds()));
                self.times(seconds);
            }
            ColumnReader::FloatColumnReader(reader) => {
                let values = values(reader, rows, nullable)?;
                self.numbers(values.into_iter().map(|value| value.map(f64::from)));
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let values = values(reader, rows, nullable)?;
                self.numbers(values.into_iter());
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let values = values(reader, rows, nullable)?;
                self.bytes(values.into_iter());
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                let values = values(reader, rows, nullable)?;
                self.bytes(values.into_iter().map(|value| value.map(ByteArray::from)));
            }
        }
        Ok(())
    }

    fn integers(&mut self, values: impl Iterator<Item = Option<i64>>) {
        match self.meaning {
            Meaning::Time(unit) => self.times(values.map(|v| v.map(|time| time.div_euclid(unit)))),
            Meaning::Days => self.times(values.map(|v| v.map(|days| 86_400 * days))),
            Meaning::Unsigned => self.numbers(values.map(|v| v.map(|x| x as u64 as f64))),
            Meaning::Number(scale) => {
                self.numbers(values.map(|v| v.map(|x| x as f64 / scale)));
            }
        }
    }

    fn numbers(&mut self, values: impl Iterator<Item = Option<f64>>) {
        if matches!(self.cells, Cells::Empty) {
            self.cells = Cells::Numbers(Vec::with_capacity(self.rows));
        }
        if let Cells::Numbers(numbers) = &mut self.cells {
            let finite = |x: Option<f64>| x.filter(|x| x.is_finite()).unwrap_or(f64::NAN);
            numbers.extend(values.map(finite));
        }
    }

    fn times(&mut self, values: impl Iterator<Item = Option<i64>>) {
        if matches!(self.cells, Cells::Empty) {
            self.cells = Cells::Times(Vec::with_capacity(self.rows));
        }
        if let Cells::Times(times) = &mut self.cells {
            times.extend(values.map(|time| time.unwrap_or(NEVER)));
        }
    }

    /// Texts, or decimal numbers as bytes, the highest first.
    fn bytes(&mut self, values: impl Iterator<Item = Option<ByteArray>>) {
        match self.meaning {
            Meaning::Number(scale) if scale != 1.0 => {
                let whole = |bytes: ByteArray| {
                    let start = match bytes.data() {
                        [first, ..] if *first >= 128 => -1i128,
                        _ => 0,
                    };
                    let add = |sum: i128, byte: &u8| (sum << 8) | i128::from(*byte);
                    bytes.data().iter().fold(start, add) as f64 / scale
                };
                self.numbers(values.map(|value| value.map(whole)));
            }
            _ => self.texts(values),
        }
    }

    fn texts(&mut self, values: impl Iterator<Item = Option<ByteArray>>) {
        if matches!(self.cells, Cells::Empty) {
            self.cells = Cells::Texts(Texts::default());
        }
        let Cells::Texts(texts) = &mut self.cells else { return };
        for value in values {
            let Some(value) = value else {
                texts.codes.push(MISSING);
                continue;
            };
            let bytes = value.data().trim_ascii();
            let code = match self.known.get(bytes) {
                Some(code) => *code,
                None => {
                    let code = texts.names.len() as u32;
                    texts.names.push(String::from_utf8_lossy(bytes).into_owned());
                    self.known.insert(bytes.to_vec(), code);
                    code
                }
            };
            texts.codes.push(code);
        }
    }

    /// The column; nothing where no row has anything. Words for nothing are nothing here too.
    fn cells(self, reading: &Reading<'_>) -> Cells {
        let mut cells = self.cells;
        if let Cells::Texts(texts) = &mut cells {
            let names = std::mem::take(&mut texts.names);
            let mut codes = Vec::with_capacity(names.len());
            for name in names {
                let nothing = is_missing(name.as_bytes(), reading.missing);
                codes.push(if nothing { MISSING } else { texts.names.len() as u32 });
                if !nothing {
                    texts.names.push(name);
                }
            }
            for code in &mut texts.codes {
                *code = codes.get(*code as usize).copied().unwrap_or(MISSING);
            }
        }
        if cells.missing(self.rows) == self.rows { Cells::Empty } else { cells }
    }
}

/// Dates that were written as texts, as those of a CSV file are.
fn dates(texts: &Texts) -> Option<Cells> {
    let times = texts.names.iter().map(|name| parse_time(name.as_bytes()));
    let times = times.collect::<Option<Vec<i64>>>()?;
    let time = |code: &u32| times.get(*code as usize).copied().unwrap_or(NEVER);
    Some(Cells::Times(texts.codes.iter().map(time).collect()))
}

/// The values of a group of rows; nothing where one is null.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    nullable: bool,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut levels, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut read = 0;
    while read < rows {
        let definition = nullable.then_some(&mut levels);
        let (records, _, _) = reader.read_records(rows - read, definition, None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!("a column ends after {read} rows")));
        }
        read += records;
    }
    if !nullable {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::ByteArrayType;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// A file of one column of texts, written by the crate.
    fn texts(cells: &[&str]) -> Vec<u8> {
        let schema = parse_message_type("message t { required binary day (UTF8); }").unwrap();
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let cells: Vec<ByteArray> = cells.iter().map(|cell| ByteArray::from(*cell)).collect();
        column.typed::<ByteArrayType>().write_batch(&cells, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        bytes
    }

    /// pandas and polars write dates as texts where nobody has told them otherwise.
    #[test]
    fn dates_that_are_texts_are_dates() {
        let cells = |own: &[&str], reading: &Reading<'_>| {
            parse(Path::new("t.parquet"), texts(own), reading).unwrap().columns.remove(0).cells
        };
        let reading = Reading::default();
        let dates = cells(&["2024-01-02", "NaT", "2024-01-03 12:00"], &reading);
        assert_eq!(dates, Cells::Times(vec![1_704_153_600, NEVER, 1_704_283_200]));
        assert!(matches!(cells(&["2024-01-02", "soon"], &reading), Cells::Texts(_)));
        // Codes that look like numbers stay texts.
        assert!(matches!(cells(&["01067", "10115"], &reading), Cells::Texts(_)));
        let names = ["day".to_owned()];
        let reading = Reading { texts: &names, missing: &[] };
        assert!(matches!(cells(&["2024-01-02"], &reading), Cells::Texts(_)));
    }
}
