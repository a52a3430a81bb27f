//! Tables of one's own, from a file to predictions.

mod common;

use std::fmt::Write as _;

use common::{Outcome, Scratch};
use serde_json::Value;

/// Settings of a training that takes a moment.
const SMALL: &[&str] =
    &["train.epochs=12", "train.samples=2", "model.hidden=[16]", "evaluate.draws=8"];

/// Houses: a number, a category with a missing one, a date, a boolean, a name and a price.
fn houses(rows: usize) -> String {
    let mut text = "id,city,area,sold,garden,price,class\n".to_owned();
    for row in 0..rows {
        // Numbers without an order, the same every time.
        let mixed = |k: usize| ((row * 7919 + k * 104_729) % 1009) as f64 / 1009.0;
        let city = ["Ulm", "Bonn", "Kiel", ""][(mixed(1) * 4.0) as usize];
        let area = 20.0 + 100.0 * mixed(2);
        let garden = mixed(3) > 0.5;
        let price = 10.0 + 2.0 * area + if garden { 30.0 } else { 0.0 } + 20.0 * mixed(4);
        let class =
            ["low", "middle", "high"][usize::from(price > 120.0) + usize::from(price > 180.0)];
        let area = if row % 17 == 3 { String::new() } else { format!("{area:.2}") };
        let (month, day) = (row % 12 + 1, row % 28 + 1);
        writeln!(text, "h{row},{city},{area},2020-{month:02}-{day:02},{garden},{price:.3},{class}")
            .unwrap();
    }
    text
}

fn run(scratch: &Scratch, arguments: &[&str], settings: &[&str]) -> Outcome {
    let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
    let all: Vec<&str> = arguments.iter().copied().chain(["--json"]).chain(settings).collect();
    scratch.run(&all)
}

fn train(scratch: &Scratch, others: &[&str]) -> Value {
    let arguments = [&["train", "houses.csv"][..], others].concat();
    run(scratch, &arguments, SMALL).success()
}

/// The rows of a CSV file, without its header.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn with_houses(rows: usize) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("houses.csv", houses(rows));
    scratch
}

#[test]
fn a_file_and_a_target_are_enough() {
    let scratch = with_houses(400);
    let result = train(&scratch, &["--target", "price"]);
    let test = &result["test"];
    let number = |name: &str| test[name].as_f64().unwrap();
    assert!(number("rmse") < 0.7 * number("mean_rmse"), "{test}");
    assert!((number("log_likelihood") + number("nll")).abs() < 1e-9, "{test}");
    assert!(number("coverage_90") > 0.7, "{test}");
    let recipe = scratch.read("runs/houses/recipe.toml");
    for line in [
        r#"target = ["price"]"#,
        r#"numbers = ["area"]"#,
        r#"booleans = ["garden"]"#,
        r#"categories = ["city", "class"]"#,
        r#"dates = ["sold"]"#,
        r#"ignore = ["id"]"#,
        "codes = [4, 4]",
    ] {
        assert!(recipe.lines().any(|own| own == line), "{line} in\n{recipe}");
    }
    let evaluation: Value =
        serde_json::from_str(&scratch.read("runs/houses/evaluation.json")).unwrap();
    assert_eq!(evaluation["test"]["rmse"], test["rmse"]);
    assert!(scratch.read("runs/houses/report.html").contains("another text in every row"));
    // The recipe that was written repeats the run, on any number of ranks.
    let again = |out: &str, ranks: &str, set: &[&str]| {
        let arguments = ["train", "runs/houses/recipe.toml", "--out", out, "--ranks", ranks];
        run(&scratch, &arguments, set).success()
    };
    let two = again("two", "2", &["train.reduce=reproducible"]);
    let one = again("one", "1", &["train.reduce=reproducible"]);
    assert_eq!(one["digest"], two["digest"]);
    let [one, two] = [one, two].map(|result| result["test"]["rmse"].as_f64().unwrap());
    assert!((one / two - 1.0).abs() < 1e-9, "{one} {two}");
    assert_eq!(again("same", "2", &[])["test"]["rmse"], test["rmse"]);
}

