//! Every repair of a load file and every error about one.

mod common;

use bayesmesh_data::load::{LoadError, RepairKind, format_time, read};
use bayesmesh_files::FileError;
use common::{NEW_YEAR_2019, assert_says, parse, try_parse};

fn error(text: &[u8]) -> String {
    try_parse(text).expect_err("this file is wrong").to_string()
}

/// `timestamp,load` from 2019-01-01; a value of None leaves the row out.
fn plain(step: i64, values: &[Option<f64>]) -> String {
    let mut text = String::from("timestamp,load\n");
    for (i, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let time = format_time(NEW_YEAR_2019 + i as i64 * step);
            text.push_str(&format!("{time},{value}\n"));
        }
    }
    text
}

/// A smooth daily and weekly cycle.
fn smooth(i: usize, per_day: usize) -> f64 {
    let day = i as f64 / per_day as f64;
    let turn = std::f64::consts::TAU;
    55_000.0 + 9_000.0 * (turn * day).sin() + 3_000.0 * (turn * day / 7.0).cos() + i as f64 / 100.0
}

fn smooth_days(days: usize, per_day: usize) -> Vec<Option<f64>> {
    (0..days * per_day).map(|i| Some(smooth(i, per_day))).collect()
}

#[test]
fn of_duplicates_the_one_with_a_value_is_kept() {
    let mut text = plain(3600, &smooth_days(2, 24));
    text = text.replace("2019-01-01T05:00:00Z,", "2019-01-01T05:00:00Z,n/e\n2019-01-01T05:00:00Z,");
    let (series, report) = parse(&text);
    assert_eq!(series.values[5], smooth(5, 24) as f32);
    assert_eq!(report.count(RepairKind::Duplicate), 1);
    assert_eq!(report.replaced(), 0);
}

#[test]
fn a_long_gap_is_filled_from_the_weeks_around() {
    let per_day = 24;
    let mut values = smooth_days(21, per_day);
    // Thirty hours in the second week.
    let (from, to) = (9 * per_day + 5, 9 * per_day + 35);
    values[from..to].fill(None);
    let (series, report) = parse(&plain(3600, &values));
    assert_eq!(report.count(RepairKind::LongGap), 30);
    let week = 7 * per_day;
    for i in from..to {
        let expected = (smooth(i - week, per_day) + smooth(i + week, per_day)) / 2.0;
        assert!((f64::from(series.values[i]) - expected).abs() < 0.01, "{i}");
    }
}

#[test]
fn without_both_weeks_a_long_gap_is_filled_from_the_day_before() {
    let per_day = 24;
    let mut values = smooth_days(4, per_day);
    values[40..46].fill(None);
    let (series, report) = parse(&plain(3600, &values));
    assert_eq!(report.count(RepairKind::LongGap), 6);
    for i in 40..46 {
        assert_eq!(series.values[i], series.values[i - per_day]);
    }
    // On the first day there is only the day after.
    let mut values = smooth_days(4, per_day);
    values[2..8].fill(None);
    let (series, _) = parse(&plain(3600, &values));
    assert_eq!(series.values[2..8], series.values[2 + per_day..8 + per_day]);
}

#[test]
fn gaps_of_four_steps_are_interpolated_and_of_five_are_not() {
    for (length, kind) in [(4, RepairKind::ShortGap), (5, RepairKind::LongGap)] {
        let mut values = smooth_days(20, 96);
        values[800..800 + length].fill(None);
        let (_, report) = parse(&plain(900, &values));
        assert_eq!(report.count(kind), length);
        assert_eq!(report.replaced(), length);
    }
}

#[test]
fn a_gap_that_no_rule_fills_is_an_error_with_its_range() {
    let mut values = smooth_days(10, 24);
    values[48..48 + 37].fill(None);
    assert_says(
        error(plain(3600, &values).as_bytes()),
        &[
            "some.csv",
            "2019-01-03T00:00:00Z to 2019-01-04T12:00:00Z (37.0 hours)",
            "36 hours",
            "part",
        ],
    );
    // Short enough, but in 36 hours there is neither the day before nor the day after.
    let mut values = smooth_days(2, 24);
    values.truncate(36);
    values[12..18].fill(None);
    assert_says(error(plain(3600, &values).as_bytes()), &["neither a week nor a day"]);
    // A stray row of another century does not take memory for everything between.
    let mut text = plain(3600, &smooth_days(2, 24));
    text.push_str("9000-01-01T00:00:00Z,50000\n");
    assert_says(error(text.as_bytes()), &["2019-01-03T00:00:00Z"]);
}

#[test]
fn single_points_are_replaced_and_steps_and_ramps_are_not() {
    let mut values = smooth_days(30, 96);
    let at = |values: &mut [Option<f64>], i: usize, d: f64| values[i] = values[i].map(|x| x + d);
    at(&mut values, 500, 3_000.0);
    at(&mut values, 1_200, -2_500.0);
    // A step up of an hour and a step for good, of 5 GW: not single points.
    (700..704).for_each(|i| at(&mut values, i, 5_000.0));
    (2_000..2_880).for_each(|i| at(&mut values, i, 5_000.0));
    // Ramps of 4 GW in a step, down and up again.
    (0..24).for_each(|i| at(&mut values, 1_500 + i, -4_000.0 * i.min(24 - i).min(6) as f64));
    let (series, report) = parse(&plain(900, &values));
    assert_eq!(report.count(RepairKind::Outlier), 2, "{report}");
    assert_eq!(report.replaced(), 2);
    for i in [500, 1_200] {
        assert!((f64::from(series.values[i]) - smooth(i, 96)).abs() < 50.0);
    }
}

