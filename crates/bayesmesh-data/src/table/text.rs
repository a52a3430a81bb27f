//! Reading text: CSV with any usual delimiter.
//!
//! The file is cut into pieces of whole lines, which are read in parallel. A column of a piece is
//! numbers, times or texts, as its first cell is; where another cell is not, the piece is read once
//! more for the texts of that column. So is it where a column is numbers in one piece and texts in
//! another. What nearly every file has, columns of one kind, is read once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use bayesmesh_files::{is_utf16, shown};
use csv::{ByteRecord, Reader, ReaderBuilder};
use rayon::prelude::*;

use super::error::TableError;
use super::frame::{Cells, Column, Frame, MISSING, NEVER, Texts};
use super::read::Reading;
use super::time::parse_time;

/// Files below this are read in one piece.
const PIECE: usize = 1 << 20;

/// Reads a table from the bytes of a file.
pub(crate) fn parse(path: &Path, bytes: &[u8], reading: &Reading<'_>) -> Result<Frame, TableError> {
    let refuse = |problem: String| TableError::File { file: path.into(), problem };
    if is_utf16(&bytes[..bytes.len().min(64)]) {
        return Err(refuse(
            "this is UTF-16 text; save the file as UTF-8, for example with `iconv -f UTF-16 -t \
             UTF-8`"
                .to_owned(),
        ));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if let Err(error) = std::str::from_utf8(bytes) {
        let line = line_at(bytes, error.valid_up_to());
        let problem = "not UTF-8 text; save the file as UTF-8, for example with `iconv -f LATIN1 \
                       -t UTF-8`";
        return Err(TableError::Line { file: path.into(), line, problem: problem.to_owned() });
    }
    if bytes.trim_ascii().is_empty() {
        return Err(refuse("the file is empty; export it again".to_owned()));
    }
    let delimiter = delimiter_of(bytes);
    let mut reader = reader(bytes, delimiter);
    let mut header = ByteRecord::new();
    let text = Source { path, bytes, delimiter, columns: 0, reading };
    reader.read_byte_record(&mut header).map_err(|error| text.csv_error(&error, 0))?;
    let names = names(path, &header)?;
    let body = reader.position().byte() as usize;
    let text = Source { columns: names.len(), ..text };
    let forced: Vec<bool> = names.iter().map(|name| reading.texts.contains(name)).collect();
    let pieces = pieces(bytes, body);
    let parsed: Vec<Result<Piece, TableError>> =
        pieces.par_iter().map(|piece| text.piece(piece.clone(), &forced)).collect();
    let mut parsed = parsed.into_iter().collect::<Result<Vec<_>, _>>()?;
    let rows = parsed.iter().map(|piece| piece.rows).sum();
    // Columns that are not of one kind in all pieces are texts.
    let wanted: Vec<bool> = (0..names.len())
        .map(|column| {
            let kinds = parsed.iter().filter_map(|piece| piece.columns[column].kind());
            let mut kinds: Vec<u8> = kinds.collect();
            kinds.dedup();
            kinds.len() > 1 || kinds.contains(&SPOILED)
        })
        .collect();
    if wanted.contains(&true) {
        let again: Vec<Result<Piece, TableError>> =
            pieces.par_iter().map(|piece| text.piece(piece.clone(), &wanted)).collect();
        for (piece, again) in parsed.iter_mut().zip(again) {
            let again = again?;
            for (column, texts) in again.columns.into_iter().enumerate() {
                if wanted[column] {
                    piece.columns[column] = texts;
                }
            }
        }
    }
    let mut pieces = parsed;
    let columns = names.into_iter().enumerate().map(|(index, name)| {
        let parts = pieces.iter_mut().map(|piece| {
            (piece.rows, std::mem::replace(&mut piece.columns[index], Building::Empty))
        });
        Column { name, cells: joined(parts.collect()) }
    });
    Ok(Frame { columns: columns.collect(), rows })
}

fn line_at(bytes: &[u8], end: usize) -> u64 {
    bytes[..end].iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

/// The delimiter that the first line has most of; a comma where it has none.
fn delimiter_of(bytes: &[u8]) -> u8 {
    let line = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let mut quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    for byte in line.unwrap_or_default() {
        quoted ^= *byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(own, _)| own == byte && !quoted) {
            *count += 1;
        }
    }
    // Of equals the first.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(byte, _)| byte)
}

fn reader(bytes: &[u8], delimiter: u8) -> Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(1 << 16)
        .from_reader(bytes)
}

