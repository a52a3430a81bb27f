//! What `--set` does.

use bayesmesh::Length;
use bayesmesh::posterior::{PosteriorConfig, Prior};
use bayesmesh::trainer::{OptimizerConfig, Schedule};

use super::{TRIAL, edited, parse, section};
use crate::recipe::Recipe;

fn set(overrides: &[&str]) -> Recipe {
    parse(TRIAL, overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn path_of(recipe: Recipe) -> String {
    section::<toml::Table>(&recipe, "data")["path"].as_str().unwrap().to_owned()
}

#[test]
fn values_are_toml() {
    let recipe = set(&[
        "train.samples = 8",
        "train.exact=false",
        "train.clip_norm=1",
        "train.seed=9223372036854775807",
        "model.hidden=[32, 16]",
        "evaluate.levels=[0.5,0.9]",
        "train.reduce=\"reproducible\"",
    ]);
    assert_eq!(recipe.train.samples, 8);
    assert!(!recipe.train.exact);
    assert_eq!(recipe.train.clip_norm, Some(1.0));
    assert_eq!(recipe.train.seed, i64::MAX as u64);
    assert_eq!(recipe.evaluate.levels, [0.5, 0.9]);
    assert_eq!(recipe, parse(&recipe.to_toml(), &[]).unwrap());
}

#[test]
fn texts_need_no_quotes() {
    assert_eq!(path_of(set(&["data.path=/tmp/a b=c.csv"])), "/tmp/a b=c.csv");
    assert_eq!(path_of(set(&["data.path=\"/tmp/x.csv\""])), "/tmp/x.csv");
    assert_eq!(path_of(set(&["data.path='C:\\x.csv'"])), "C:\\x.csv");
    assert_eq!(path_of(set(&["data.path=C:\\x.csv"])), "C:\\x.csv");
    assert_eq!(set(&["loss.kind=crps"]).kind("loss"), "crps");
}

/// What would be a number or a flag elsewhere is a text where a text is wanted.
#[test]
fn texts_that_look_like_something_else() {
    assert_eq!(path_of(set(&["data.path=2015"])), "2015");
    assert_eq!(path_of(set(&["data.path=[1]"])), "[1]");
    assert_eq!(set(&["name=true"]).name, "true");
}

#[test]
fn sections_and_inline_tables() {
    let recipe = set(&["schedule={ kind = \"cosine\", warmup = 5 }", "schedule.floor=1e-4"]);
    let cosine = Schedule::Cosine { rate: 0.0, warmup: 5, total: 0, floor: 1e-4 };
    assert_eq!(section::<Schedule>(&recipe, "schedule"), cosine);
    let prior = |overrides: &[&str]| match set(overrides).posterior().unwrap() {
        PosteriorConfig::MeanField(field) => field.prior,
        other => panic!("{other:?}"),
    };
    let normal = Prior::Normal { mean: 0.0, std: 2.0 };
    assert_eq!(prior(&["posterior.kind=mean-field", "posterior.prior.std=2"]), normal);
    assert_eq!(prior(&["posterior={kind=\"mean-field\",prior={std=2}}"]), normal);
}

#[test]
fn the_last_wins() {
    assert_eq!(set(&["train.steps=5", "train.steps=6"]).length, Length::Steps(6));
}

/// The keys of the file that belong to the kind it had go with that kind.
#[test]
fn another_kind_drops_the_keys_of_the_old_one() {
    let text = edited(&[
        ("kind = \"mc-dropout\"", "kind = \"mean-field\"\ninitial_std = 0.1\nkl = \"analytic\""),
        ("samples = 4", "samples = 4\n[optimizer]\nbetas = [0.8, 0.9]\nweight_decay = 0.5"),
    ]);
    let recipe = parse(&text, &["posterior.kind=point", "optimizer.kind=sgd"]).unwrap();
    assert_eq!(recipe.posterior().unwrap(), PosteriorConfig::Point);
    let sgd = OptimizerConfig::Sgd { momentum: 0.0, weight_decay: 0.5 };
    assert_eq!(section::<OptimizerConfig>(&recipe, "optimizer"), sgd);

    // But not what is wrong in itself, nor what the command line says.
    let text = text.replace("initial_std", "initial_sdt");
    let error = parse(&text, &["posterior.kind=point"]).unwrap_err().to_string();
    assert!(error.contains("there is no key `posterior.initial_sdt`"), "{error}");
    let error = parse(TRIAL, &["loss.freedom=4", "loss.kind=crps"]).unwrap_err().to_string();
    assert!(error.contains("--set loss.freedom=4: `loss.freedom` is a key of"), "{error}");
}