/// What is predicted of raw rows is what the run was scored by, whatever the order of the columns.
#[test]
fn raw_rows_are_predicted_as_the_run_was_scored() {
    let scratch = with_houses(400);
    // Without dropout, whose masks are of a place and not of a row.
    let certain = ["--set", "posterior.kind=point", "--set", "model.dropout=0.0"];
    let columns = ["--target", "price", "--set", "data.ignore=[\"class\"]"];
    let result = train(&scratch, &[&columns[..], &certain].concat());
    let truth = rows(&houses(400));
    let mut raw = "garden,sold,area,city,more\n".to_owned();
    for row in &truth {
        writeln!(raw, "{},{},{},{},x", row[4], row[3], row[2], row[1]).unwrap();
    }
    scratch.write("raw.csv", &raw);
    let predict = |arguments: &[&str]| {
        run(&scratch, &[&["predict", "runs/houses"], arguments].concat(), &[]).success()
    };
    predict(&["raw.csv", "--out", "raw-out.csv"]);
    let told = predict(&["--out", "test.csv"]);
    assert_eq!(told["columns"][0], "mean");
    let (all, test) = (rows(&scratch.read("raw-out.csv")), rows(&scratch.read("test.csv")));
    let mut squares = 0.0;
    for row in &test {
        let index: usize = row[0].parse().unwrap();
        for (own, other) in row[1..12].iter().zip(&all[index][1..12]) {
            let [own, other] = [own, other].map(|text| text.parse::<f64>().unwrap());
            assert!((own - other).abs() < 1e-3, "row {index}: {own} {other}");
        }
        let [mean, price] = [&row[1], &truth[index][5]].map(|text| text.parse::<f64>().unwrap());
        squares += (mean - price).powi(2);
    }
    let rmse = (squares / test.len() as f64).sqrt();
    let scored = result["test"]["rmse"].as_f64().unwrap();
    assert!((rmse / scored - 1.0).abs() < 1e-4, "{rmse} {scored}");
    // The same as Parquet, which is a table again.
    predict(&["raw.csv", "--out", "raw-out.parquet"]);
    let checked = run(&scratch, &["data", "check", "table", "raw-out.parquet"], &[]).success();
    assert_eq!(checked["rows"], 400);
    assert_eq!(checked["columns"][1]["name"], "mean");
}

#[test]
fn rows_unlike_all_others_are_named() {
    let scratch = with_houses(300);
    train(&scratch, &["--target", "price", "--set", "data.ignore=[\"class\"]"]);
    scratch.write(
        "new.csv",
        "city,area,sold,garden\nUlm,50,2020-05-01,true\nParis,900,2020-05-01,true\nUlm,,2031-01-01,\n",
    );
    let result = run(&scratch, &["predict", "runs/houses", "new.csv", "--out", "o.csv"], &[]);
    assert_eq!(result.success()["unlike"], 2);
    let out = scratch.read("o.csv");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[1].ends_with(','), "{out}");
    assert!(lines[2].contains("city is `Paris`, which is new; area is 900, but was"), "{out}");
    assert!(lines[3].contains("sold is 2031-01-01") && lines[3].contains("garden is missing"));
}

