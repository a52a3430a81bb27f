//! Load files of every format, and the real one.
//!
//! The loads in `tests/fixtures/` are [`mw`] of the row's index, written in each format.

mod common;

use std::path::Path;

use bayesmesh_data::load::{Format, LoadSeries, RepairKind, RepairReport, format_time, read};
use bayesmesh_data::series::split;
use common::{NEW_YEAR_2019, assert_says, parse, real};

fn mw(i: usize) -> f32 {
    let i = i as f64;
    (41_000.0 + 260.0 * i + (900.0 * (0.45 * i).sin()).round()) as f32
}

#[track_caller]
fn fixture(name: &str) -> (LoadSeries, RepairReport) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read(path).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn open_power_system_data() {
    let (series, report) = fixture("opsd_15min.csv");
    assert_eq!(report.format, Format::OpenPowerSystemData);
    // 2014-12-31T23:30:00Z, after three empty cells.
    assert_eq!((series.start, series.step_seconds, series.len()), (1_420_068_600, 900, 40));
    assert_eq!(report.count(RepairKind::TrimmedStart), 3);
    assert_eq!(report.count(RepairKind::ShortGap), 2);
    for i in (0..40).filter(|i| ![17, 18].contains(i)) {
        assert_eq!(series.values[i], mw(i));
    }
    let third = (mw(19) - mw(16)) / 3.0;
    assert!((series.values[17] - (mw(16) + third)).abs() < 0.01);
    assert!((series.values[18] - (mw(16) + 2.0 * third)).abs() < 0.01);
}

#[test]
fn entsoe_in_utc() {
    let (series, report) = fixture("entsoe_utc.csv");
    assert_eq!(report.format, Format::EntsoeTransparency);
    assert_eq!((series.start, series.step_seconds, series.len()), (NEW_YEAR_2019, 900, 38));
    // n/e, then - and N/A together; - and an empty cell at the end.
    assert_eq!(report.count(RepairKind::ShortGap), 3);
    assert_eq!(report.count(RepairKind::TrimmedEnd), 2);
    assert_eq!(series.values[7], (mw(6) + mw(8)) / 2.0);
    assert_eq!(series.values[37], mw(37));
}

#[test]
fn entsoe_in_local_time_skips_the_hour_of_spring() {
    let (series, report) = fixture("entsoe_local_spring.csv");
    // 2019-03-31 00:00 CET; the rows from 02:00 to 02:45 are there, but empty.
    assert_eq!((series.start, series.len()), (1_553_986_800, 32));
    assert!(report.is_clean(), "{report}");
    assert_eq!(series.values, (0..32).map(mw).collect::<Vec<_>>());
}

#[test]
fn entsoe_of_the_new_portal_marks_the_repeated_hour() {
    let (series, report) = fixture("entsoe_mtu_autumn.csv");
    // 2024-10-27 00:00 CEST.
    assert_eq!((series.start, series.len()), (1_729_980_000, 36));
    assert!(report.is_clean(), "{report}");
    assert_eq!(series.values, (0..36).map(mw).collect::<Vec<_>>());
}

#[test]
fn smard_in_german_through_the_repeated_hour() {
    let (series, report) = fixture("smard_autumn.csv");
    assert_eq!(report.format, Format::Smard);
    assert!(report.from_energy);
    // 2019-10-27 00:00 CEST; MWh in a quarter of an hour are four times that in MW.
    assert_eq!((series.start, series.step_seconds, series.len()), (1_572_127_200, 900, 36));
    assert_eq!(report.count(RepairKind::RepeatedHour), 4);
    assert_eq!(report.replaced(), 1);
    for i in (0..36).filter(|&i| i != 30) {
        assert_eq!(series.values[i], mw(i), "{i}");
    }
    assert_eq!(series.values[30], (mw(29) + mw(31)) / 2.0);
}

#[test]
fn smard_newest_first_gives_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smard_autumn.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].reverse();
    let (series, _) = parse(&lines.join("\r\n"));
    assert_eq!(series, fixture("smard_autumn.csv").0);
}

#[test]
fn smard_of_older_exports_in_whole_numbers_and_two_columns() {
    let (series, report) = fixture("smard_uhrzeit_spring.csv");
    // 2018-03-25 00:00 CET; hourly, so MWh are MW; `41.000` is forty-one thousand.
    assert_eq!((series.start, series.step_seconds, series.len()), (1_521_932_400, 3600, 30));
    assert!(report.is_clean(), "{report}");
    assert_eq!(series.values, (0..30).map(mw).collect::<Vec<_>>());
}

#[test]
fn smard_in_english() {
    let (series, report) = fixture("smard_english.csv");
    // 2025-01-01 12:00 AM CET.
    assert_eq!((series.start, series.step_seconds, series.len()), (1_735_686_000, 900, 36));
    assert!(report.is_clean(), "{report}");
    assert_eq!(series.values, (0..36).map(mw).collect::<Vec<_>>());
}

