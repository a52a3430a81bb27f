//! Load series: every format, every repair, every error, the split, the generator.
//!
//! The loads in `tests/fixtures/` are [`mw`] of the row's index, written in each format.

use std::path::{Path, PathBuf};

use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{
    Format, LoadError, LoadSeries, Normaliser, RepairKind, RepairReport, RepairRules, read,
    read_from, split, write_csv,
};

fn mw(i: usize) -> f32 {
    let i = i as f64;
    (41_000.0 + 260.0 * i + (900.0 * (0.45 * i).sin()).round()) as f32
}

#[track_caller]
fn fixture(name: &str) -> (LoadSeries, RepairReport) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read(path).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn parse(text: &str) -> (LoadSeries, RepairReport) {
    try_parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn try_parse(text: &[u8]) -> Result<(LoadSeries, RepairReport), LoadError> {
    read_from(text, "some.csv", &RepairRules::default())
}

fn error(text: &[u8]) -> String {
    try_parse(text).expect_err("this file is wrong").to_string()
}

#[track_caller]
fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// 2019-01-01T00:00:00Z.
const NEW_YEAR_2019: i64 = 1_546_300_800;

/// `timestamp,load` from 2019-01-01; a value of None leaves the row out.
fn plain(step: i64, values: &[Option<f64>]) -> String {
    let mut text = String::from("timestamp,load\n");
    for (i, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let time = stamp(NEW_YEAR_2019 + i as i64 * step);
            text.push_str(&format!("{time},{value}\n"));
        }
    }
    text
}

