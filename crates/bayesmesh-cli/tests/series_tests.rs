//! Series of one's own, from a file to forecasts.

mod common;

use std::fmt::Write as _;

use common::{Outcome, Scratch};
use serde_json::Value;

/// Settings of a training that takes a moment.
const SMALL: &[&str] = &[
    "train.epochs=30",
    "train.batch=32",
    "train.samples=2",
    "model.hidden=[32]",
    "evaluate.draws=8",
];

fn run(scratch: &Scratch, arguments: &[&str], settings: &[&str]) -> Outcome {
    let settings = settings.iter().flat_map(|setting| ["--set", *setting]);
    let all: Vec<&str> = arguments.iter().copied().chain(["--json"]).chain(settings).collect();
    scratch.run(&all)
}

/// Shops with promotions that are known beforehand and temperatures that are not.
fn with_shops() -> Scratch {
    let scratch = Scratch::new();
    scratch.run(&[
        "data",
        "synth",
        "series",
        "--out",
        "sales.csv",
        "--shops",
        "3",
        "--days",
        "500",
    ]);
    scratch
}

const SHOPS: &[&str] =
    &["data.series=shop", "data.known=[\"promotion\"]", "data.past=[\"temperature\"]"];

fn refuse(outcome: &Outcome, words: &str) {
    assert!(matches!(outcome.code, Some(2 | 3)), "{words}: {outcome:?}");
    assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
}

fn number(scores: &Value, name: &str) -> f64 {
    scores[name].as_f64().unwrap_or_else(|| panic!("{name} in {scores}"))
}

/// The rows of a CSV file, without its header.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn several_series_below_each_other_are_forecast_together() {
    let scratch = with_shops();
    let train = ["train", "sales.csv", "--target", "sales", "--horizon", "7"];
    let result = run(&scratch, &train, &[SMALL, SHOPS].concat()).success();
    let test = &result["test"];
    assert!(number(test, "rmse") < 0.8 * number(test, "seasonal_7_rmse"), "{test}");
    assert!(number(test, "rmse") < 0.8 * number(test, "persistence_rmse"), "{test}");
    assert!(number(test, "coverage_90") > 0.7, "{test}");
    let recipe = scratch.read("runs/sales/recipe.toml");
    for line in [
        r#"time = "date""#,
        r#"period = "1 d""#,
        "seasons = [7]",
        r#"calendar = ["week"]"#,
        "inputs = 28",
        "outputs = 7",
        "channels = [3, 1]",
        "count = 3",
    ] {
        assert!(recipe.lines().any(|own| own == line), "{line} in\n{recipe}");
    }
    let evaluation: Value =
        serde_json::from_str(&scratch.read("runs/sales/evaluation.json")).unwrap();
    // Each shop in its own unit: a larger one is farther off.
    let of_shop = |shop: usize| number(&evaluation["by_series"][shop], "rmse");
    assert!(of_shop(2) > 1.5 * of_shop(0), "{}", evaluation["by_series"]);
    assert!(scratch.read("runs/sales/report.html").contains("shop 2"));

    // A forecast needs promotions of days to come, and nothing of the training file.
    let whole = scratch.read("sales.csv");
    std::fs::remove_file(scratch.path("sales.csv")).unwrap();
    scratch.write("now.csv", &whole);
    let out = ["predict", "runs/sales", "now.csv", "--out", "out.csv"];
    let words = "must go on for 7 rows after the last value, and there are 0";
    refuse(&run(&scratch, &out, &[]), words);
    // The last week of each shop is to come.
    let mut now = String::new();
    for line in whole.lines() {
        let mut cells: Vec<&str> = line.split(',').collect();
        if [
            "2023-05-09",
            "2023-05-10",
            "2023-05-11",
            "2023-05-12",
            "2023-05-13",
            "2023-05-14",
            "2023-05-15",
        ]
        .contains(&cells[0])
        {
            (cells[2], cells[4]) = ("", "");
        }
        writeln!(now, "{}", cells.join(",")).unwrap();
    }
    scratch.write("now.csv", &now);
    let result = run(&scratch, &out, &[]).success();
    assert_eq!(result["forecasts"], 3);
    let text = scratch.read("out.csv");
    assert!(text.starts_with("series,origin,time,mean,std,q5"), "{text}");
    let rows = rows(&text);
    assert_eq!(rows.len(), 21);
    assert_eq!(rows[0][..3], ["shop 1", "2023-05-08T00:00:00Z", "2023-05-09T00:00:00Z"]);
    // In the units of each shop.
    let truth: Vec<f64> = whole
        .lines()
        .filter(|line| line.contains("shop 3") && line >= &"2023-05-09")
        .map(|line| line.split(',').nth(2).unwrap().parse().unwrap())
        .collect();
    let mean: Vec<f64> = rows[14..].iter().map(|row| row[3].parse().unwrap()).collect();
    for (mean, truth) in mean.iter().zip(&truth) {
        assert!((mean / truth - 1.0).abs() < 0.5, "{mean} for {truth}");
    }
    let paths = ["predict", "runs/sales", "now.csv", "--out", "paths.csv", "--paths", "2"];
    run(&scratch, &paths, &[]).success();
    assert!(scratch.read("paths.csv").starts_with("series,origin,path,time,value\n"));
}