/// The names of the columns; refuses a first line that is none of names.
fn names(path: &Path, header: &ByteRecord) -> Result<Vec<String>, TableError> {
    let refuse = |problem: String| TableError::File { file: path.into(), problem };
    let texts: Vec<&[u8]> = header.iter().map(<[u8]>::trim_ascii).collect();
    if texts.iter().all(|text| number(text, false).is_some()) {
        return Err(refuse(
            "the first line has numbers only, but must have the names of the columns; add a line \
             such as `age,income,price` before it"
                .to_owned(),
        ));
    }
    let mut names: Vec<String> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let name = match String::from_utf8_lossy(text) {
            Cow::Borrowed("") => format!("column_{}", index + 1),
            name => name.into_owned(),
        };
        if names.contains(&name) {
            return Err(refuse(format!(
                "two columns are called `{}`; rename one of them",
                shown(&name)
            )));
        }
        names.push(name);
    }
    Ok(names)
}

/// Pieces of whole lines. A file with quotes, within which lines may end, is one piece.
fn pieces(bytes: &[u8], body: usize) -> Vec<Range<usize>> {
    let length = bytes.len() - body;
    let wanted = rayon::current_num_threads() * 2;
    if length < PIECE || wanted < 2 || bytes[body..].contains(&b'"') {
        return std::iter::once(body..bytes.len()).collect();
    }
    let mut ends = vec![body];
    for piece in 1..wanted {
        let near = body + length * piece / wanted;
        let end = bytes[near..].iter().position(|byte| *byte == b'\n');
        ends.push(end.map_or(bytes.len(), |end| near + end + 1).max(ends[piece - 1]));
    }
    ends.push(bytes.len());
    ends.windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// A text with what has to be known to read it.
struct Source<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    delimiter: u8,
    columns: usize,
    reading: &'a Reading<'a>,
}

/// What a piece has.
struct Piece {
    rows: usize,
    columns: Vec<Building>,
}

impl Source<'_> {
    fn csv_error(&self, error: &csv::Error, start: usize) -> TableError {
        let line = error.position().map_or(0, |position| position.line().saturating_sub(1));
        let line = line + line_at(self.bytes, start);
        TableError::Line { file: self.path.into(), line, problem: error.to_string() }
    }

    /// Reads a piece; columns that are `texts` as such.
    fn piece(&self, range: Range<usize>, texts: &[bool]) -> Result<Piece, TableError> {
        let start = range.start;
        let mut reader = reader(&self.bytes[range], self.delimiter);
        let mut record = ByteRecord::with_capacity(1024, self.columns);
        let comma = self.delimiter == b';';
        let column = |texts: &bool| match texts {
            true => Building::Texts(TextBuilder::default()),
            false => Building::Empty,
        };
        let mut columns: Vec<Building> = texts.iter().map(column).collect();
        let mut rows = 0;
        while reader.read_byte_record(&mut record).map_err(|error| self.csv_error(&error, start))? {
            if record.len() != self.columns {
                let line = record.position().map_or(1, csv::Position::line) - 1;
                return Err(TableError::Line {
                    file: self.path.into(),
                    line: line + line_at(self.bytes, start),
                    problem: format!(
                        "{} cells, but the first line has {}; complete or delete the line, or put \
                         cells that hold the delimiter `{}` in quotes",
                        record.len(),
                        self.columns,
                        char::from(self.delimiter).escape_default()
                    ),
                });
            }
            for (column, cell) in columns.iter_mut().zip(&record) {
                column.push(cell.trim_ascii(), rows, comma, self.reading.missing);
            }
            rows += 1;
        }
        Ok(Piece { rows, columns })
    }
}

/// Numbers and times that turn out not to be such.
const SPOILED: u8 = 3;

/// A column of a piece while it is read.
enum Building {
    /// Nothing so far.
    Empty,
    Numbers(Vec<f64>),
    Times(Vec<i64>),
    Texts(TextBuilder),
    Spoiled,
}

#[derive(Default)]
struct TextBuilder {
    texts: Texts,
    known: HashMap<Vec<u8>, u32>,
    /// The code of the cell before: tables often come sorted.
    last: u32,
}

impl Building {
    /// What it is; nothing where there is nothing.
    fn kind(&self) -> Option<u8> {
        match self {
            Self::Empty => None,
            Self::Numbers(_) => Some(0),
            Self::Times(_) => Some(1),
            Self::Texts(texts) => (!texts.texts.names.is_empty()).then_some(2),
            Self::Spoiled => Some(SPOILED),
        }
    }

