//! The recipes that come with the program.

use std::collections::BTreeSet;
use std::path::Path;

use bayesmesh::Length;
use bayesmesh::posterior::{Kl, PosteriorConfig, Prior};
use bayesmesh::trainer::{Augment, OptimizerConfig, Schedule};
use bayesmesh_models::{Activation, MlpConfig, VitConfig};
use toml::toml;

use super::{builtin, section};
use crate::recipe::builtin::BUILTIN;
use crate::recipe::{Recipe, builtin_names, builtin_text};

/// Some keys of `[data]`.
fn assert_data(recipe: &Recipe, expected: toml::Table) {
    let found: toml::Table = section(recipe, "data");
    for (key, value) in expected {
        assert_eq!(found.get(&key), Some(&value), "{key}");
    }
}

fn rate(recipe: &Recipe) -> f64 {
    section::<toml::Table>(recipe, "optimizer")["rate"].as_float().unwrap()
}

#[test]
fn all_are_valid_and_named_like_their_files() {
    for name in builtin_names() {
        let recipe = builtin(name, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(recipe.name, name);
    }
}

#[test]
fn every_file_comes_with_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    assert_eq!(files, BUILTIN.iter().map(|(name, _)| (*name).to_owned()).collect());
}

/// What the paper says of its second use case, and what is chosen where it is silent.
#[test]
fn load_mlp_is_the_paper() {
    let recipe = builtin("load-mlp", &[]).unwrap();
    assert_data(
        &recipe,
        toml! { kind = "load"
        inputs = 96
        outputs = 24
        stride = 1
        split = [0.6, 0.1, 0.3] },
    );
    let expected = MlpConfig { dropout: 0.1, ..MlpConfig::new(0, vec![128, 128], 0) };
    assert_eq!(expected.activation, Activation::Relu);
    assert_eq!(section::<MlpConfig>(&recipe, "model"), expected);
    assert_eq!(recipe.posterior().unwrap(), PosteriorConfig::McDropout);
    assert_eq!(recipe.kind("loss"), "squared-error-of-mean");
    assert_eq!((recipe.train.samples, recipe.train.batch), (16, 64));
    assert_eq!(recipe.length, Length::Epochs(10));
    assert!(recipe.train.exact);
    assert_eq!(rate(&recipe), 1e-3);
    assert_eq!(section::<OptimizerConfig>(&recipe, "optimizer"), OptimizerConfig::adam());
    assert!(matches!(section(&recipe, "schedule"), Schedule::Cosine { warmup: 0, .. }));
}

/// What the paper says of its first use case, and what is chosen where it is silent.
#[test]
fn cifar10_vit_is_the_paper() {
    let recipe = builtin("cifar10-vit", &[]).unwrap();
    let data: toml::Table = section(&recipe, "data");
    assert!(!data.contains_key("limit") && !data.contains_key("test_limit"), "all images");
    assert_data(
        &recipe,
        toml! { kind = "cifar10"
        validation = 0.1
        augmentation = true },
    );
    assert_papers_vit(&recipe);
    assert_eq!(recipe.kind("loss"), "expected-cross-entropy");
    assert_eq!((recipe.train.samples, recipe.train.batch), (16, 256));
    assert_eq!(recipe.length, Length::Epochs(80));
    assert_eq!((recipe.train.heat, recipe.train.augment), (1.0, Augment::PerDraw));
    let PosteriorConfig::MeanField(field) = recipe.posterior().unwrap() else {
        panic!("every weight is Gaussian")
    };
    assert_eq!((field.kl, field.prior), (Kl::Analytic, Prior::normal(0.0, 1.0)));
    assert_eq!((field.initial_std, field.initial_std_per_fan_in), (0.01, true));
    assert_eq!(rate(&recipe), 1e-3);
    assert_eq!(section::<OptimizerConfig>(&recipe, "optimizer"), OptimizerConfig::adam());
}

/// What the authors' code says.
#[test]
fn cifar10_vit_reference_is_the_code() {
    let recipe = builtin("cifar10-vit-reference", &[]).unwrap();
    assert_data(
        &recipe,
        toml! { normalisation = "reference"
        validation = 0.1
        split_seed = 90 },
    );
    assert_papers_vit(&recipe);
    assert_eq!(recipe.kind("loss"), "cross-entropy-of-mean");
    assert_eq!(section::<toml::Table>(&recipe, "loss")["floor"].as_float(), Some(1e-5));
    assert_eq!((recipe.train.samples, recipe.train.batch), (16, 128));
    assert_eq!(recipe.length, Length::Epochs(80));
    assert_eq!((recipe.train.heat, recipe.train.seed), (0.1, 90));
    let PosteriorConfig::MeanField(field) = recipe.posterior().unwrap() else {
        panic!("every weight is Gaussian")
    };
    assert_eq!(field.kl, Kl::MonteCarlo);
    let adam = OptimizerConfig::adam().weight_decay(1e-4);
    assert_eq!(section::<OptimizerConfig>(&recipe, "optimizer"), adam);
    assert_eq!(recipe.kind("schedule"), "constant");
}

fn assert_papers_vit(recipe: &Recipe) {
    let VitConfig { patch, width, depth, heads, mlp, .. } = section(recipe, "model");
    assert_eq!((patch, width, depth, heads, mlp), (4, 192, 6, 3, 768));
}

#[test]
fn the_others_are_what_they_are_called() {
    let recipe = |name| builtin(name, &[]).unwrap();
    assert_eq!(recipe("demo").kind("data"), "load-synthetic");
    assert_eq!(recipe("images-demo").kind("data"), "cifar10-synthetic");
    assert_eq!(recipe("era5-demo").kind("data"), "era5-synthetic");
    assert_papers_vit(&recipe("cifar10-vit-quick"));
    assert_eq!(recipe("load-mlp-gaussian").kind("loss"), "gaussian-mixture");
    assert_eq!(recipe("load-mlp-vi").kind("posterior"), "mean-field");
}

#[test]
fn overrides_apply() {
    let recipe = builtin("demo", &["train.steps=5".to_owned()]).unwrap();
    assert_eq!(recipe.length, Length::Steps(5));
    let error = builtin("demo", &["train.stpes=5".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("did you mean `train.steps`?"), "{error}");
}

#[test]
fn a_wrong_name_is_refused() {
    assert_eq!(
        builtin_text("load-mpl").unwrap_err().to_string(),
        "there is no built-in recipe `load-mpl`; there are `demo`, `load-mlp`, \
         `load-mlp-gaussian`, `load-mlp-vi`, `images-demo`, `cifar10-vit`, `cifar10-vit-quick`, \
         `cifar10-vit-reference`, `era5-demo`, `era5-swin`, `gfs-wind`, `uci-dropout`, \
         `uci-best`, `images-folder`; did you mean `load-mlp`?"
    );
}
