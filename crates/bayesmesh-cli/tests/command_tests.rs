//! Every command does what its help says.

mod common;

use bayesmesh_cli::recipe::{Catalogue, Recipe};
use bayesmesh_data::load::format_time;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use common::Scratch;

/// A trained run and a series to forecast from.
fn trained() -> Scratch {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.run(&["data", "synth", "load", "--days", "3", "--out", "in.csv", "--json"]).success();
    scratch
}

#[test]
fn a_series_is_made_checked_and_fetched() {
    let scratch = Scratch::new();
    let synth = |out: &str, seed: &str| {
        let arguments = ["data", "synth", "load", "--days", "10", "--seed", seed, "--out", out];
        scratch.run(&[&arguments[..], &["--json"]].concat()).success()
    };
    assert_eq!(synth("new/a.csv", "1")["values"], 960);
    synth("b.csv", "1");
    synth("c.csv", "2");
    assert_eq!(scratch.read("new/a.csv"), scratch.read("b.csv"));
    assert_ne!(scratch.read("new/a.csv"), scratch.read("c.csv"));

    let outcome = scratch.run(&["data", "check", "load", "b.csv", "--json"]);
    let found = outcome.success();
    assert_eq!((&found["values"], &found["replaced"]), (&960.into(), &0.into()));
    assert_eq!(found["step_seconds"], 900);
    assert!(outcome.stderr.contains("nothing to repair"), "{}", outcome.stderr);

    // Three rows less: repaired and reported.
    let text = scratch.read("b.csv");
    let rows = text.lines().enumerate().filter(|(row, _)| !(500..503).contains(row));
    scratch.write("gap.csv", rows.map(|(_, line)| line).collect::<Vec<_>>().join("\n"));
    let found = scratch.run(&["data", "check", "load", "gap.csv", "--json"]).success();
    assert_eq!((&found["values"], &found["replaced"]), (&960.into(), &3.into()));

    let fetch = ["data", "fetch", "load", "--from", "b.csv", "--json"];
    let fetched = scratch.run(&fetch).success();
    assert_eq!(fetched["file"], "data/load.csv");
    assert_eq!(fetched["values"], 960);
    assert_eq!(scratch.read("data/load.csv"), text);
    scratch.assert_nothing_unfinished();
}

#[test]
fn images_are_made_and_checked() {
    let scratch = Scratch::new();
    let synth = |out: &str| {
        let arguments = ["data", "synth", "cifar10", "--count", "20", "--out", out, "--json"];
        scratch.run(&arguments).success()
    };
    let made = synth("new/cifar10");
    assert_eq!((&made["train"], &made["test"]), (&100.into(), &20.into()));
    synth("b");
    let read = |name: &str| std::fs::read(scratch.path(name)).unwrap();
    assert_eq!(read("new/cifar10/test_batch.bin"), read("b/test_batch.bin"));
    let outcome = scratch.run(&["data", "check", "cifar10", "b", "--json"]);
    let found = outcome.success();
    assert_eq!((&found["synthetic"], &found["train"]), (&true.into(), &100.into()));
    assert_eq!(found["classes"]["frog"], serde_json::json!({ "train": 10, "test": 2 }));
    assert!(outcome.stderr.contains("stand-in"), "{}", outcome.stderr);
    scratch.assert_nothing_unfinished();
}

#[test]
fn a_run_is_scored_again() {
    let scratch = trained();
    std::fs::remove_file(scratch.path("run/report.html")).unwrap();
    let first = scratch.read("run/evaluation.json");
    let result = scratch.run(&["evaluate", "run", "--draws", "16", "--json"]).success();
    assert_eq!(result["draws"], 16);
    assert_eq!(result["steps"], 40);
    assert!(result["test"]["rmse_mw"].as_f64().unwrap() > 0.0);
    assert!(scratch.read("run/report.html").contains("</html>"));
    assert_ne!(scratch.read("run/evaluation.json"), first);

    // With the draws of the recipe it finds what the training found, on any mesh.
    let again = scratch.run(&["evaluate", "run", "--mesh", "1x2", "--json"]).success();
    assert_eq!(again["draws"], 8);
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    let rmse = |value: &serde_json::Value| value["test"]["rmse_mw"].as_f64().unwrap();
    assert!((rmse(&again) / rmse(&first) - 1.0).abs() < 1e-6, "{again} {first}");
    scratch.assert_nothing_unfinished();
}

/// Header and numbers of a table whose first two columns are times.
fn read_csv(text: &str) -> (Vec<&str>, Vec<Vec<f64>>) {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows: Vec<Vec<f64>> = lines
        .map(|cells| {
            assert_eq!(cells.len(), header.len());
            assert!(cells[..2].iter().all(|time| time.ends_with('Z')), "{cells:?}");
            cells[2..].iter().map(|cell| cell.parse().unwrap()).collect()
        })
        .collect();
    (header, rows)
}