    /// Takes the cell of the row after `rows` ones.
    fn push(&mut self, cell: &[u8], rows: usize, comma: bool, missing: &[String]) {
        match self {
            Self::Numbers(numbers) => match number(cell, comma) {
                Some(number) => numbers.push(number),
                None if is_missing(cell, missing) => numbers.push(f64::NAN),
                None => *self = Self::Spoiled,
            },
            Self::Texts(texts) => texts.push(cell, rows, missing),
            Self::Times(times) => match parse_time(cell) {
                Some(time) => times.push(time),
                None if is_missing(cell, missing) => times.push(NEVER),
                None => *self = Self::Spoiled,
            },
            Self::Spoiled => {}
            Self::Empty if is_missing(cell, missing) => {}
            Self::Empty => {
                if let Some(number) = number(cell, comma) {
                    let mut numbers = vec![f64::NAN; rows];
                    numbers.push(number);
                    *self = Self::Numbers(numbers);
                } else if let Some(time) = parse_time(cell) {
                    let mut times = vec![NEVER; rows];
                    times.push(time);
                    *self = Self::Times(times);
                } else {
                    let mut texts = TextBuilder::default();
                    texts.push(cell, rows, missing);
                    *self = Self::Texts(texts);
                }
            }
        }
    }
}

impl TextBuilder {
    fn push(&mut self, cell: &[u8], rows: usize, missing: &[String]) {
        self.texts.codes.resize(rows, MISSING);
        let names = &mut self.texts.names;
        if names.get(self.last as usize).is_some_and(|name| name.as_bytes() == cell) {
            self.texts.codes.push(self.last);
            return;
        }
        if is_missing(cell, missing) {
            self.texts.codes.push(MISSING);
            return;
        }
        // A few are found faster one by one.
        const FEW: usize = 16;
        let found = match names.len() <= FEW {
            true => names.iter().position(|name| name.as_bytes() == cell).map(|at| at as u32),
            false => self.known.get(cell).copied(),
        };
        self.last = match found {
            Some(code) => code,
            None => {
                let code = names.len() as u32;
                names.push(String::from_utf8_lossy(cell).into_owned());
                self.known.insert(cell.to_vec(), code);
                code
            }
        };
        self.texts.codes.push(self.last);
    }
}

/// The pieces of a column, each with its number of rows, as one.
fn joined(pieces: Vec<(usize, Building)>) -> Cells {
    let kind = pieces.iter().find_map(|(_, piece)| piece.kind());
    match kind {
        None => Cells::Empty,
        Some(0) => {
            let all = pieces.into_iter().flat_map(|(rows, piece)| match piece {
                Building::Numbers(numbers) => numbers,
                _ => vec![f64::NAN; rows],
            });
            Cells::Numbers(all.collect())
        }
        Some(1) => {
            let all = pieces.into_iter().flat_map(|(rows, piece)| match piece {
                Building::Times(times) => times,
                _ => vec![NEVER; rows],
            });
            Cells::Times(all.collect())
        }
        Some(_) => {
            let mut all = Texts::default();
            let mut known: HashMap<String, u32> = HashMap::new();
            for (rows, piece) in pieces {
                let Building::Texts(TextBuilder { texts, .. }) = piece else {
                    all.codes.extend(std::iter::repeat_n(MISSING, rows));
                    continue;
                };
                let codes = texts.names.into_iter().map(|name| {
                    *known.entry(name).or_insert_with_key(|name| {
                        all.names.push(name.clone());
                        all.names.len() as u32 - 1
                    })
                });
                let codes: Vec<u32> = codes.collect();
                let code = |own: &u32| codes.get(*own as usize).copied().unwrap_or(MISSING);
                all.codes.extend(texts.codes.iter().map(code));
                let short = rows - texts.codes.len();
                all.codes.extend(std::iter::repeat_n(MISSING, short));
            }
            Cells::Texts(all)
        }
    }
}

/// A finite number; `comma` says that it may have a comma for the point.
pub(crate) fn number(cell: &[u8], comma: bool) -> Option<f64> {
    // Words such as `inf` and `nan` are none.
    let [first, ..] = cell else { return None };
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) {
        return None;
    }
    let text = std::str::from_utf8(cell).ok()?;
    let number: f64 = match text.parse() {
        Ok(number) => number,
        Err(_) if comma && !text.contains('.') => text.replacen(',', ".", 1).parse().ok()?,
        Err(_) => return None,
    };
    number.is_finite().then_some(number)
}

