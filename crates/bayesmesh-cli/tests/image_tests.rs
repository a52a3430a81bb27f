//! The classification of images, from the recipe to the report.

#[path = "../../bayesmesh-report/tests/browser/mod.rs"]
mod browser;
mod common;

use bayesmesh_cli::run::MetricsTable;
use common::Scratch;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

/// Values of a column of a run's metrics.
fn column(scratch: &Scratch, run: &str, name: &str) -> Vec<(u64, f64)> {
    let table = MetricsTable::read(scratch.path(run).join("metrics.csv")).unwrap();
    let values = table.column(name).unwrap_or_else(|| panic!("no {name}"));
    assert!(!values.is_empty(), "{name}");
    values
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_run_learns_and_is_scored() {
    let scratch = Scratch::new();
    let settings = ["train.steps=150", "data.count=400", "evaluate.draws=8"];
    let outcome = scratch.train("images-demo", &settings, &["--ranks", "2", "--out", "run"]);
    let result = outcome.success();
    assert_eq!((&result["steps"], &result["mesh"]), (&150.into(), &"2x1".into()));
    assert_eq!(outcome.stdout.lines().count(), 1, "logs do not go to standard output");
    let words = ["360 training, 40 validation, 60 test images of 32×32 pixels", "memory  about"];
    for word in words {
        assert!(outcome.stderr.contains(word), "no '{word}' in\n{}", outcome.stderr);
    }
    let test = &result["test"];
    let accuracy = number(&test["accuracy"]);
    assert!(accuracy > 0.5, "a guess is right one time out of ten, this {accuracy}");
    assert!(number(&test["nll"]) < 10f64.ln(), "{test}");
    for name in ["ece", "unweighted_calibration_error", "maximum_calibration_error"] {
        assert!((0.0..=1.0).contains(&number(&test[name])), "{name}: {test}");
    }
    for name in ["brier", "classwise_calibration_error", "entropy", "mutual_information"] {
        assert!((0.0..2.5).contains(&number(&test[name])), "{name}: {test}");
    }
    for name in ["error_auroc", "ood_auroc", "ood_auroc_gaussian_noise", "ood_auroc_contrast"] {
        assert!((0.0..=1.0).contains(&number(&test[name])), "{name}: {test}");
    }

    let evaluation: Value = serde_json::from_str(&scratch.read("run/evaluation.json")).unwrap();
    assert_eq!(evaluation["test"], *test);
    assert_eq!((&evaluation["images"], &evaluation["draws"]), (&60.into(), &8.into()));
    let confusion = evaluation["confusion"].as_array().unwrap();
    let counts: Vec<Vec<f64>> =
        confusion.iter().map(|row| row.as_array().unwrap().iter().map(number).collect()).collect();
    assert!(counts.iter().all(|row| row.iter().sum::<f64>() == 6.0), "six images of each class");
    let right: f64 = (0..10).map(|class| counts[class][class]).sum();
    assert!((right / 60.0 - accuracy).abs() < 1e-12);
    assert!((number(&evaluation["class_accuracy"]["frog"]) - counts[6][6] / 6.0).abs() < 1e-12);
    let bins = evaluation["reliability"].as_array().unwrap();
    assert_eq!(bins.len(), 15);
    assert_eq!(bins.iter().map(|bin| number(&bin["images"])).sum::<f64>(), 60.0);
    let corrupted = evaluation["corrupted"].as_array().unwrap();
    assert_eq!(corrupted.len(), 9, "three corruptions at three severities");
    assert!(corrupted.iter().all(|row| row["images"] == 20), "{corrupted:?}");
    let mean = corrupted.iter().map(|row| number(&row["auroc"])).sum::<f64>() / 9.0;
    assert!((mean - number(&test["ood_auroc"])).abs() < 1e-12);

    // 18 steps an epoch: eight epochs and the end.
    assert_eq!(column(&scratch, "run", "validation_accuracy").len(), 9);
    let nll = column(&scratch, "run", "validation_nll");
    assert!(nll.last().unwrap().1 < nll[0].1, "{nll:?}");
    column(&scratch, "run", "validation_ece");
    scratch.assert_nothing_unfinished();
}

#[test]
fn corruptions_and_validation_can_be_left_out() {
    let scratch = Scratch::new();
    let settings = ["evaluate.corruptions=false", "data.validation=0", "posterior.kind=point"];
    let settings = [&settings[..], &["train.heat=1", "evaluate.draws=1"]].concat();
    let result = scratch.train("images-demo", &settings, &["--out", "run"]).success();
    assert_eq!(result["test"].get("ood_auroc"), None);
    assert_eq!(number(&result["test"]["mutual_information"]), 0.0, "one draw agrees with itself");
    let evaluation: Value = serde_json::from_str(&scratch.read("run/evaluation.json")).unwrap();
    assert_eq!(evaluation.get("corrupted"), None);
    let table = MetricsTable::read(scratch.path("run/metrics.csv")).unwrap();
    assert_eq!(table.column("validation_nll"), Some(Vec::new()));
    let report = scratch.read("run/report.html");
    assert!(!report.contains("Unfamiliar images") && report.contains("What it is wrong about"));
}

/// Seven steps, then five more on another mesh.
#[test]
fn an_interrupted_run_ends_with_the_same_weights() {
    let scratch = Scratch::new();
    let fixed = ["train.reduce=reproducible", "schedule.kind=constant"];
    let train = |steps: &str, others: &[&str]| {
        scratch.train("images-demo", &[&fixed[..], &[steps]].concat(), others)
    };
    let whole = train("train.steps=12", &["--ranks", "1", "--out", "whole"]).digest();
    let first = train("train.steps=7", &["--ranks", "1", "--out", "parts"]).digest();
    assert_ne!(first, whole);
    let parts = train("train.steps=12", &["--ranks", "2", "--out", "parts", "--resume"]);
    assert_eq!(parts.digest(), whole);
    assert_eq!(column(&scratch, "parts", "loss"), column(&scratch, "whole", "loss"));
    let other = train("data.split_seed=5", &["--out", "parts", "--resume"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("another `data.split_seed`"), "{}", other.stderr);
}

/// Sampling parallelism follows the curve of one rank: up to rounding with fast sums, bit for bit
/// with reproducible ones. So do data parallelism and both together, up to rounding.
#[test]
fn the_curve_is_the_same_on_every_mesh() {
    let scratch = Scratch::new();
    for loss in ["cross-entropy-of-mean", "expected-cross-entropy"] {
        let loss = format!("loss.kind={loss}");
        let train = |mesh: &str, reduce: &str, out: &str| {
            let settings = [loss.as_str(), reduce];
            scratch.train("images-demo", &settings, &["--mesh", mesh, "--out", out]).digest()
        };
        let fast = "train.reduce=fast";
        let name = |mesh: &str| format!("{loss}-{mesh}");
        for mesh in ["1x1", "2x1", "1x2", "2x2"] {
            train(mesh, fast, &name(mesh));
        }
        for mesh in ["2x1", "1x2", "2x2"] {
            for kept in ["loss", "gradient_norm", "validation_nll"] {
                let alone = column(&scratch, &name("1x1"), kept);
                let shared = column(&scratch, &name(mesh), kept);
                assert_eq!(alone.len(), shared.len());
                for ((step, a), (_, b)) in alone.iter().zip(shared) {
                    assert!((a / b - 1.0).abs() < 1e-5, "{kept} at {step} on {mesh}: {a}, {b}");
                }
            }
        }
        let exact = "train.reduce=reproducible";
        let alone = train("1x1", exact, &format!("{loss}-exact-1"));
        assert_eq!(train("2x1", exact, &format!("{loss}-exact-2")), alone);
        assert_eq!(train("4x1", exact, &format!("{loss}-exact-4")), alone);
    }
}

/// Which draws see the same crops changes what is learned; not the number of ranks.
#[test]
fn augmentation_is_per_draw_per_rank_or_shared() {
    let scratch = Scratch::new();
    let train = |augment: &str, ranks: &str| {
        let augment = format!("train.augment={augment}");
        let settings = [augment.as_str(), "train.reduce=reproducible"];
        let out = format!("{augment}-{ranks}");
        scratch.train("images-demo", &settings, &["--ranks", ranks, "--out", &out]).digest()
    };
    let (draw, shared) = (train("per-draw", "1"), train("shared", "1"));
    assert_ne!(draw, shared);
    assert_eq!(train("per-draw", "2"), draw);
    assert_eq!(train("shared", "2"), shared);
    // One rank has one augmentation; two have two.
    assert_eq!(train("per-rank", "1"), shared);
    assert_ne!(train("per-rank", "2"), shared);
    let plain = ["data.augmentation=false", "train.reduce=reproducible"];
    let plain = scratch.train("images-demo", &plain, &["--out", "plain"]).digest();
    assert!(plain != draw && plain != shared);
}

#[test]
fn images_are_classified_to_a_file() {
    let scratch = Scratch::new();
    let trained = scratch.train("images-demo", &[], &["--out", "run"]).success();
    let predict =
        |arguments: &[&str]| scratch.run(&[&["predict", "run", "--json"][..], arguments].concat());
    let result = predict(&["--out", "all.csv"]).success();
    assert_eq!((&result["images"], &result["draws"]), (&60.into(), &4.into()));
    let text = scratch.read("all.csv");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    assert_eq!(&header[..5], ["image", "label", "predicted", "entropy", "mutual_information"]);
    assert_eq!((header.len(), header[5], header[14]), (17, "p_airplane", "p_truck"));
    assert_eq!(header[15..], ["expected_entropy", "set90"]);
    let rows: Vec<Vec<&str>> = lines.collect();
    assert_eq!(rows.len(), 60);
    let mut right = 0.0;
    for (image, row) in rows.iter().enumerate() {
        assert_eq!(row[0], image.to_string());
        let numbers: Vec<f64> = row[3..16].iter().map(|cell| cell.parse().unwrap()).collect();
        let probabilities = &numbers[2..12];
        assert!((numbers[0] - numbers[1] - numbers[12]).abs() < 1e-5, "{row:?}");
        let mut set = row[16].split('|').filter(|class| !class.is_empty());
        assert!(set.all(|class| header.contains(&format!("p_{class}").as_str())), "{row:?}");
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-4, "{row:?}");
        let entropy: f64 = probabilities.iter().map(|p| -p * p.max(1e-12).ln()).sum();
        assert!((entropy - numbers[0]).abs() < 1e-3, "{entropy} {row:?}");
        assert!((0.0..=numbers[0] + 1e-6).contains(&numbers[1]), "{row:?}");
        let top = probabilities.iter().copied().fold(0.0, f64::max);
        let predicted = header.iter().position(|name| *name == format!("p_{}", row[2])).unwrap();
        assert!(numbers[predicted - 3] >= top - 1e-6, "{row:?}");
        right += f64::from(u8::from(row[1] == row[2]));
    }
    // What training has found.
    assert!((right / 60.0 - number(&trained["test"]["accuracy"])).abs() < 1e-12);

    predict(&["--out", "some.npy", "--limit", "7"]).success();
    let bytes = std::fs::read(scratch.path("some.npy")).unwrap();
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let values: Vec<f32> = bytes[bytes.len() - 7 * 17 * 4..]
        .chunks(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect();
    for (row, numbers) in rows.iter().zip(values.chunks(17)) {
        for (cell, value) in row[3..16].iter().zip(&numbers[3..]) {
            assert!((cell.parse::<f32>().unwrap() - value).abs() < 1e-5, "{row:?} {numbers:?}");
        }
        let size = row[16].split('|').filter(|class| !class.is_empty()).count();
        assert_eq!(numbers[16], size as f32, "{row:?}");
    }

    predict(&["--out", "some.parquet", "--limit", "7"]).success();
    let file = std::fs::File::open(scratch.path("some.parquet")).unwrap();
    let table = SerializedFileReader::new(file).unwrap();
    let mut count = 0;
    for ((row, line), numbers) in
        table.get_row_iter(None).unwrap().zip(&rows).zip(values.chunks(17))
    {
        let (names, cells): (Vec<_>, Vec<_>) = row.unwrap().into_columns().into_iter().unzip();
        assert_eq!(names, header);
        assert_eq!(cells[0], Field::Long(count));
        let classes = [line[1], line[2]].map(|class| Field::Str(class.to_owned()));
        assert_eq!(cells[1..3], classes);
        let numbers: Vec<Field> = numbers[3..16].iter().map(|&value| Field::Float(value)).collect();
        assert_eq!(cells[3..16], numbers);
        assert_eq!(cells[16], Field::Str(line[16].to_owned()));
        count += 1;
    }
    assert_eq!(count, 7);

    // Images of a folder, the same as the generated ones but for their number.
    let synth = ["data", "synth", "cifar10", "--out", "files", "--count", "60", "--json"];
    scratch.run(&synth).success();
    let result = predict(&["files", "--out", "files.csv", "--limit", "9"]).success();
    assert_eq!(result["images"], 9);
    let written = scratch.read("files.csv");
    assert_eq!(written.lines().count(), 10);

    for (arguments, code, words) in [
        (&["--out", "a.txt"][..], 2, &["a.txt", ".csv, .npy or .parquet"][..]),
        (&["--out", "a.csv", "--every", "2"], 2, &["--every", "--limit"]),
        (&["--out", "a.csv", "--quantiles", "0.5"], 2, &["--quantiles"]),
        (&["--out", "a.csv", "--limit", "100"], 2, &["100 test images", "1 to 60"]),
        (
            &["none", "--out", "a.csv"],
            3,
            &["none", "no such folder", "bayesmesh data fetch cifar10"],
        ),
    ] {
        let outcome = predict(arguments);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        let error = outcome.json()["error"].as_str().unwrap().to_owned();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    assert!(!scratch.path("a.csv").exists());
}

#[test]
fn a_run_is_scored_again() {
    let scratch = Scratch::new();
    let trained = scratch.train("images-demo", &[], &["--ranks", "1", "--out", "run"]).success();
    // On any mesh, with the draws of the recipe.
    for mesh in ["1x1", "2x2"] {
        let again = scratch.run(&["evaluate", "run", "--mesh", mesh, "--json"]).success();
        for name in ["accuracy", "nll", "ece", "mutual_information", "ood_auroc"] {
            let (a, b) = (number(&trained["test"][name]), number(&again["test"][name]));
            assert!((a - b).abs() < 1e-6, "{name} on {mesh}: {a}, {b}");
        }
    }
    let more = scratch.run(&["evaluate", "run", "--draws", "16", "--json"]).success();
    assert_eq!(more["draws"], 16);
    assert_ne!(more["test"]["nll"], trained["test"]["nll"]);
}

#[test]
fn the_report_fits_a_phone_and_a_screen() {
    let scratch = Scratch::new();
    let settings = ["train.steps=40", "evaluate.draws=8"];
    scratch.train("images-demo", &settings, &["--out", "run"]).success();
    let html = scratch.read("run/report.html");
    let pictures = html.matches("data:image/png;base64,").count();
    assert!((14 + 7..=14 + 14 + 7).contains(&pictures), "{pictures} pictures");
    let Some(layouts) = browser::layouts(&html, &[400, 1400]) else {
        println!("skipped: no chromium");
        return;
    };
    for layout in layouts {
        assert!(layout.problems.is_empty(), "{layout:?}");
        assert_eq!((layout.charts, layout.tables), (8, 4), "{layout:?}");
        assert!(layout.marks >= layout.charts, "{layout:?}");
    }
}

#[test]
fn wrong_data_is_refused_with_its_place() {
    let scratch = Scratch::new();
    scratch
        .run(&["data", "synth", "cifar10", "--out", "good", "--count", "60", "--json"])
        .success();
    let train = |path: &str, settings: &[&str]| {
        let path = format!("data.path={path}");
        let settings = ["data.kind=cifar10", &path].into_iter().chain(settings.iter().copied());
        let small = common::SMALL_IMAGES.iter().copied().filter(|s| !s.starts_with("data."));
        let settings: Vec<&str> = small.chain(settings).flat_map(|s| ["--set", s]).collect();
        let start = ["train", "images-demo", "--out", "run", "--json"];
        scratch.run(&[&start[..], &settings].concat())
    };
    let refused = |outcome: common::Outcome, code: i32, words: &[&str]| {
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
        let error = outcome.json()["error"].as_str().unwrap().to_owned();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
        assert!(!scratch.path("run").exists(), "a folder is left");
    };
    refused(train("none", &[]), 3, &["data.path", "none", "bayesmesh data fetch cifar10"]);
    refused(train("good", &["data.limit=301"]), 2, &["301 training images", "1 to 300"]);
    refused(train("good", &["data.test_limit=61"]), 2, &["61 test images", "1 to 60"]);
    refused(train("good", &["train.batch=290"]), 2, &["290", "270"]);

    let batch = scratch.path("good/data_batch_2.bin");
    let bytes = std::fs::read(&batch).unwrap();
    std::fs::write(&batch, &bytes[..bytes.len() - 1]).unwrap();
    refused(train("good", &[]), 3, &["data_batch_2.bin", "cut off"]);
    let mut spoiled = bytes.clone();
    spoiled[3073] = 255;
    std::fs::write(&batch, spoiled).unwrap();
    refused(train("good", &[]), 3, &["data_batch_2.bin", "image 1", "label 255"]);
    std::fs::remove_file(&batch).unwrap();
    refused(train("good", &[]), 3, &["data_batch_2.bin", "no such file"]);
    std::fs::write(&batch, bytes).unwrap();
    train("good", &["data.limit=100", "data.test_limit=20"]).success();
}

#[test]
fn wrong_recipes_are_refused() {
    let scratch = Scratch::new();
    for (setting, words) in [
        ("model.kind=mlp", &["a perceptron takes a series", "`model.kind = \"vit\"`"][..]),
        ("model.width=30", &["30 is not divisible by 4", "`width = 28` or `width = 32`"]),
        ("model.patch=5", &["5×5 pixels", "32×32"]),
        ("loss.kind=crps", &["this loss is for numbers"]),
        ("data.validation=1.0", &["data.validation", "below 1"]),
        ("data.normalisation=none", &["`standard`, `reference`"]),
        ("data.inputs=3", &["`data.inputs` is a key of `load`"]),
    ] {
        let outcome = scratch.train("images-demo", &[setting], &["--out", "run"]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        let error = outcome.json()["error"].as_str().unwrap().to_owned();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
    assert!(scratch.names("").is_empty());
}
