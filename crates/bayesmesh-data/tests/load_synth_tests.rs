//! Split, normalisation, writing, and the generator of a German-like load.

mod common;

use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{LoadSeries, write_csv};
use bayesmesh_data::series::{Normaliser, split};
use common::{NEW_YEAR_2019, assert_says, try_parse};

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
        assert_says(split(1000, fractions).unwrap_err(), &[says]);
    }
    assert_says(split(3, [0.6, 0.1, 0.3]).unwrap_err(), &["empty", "longer"]);
    assert!(split(0, [0.6, 0.1, 0.3]).is_err());
}

#[test]
fn a_normaliser_is_inverse_to_itself_and_refuses_what_has_no_scale() {
    let normaliser = Normaliser::fit([1.0, 2.0, f64::NAN, 3.0, 4.0].into_iter()).unwrap();
    assert_eq!(normaliser.mean, 2.5);
    assert!((normaliser.std - 1.25_f64.sqrt()).abs() < 1e-15);
    assert_eq!(normaliser.apply(2.5), 0.0);
    for x in [1.0_f32, 55_123.4, -7.0] {
        assert!((normaliser.invert(normaliser.apply(x.into())) - x).abs() <= x.abs() * 1e-6);
    }
    // A thousand equal values that single precision cannot hold exactly.
    assert_eq!(Normaliser::fit([f64::from(55_123.4_f32); 1000].into_iter()), None);
    assert_eq!(Normaliser::fit([1.0, f64::INFINITY].into_iter()), None);
    assert_eq!(Normaliser::fit([f64::NAN].into_iter()), None);
    assert_eq!(Normaliser::fit([0.0; 3].into_iter()), None);
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
        let all = Normaliser::fit(values.iter().copied().map(f64::from)).unwrap();
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
        assert_says(german_like(&config).unwrap_err(), &[says]);
    }
}
