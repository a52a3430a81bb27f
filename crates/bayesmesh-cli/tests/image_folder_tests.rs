//! Folders of images, from the files to the report.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Outcome, Scratch};
use serde_json::Value;

/// A network and a training that take a moment.
const SMALL: &[&str] = &[
    "data.size=16",
    "model.width=8",
    "model.groups=4",
    "model.blocks=[1,1]",
    "model.stride=1",
    "train.epochs=2",
    "train.batch=10",
    "evaluate.draws=4",
    "schedule.warmup=0",
    "checkpoint.every=100",
];

/// `train WHAT --json` with [`SMALL`], settings and other arguments.
fn train(scratch: &Scratch, what: &str, settings: &[&str], others: &[&str]) -> Outcome {
    let settings = SMALL.iter().chain(settings).flat_map(|setting| ["--set", *setting]);
    let arguments: Vec<&str> = ["train", what, "--json"]
        .into_iter()
        .chain(settings)
        .chain(others.iter().copied())
        .collect();
    scratch.run(&arguments)
}

/// Generated images in a folder `shapes`.
fn with_shapes(count: &str) -> Scratch {
    let scratch = Scratch::new();
    let made = scratch.run(&["data", "synth", "images", "--out", "shapes", "--count", count]);
    assert_eq!(made.code, Some(0), "{made:?}");
    scratch
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The rows of a CSV file without quoted fields, by column.
fn table(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| header.iter().copied().zip(line.split(',')).collect()).collect()
}