/// Whether a cell says that there is nothing: what pandas takes for that, `?`, `-`, numbers that
/// are not finite, and words of the user's own.
pub(super) fn is_missing(cell: &[u8], own: &[String]) -> bool {
    let usual = cell.len() <= 9
        && matches!(
            cell,
            b"" | b"#N/A"
                | b"#N/A N/A"
                | b"#NA"
                | b"<NA>"
                | b"N/A"
                | b"NA"
                | b"NULL"
                | b"NaN"
                | b"NaT"
                | b"None"
                | b"n/a"
                | b"nan"
                | b"null"
                | b"-NaN"
                | b"-nan"
                | b"?"
                | b"-"
                | b"inf"
                | b"-inf"
                | b"Inf"
                | b"-Inf"
                | b"Infinity"
                | b"-Infinity"
        );
    usual || own.iter().any(|own| own.as_bytes() == cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_with(text: &str, reading: &Reading<'_>) -> Result<Frame, TableError> {
        parse(Path::new("t.csv"), text.as_bytes(), reading)
    }

    fn frame(text: &str) -> Frame {
        parse_with(text, &Reading::default()).unwrap()
    }

    fn texts(frame: &Frame, column: usize) -> Vec<Option<&str>> {
        let Cells::Texts(texts) = &frame.columns[column].cells else { panic!("{frame:?}") };
        (0..frame.rows).map(|row| texts.get(row)).collect()
    }

    #[test]
    fn columns_are_of_the_kind_of_their_cells() {
        let frame = frame("a, b ,c,d,e\n1,x,2024-01-02,,NA\n,\"y,z\",,,\n2.5e1,x,2024-01-03,,?\n");
        assert_eq!(frame.names(), ["a", "b", "c", "d", "e"]);
        let Cells::Numbers(a) = &frame.columns[0].cells else { panic!() };
        assert!(a[0] == 1.0 && a[1].is_nan() && a[2] == 25.0);
        assert_eq!(texts(&frame, 1), [Some("x"), Some("y,z"), Some("x")]);
        assert_eq!(frame.columns[2].cells, Cells::Times(vec![1_704_153_600, NEVER, 1_704_240_000]));
        assert_eq!(
            (&frame.columns[3].cells, &frame.columns[4].cells),
            (&Cells::Empty, &Cells::Empty)
        );
    }

    /// A column that is a number, a time and then neither is texts, with all of them as they were.
    #[test]
    fn what_is_not_of_one_kind_is_texts() {
        let frame = frame("a;b\n01;2024-01-02\n1,5;7\nx;\n");
        assert_eq!(texts(&frame, 0), [Some("01"), Some("1,5"), Some("x")]);
        assert_eq!(texts(&frame, 1), [Some("2024-01-02"), Some("7"), None]);
    }

    #[test]
    fn many_pieces_are_one_table() {
        let mut text = "n,t,late,mixed\n".to_owned();
        let rows = 120_000;
        for row in 0..rows {
            let late = if row > 100_000 { "z" } else { "" };
            let mixed = if row == 70_000 { "word".to_owned() } else { row.to_string() };
            text += &format!("{row},name{},{late},{mixed}\n", row % 7);
        }
        assert!(text.len() > PIECE);
        let frame = frame(&text);
        let Cells::Numbers(n) = &frame.columns[0].cells else { panic!() };
        assert!(n.iter().enumerate().all(|(row, n)| *n == row as f64) && frame.rows == rows);
        let t = texts(&frame, 1);
        assert!((0..rows).all(|row| t[row] == Some(&*format!("name{}", row % 7))));
        let late = texts(&frame, 2);
        assert!((0..rows).all(|row| late[row].is_some() == (row > 100_000)));
        let mixed = texts(&frame, 3);
        assert_eq!((mixed[69_999], mixed[70_000]), (Some("69999"), Some("word")));
    }

    #[test]
    fn columns_can_be_wanted_as_texts_and_words_as_nothing() {
        let reading = Reading { texts: &["a".to_owned()], missing: &["-9".to_owned()] };
        let frame = parse_with("a,b\n01,-9\n-9,4\n", &reading).unwrap();
        assert_eq!(texts(&frame, 0), [Some("01"), None]);
        let Cells::Numbers(b) = &frame.columns[1].cells else { panic!() };
        assert!(b[0].is_nan() && b[1] == 4.0);
    }

    #[test]
    fn what_is_no_table_is_told() {
        let told = |text: &str| parse_with(text, &Reading::default()).unwrap_err().to_string();
        assert!(told("").contains("t.csv: the file is empty"));
        assert!(told("1,2\n3,4\n").contains("names of the columns"));
        assert!(told("a,b\n1,2\n1\n").contains("line 3: 1 cells, but the first line has 2"));
        assert!(told("a,a\n1,2\n").contains("two columns are called `a`"));
        let error = parse(Path::new("t.csv"), b"a\nGr\xf6\xdfe\n", &Reading::default());
        assert!(error.unwrap_err().to_string().contains("line 2: not UTF-8"));
    }
}