fn stamp(seconds: i64) -> String {
    let series = LoadSeries { start: seconds, step_seconds: 900, values: vec![1.0] };
    let mut bytes = Vec::new();
    write_csv(&series, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().nth(1).unwrap().split(',').next().unwrap().to_owned()
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
    assert_contains(
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
fn of_duplicates_the_one_with_a_value_is_kept() {
    let mut text = plain(3600, &(0..30).map(|i| Some(f64::from(mw(i)))).collect::<Vec<_>>());
    text = text.replace("2019-01-01T05:00:00Z,", "2019-01-01T05:00:00Z,n/e\n2019-01-01T05:00:00Z,");
    let (series, report) = parse(&text);
    assert_eq!(series.values[5], mw(5));
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
    assert_contains(
        &error(plain(3600, &values).as_bytes()),
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
    assert_contains(&error(plain(3600, &values).as_bytes()), &["neither a week nor a day"]);
    // A stray row of another century does not take memory for everything between.
    let mut text = plain(3600, &smooth_days(2, 24));
    text.push_str("9000-01-01T00:00:00Z,50000\n");
    assert_contains(&error(text.as_bytes()), &["2019-01-03T00:00:00Z"]);
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
    assert_contains(&report.to_string(), &["2019-03-31T00:45:00Z", "clock change"]);
}

#[test]
fn the_report_lists_a_bounded_number_of_events_and_counts_all() {
    let mut values = smooth_days(60, 96);
    (1..60).for_each(|day| values[day * 96] = None);
    let (_, report) = parse(&plain(900, &values));
    assert_eq!(report.count(RepairKind::ShortGap), 59);
    assert_eq!(report.events.len(), 20);
    assert_contains(&report.to_string(), &["59 × missing value", "… and 39 more"]);
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
            stamp(NEW_YEAR_2019 + 5 * 86_400 + hour * 3600 + 1200)
        ));
    }
    assert_contains(&error(text.as_bytes()), &["48 of 168 rows", "mixes resolutions"]);
}

#[test]
fn errors_about_the_file() {
    let missing = read("no/such/file.csv").unwrap_err();
    assert!(matches!(missing, LoadError::NotFound { .. }));
    assert_contains(&missing.to_string(), &["no/such/file.csv", "no such file", "data.path"]);
    let folder = read(env!("CARGO_MANIFEST_DIR")).unwrap_err();
    assert!(matches!(folder, LoadError::Folder { .. }));
    assert_contains(&folder.to_string(), &["folder", "CSV"]);
    assert_contains(&error(b""), &["some.csv", "empty"]);
    assert_contains(&error(b"\n\n  \n"), &["empty"]);
    assert_contains(&error(b"timestamp,load\n"), &["only a header"]);
    assert_contains(
        &error(b"when,much\n2019-01-01,5\n"),
        &["when,much", "Open Power System Data", "ENTSO-E", "SMARD", "de.csv", "timestamp"],
    );
    assert_contains(
        &error(b"Datum von;Gesamt (Netzlast) [MWh] Originalaufl\xf6sungen\n"),
        &["line 1", "UTF-8", "iconv"],
    );
    let mut latin = plain(3600, &smooth_days(2, 24)).into_bytes();
    latin.extend(b"2019-01-03T00:00:00Z,\xe4\n");
    assert_contains(&error(&latin), &["line 50", "UTF-8"]);
}

#[test]
fn errors_about_a_row_name_its_line() {
    let good = plain(3600, &smooth_days(2, 24));
    let with = |row: &str| error(format!("{good}{row}\n").as_bytes());
    let time = with("yesterday,5");
    assert_contains(&time, &["line 50", "`timestamp`", "`yesterday`", "2019-01-31T14:15:00Z"]);
    let number = with("2019-01-03T00:00:00Z,many");
    assert_contains(&number, &["line 50", "`load`", "`many`", "not a number", "missing"]);
    assert_contains(&with("2019-01-03T00:00:00Z"), &["line 50", "1 columns", "`load` is number 2"]);
    // Blank lines count.
    let spaced = good.replacen("load\n", "load\n\n\n", 1) + "x,5\n";
    assert_contains(&error(spaced.as_bytes()), &["line 52"]);
}

#[test]
fn errors_about_the_whole() {
    let few = plain(3600, &smooth_days(1, 23));
    assert_contains(&error(few.as_bytes()), &["23 values", "`load`", "24 are needed"]);
    let empty = "timestamp,load\n".to_owned()
        + &(0..60).map(|i| format!("{},\n", stamp(i * 900))).collect::<String>();
    assert_contains(&error(empty.as_bytes()), &["0 values", "`load`", "filled"]);
    let daily = plain(86_400, &smooth_days(2, 24));
    assert_contains(&error(daily.as_bytes()), &["86400 seconds", "15 min"]);
    let header = "\"MTU (UTC)\",\"Area\",\"Actual Total Load (MW)\"\n";
    let areas = format!(
        "{header}\"01/01/2025 00:00 - 01/01/2025 00:15\",\"DE\",\"5\"\n\
         \"01/01/2025 00:00 - 01/01/2025 00:15\",\"FR\",\"6\"\n"
    );
    assert_contains(&error(areas.as_bytes()), &["line 3", "`FR`", "`DE`", "one area"]);
}

#[test]
fn split_by_time() {
    let parts = split(1000, [0.6, 0.1, 0.3]).unwrap();
    assert_eq!((parts.train, parts.valid, parts.test), (0..600, 600..700, 700..1000));
    let parts = split(7, [0.6, 0.1, 0.3]).unwrap();
    assert_eq!((parts.train, parts.valid, parts.test), (0..4, 4..5, 5..7));
    for (fractions, says) in [
        ([0.6, 0.1, 0.2], "add up to 1"),
        ([1.1, -0.1, 0.0], "above 0"),
        ([f64::NAN, 0.5, 0.5], "above 0"),
        ([0.7, 0.0, 0.3], "above 0"),
    ] {
        assert_contains(&split(1000, fractions).unwrap_err().to_string(), &[says]);
    }
    assert_contains(&split(3, [0.6, 0.1, 0.3]).unwrap_err().to_string(), &["empty", "longer"]);
    assert!(split(0, [0.6, 0.1, 0.3]).is_err());
}

#[test]
fn normaliser_sees_the_training_part_only() {
    let mut values = vec![1.0, 2.0, 3.0, 4.0];
    values.extend([1e9; 4]);
    let normaliser = Normaliser::fit(&values, 0..4).unwrap();
    assert_eq!(normaliser.mean, 2.5);
    assert!((normaliser.std - 1.25_f64.sqrt()).abs() < 1e-15);
    assert_eq!(normaliser.apply(2.5), 0.0);
    for x in [1.0_f32, 55_123.4, -7.0] {
        assert!((normaliser.invert(normaliser.apply(x)) - x).abs() <= x.abs() * 1e-6);
    }
    assert_eq!(normaliser.apply_all(&[2.5, 2.5]), [0.0, 0.0]);
    assert_eq!(normaliser.invert_spread(2.0), (2.0 * normaliser.std) as f32);
    for (values, range) in [(&values[..], 4..8), (&values[..], 2..2), (&values[..], 5..9)] {
        assert!(Normaliser::fit(values, range).is_err());
    }
    // A thousand equal values that single precision cannot hold exactly.
    let message = Normaliser::fit(&[55_123.4; 1000], 0..1000).unwrap_err().to_string();
    assert_contains(&message, &["constant", "column"]);
    assert!(Normaliser::fit(&[1.0, f32::NAN], 0..2).is_err());
}

#[test]
fn writing_and_reading_gives_the_same_series() {
    for step_seconds in [900, 1800, 3600] {
        let config = SynthConfig { days: 60, step_seconds, ..SynthConfig::default() };
        let series = german_like(&config).unwrap();
        let mut bytes = Vec::new();
        write_csv(&series, &mut bytes).unwrap();
        let (again, report) = try_parse(&bytes).unwrap();
        assert_eq!(again, series);
        assert!(report.is_clean(), "{report}");
    }
    let text = "timestamp,load\n2019-01-01T00:00:00Z,1.5\n2019-01-01T01:00:00Z,20000\n";
    let series =
        LoadSeries { start: NEW_YEAR_2019, step_seconds: 3600, values: vec![1.5, 20_000.0] };
    let mut bytes = Vec::new();
    write_csv(&series, &mut bytes).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), text);
    let never = LoadSeries { start: i64::MAX / 2, ..series };
    assert!(write_csv(&never, Vec::new()).is_err());
}