#[test]
fn smard_drops_a_value_in_the_hour_that_does_not_exist() {
    let mut text = String::from("Datum von;Datum bis;Netzlast [MWh] Originalauflösungen\n");
    for hour in 0..24 {
        text.push_str(&format!("31.03.2019 {hour:02}:00;;40.{hour:03}\n"));
    }
    for hour in 0..5 {
        text.push_str(&format!("01.04.2019 {hour:02}:00;;41.{hour:03}\n"));
    }
    let (series, report) = parse(&text);
    assert_eq!(report.count(RepairKind::SkippedHour), 1);
    assert_eq!(report.events[0].old, Some(40_002.0));
    assert_eq!(series.len(), 28);
    assert_eq!(series.values[..3], [40_000.0, 40_001.0, 40_003.0]);
}

#[test]
fn kaggle_start_end_load() {
    let (series, report) = fixture("kaggle_de.csv");
    assert_eq!(report.format, Format::StartEndLoad);
    assert!(!report.assumed_utc);
    assert_eq!((series.start, series.step_seconds, series.len()), (1_420_070_400, 900, 36));
    assert_eq!(series.values[12], (mw(11) + mw(13)) / 2.0);
    assert_eq!(series.values[35], mw(35));
}

#[test]
fn plain_file_out_of_order_with_duplicates() {
    let (series, report) = fixture("plain_messy.csv");
    assert_eq!(report.format, Format::Plain);
    assert!(report.assumed_utc);
    assert_eq!((series.start, series.step_seconds, series.len()), (1_590_969_600, 1800, 40));
    for (kind, count) in [
        (RepairKind::Unsorted, 1),
        (RepairKind::Duplicate, 1),
        (RepairKind::ConflictingDuplicate, 1),
        (RepairKind::NotPositive, 1),
        (RepairKind::ShortGap, 1),
    ] {
        assert_eq!(report.count(kind), count, "{kind:?}");
    }
    for i in (0..40).filter(|&i| i != 33) {
        assert_eq!(series.values[i], mw(i), "{i}");
    }
    let zero = report.events.iter().find(|e| e.kind == RepairKind::NotPositive).unwrap();
    assert_eq!((zero.old, zero.new), (Some(0.0), Some((mw(32) + mw(34)) / 2.0)));
    let text = report.to_string();
    assert_says(
        &text,
        &["taken as UTC", "1 × row out of order", "2020-06-01T14:00:00Z  47,000 -> 48,310 MW"],
    );
}

#[test]
fn offsets_are_honoured() {
    let mut text = String::from("time,load_mw\n");
    for i in 0..30 {
        text.push_str(&format!("2019-01-{:02}T{:02}:00:00+01:00,{}\n", 1 + i / 24, i % 24, mw(i)));
    }
    let (series, report) = parse(&text);
    assert_eq!((series.start, series.step_seconds), (NEW_YEAR_2019 - 3600, 3600));
    assert!(report.is_clean() && !report.assumed_utc);
}

#[test]
fn the_real_german_load() {
    let Some(file) = real("load/entsoe_de_load_15min.csv") else { return };
    let (series, report) = read(&file).unwrap_or_else(|e| panic!("{e}"));
    // 2014-12-31T23:00:00Z.
    assert_eq!((series.start, series.step_seconds, series.len()), (1_420_066_800, 900, 175_296));
    let found: Vec<(String, RepairKind)> =
        report.events.iter().map(|event| (format_time(event.time), event.kind)).collect();
    let expected = [
        ("2015-03-29T00:45:00Z", RepairKind::ClockChange),
        ("2015-04-21T21:15:00Z", RepairKind::Outlier),
        ("2015-08-10T21:45:00Z", RepairKind::Outlier),
        ("2015-12-11T10:30:00Z", RepairKind::Outlier),
        ("2017-03-26T00:45:00Z", RepairKind::ClockChange),
        ("2018-03-25T00:45:00Z", RepairKind::ClockChange),
        ("2018-11-23T08:15:00Z", RepairKind::Outlier),
        ("2019-03-31T00:45:00Z", RepairKind::ClockChange),
        ("2019-09-27T13:00:00Z", RepairKind::Outlier),
        ("2019-12-01T06:00:00Z", RepairKind::Outlier),
    ];
    assert_eq!(found, expected.map(|(time, kind)| (time.to_owned(), kind)));
    assert_eq!(report.replaced(), 10);
    // The steepest steps and ramps that are not single points are as in the file: 2016-01-11, from
    // 71,057 to 78,459 MW, and the morning of 2016-09-05, from 48,145 to 52,621 MW.
    let at = |time: i64| series.values[((time - series.start) / 900) as usize];
    assert_eq!((at(1_452_499_200), at(1_452_500_100)), (71_057.0, 78_459.0));
    assert_eq!((at(1_473_047_100), at(1_473_048_000)), (48_145.0, 52_621.0));
    // Same-time-yesterday on the test part.
    let test = split(series.len(), [0.6, 0.1, 0.3]).unwrap().test;
    let test = &series.values[test];
    let squares = test.iter().zip(&test[96..]).map(|(a, b)| f64::from(b - a).powi(2));
    let rmse = (squares.sum::<f64>() / (test.len() - 96) as f64).sqrt();
    assert!((6_700.0..6_900.0).contains(&rmse), "{rmse}");
}