/// Shape and numbers of a NumPy file of version 1 with little-endian single precision.
fn read_npy(bytes: &[u8]) -> (Vec<usize>, Vec<f32>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(end % 64, 0, "data must be aligned");
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    assert!(header.ends_with('\n'));
    assert!(header.contains("'descr': '<f4'") && header.contains("'fortran_order': False"));
    let (_, shape) = header.split_once("'shape': (").unwrap();
    let (shape, _) = shape.split_once(')').unwrap();
    let shape: Vec<usize> = shape.split(',').map(|n| n.trim().parse().unwrap()).collect();
    let values = bytes[end..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    (shape, values.collect())
}

#[test]
fn forecasts_are_written_as_csv_npy_and_parquet() {
    let scratch = trained();
    let predict = |out: &str, others: &[&str]| {
        let arguments = ["predict", "run", "in.csv", "--json", "--out", out];
        scratch.run(&[&arguments[..], others].concat()).success()
    };
    assert_eq!(predict("x.csv", &[])["forecasts"], 1);
    let text = scratch.read("x.csv");
    let (header, rows) = read_csv(&text);
    let quantiles = ["q5", "q25", "q50", "q75", "q95"];
    let parts = ["epistemic", "aleatoric", "band90_lower", "band90_upper"];
    let first = ["origin", "time", "mean", "std"];
    assert_eq!(header, [&first[..], &quantiles[..], &parts[..]].concat());
    assert_eq!(rows.len(), 24);
    for row in &rows {
        assert!((10_000.0..120_000.0).contains(&row[0]), "{row:?}");
        assert!(row[1] > 0.0, "{row:?}");
        assert!(row[2..7].is_sorted_by(|a, b| a < b), "{row:?}");
        assert!(row[2] < row[0] && row[0] < row[6], "{row:?}");
        // The deviation has two parts, and a band is wider than the interval of its level.
        assert!((row[7].hypot(row[8]) / row[1] - 1.0).abs() < 1e-3, "{row:?}");
        assert!(row[9] < row[2] && row[10] > row[6], "{row:?}");
    }
    // The series ends at 23:45 of its third day; the forecast begins a quarter-hour later.
    let first = text.lines().nth(1).unwrap();
    assert!(first.starts_with("2015-01-03T23:45:00Z,2015-01-04T00:00:00Z,"), "{first}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("2015-01-03T23:45:00Z,2015-01-04T05:45:00Z,"), "{last}");

    predict("x.npy", &[]);
    let (shape, values) = read_npy(&std::fs::read(scratch.path("x.npy")).unwrap());
    assert_eq!(shape, [1, 24, 11]);
    assert_eq!(values.len(), 24 * 11);
    for (a, b) in values.iter().zip(rows.iter().flatten()) {
        assert!((f64::from(*a) - b).abs() < 0.06, "{a} in the one file, {b} in the other");
    }

    predict("x.parquet", &[]);
    let file = std::fs::File::open(scratch.path("x.parquet")).unwrap();
    let table = SerializedFileReader::new(file).unwrap();
    let mut count = 0;
    for (row, line) in table.get_row_iter(None).unwrap().zip(text.lines().skip(1)) {
        let (names, cells): (Vec<_>, Vec<_>) = row.unwrap().into_columns().into_iter().unzip();
        assert_eq!(names, header);
        for (cell, time) in cells.iter().zip(line.split(',').take(2)) {
            let Field::TimestampMillis(millis) = cell else { panic!("{cell} is no time") };
            assert_eq!((format_time(millis / 1000), millis % 1000), (time.to_owned(), 0));
        }
        for (cell, value) in cells[2..].iter().zip(&values[11 * count..]) {
            assert_eq!(*cell, Field::Float(*value));
        }
        count += 1;
    }
    assert_eq!(count, 24);

    // 288 values: forecasts from 0, 24, … 168 and, as always, from the end, 192.
    assert_eq!(predict("y.npy", &["--every", "24"])["forecasts"], 9);
    let (shape, several) = read_npy(&std::fs::read(scratch.path("y.npy")).unwrap());
    assert_eq!(shape, [9, 24, 11]);
    // Draws leave out other units in every row, so the last is that of before but for its noise.
    for (several, alone) in several[8 * 24 * 11..].chunks(11).zip(values.chunks(11)) {
        assert!((several[0] - alone[0]).abs() < alone[1] / 2.0, "{several:?} {alone:?}");
    }
    predict("y.csv", &["--every", "24"]);
    let text = scratch.read("y.csv");
    let origins: Vec<&str> = text.lines().skip(1).step_by(24).map(|row| &row[..20]).collect();
    assert_eq!(origins.len(), 9);
    assert_eq!(origins[..2], ["2015-01-01T23:45:00Z", "2015-01-02T05:45:00Z"]);
    assert_eq!(origins[7..], ["2015-01-03T17:45:00Z", "2015-01-03T23:45:00Z"]);

    let columns = predict("z.csv", &["--quantiles", "0.1,0.333", "--draws", "16"]);
    let names = [&["mean", "std", "q10", "q33.3"][..], &parts[..]].concat();
    assert_eq!(columns["columns"], serde_json::json!(names));
    let text = scratch.read("z.csv");
    let (header, rows) = read_csv(&text);
    assert_eq!(&header[4..6], ["q10", "q33.3"]);
    assert!(rows.iter().all(|row| row[2] < row[3]));
    scratch.assert_nothing_unfinished();
}

#[test]
fn paths_are_written_as_csv_npy_and_parquet() {
    let scratch = trained();
    let predict = |out: &str| {
        let arguments = ["predict", "run", "in.csv", "--json", "--paths", "20", "--every", "48"];
        scratch.run(&[&arguments[..], &["--out", out]].concat()).success()
    };
    let result = predict("p.npy");
    assert_eq!(
        (&result["forecasts"], &result["columns"]),
        (&5.into(), &serde_json::json!(["value"]))
    );
    let (shape, values) = read_npy(&std::fs::read(scratch.path("p.npy")).unwrap());
    assert_eq!(shape, [5, 20, 24]);
    // Paths differ, and each is smoother than values of different paths are.
    let path = |index: usize| &values[index * 24..][..24];
    assert_ne!(path(0), path(1));
    let roughness = |value: &dyn Fn(usize) -> f32| -> f32 {
        (1..24).map(|k| (value(k) - value(k - 1)).abs()).sum()
    };
    let along: f32 = (0..20).map(|p| roughness(&|k| path(p)[k])).sum();
    let across: f32 = (0..20).map(|p| roughness(&|k| path((p + k) % 20)[k])).sum();
    assert!(along < across, "{along} {across}");

    predict("p.csv");
    let text = scratch.read("p.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("origin,path,time,value"));
    let first = lines.next().unwrap();
    assert!(first.starts_with("2015-01-01T23:45:00Z,0,2015-01-02T00:00:00Z,"), "{first}");
    assert_eq!(text.lines().count(), 1 + 5 * 20 * 24);
    for (line, value) in text.lines().skip(1).zip(&values) {
        let written: f32 = line.rsplit(',').next().unwrap().parse().unwrap();
        assert!((written - value).abs() < 0.06, "{line} {value}");
    }
    predict("p.parquet");
    let file = std::fs::File::open(scratch.path("p.parquet")).unwrap();
    let table = SerializedFileReader::new(file).unwrap();
    assert_eq!(table.metadata().file_metadata().num_rows(), 5 * 20 * 24);

    for (arguments, words) in [
        (["--paths", "0"], "--paths 0 is not possible"),
        (["--band", "1.5"], "--band is a level between 0 and 1"),
    ] {
        let command = [&["predict", "run", "in.csv", "--out", "q.csv"], &arguments[..]].concat();
        let refused = scratch.run(&command);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    assert!(!scratch.path("q.csv").exists());
}

/// A run can be scored and predict without calibration, and its own comes back.
#[test]
fn calibration_is_used_unless_it_is_turned_off() {
    let scratch = trained();
    let evaluation = |set: &[&str]| {
        scratch.run(&[&["evaluate", "run", "--json"], set].concat()).success()["test"].clone()
    };
    let own = evaluation(&[]);
    let none = evaluation(&["--set", "calibrate.kind=none"]);
    let number = |scores: &serde_json::Value, name: &str| scores[name].as_f64().unwrap();
    for name in ["coverage_50", "coverage_90", "crps_mw"] {
        let raw = number(&own, &format!("{name}_raw"));
        assert!((raw / number(&none, name) - 1.0).abs() < 1e-9, "{name} {own} {none}");
        assert_eq!(number(&none, name), number(&none, &format!("{name}_raw")));
    }
    assert_ne!(number(&own, "coverage_90"), number(&none, "coverage_90"));
    assert!(own.get("band_coverage_90").is_some() && none.get("band_coverage_90").is_none());
    assert_eq!(evaluation(&[]), own);
    let variance = evaluation(&["--set", "calibrate.kind=variance"]);
    assert_ne!(number(&variance, "crps_mw"), number(&own, "crps_mw"));
    assert_eq!(evaluation(&[]), own);

    let columns = |set: &[&str]| {
        let arguments = ["predict", "run", "in.csv", "--out", "c.csv", "--json"];
        scratch.run(&[&arguments[..], set].concat()).success()["columns"].to_string()
    };
    assert!(columns(&[]).contains("band90_lower"));
    assert!(!columns(&["--set", "calibrate.kind=none"]).contains("band"));
    // Predictions need no evaluation.
    std::fs::remove_file(scratch.path("run/evaluation.json")).unwrap();
    assert!(columns(&[]).contains("band90_lower"));
}

#[test]
fn draws_are_added_until_scores_do_not_depend_on_them() {
    let scratch = Scratch::new();
    // Draws that differ so little are soon enough.
    let settings = ["model.dropout=0.002", "data.days=40"];
    scratch.train("demo", &settings, &["--out", "run"]).success();
    let result = scratch.run(&["evaluate", "run", "--draws", "auto", "--json"]).success();
    let draws = result["draws"].as_u64().unwrap();
    let file: serde_json::Value =
        serde_json::from_str(&scratch.read("run/evaluation.json")).unwrap();
    for (name, errors) in file["standard_errors"].as_object().unwrap() {
        let [over_draws, over_examples] =
            ["draws", "examples"].map(|over| errors[over].as_f64().unwrap_or(0.0));
        // There are always as many paths.
        let of_paths = name.starts_with("energy") || name.starts_with("variogram");
        let counts = !name.ends_with("_raw") && !of_paths && over_examples > 0.0;
        assert!(!counts || draws == 4096 || over_draws <= 0.1 * over_examples, "{name} {errors}");
    }
    let wrong = scratch.run(&["evaluate", "run", "--draws", "many"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("a number, or `auto`"), "{wrong:?}");
}

#[test]
fn checkpoints_are_inspected() {
    let scratch = trained();
    let file = "run/checkpoints/step-00000040.safetensors";
    let outcome = scratch.run(&["checkpoint", "inspect", file, "--json"]);
    let one = outcome.success();
    assert_eq!((&one["step"], &one["seed"]), (&40.into(), &0.into()));
    let tensors = one["tensors"].as_array().unwrap();
    let first = serde_json::json!(
        { "group": "parameters", "name": "layers.0.weight", "shape": [96, 16] }
    );
    assert_eq!(tensors[0], first);
    let digest = outcome.digest();
    for word in ["layers.0.weight", "96×16", digest.as_str()] {
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
    assert_eq!(scratch.run(&["checkpoint", "inspect", "run", "--json"]).success(), one);
    let earlier = "run/checkpoints/step-00000035.safetensors";
    let earlier = scratch.run(&["checkpoint", "inspect", earlier, "--json"]);
    assert_eq!(earlier.success()["step"], 35);
    assert_ne!(earlier.digest(), digest);
}

#[test]
fn recipes_are_listed_and_printed() {
    let scratch = Scratch::new();
    let names = scratch.run(&["recipe"]);
    assert_eq!(names.code, Some(0));
    let names: Vec<&str> = names.stdout.lines().collect();
    assert!(names.contains(&"demo") && names.contains(&"load-mlp"), "{names:?}");
    for name in names {
        let text = scratch.run(&["recipe", name]);
        assert_eq!(text.code, Some(0));
        Recipe::parse(&Catalogue::builtin(), &text.stdout, name, &[]).unwrap();
        let json = scratch.run(&["recipe", name, "--json"]).success();
        assert_eq!(json["text"], text.stdout);
    }
}

#[test]
fn help_and_completions_are_there() {
    let scratch = Scratch::new();
    let help = |command: &[&str]| {
        let outcome = scratch.run(&[command, &["--help"]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("Usage: bayesmesh"), "{outcome:?}");
        outcome.stdout
    };
    let top = help(&[]);
    assert!(top.contains("Exit codes:"), "{top}");
    let commands = [
        "demo",
        "train",
        "evaluate",
        "predict",
        "compare",
        "checkpoint",
        "data",
        "recipe",
        "completions",
    ];
    for command in commands {
        assert!(top.contains(&format!("\n  {command}")), "{command} is not in\n{top}");
        help(&[command]);
    }
    help(&["checkpoint", "inspect"]);
    help(&["checkpoint", "export"]);
    for command in ["fetch", "check", "synth"] {
        help(&["data", command]);
        help(&["data", command, "load"]);
        help(&["data", command, "cifar10"]);
    }
    assert!(scratch.run(&["--version"]).stdout.starts_with("bayesmesh "));
    for shell in ["bash", "zsh", "fish"] {
        let outcome = scratch.run(&["completions", shell]);
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.stdout.contains("checkpoint"), "{shell}");
    }
}
