//! Defaults and the resolved form.

use std::collections::BTreeSet;

use super::{IMAGES, TRIAL, edited, parse};
use crate::recipe::schema::{Absent, KIND, Key, RECIPE, Section, Values};
use crate::recipe::{
    Augment, Data, Images, Kl, Memory, Method, Model, Normalisation, Optimizer, Posterior, Prior,
    Recipe, RecipeError, Reduce, Scale, Schedule, builtin_names,
};

/// The keys that are left out have the defaults that the library has.
#[test]
fn defaults() {
    let recipe = parse(TRIAL, &[]).unwrap();
    let train = &recipe.train;
    assert_eq!((train.epochs, train.steps, train.batch, train.seed), (10, None, 64, 0));
    assert_eq!((train.exact, train.heat, train.kl_warmup), (true, 1.0, 0));
    assert_eq!((train.clip_norm, train.threads), (None, None));
    assert!(!train.shard_optimizer);
    assert_eq!((train.overlap, train.share_loading, train.load_delay_ms), (true, true, 0.0));
    assert_eq!(train.reduce, Reduce::Fast);
    assert_eq!(train.memory, Memory::Recompute);
    assert_eq!(train.augment, Augment::PerDraw);
    let adam = Method::Adam { betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0.0 };
    assert_eq!(recipe.optimizer, Optimizer { rate: 1e-3, method: adam });
    assert_eq!(recipe.schedule, Schedule::Constant);

    let field = parse(TRIAL, &["posterior.kind=mean-field"]).unwrap().posterior;
    let Posterior::MeanField(field) = field else { panic!("{field:?}") };
    assert_eq!((field.initial_std, field.initial_std_per_fan_in), (0.01, true));
    assert_eq!((field.scale, field.kl), (Scale::Exp, Kl::Analytic));
    assert_eq!(field.prior, Prior::Normal { mean: 0.0, std: 1.0 });
    assert!(!field.prior_per_fan_in);
}

/// The network is the paper's.
#[test]
fn defaults_of_images() {
    let trial = edited(&[("path = \"load.csv\"\n", "")]);
    let recipe = parse(&trial, &IMAGES).unwrap();
    let Data::Cifar10 { path, limit, test_limit, images } = &recipe.data else {
        panic!("the kind was set")
    };
    assert_eq!((path.as_str(), *limit, *test_limit), ("data/cifar10", None, None));
    let standard = Normalisation::Standard;
    let expected =
        Images { validation: 0.1, split_seed: 0, augmentation: true, normalisation: standard };
    assert_eq!(*images, expected);
    assert_eq!(recipe.model, Model::Vit { patch: 4, width: 192, depth: 6, heads: 3, mlp: 768 });
    assert_eq!((recipe.evaluate.corruptions, recipe.evaluate.corrupted_images), (true, 2000));
    let generated = parse(&trial, &[&IMAGES[..], &["data.kind=cifar10-synthetic"]].concat());
    let expected =
        Data::Cifar10Synthetic { count: 2000, test_count: 500, seed: 1, images: expected };
    assert_eq!(generated.unwrap().data, expected);
}