#[test]
fn a_folder_is_enough() {
    let scratch = with_shapes("30");
    let outcome = train(&scratch, "shapes", &[], &["--ranks", "2"]);
    let result = outcome.success();
    for words in [
        "no recipe given",
        "120 images of 4 classes",
        "80 training, 20 validation, 20 test images of 4 classes, 16×16 pixels",
    ] {
        assert!(outcome.stderr.contains(words), "no '{words}' in\n{}", outcome.stderr);
    }
    assert!((0.0..=1.0).contains(&number(&result["test"]["accuracy"])));
    let recipe = scratch.read("runs/shapes/recipe.toml");
    for line in [
        "kind = \"images\"",
        "classes = [\"circle\", \"cross\", \"square\", \"triangle\"]",
        "kind = \"resnet\"",
    ] {
        assert!(recipe.contains(line), "no {line} in\n{recipe}");
    }
    let evaluation: Value =
        serde_json::from_str(&scratch.read("runs/shapes/evaluation.json")).unwrap();
    assert!(evaluation["class_accuracy"]["triangle"].is_number(), "{evaluation}");
    assert!(evaluation["temperature"].is_number(), "calibrated by default");
    let report = scratch.read("runs/shapes/report.html");
    for words in ["What it is wrong about", "triangle", "data:image/png"] {
        assert!(report.contains(words), "no '{words}'");
    }
    // The recipe of the run repeats it, also with another posterior and the transformer.
    let digest = train(&scratch, "runs/shapes/recipe.toml", &[], &["--out", "again"]).digest();
    assert_eq!(result["digest"].as_str(), Some(digest.as_str()));
    let field = ["posterior.kind=mean-field", "model.dropout=0.0", "train.heat=0.1"];
    train(&scratch, "shapes", &field, &["--out", "mean-field"]).success();
    let vit = "train images-folder --json --set model.kind=vit --set posterior.kind=mean-field \
               --set model.width=16 --set model.heads=2 --set model.depth=1 --set model.mlp=16 \
               --set data.path=shapes --set data.size=12 --set train.steps=3 --out vit --set";
    let vit = |patch| vit.split_whitespace().chain([patch]).collect::<Vec<_>>();
    scratch.run(&vit("model.patch=4")).success();
    let refused = scratch.run(&vit("model.patch=5"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("do not divide images of 12×12"), "{}", refused.stderr);
    let weights = scratch.run(&["checkpoint", "export", "again", "--out", "w.safetensors"]);
    assert_eq!(weights.code, Some(0), "{weights:?}");
    scratch.assert_nothing_unfinished();
}

/// What `predict` writes of the test images is what `evaluate` scores.
#[test]
fn predictions_are_what_is_evaluated() {
    let scratch = with_shapes("20");
    // Parts in folders: the test images are then a folder too.
    for class in ["circle", "cross", "square", "triangle"] {
        for (number, part) in (0..20).map(|n| (n, if n < 14 { "train" } else { "test" })) {
            let ending = if number % 2 == 1 { "jpg" } else { "png" };
            let folder = scratch.path("parts").join(part).join(class);
            fs::create_dir_all(&folder).unwrap();
            let name = format!("{number:05}.{ending}");
            fs::copy(scratch.path("shapes").join(class).join(&name), folder.join(&name)).unwrap();
        }
    }
    // Weights are drawn for all images alike; masks of dropout are drawn image by image.
    let field = ["posterior.kind=mean-field", "model.dropout=0.0", "train.heat=0.1"];
    let result = train(&scratch, "parts", &field, &["--out", "run"]).success();
    let accuracy = number(&result["test"]["accuracy"]);
    let nll = number(&result["test"]["nll"]);
    fs::rename(scratch.path("parts/train"), scratch.path("elsewhere")).unwrap();
    let predict = |folder: &str, out: &str| {
        let outcome = scratch.run(&["predict", "run", folder, "--out", out, "--json"]);
        (outcome.success(), scratch.read(out))
    };
    let (said, text) = predict("parts/test", "test.csv");
    assert_eq!((&said["images"], &said["left_out"]), (&24.into(), &0.into()));
    let rows = table(&text);
    assert_eq!(rows.len(), 24);
    let right = rows.iter().filter(|row| row["label"] == row["predicted"]).count();
    assert!((right as f64 / 24.0 - accuracy).abs() < 1e-9, "{right} of 24, not {accuracy}");
    let log = |row: &BTreeMap<&str, &str>| {
        row[format!("p_{}", row["label"]).as_str()].parse::<f64>().unwrap().ln()
    };
    let found = -rows.iter().map(log).sum::<f64>() / 24.0;
    assert!((found - nll).abs() < 1e-4, "{found}, not {nll}");
    assert_eq!(rows[0]["file"], "circle/00014.png");
    assert!(rows.iter().all(|row| row["file"].starts_with(row["label"])), "{text}");

    // A flat folder, with a file that is broken and one that is none.
    fs::create_dir(scratch.path("flat")).unwrap();
    fs::copy(scratch.path("parts/test/cross/00014.png"), scratch.path("flat/a.png")).unwrap();
    scratch.write("flat/b.jpg", "not a photograph");
    scratch.write("flat/c.txt", "nor this");
    let (said, text) = predict("flat", "flat.csv");
    let flat = table(&text);
    assert_eq!((flat.len(), &said["left_out"]), (1, &1.into()));
    assert_eq!(flat[0].get("label"), None, "nobody knows it");
    assert_eq!(flat[0]["file"], "a.png");
    let same = rows.iter().find(|row| row["file"] == "cross/00014.png").unwrap();
    assert_eq!(flat[0]["p_cross"], same["p_cross"], "whatever else is in the folder");
    let outcome = scratch.run(&["predict", "run", "nothing", "--out", "x.csv"]);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
}

/// With reproducible sums every number of sample ranks ends with the same bits; data ranks differ
/// by the rounding of sums.
#[test]
fn every_mesh_ends_alike() {
    let scratch = with_shapes("15");
    let run = |mesh: &str, out: &str| {
        let settings = ["train.reduce=reproducible", "train.samples=4", "data.operations=2"];
        train(&scratch, "shapes", &settings, &["--mesh", mesh, "--out", out])
    };
    let alone = run("1x1", "one");
    for mesh in ["2x1", "4x1"] {
        assert_eq!(run(mesh, mesh).digest(), alone.digest(), "{mesh}");
    }
    let nll = |outcome: &Outcome| number(&outcome.success()["test"]["nll"]);
    let (one, two) = (nll(&alone), nll(&run("1x2", "two")));
    assert!((one / two - 1.0).abs() < 1e-3, "{one} {two}");
}

/// Photographs that another program wrote: with capital endings, progressive ones, of many sizes.
#[test]
fn photographs_of_another_program_are_learned() {
    let python = std::env::var("BAYESMESH_PYTHON").unwrap_or("python3".to_owned());
    let has = Command::new(&python).args(["-c", "import PIL"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        return println!("skipped: {python} has no PIL; BAYESMESH_PYTHON names another Python");
    }
    let scratch = Scratch::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/photos.py");
    let folder = scratch.path("photos");
    let made = Command::new(python).arg(script).arg(&folder).arg("60").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let checked = scratch.run(&["data", "check", "images", "photos", "--json"]).success();
    assert_eq!(
        (&checked["readable"], &checked["classes"]["ring"]["all"]),
        (&180.into(), &60.into())
    );
    let settings = ["data.size=24", "train.epochs=12", "optimizer.rate=3e-3"];
    let result = train(&scratch, "photos", &settings, &["--ranks", "2", "--out", "run"]).success();
    let accuracy = number(&result["test"]["accuracy"]);
    assert!(accuracy > 0.6, "a guess is right one time out of three, this {accuracy}");
    scratch.run(&["predict", "run", "photos/ring", "--out", "ring.csv"]);
    let text = scratch.read("ring.csv");
    let rows = table(&text);
    assert_eq!((rows.len(), rows[7]["file"]), (60, "IMG_0007.JPG"));
    let rings = rows.iter().filter(|row| row["predicted"] == "ring").count();
    assert!(rings > 30, "{rings} of 60");
}

#[test]
fn what_is_wrong_is_said_in_words() {
    let scratch = with_shapes("4");
    let refused = |what: &str, settings: &[&str], code: i32, words: &str| {
        let outcome = train(&scratch, what, settings, &["--out", "refused"]);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "no '{words}' in\n{}", outcome.stderr);
        assert!(!scratch.path("refused").exists(), "nothing is written");
    };
    fs::create_dir_all(scratch.path("one/cat")).unwrap();
    fs::copy(scratch.path("shapes/cross/00000.png"), scratch.path("one/cat/1.png")).unwrap();
    refused("one", &[], 3, "`cat` is the only class");
    fs::create_dir(scratch.path("none")).unwrap();
    refused("none", &[], 3, "the folder is empty");
    fs::create_dir_all(scratch.path("one/dog")).unwrap();
    scratch.write("one/dog/1.jpg", "not a photograph");
    refused("one", &[], 3, "no images to test with");
    refused("images-folder", &["data.path=nowhere"], 3, "no such folder");
    refused("images-folder", &["data.path=shapes", "model.groups=3"], 2, "3 groups do not divide");
    refused("shapes", &["data.classes=[\"circle\",\"cat\"]"], 3, "no images of the class `cat`");
    // All images of a class are broken: it cannot be learned.
    for number in 0..4 {
        let ending = if number % 2 == 1 { "jpg" } else { "png" };
        scratch.write(&format!("shapes/cross/{number:05}.{ending}"), "spoilt");
    }
    refused("shapes", &[], 3, "no readable image of the class `cross`");
    fs::remove_dir_all(scratch.path("shapes/cross")).unwrap();

    // A class that is missing in the test part, files that are none and folders that are empty.
    fs::create_dir_all(scratch.path("shapes/rare")).unwrap();
    fs::copy(scratch.path("shapes/square/00000.png"), scratch.path("shapes/rare/1.png")).unwrap();
    fs::create_dir(scratch.path("shapes/empty")).unwrap();
    scratch.write("shapes/square/notes.txt", "words");
    scratch.write("shapes/square/cut.png", "words");
    let outcome = train(&scratch, "shapes", &["train.batch=4"], &["--out", "run"]);
    outcome.success();
    for words in [
        "no test images: rare",
        "no validation images: rare",
        "left out, 1 image that cannot be read",
        "square/cut.png: this is neither a PNG nor a JPEG file",
        "left out, 1 file no PNG or JPEG by name: square/notes.txt",
        "left out, 1 folder of no class or part, or links to what was read: empty",
    ] {
        assert!(outcome.stderr.contains(words), "no '{words}' in\n{}", outcome.stderr);
    }
    let report = scratch.read("run/report.html");
    assert!(!report.contains("NaN"), "a class without test images has no shares");
}

/// Images that do not fit in memory are decoded for every batch, with the same result.
#[test]
fn images_that_do_not_fit_give_the_same_run() {
    let scratch = with_shapes("8");
    let run = |cache: &str, out: &str| {
        train(&scratch, "shapes", &[cache, "train.batch=8"], &["--ranks", "2", "--out", out])
    };
    let (kept, again) = (run("data.cache_gib=1.0", "kept"), run("data.cache_gib=0.0", "again"));
    assert!(again.stderr.contains("files are decoded for every batch"), "{}", again.stderr);
    assert_eq!(kept.digest(), again.digest());
}