#[test]
fn a_dip_at_the_clock_change_is_called_that() {
    let mut values = smooth_days(120, 96);
    // 2019-03-31T00:45Z is 89 days after New Year.
    values[89 * 96 + 3] = values[89 * 96 + 3].map(|x| x - 10_000.0);
    let (_, report) = parse(&plain(900, &values));
    assert_eq!(report.count(RepairKind::ClockChange), 1);
    assert_eq!(report.count(RepairKind::Outlier), 0);
    assert_says(report, &["2019-03-31T00:45:00Z", "clock change"]);
}

#[test]
fn the_report_lists_a_bounded_number_of_events_and_counts_all() {
    let mut values = smooth_days(60, 96);
    (1..60).for_each(|day| values[day * 96] = None);
    let (_, report) = parse(&plain(900, &values));
    assert_eq!(report.count(RepairKind::ShortGap), 59);
    assert_eq!(report.events.len(), 20);
    assert_says(report, &["59 × missing value", "… and 39 more"]);
}

#[test]
fn a_row_between_the_steps_is_dropped_and_a_mixture_is_an_error() {
    let mut text = plain(3600, &smooth_days(20, 24));
    text.push_str("2019-01-05T00:20:00Z,50000\n");
    let (series, report) = parse(&text);
    assert_eq!((report.count(RepairKind::OffGrid), series.len()), (1, 480));

    // Five days of hours and then two at 20 past: no common grid.
    let mut text = plain(3600, &smooth_days(5, 24));
    for hour in 0..48 {
        text.push_str(&format!(
            "{},50000\n",
            format_time(NEW_YEAR_2019 + 5 * 86_400 + hour * 3600 + 1200)
        ));
    }
    assert_says(error(text.as_bytes()), &["48 of 168 rows", "mixes resolutions"]);
}

#[test]
fn errors_about_the_file() {
    let missing = read("no/such/file.csv").unwrap_err();
    assert!(matches!(missing, LoadError::Read(FileError::Missing { .. })));
    assert_says(missing, &["no/such/file.csv", "no such file", "Check the path"]);
    let folder = read(env!("CARGO_MANIFEST_DIR")).unwrap_err();
    assert!(matches!(folder, LoadError::Read(FileError::IsAFolder { .. })));
    assert_says(folder, &["folder", "Name a file in it"]);
    assert_says(error(b""), &["some.csv", "empty"]);
    assert_says(error(b"\n\n  \n"), &["empty"]);
    assert_says(error(b"timestamp,load\n"), &["only a header"]);
    assert_says(
        error(b"when,much\n2019-01-01,5\n"),
        &["when,much", "Open Power System Data", "ENTSO-E", "SMARD", "de.csv", "timestamp"],
    );
    assert_says(
        error(b"Datum von;Gesamt (Netzlast) [MWh] Originalaufl\xf6sungen\n"),
        &["line 1", "UTF-8", "iconv"],
    );
    let mut latin = plain(3600, &smooth_days(2, 24)).into_bytes();
    latin.extend(b"2019-01-03T00:00:00Z,\xe4\n");
    assert_says(error(&latin), &["line 50", "UTF-8"]);
}

#[test]
fn errors_about_a_row_name_its_line() {
    let good = plain(3600, &smooth_days(2, 24));
    let with = |row: &str| error(format!("{good}{row}\n").as_bytes());
    let time = with("yesterday,5");
    assert_says(&time, &["line 50", "`timestamp`", "`yesterday`", "2019-01-31T14:15:00Z"]);
    let number = with("2019-01-03T00:00:00Z,many");
    assert_says(&number, &["line 50", "`load`", "`many`", "not a number", "missing"]);
    assert_says(with("2019-01-03T00:00:00Z"), &["line 50", "1 columns", "`load` is number 2"]);
    // Blank lines count.
    let spaced = good.replacen("load\n", "load\n\n\n", 1) + "x,5\n";
    assert_says(error(spaced.as_bytes()), &["line 52"]);
}

#[test]
fn errors_about_the_whole() {
    let few = plain(3600, &smooth_days(1, 23));
    assert_says(error(few.as_bytes()), &["23 values", "`load`", "24 are needed"]);
    let empty = "timestamp,load\n".to_owned()
        + &(0..60).map(|i| format!("{},\n", format_time(i * 900))).collect::<String>();
    assert_says(error(empty.as_bytes()), &["0 values", "`load`", "filled"]);
    let daily = plain(86_400, &smooth_days(2, 24));
    assert_says(error(daily.as_bytes()), &["86400 seconds", "15 min"]);
    let header = "\"MTU (UTC)\",\"Area\",\"Actual Total Load (MW)\"\n";
    let areas = format!(
        "{header}\"01/01/2025 00:00 - 01/01/2025 00:15\",\"DE\",\"5\"\n\
         \"01/01/2025 00:00 - 01/01/2025 00:15\",\"FR\",\"6\"\n"
    );
    assert_says(error(areas.as_bytes()), &["line 3", "`FR`", "`DE`", "one area"]);
}