#[test]
fn classes_are_predicted_by_their_names() {
    let scratch = with_houses(400);
    let result = train(&scratch, &["--target", "class", "--set", "data.ignore=[\"price\"]"]);
    assert!(result["test"]["accuracy"].as_f64().unwrap() > 0.5, "{result}");
    let recipe = scratch.read("runs/houses/recipe.toml");
    assert!(recipe.contains(r#"classes = ["high", "low", "middle"]"#), "{recipe}");
    scratch.write("new.csv", "city,area,sold,garden\nUlm,119,2020-05-01,true\n");
    run(&scratch, &["predict", "runs/houses", "new.csv", "--out", "o.csv"], &[]).success();
    let out = scratch.read("o.csv");
    assert!(out.starts_with("row,predicted,entropy,mutual_information,p_high,p_low,"), "{out}");
    assert!(out.lines().nth(1).unwrap().starts_with("0,high,"), "{out}");
    run(&scratch, &["predict", "runs/houses", "--out", "t.csv"], &[]).success();
    assert!(scratch.read("t.csv").starts_with("row,label,predicted,"));
}

#[test]
fn several_numbers_are_predicted_each_in_its_unit() {
    let scratch = with_houses(400);
    let ignore = ["--set", "data.ignore=[\"class\"]", "--set", "loss.kind=crps"];
    let targets = ["--target", "price", "--target", "area"];
    let result = train(&scratch, &[&targets[..], &ignore].concat());
    let rmse = |name: &str| result["test"][name]["rmse"].as_f64().unwrap();
    assert!(rmse("price") > 1.2 * rmse("area"), "{result}");
    let predict = ["predict", "runs/houses", "houses.csv", "--out", "o.csv", "--limit", "3"];
    run(&scratch, &predict, &[]).success();
    let out = scratch.read("o.csv");
    assert!(out.starts_with("row,price_mean,price_std,"), "{out}");
    let price: f64 = rows(&out)[0][1].parse().unwrap();
    assert!((40.0..320.0).contains(&price), "{out}");
}

#[test]
fn counts_and_quantiles_are_predicted() {
    let scratch = Scratch::new();
    let mut text = "x,z,n\n".to_owned();
    for row in 0..300usize {
        let x = (row * 37 % 300) as f64 / 150.0;
        let n = (x * 6.0) as usize + row * 7919 % 5;
        writeln!(text, "{x:.3},{},{n}", row % 13).unwrap();
    }
    scratch.write("events.csv", text);
    let arguments = ["train", "events.csv", "--target", "n"];
    let longer = [SMALL, &["train.epochs=100", "optimizer.rate=0.01"]].concat();
    let outcome = run(&scratch, &arguments, &longer);
    let test = &outcome.success()["test"];
    assert!(outcome.stderr.contains("counts are predicted"), "{outcome:?}");
    let number = |name: &str| test[name].as_f64().unwrap();
    assert!(number("rmse") < number("mean_rmse"), "{test}");
    assert!(number("log_likelihood") < 0.0 && number("log_likelihood") > -5.0, "{test}");
    let quantiles = [SMALL, &["loss.kind=quantiles"]].concat();
    let test = &run(&scratch, &arguments, &quantiles).success()["test"];
    assert!(test["coverage_90"].as_f64().unwrap() > 0.6, "{test}");
    scratch.write("events.csv", scratch.read("events.csv").replace(",3\n", ",-3\n"));
    let counts = [SMALL, &["loss.kind=poisson-mixture"]].concat();
    let refused = run(&scratch, &arguments, &counts);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("which is no count"), "{refused:?}");
}

/// A folder as the UCI benchmark has it, with three divisions.
fn folder(scratch: &Scratch) {
    std::fs::create_dir(scratch.path("set")).unwrap();
    let mut data = String::new();
    for row in 0..120usize {
        let x = (row * 37 % 120) as f64 / 60.0 - 1.0;
        let z = (row * 53 % 120) as f64 / 60.0 - 1.0;
        writeln!(data, " {x:.4} {:.4}\t{z:.4}", 3.0 + 2.0 * x - z + (row * 31 % 17) as f64 / 17.0)
            .unwrap();
    }
    scratch.write("set/data.txt", data + "\n");
    scratch.write("set/index_features.txt", "0\n2\n");
    scratch.write("set/index_target.txt", "1\n");
    for split in 0..3 {
        let part = |test: bool| -> String {
            let rows = (0..120).filter(|row| (row % 5 == split) == test);
            rows.map(|row| format!("{row}\n")).collect()
        };
        scratch.write(&format!("set/index_train_{split}.txt"), part(false));
        scratch.write(&format!("set/index_test_{split}.txt"), part(true) + "\n");
    }
}

#[test]
fn all_divisions_of_a_folder_are_one_command() {
    let scratch = Scratch::new();
    folder(&scratch);
    let small = ["data.path=set", "train.epochs=20", "evaluate.draws=16", "train.batch=16"];
    let compare = ["compare", "uci-dropout", "--splits"];
    let result = run(&scratch, &compare, &small).success();
    assert_eq!(result["splits"], serde_json::json!([0, 1, 2]));
    let scores = &result["variants"][0]["test"];
    for name in ["rmse", "log_likelihood"] {
        let values = scores[name]["values"].as_array().unwrap();
        assert_eq!(values.len(), 3, "{scores}");
        assert!(values.iter().all(|value| value.as_f64().unwrap().is_finite()), "{scores}");
        assert!(scores[name]["standard_error"].as_f64().unwrap() > 0.0, "{scores}");
    }
    let one = [&small[..], &["data.split_index=2"]].concat();
    let one = run(&scratch, &["train", "uci-dropout"], &one).success();
    assert_eq!(one["test"]["rmse"], scores["rmse"]["values"][2]);
    // A network that has learned from the validation rows keeps what the pilot has found.
    let scored = run(&scratch, &["evaluate", "runs/uci-dropout"], &[]).success();
    assert_eq!(scored["test"], one["test"]);
    let refused = run(&scratch, &["compare", "uci-dropout", "--splits", "4"], &small);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("the data have 3 divisions"), "{refused:?}");
    let refused = run(&scratch, &["train", "uci-best"], &["data.path=set", "data.split_index=3"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn folds_and_chance_divide_too() {
    let scratch = with_houses(120);
    let compare = ["compare", "houses.csv", "--target", "price", "--splits"];
    let few = [SMALL, &["train.epochs=1"]].concat();
    let folds = [&few[..], &["data.folds=3"]].concat();
    let result = run(&scratch, &compare, &folds).success();
    assert_eq!(result["variants"][0]["test"]["rmse"]["values"].as_array().unwrap().len(), 3);
    let refused = run(&scratch, &compare, &few);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("say how often"), "{refused:?}");
}

#[test]
fn a_run_ends_when_it_gets_no_better_and_is_then_at_its_end() {
    let scratch = with_houses(300);
    let settings =
        [SMALL, &["train.epochs=400", "train.patience=3", "optimizer.rate=0.02"]].concat();
    let arguments = ["train", "houses.csv", "--target", "price", "--out", "run"];
    let ended = run(&scratch, &arguments, &settings).success();
    let steps = ended["steps"].as_u64().unwrap();
    // 210 rows in batches of 32 are 6 steps an epoch.
    assert!(steps < 2400 && steps.is_multiple_of(6), "{ended}");
    let resumed = ["train", "run/recipe.toml", "--out", "run", "--resume"];
    let resumed = run(&scratch, &resumed, &[]).success();
    assert_eq!((&resumed["steps"], &resumed["digest"]), (&ended["steps"], &ended["digest"]));
    assert_eq!(resumed["test"], ended["test"]);
}

#[test]
fn what_cannot_be_learned_from_is_told() {
    let scratch = with_houses(60);
    let header = "a,b,y\n";
    let lines = |f: &dyn Fn(usize) -> String| {
        header.to_owned() + &(0..40).map(|row| f(row) + "\n").collect::<String>()
    };
    scratch.write("none.csv", header);
    scratch.write("one.csv", format!("{header}1,2,3.5\n"));
    scratch.write("empty.csv", "");
    scratch.write("text.csv", lines(&|row| format!("{},2.5,w{}", row % 9, row % 30)));
    scratch.write("same.csv", lines(&|row| format!("{},{row},7.5", row % 9)));
    scratch.write("constant.csv", lines(&|row| format!("1,,{row}.5")));
    scratch.write("copy.csv", lines(&|row| format!("{},{}.5,{row}.5", row % 7, 2 * row)));
    scratch.write("short.csv", format!("{header}1,2,3\n1,2\n"));
    scratch.write("blank.csv", lines(&|row| format!("{},{row},", row % 9)));
    scratch.write("equal.csv", lines(&|row| format!("{},{row},7", row % 9)));
    let price = |row| if row == 5 { "on request".to_owned() } else { format!("{row}.5") };
    scratch.write("words.csv", lines(&|row| format!("{},{},{}", row % 9, row % 7, price(row))));
    let cases: [(&[&str], i32, &str); 15] = [
        (&["blank.csv", "--target", "y"], 3, "column `y`: no row has anything in it"),
        (&["equal.csv", "--target", "y"], 2, "nothing to learn"),
        (&["words.csv", "--target", "y"], 3, "row 6 has `on request`, which is not a number"),
        (&["nothing.csv", "--target", "y"], 3, "nothing.csv"),
        (&["empty.csv", "--target", "y"], 3, "the file is empty"),
        (&["none.csv", "--target", "y"], 3, "no rows"),
        (&["one.csv", "--target", "y"], 3, "rows with something to predict: 1; at least 10"),
        (&["short.csv", "--target", "y"], 3, "line 3: 2 cells, but the first line has 3"),
        (&["houses.csv", "--target", "pric"], 2, "did you mean `price`?"),
        (&["houses.csv"], 2, "which column is to be predicted?"),
        (&["text.csv", "--target", "y"], 3, "too many classes"),
        (&["text.csv", "--target", "y", "--set", "loss.kind=crps"], 3, "use a loss for classes"),
        (&["same.csv", "--target", "y"], 2, "nothing to learn"),
        (&["constant.csv", "--target", "y"], 2, "no column is left to learn from"),
        (&["houses.csv", "--target", "price", "--set", "data.numbers=city"], 3, "is not a number"),
    ];
    for (arguments, code, words) in cases {
        let outcome = run(&scratch, &[&["train"], arguments].concat(), &[]);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(words), "{arguments:?}: {outcome:?}");
    }
    assert!(!scratch.path("runs").exists());
    // What the errors advise.
    let missing = ["data.missing=[\"on request\"]"];
    run(&scratch, &["train", "words.csv", "--target", "y"], &[SMALL, &missing].concat()).success();
    let few: String = lines(&|row| format!("{},{},{row}.5", row % 9, row * row % 7));
    scratch.write(
        "few.csv",
        few.lines().take(11).map(|line| line.to_owned() + "\n").collect::<String>(),
    );
    run(&scratch, &["train", "few.csv", "--target", "y"], SMALL).success();
    let checked = run(&scratch, &["data", "check", "table", "copy.csv", "--target", "y"], &[]);
    let note = checked.success()["columns"][1]["note"].as_str().unwrap().to_owned();
    assert!(note.contains("nearly a copy of `y`"), "{note}");

    train(&scratch, &["--target", "price", "--set", "data.ignore=[\"class\"]"]);
    let refused = |text: &str, code: i32, words: &str| {
        scratch.write("new.csv", text);
        let outcome = run(&scratch, &["predict", "runs/houses", "new.csv", "--out", "o.csv"], &[]);
        assert_eq!(outcome.code, Some(code), "{text}: {outcome:?}");
        assert!(outcome.stderr.contains(words), "{text}: {outcome:?}");
        assert!(!scratch.path("o.csv").exists());
    };
    refused("city,area,garden\nUlm,3,true\n", 2, "there is no column `sold`");
    refused("city,area,sold,garden\nUlm,big,2020-01-01,true\n", 3, "row 1 has `big`");
    refused("city,area,sold,garden\nUlm,3,soon,true\n", 3, "not a date");
    refused("city,area,sold,garden\n", 2, "no rows to predict");
}

#[test]
fn settings_are_chosen_on_training_rows() {
    let scratch = with_houses(300);
    let tune = r#"train.tune=["model.hidden=[1] train.epochs=1", "model.hidden=[16]"]"#;
    let arguments = ["train", "houses.csv", "--target", "price", "--out", "run"];
    let settings = [SMALL, &[tune]].concat();
    let outcome = run(&scratch, &arguments, &settings);
    assert_eq!(outcome.success()["tuned"], "model.hidden=[16]", "{outcome:?}");
    assert!(outcome.stderr.contains("chosen on training data: model.hidden=[16]"), "{outcome:?}");
    let recipe = scratch.read("run/recipe.toml");
    for line in ["tune = []", "hidden = [16]", "tuning = false", "split = [0.7, 0.15, 0.15]"] {
        assert!(recipe.lines().any(|own| own == line), "{line} in\n{recipe}");
    }
    // Going on needs no choice: it was made.
    let resumed = run(&scratch, &[&arguments[..], &["--resume"]].concat(), &settings);
    assert_eq!(resumed.success()["digest"], outcome.json()["digest"]);
    assert!(!resumed.stderr.contains("trying"), "{resumed:?}");

    let wrong = [SMALL, &[r#"train.tune=["model.hiden=[1]", "model.hidden=[2]"]"#]].concat();
    let refused = run(&scratch, &["train", "houses.csv", "--target", "price"], &wrong);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("did you mean `model.hidden`"), "{refused:?}");
    let series = [r#"train.tune=["train.seed=1", "train.seed=2"]"#];
    let refused = run(&scratch, &["train", "demo"], &series);
    assert!(refused.stderr.contains("train.tune is for tables"), "{refused:?}");
}