/// Root mean square of the change over `lag` steps.
fn rms_change(values: &[f32], lag: usize) -> f64 {
    let squares = values.iter().zip(&values[lag..]).map(|(a, b)| f64::from(b - a).powi(2));
    (squares.sum::<f64>() / (values.len() - lag) as f64).sqrt()
}

#[test]
fn the_generator_looks_german() {
    // Five years, as the real series.
    let start = 1_420_066_800;
    for seed in [1, 2, 3] {
        let config = SynthConfig { seed, start, days: 1826, step_seconds: 900 };
        let series = german_like(&config).unwrap();
        let values = &series.values;
        assert_eq!(series.len(), 1826 * 96);
        let all = Normaliser::fit(values, 0..values.len()).unwrap();
        let within = |what: &str, x: f64, low: f64, high: f64| {
            assert!((low..=high).contains(&x), "seed {seed}, {what}: {x}");
        };
        // The real series: 57,402; 10,152; 29,418 to 81,260; 6,943 over a day, 4,229 over a week,
        // 731 over a quarter of an hour and 11,594 over six hours.
        within("mean", all.mean, 56_500.0, 58_500.0);
        within("std", all.std, 9_600.0, 10_600.0);
        let (min, max) = values.iter().fold((f32::MAX, 0.0_f32), |(a, b), &x| (a.min(x), b.max(x)));
        within("min", min.into(), 29_000.0, 36_000.0);
        within("max", max.into(), 77_000.0, 84_000.0);
        within("a day", rms_change(values, 96), 6_600.0, 7_400.0);
        within("a week", rms_change(values, 672), 3_900.0, 4_700.0);
        within("a step", rms_change(values, 1), 600.0, 800.0);
        within("six hours", rms_change(values, 24), 11_000.0, 12_000.0);
        // Tenths of a MW, to what single precision holds.
        assert!(values.iter().all(|x| (x * 10.0 - (x * 10.0).round()).abs() < 0.05));
    }
}