/// The closed form where there is one.
#[test]
fn the_kl_follows_the_prior() {
    let mixture = ["posterior.kind=mean-field", "posterior.prior.kind=scale-mixture"];
    let Posterior::MeanField(field) = parse(TRIAL, &mixture).unwrap().posterior else {
        panic!("the kind was set")
    };
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
samples = 4
batch = 64
seed = 0
exact = true
reduce = "fast"
memory = "recompute"
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
    recipe.validate().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn built_in_recipes_read_back() {
    for name in builtin_names() {
        assert_reads_back(&Recipe::builtin(name, &[]).unwrap());
    }
}

#[test]
fn awkward_values_read_back() {
    let path = "/tmp/\"quoted\" \\ ünï\tcode\n.csv";
    let mut recipe = parse(TRIAL, &["data.path=x"]).unwrap();
    if let Data::Load { path: written, windows } = &mut recipe.data {
        *written = path.to_owned();
        windows.split = [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0];
    }
    recipe.train.seed = i64::MAX as u64;
    recipe.train.heat = 1.0;
    recipe.train.steps = Some(1);
    recipe.train.clip_norm = Some(f64::MIN_POSITIVE);
    recipe.optimizer.rate = 0.1 + 0.2;
    recipe.evaluate.levels = vec![1e-300, 1.0 - f64::EPSILON];
    assert_reads_back(&recipe);
}

/// Every kind of every section can be chosen, has the keys of the schema, each of which can be set,
/// and reads back.
#[test]
fn every_kind_reads_back_with_its_keys() {
    let mut kinds = 0;
    for section in RECIPE.all().iter().filter(|section| !section.kinds.is_empty()) {
        for kind in section.kind_names() {
            kinds += 1;
            // What goes with it: the trial is a forecast.
            let mut overrides: Vec<String> = match (section.name, kind) {
                ("posterior.prior", _) => vec!["posterior.kind=mean-field".to_owned()],
                ("data", "cifar10" | "cifar10-synthetic")
                | ("model", "vit")
                | ("loss", "expected-cross-entropy" | "cross-entropy-of-mean") => {
                    IMAGES.map(str::to_owned).into()
                }
                _ => Vec::new(),
            };
            overrides.push(format!("{}.{KIND}={kind}", section.name));
            let required = section.keys.iter().filter(|key| key.is_of(Some(kind)));
            overrides.extend(required.filter_map(|key| match key.absent {
                Absent::Refused(example) => {
                    Some(format!("{}={example}", section.full_name(key.name)))
                }
                _ => None,
            }));
            let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
            let recipe = parse(TRIAL, &overrides).unwrap_or_else(|error| panic!("{error}"));
            assert_reads_back(&recipe);
            let table: toml::Table = recipe.to_toml().parse().unwrap();
            assert_has_keys(&RECIPE, &table);
        }
    }
    assert_eq!(kinds, 4 + 2 + 3 + 2 + 10 + 3 + 3);
}

/// A table has the keys of its kind, but for those that may be unset, and no other.
fn assert_has_keys(section: &Section, table: &toml::Table) {
    let kind = table.get(KIND).and_then(toml::Value::as_str);
    let names = |wanted: &dyn Fn(&Key) -> bool| -> BTreeSet<&str> {
        let keys = section.keys.iter().filter(|key| key.is_of(kind) && wanted(key));
        keys.map(|key| key.name).chain(kind.map(|_| KIND)).collect()
    };
    let found: BTreeSet<&str> = table.keys().map(String::as_str).collect();
    let allowed = names(&|_| true);
    let needed = names(&|key| !matches!(key.absent, Absent::Unset(_)));
    assert!(found.is_subset(&allowed) && found.is_superset(&needed), "{}: {found:?}", section.name);
    for key in section.keys {
        if let (Values::Section(inner), Some(table)) = (&key.values, table.get(key.name)) {
            assert_has_keys(inner, table.as_table().unwrap());
        }
    }
}

#[test]
fn recipes_made_by_hand_are_checked() {
    let recipe = parse(TRIAL, &[]).unwrap();
    let refusal = |change: &dyn Fn(&mut Recipe)| {
        let mut changed = recipe.clone();
        change(&mut changed);
        match changed.validate().unwrap_err() {
            RecipeError::Invalid { problems, .. } => problems[0].to_string(),
            other => panic!("{other}"),
        }
    };
    assert_eq!(
        refusal(&|recipe| recipe.train.samples = 0),
        "trial: `train.samples` must be a whole number of at least 1, not 0"
    );
    assert_eq!(
        refusal(&|recipe| recipe.optimizer.rate = f64::NAN),
        "trial: `optimizer.rate` must be a number above 0, not nan, which is not finite"
    );
    assert_eq!(
        refusal(&|recipe| recipe.train.heat = 0.5).lines().next().unwrap(),
        "trial: `train.heat` weighs the distance to the prior, which only `mean-field` has"
    );
    assert!(refusal(&|recipe| recipe.train.seed = u64::MAX).starts_with("trial: "));
}

/// Whole numbers are numbers too, in any base and with separators, as TOML has them.
#[test]
fn numbers_may_be_written_as_toml_allows() {
    let text = edited(&[("samples = 4", "heat = 1\nseed = 0xFF\nbatch = 1_024")]);
    let train = parse(&text, &[]).unwrap().train;
    assert_eq!((train.heat, train.seed, train.batch), (1.0, 255, 1024));
}
