//! Whatever bytes a file has: no panic, no value that is not finite, no endless message.

mod common;

use common::{assert_says, hours, try_parse};
use proptest::collection::vec;
use proptest::prelude::*;

/// Reads bytes and checks what must hold of every answer.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match try_parse(bytes) {
        Ok((series, report)) => {
            prop_assert!(series.values.iter().all(|value| value.is_finite()));
            prop_assert!(report.to_string().len() < 100_000);
        }
        Err(error) => {
            let text = error.to_string();
            prop_assert!(text.len() < 10_000, "{} bytes", text.len());
            // New lines are those of the list of formats.
            let obeyed = |c: char| c.is_control() && c != '\n';
            prop_assert!(!text.contains(obeyed), "{text:?}");
        }
    }
    Ok(())
}

/// Beginnings that bring arbitrary rows past the header.
const HEADERS: [&str; 6] = [
    "",
    "timestamp,load\n",
    "start,end,load\n",
    "Time (CET/CEST),Area,Actual Total Load [MW] - X\n",
    "Datum;Anfang;Ende;Netzlast [MWh]\n",
    "utc_timestamp,DE_load_actual_x\n",
];

/// Pieces that numbers, times and quotes are made of.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "\"",
        ",",
        ";",
        "\n",
        "\r",
        "-",
        "1e39",
        "3.4e38",
        "1e-45",
        "-0",
        "0",
        "inf",
        "nan",
        "\0",
        "\u{1b}[31m",
        "\u{feff}",
        "9999-12-31T23:59:59Z",
        "-9999-01-01T00:00Z",
        "ä",
        "1.000,5",
    ];
    prop_oneof![
        proptest::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes(header in 0..HEADERS.len(), bytes in vec(any::<u8>(), 0..2000)) {
        check(&[HEADERS[header].as_bytes(), &bytes].concat())?;
    }

    #[test]
    fn arbitrary_pieces(header in 0..HEADERS.len(), pieces in vec(piece(), 0..200)) {
        check(&[HEADERS[header].as_bytes(), &pieces.concat()].concat())?;
    }

    #[test]
    fn good_files_with_changes(
        changes in vec((any::<prop::sample::Index>(), 0..30_usize, piece()), 0..6),
    ) {
        let mut bytes = hours(60).into_bytes();
        for (place, length, new) in changes {
            let start = place.index(bytes.len());
            let end = (start + length).min(bytes.len() - 1).max(start);
            bytes.splice(start..end, new);
        }
        check(&bytes)?;
    }
}

/// One load of a good file in other words.
fn with_load(load: &str) -> Vec<u8> {
    hours(48).replacen(",50300\n", &format!(",{load}\n"), 1).into_bytes()
}

#[test]
fn the_smallest_and_largest_loads() {
    for load in ["3.4e38", "1e-45", "1e-300", "-0.0", "-3e38", "00050300"] {
        let (series, _) = try_parse(&with_load(load)).unwrap_or_else(|e| panic!("{load}: {e}"));
        assert!(series.values.iter().all(|value| value.is_finite()), "{load}");
    }
    for load in ["3.5e38", "-3.5e38", "1e400"] {
        let error = try_parse(&with_load(load)).unwrap_err();
        assert_says(error, &["some.csv, line 5", "`load`", load, "3.4e38 MW", "empty the cell"]);
    }
}

/// Energies become up to four times as many MW.
#[test]
fn large_energies() {
    let mut text = String::from("Datum von;Datum bis;Netzlast [MWh] Originalauflösungen\n");
    for i in 0..96 {
        let load = if i == 50 { "1e38" } else { "10.000" };
        text += &format!("01.02.2019 {:02}:{:02};;{load}\n", i / 4, i % 4 * 15);
    }
    let error = try_parse(text.as_bytes()).unwrap_err();
    assert_says(error, &["line 52", "`1e38`", "8.5e37 MWh"]);
}

#[test]
fn long_lines_are_refused() {
    let long = "x".repeat(2 << 20);
    let header = try_parse(long.as_bytes()).unwrap_err();
    assert_says(header, &["line 1 is longer than 1048576 bytes", "is this a CSV file?"]);
    let row = try_parse(format!("{}{long}", hours(3)).as_bytes()).unwrap_err();
    assert_says(row, &["line 5 is longer"]);
    let blank = try_parse(&b"\n".repeat(2 << 20)).unwrap_err();
    assert_says(blank, &["is this a CSV file?"]);
    // All that follows an open quote is one cell.
    let open = hours(60_000).replacen("\n2019-01-01T02", "\n\"2019-01-01T02", 1);
    assert_says(try_parse(open.as_bytes()).unwrap_err(), &["line 4 is longer", "quote"]);
    // Long files are none of long lines.
    assert_eq!(try_parse(hours(60_000).as_bytes()).unwrap().0.len(), 60_000);
}

#[test]
fn other_encodings() {
    let wide: Vec<u8> = hours(30).encode_utf16().flat_map(u16::to_be_bytes).collect();
    for start in [&b"\xfe\xff"[..], b""] {
        let error = try_parse(&[start, &wide].concat()).unwrap_err();
        assert_says(error, &["some.csv", "iconv -f UTF-16"]);
    }
    let latin = [hours(30).as_bytes(), b"2019-02-01T00:00Z,Gr\xf6\xdfe\n"].concat();
    assert_says(try_parse(&latin).unwrap_err(), &["line 32", "LATIN1"]);
}