#[test]
fn the_generator_knows_the_calendar() {
    // From 2018-01-01 00:00 local time.
    let config = SynthConfig { seed: 5, start: 1_514_761_200, days: 365, step_seconds: 3600 };
    let hours = german_like(&config).unwrap().values;
    let day_mean = |day: usize| hours[day * 24..day * 24 + 24].iter().sum::<f32>() / 24.0;
    // Ascension (10 May) against the Thursdays a week before and after; 25 December against the
    // Tuesday two weeks before; 30 April, a bridge day, against the Mondays around it.
    let against = |day: usize, others: [usize; 2]| {
        2.0 * day_mean(day) / (day_mean(others[0]) + day_mean(others[1]))
    };
    let ascension = against(129, [122, 136]);
    assert!((0.68..0.88).contains(&ascension), "{ascension}");
    let christmas = against(358, [344, 337]);
    assert!((0.58..0.80).contains(&christmas), "{christmas}");
    let bridge = against(119, [112, 126]);
    assert!((0.82..0.98).contains(&bridge), "{bridge}");
    let month = |days: std::ops::Range<usize>| {
        let n = days.len() as f32;
        days.map(day_mean).sum::<f32>() / n
    };
    assert!(month(10..31) > month(190..211) + 4_000.0);
}

#[test]
fn the_generator_is_the_same_everywhere() {
    let config = SynthConfig { seed: 42, start: 1_546_300_800, days: 400, step_seconds: 900 };
    let series = german_like(&config).unwrap();
    assert_eq!(series, german_like(&config).unwrap());
    // FNV-1a over the values in tenths of a MW.
    let digest = series.values.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &x| {
        (hash ^ (f64::from(x) * 10.0).round() as u64).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(digest, 0xfd65_8751_e7d4_0d08, "{digest:#018x}");
    let other = german_like(&SynthConfig { seed: 43, ..config }).unwrap();
    assert_ne!(series, other);
    // The hourly series is the mean of the quarters, and the beginning does not depend on the end.
    let hourly = german_like(&SynthConfig { step_seconds: 3600, ..config }).unwrap();
    for (hour, quarters) in hourly.values.iter().zip(series.values.chunks(4)) {
        assert!((hour - quarters.iter().sum::<f32>() / 4.0).abs() < 0.15);
    }
    let short = german_like(&SynthConfig { days: 30, ..config }).unwrap();
    assert_eq!(short.values[..], series.values[..30 * 96]);
}

#[test]
fn the_generator_refuses_what_it_cannot_do() {
    let good = SynthConfig::default();
    for (config, says) in [
        (SynthConfig { step_seconds: 0, ..good }, "900, 1800 or 3600"),
        (SynthConfig { days: 0, ..good }, "1 to 36525"),
        (SynthConfig { start: 1, ..good }, "multiple of 900"),
        (SynthConfig { start: i64::MIN, ..good }, "1900 to 2199"),
    ] {
        assert_contains(&german_like(&config).unwrap_err().to_string(), &[says]);
    }
}

/// The folder of the real data, if it is there.
fn data_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("BAYESMESH_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    folder.is_dir().then_some(folder)
}

#[test]
fn the_real_german_load() {
    let file = data_folder().map(|folder| folder.join("load/entsoe_de_load_15min.csv"));
    let Some(file) = file.filter(|file| file.is_file()) else {
        eprintln!("skipped: no load/entsoe_de_load_15min.csv in ../shared/data or BAYESMESH_DATA");
        return;
    };
    let (series, report) = read(&file).unwrap_or_else(|e| panic!("{e}"));
    // 2014-12-31T23:00:00Z.
    assert_eq!((series.start, series.step_seconds, series.len()), (1_420_066_800, 900, 175_296));
    let found: Vec<(String, RepairKind)> =
        report.events.iter().map(|event| (stamp(event.time), event.kind)).collect();
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
    let rmse = rms_change(&series.values[test], 96);
    assert!((6_700.0..6_900.0).contains(&rmse), "{rmse}");
}
