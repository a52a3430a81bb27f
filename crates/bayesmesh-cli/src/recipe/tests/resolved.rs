//! Defaults and the resolved form.

use std::collections::BTreeSet;

use bayesmesh::posterior::{Kl, PosteriorConfig, Prior, Scale};
use bayesmesh::trainer::{OptimizerConfig, Schedule};
use bayesmesh::{Length, Settings};
use bayesmesh_models::VitConfig;
use bayesmesh_schema::{Absent, KIND, Key, Section, Values};

use super::{IMAGES, TRIAL, WEATHER, builtin, edited, parse, section};
use crate::recipe::{Catalogue, Recipe, builtin_names};

/// The keys that are left out have the defaults that the library has, but for draws and batch.
#[test]
fn defaults() {
    let recipe = parse(TRIAL, &["train.samples=16"]).unwrap();
    assert_eq!(recipe.length, Length::Epochs(10));
    assert_eq!(recipe.train, Settings { samples: 16, batch: 64, ..Settings::default() });
    assert_eq!(section::<OptimizerConfig>(&recipe, "optimizer"), OptimizerConfig::adam());
    let mesh = bayesmesh::Mesh::serial();
    assert_eq!(recipe.settings(mesh, 5).unwrap().schedule, Schedule::Constant { rate: 1e-3 });
    let others = ["optimizer.kind=adamw", "optimizer.kind=sgd"];
    let configs = [OptimizerConfig::adamw(), OptimizerConfig::sgd()];
    for (kind, config) in others.into_iter().zip(configs) {
        let recipe = parse(TRIAL, &[kind]).unwrap();
        assert_eq!(section::<OptimizerConfig>(&recipe, "optimizer"), config);
    }

    let field = parse(TRIAL, &["posterior.kind=mean-field"]).unwrap().posterior().unwrap();
    let PosteriorConfig::MeanField(field) = field else { panic!("{field:?}") };
    assert_eq!((field.initial_std, field.initial_std_per_fan_in), (0.01, true));
    assert_eq!((field.scale, field.kl), (Scale::Exp, Kl::Analytic));
    assert_eq!(field.prior, Prior::normal(0.0, 1.0));
    assert!(!field.prior_per_fan_in);
}

/// The network is the paper's.
#[test]
fn defaults_of_images() {
    let trial = edited(&[("path = \"load.csv\"\n", "")]);
    let recipe = parse(&trial, &IMAGES).unwrap();
    let data: toml::Table = section(&recipe, "data");
    let expected = "kind = \"cifar10\"\npath = \"data/cifar10\"\nvalidation = 0.1\nsplit_seed = 0\n\
                    augmentation = true\nnormalisation = \"standard\"";
    assert_eq!(data, expected.parse().unwrap());
    let paper = VitConfig { image: 0, channels: 0, classes: 0, ..VitConfig::cifar10() };
    assert_eq!(section::<VitConfig>(&recipe, "model"), paper);
    let evaluate: toml::Table = section(&recipe, "evaluate");
    assert_eq!(evaluate["corruptions"].as_bool(), Some(true));
    assert_eq!(evaluate["corrupted_images"].as_integer(), Some(2000));
    let generated = [&IMAGES[..], &["data.kind=cifar10-synthetic"]].concat();
    let data: toml::Table = section(&parse(&trial, &generated).unwrap(), "data");
    let numbers = ["count", "test_count", "seed"].map(|key| data[key].as_integer().unwrap());
    assert_eq!(numbers, [2000, 500, 1]);
}

/// The closed form where there is one.
#[test]
fn the_kl_follows_the_prior() {
    let mixture = ["posterior.kind=mean-field", "posterior.prior.kind=scale-mixture"];
    let posterior = parse(TRIAL, &mixture).unwrap().posterior().unwrap();
    let PosteriorConfig::MeanField(field) = posterior else { panic!("the kind was set") };
    assert_eq!(field.kl, Kl::MonteCarlo);
    assert_eq!(field.prior, Prior::ScaleMixture { weight: 0.5, std_wide: 1.0, std_narrow: 0.01 });
}

#[test]
fn the_resolved_form() {
    let recipe = parse(TRIAL, &["posterior.kind=mean-field", "train.clip_norm=2"]).unwrap();
    assert_eq!(
        recipe.to_toml(),
        r#"# A resolved recipe: every key with its value, defaults and overrides included.
# It is a recipe like any other: `bayesmesh train` with this file repeats the run.

name = "trial"

[data]
kind = "load"
path = "load.csv"
inputs = 96
outputs = 24
stride = 1
split = [0.6, 0.1, 0.3]

[model]
kind = "mlp"
hidden = [128, 128]
activation = "relu"
dropout = 0.1
input_dropout = 0.0
residual = false
layer_norm = false
# embedding is not set: 1.6·n^0.56 for n codes, at most 64

[posterior]
kind = "mean-field"
initial_std = 0.01
initial_std_per_fan_in = true
scale = "exp"
prior_per_fan_in = false
kl = "analytic"

[posterior.prior]
kind = "normal"
mean = 0.0
std = 1.0

[loss]
kind = "squared-error-of-mean"

[train]
epochs = 10
# steps is not set: as many as the epochs have
# max_steps is not set: there is no limit
# patience is not set: it lasts as long as said
tune = []
samples = 4
batch = 64
seed = 0
exact = true
reduce = "fast"
memory = "recompute"
precision = "f32"
augment = "per-draw"
heat = 1.0
kl_warmup = 0
clip_norm = 2.0
overlap = true
shard_optimizer = false
# threads is not set: the cores shared among the ranks of the machine
share_loading = true
load_delay_ms = 0.0

[optimizer]
kind = "adam"
rate = 0.001
betas = [0.9, 0.999]
epsilon = 1e-8
weight_decay = 0.0

[schedule]
kind = "constant"

[evaluate]
draws = 64
# validation_draws is not set: as many as `train.samples`
levels = [0.5, 0.8, 0.9, 0.95]
corruptions = true
corrupted_images = 2000
roll_out = 4
roll_out_origins = 4

[calibrate]
kind = "auto"

[checkpoint]
every = 1000
keep = 3
"#
    );
}