/// Months, a trend that leaves what was seen before, and series beside each other.
#[test]
fn months_beside_each_other_and_a_trend() {
    let scratch = Scratch::new();
    let mut text = "month;north;south\n".to_owned();
    for month in 0..240usize {
        let (year, of_year) = (2000 + month / 12, month % 12 + 1);
        let season = (std::f64::consts::TAU * month as f64 / 12.0).sin();
        let noise = ((month * 7919) % 1009) as f64 / 1009.0 - 0.5;
        let north = 100.0 + 2.0 * month as f64 + 20.0 * season + 8.0 * noise;
        let south = 5.0 + 0.01 * month as f64 - season + 0.4 * noise;
        writeln!(text, "{year}-{of_year:02}-01;{north:.2};{south:.4}").unwrap();
    }
    scratch.write("sold.csv", &text);
    let train = ["train", "sold.csv", "--target", "north", "--target", "south", "--horizon", "6"];
    let settings = [SMALL, &["train.patience=30"]].concat();
    let result = run(&scratch, &train, &settings).success();
    let test = &result["test"];
    assert!(number(test, "rmse") < 0.7 * number(test, "seasonal_12_rmse"), "{test}");
    let recipe = scratch.read("runs/sold/recipe.toml");
    for line in [r#"period = "1 months""#, "seasons = [12]", "inputs = 36", "channels = [1, 0]"] {
        assert!(recipe.lines().any(|own| own == line), "{line} in\n{recipe}");
    }
    let result = run(&scratch, &["predict", "runs/sold", "sold.csv", "--out", "o.csv"], &[]);
    assert_eq!(result.success()["forecasts"], 2);
    let rows = rows(&scratch.read("o.csv"));
    assert_eq!(rows[11][..3], ["south", "2019-12-01T00:00:00Z", "2020-06-01T00:00:00Z"]);
    let north: f64 = rows[0][3].parse().unwrap();
    assert!((520.0..660.0).contains(&north), "{north}: levels as high were never trained on");
}

#[test]
fn a_transformer_takes_the_same_series() {
    let scratch = with_shops();
    let train = ["train", "sales.csv", "--target", "sales", "--horizon", "7"];
    let network =
        ["model.kind=patch-transformer", "model.width=16", "model.heads=2", "model.mlp=32"];
    let brief = ["train.epochs=20", "train.batch=32", "train.samples=2", "evaluate.draws=8"];
    let settings = [&brief[..], &network, SHOPS].concat();
    let result = run(&scratch, &train, &settings).success();
    let test = &result["test"];
    assert!(number(test, "rmse") < 0.9 * number(test, "seasonal_7_rmse"), "{test}");
    let wrong = [&settings[..], &["model.patch=5"]].concat();
    let words = "pieces of 5 steps do not divide a past of 28";
    refuse(&run(&scratch, &train, &wrong), words);
}

#[test]
fn what_is_no_series_is_refused_in_words() {
    let scratch = Scratch::new();
    let train = ["train", "x.csv", "--target", "y", "--horizon", "2"];
    let refused = |text: &str, settings: &[&str], words: &str| {
        scratch.write("x.csv", text);
        refuse(&run(&scratch, &train, settings), words);
    };
    refused("day,y\n2024-01-01,1\n2024-01-01,2\n", &[], "the same time");
    refused("day,y\n2024-01-01,1\n2024-01-02,2\n", &[], "a part would be empty");
    refused("a,y\n1,1\n2,2\n", &[], "say by `data.time` which one orders the rows");
    refused("day,z\n2024-01-01,1\n", &[], "no column `y`");
    let same: String = (1..=28).map(|day| format!("2024-01-{day:02},7\n")).collect();
    refused(&format!("day,y\n{same}"), &["data.inputs=2"], "x.csv: the training part is constant");
    let days: String = (1..=28).map(|day| format!("2024-01-{day:02},{day}\n")).collect();
    refused(&format!("day,y\n{days}"), &["data.inputs=90"], "smaller `data.inputs`");
    refused(&format!("day,y\n{days}"), &["data.period=1 fortnight"], "is no period");
    refused(&format!("day,y\n{days}"), &["data.known=[\"week\"]"], "no column `week`");
    refused("", &[], "x.csv");
    refused("day,y\n", &[], "x.csv: only the names of the columns and no rows");
    let none = ["train", "x.csv", "--horizon", "2"];
    refuse(&run(&scratch, &none, &[]), "which column is to be forecast?");
}

#[test]
fn a_file_is_looked_at_before() {
    let scratch = with_shops();
    let check = ["data", "check", "series", "sales.csv", "--target", "sales", "--series", "shop"];
    let found = run(&scratch, &check, &[]).success();
    assert_eq!((found["series"].as_u64(), found["values"].as_u64()), (Some(3), Some(1500)));
    assert_eq!(found["period"], "1 d");
}