/// Reads back as the same recipe and resolves to the same text.
fn assert_reads_back(recipe: &Recipe) {
    let text = recipe.to_toml();
    let again = parse(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(*recipe, again);
    assert_eq!(text, again.to_toml());
}

#[test]
fn built_in_recipes_read_back() {
    for name in builtin_names() {
        assert_reads_back(&builtin(name, &[]).unwrap());
    }
}

#[test]
fn awkward_values_read_back() {
    let recipe = parse(
        TRIAL,
        &[
            r#"data.path="/tmp/\"quoted\" \\ ünï\tcode\n.csv""#,
            "data.split=[0.3333333333333333, 0.3333333333333333, 0.3333333333333334]",
            "train.seed=9223372036854775807",
            "train.steps=1",
            "train.clip_norm=2.2250738585072014e-308",
            "optimizer.rate=0.30000000000000004",
            "evaluate.levels=[1e-300, 0.9999999999999998]",
        ],
    );
    assert_reads_back(&recipe.unwrap());
}

/// Every kind of every section can be chosen, has the keys of the schema, each of which can be set,
/// and reads back.
#[test]
fn every_kind_reads_back_with_its_keys() {
    let mut kinds = 0;
    let catalogue = Catalogue::builtin();
    let sections = catalogue.schema().all();
    for section in sections.into_iter().filter(|section| section.has_kinds()) {
        for kind in section.kind_names() {
            kinds += 1;
            // What goes with it: the trial is a forecast.
            let mut overrides: Vec<String> = match (section.name.as_str(), kind) {
                ("posterior.prior", _) => vec!["posterior.kind=mean-field".to_owned()],
                ("data", "cifar10" | "cifar10-synthetic" | "images")
                | ("model", "vit")
                | ("calibrate", "temperature")
                | ("loss", "expected-cross-entropy" | "cross-entropy-of-mean") => {
                    IMAGES.map(str::to_owned).into()
                }
                ("model", "resnet") => {
                    let folder = ["data.kind=images", "data.path=photos"];
                    [&IMAGES[..], &folder].concat().into_iter().map(str::to_owned).collect()
                }
                ("data", "era5" | "era5-synthetic") | ("model", "swin" | "globe-cnn") => {
                    WEATHER.map(str::to_owned).into()
                }
                _ => Vec::new(),
            };
            overrides.push(format!("{}.{KIND}={kind}", section.name));
            overrides.extend(section.keys(Some(kind)).filter_map(|key| match key.absent {
                Absent::Refused(example) => {
                    Some(format!("{}={example}", section.full_name(key.name)))
                }
                _ => None,
            }));
            let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
            let recipe = parse(TRIAL, &overrides).unwrap_or_else(|error| panic!("{error}"));
            assert_reads_back(&recipe);
            let table: toml::Table = recipe.to_toml().parse().unwrap();
            assert_has_keys(catalogue.schema(), &table);
        }
    }
    assert_eq!(kinds, 9 + 6 + 5 + 2 + 15 + 3 + 3 + 6);
}

/// A table has the keys of its kind, but for those that may be unset, and no other.
fn assert_has_keys(section: &Section, table: &toml::Table) {
    let kind = table.get(KIND).and_then(toml::Value::as_str);
    let names = |wanted: &dyn Fn(&Key) -> bool| -> BTreeSet<&str> {
        let keys = section.keys(kind).filter(|key| wanted(key));
        keys.map(|key| key.name).chain(kind.map(|_| KIND)).collect()
    };
    let found: BTreeSet<&str> = table.keys().map(String::as_str).collect();
    let allowed = names(&|_| true);
    let needed = names(&|key| !matches!(key.absent, Absent::Unset(_)));
    assert!(found.is_subset(&allowed) && found.is_superset(&needed), "{}: {found:?}", section.name);
    for key in section.keys(kind) {
        if let (Values::Section(inner), Some(table)) = (&key.values, table.get(key.name)) {
            assert_has_keys(inner, table.as_table().unwrap());
        }
    }
}

/// Whole numbers are numbers too, in any base and with separators, as TOML has them.
#[test]
fn numbers_may_be_written_as_toml_allows() {
    let text = edited(&[("samples = 4", "heat = 1\nseed = 0xFF\nbatch = 1_024")]);
    let train = parse(&text, &[]).unwrap().train;
    assert_eq!((train.heat, train.seed, train.batch), (1.0, 255, 1024));
}
