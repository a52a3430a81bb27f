//! The recipes that come with the program.

use std::collections::BTreeSet;
use std::path::Path;

use crate::recipe::builtin::BUILTIN;
use crate::recipe::{
    Activation, Data, Loss, Method, Model, Posterior, Recipe, Schedule, Windows, builtin_names,
    builtin_text,
};

#[test]
fn all_are_valid_and_named_like_their_files() {
    for name in builtin_names() {
        let recipe = Recipe::builtin(name, &[]).unwrap_or_else(|error| panic!("{error}"));
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
    let recipe = Recipe::builtin("load-mlp", &[]).unwrap();
    let Data::Load { windows, .. } = &recipe.data else { panic!("the load comes from a file") };
    let expected = Windows { inputs: 96, outputs: 24, stride: 1, split: [0.6, 0.1, 0.3] };
    assert_eq!(*windows, expected);
    let expected =
        Model::Mlp { hidden: vec![128, 128], activation: Activation::Relu, dropout: 0.1 };
    assert_eq!(recipe.model, expected);
    assert_eq!(recipe.posterior, Posterior::McDropout);
    assert_eq!(recipe.loss, Loss::SquaredErrorOfMean);
    assert_eq!((recipe.train.samples, recipe.train.batch), (16, 64));
    assert_eq!((recipe.train.epochs, recipe.train.steps), (10, None));
    assert!(recipe.train.exact);
    assert_eq!(recipe.optimizer.rate, 1e-3);
    assert!(matches!(recipe.optimizer.method, Method::Adam { weight_decay: 0.0, .. }));
    assert!(matches!(recipe.schedule, Schedule::Cosine { warmup: 0, .. }));
}

#[test]
fn the_others_are_what_they_are_called() {
    let recipe = |name| Recipe::builtin(name, &[]).unwrap();
    assert!(matches!(recipe("demo").data, Data::LoadSynthetic { .. }));
    assert_eq!(recipe("load-mlp-gaussian").loss, Loss::GaussianMixture);
    assert!(matches!(recipe("load-mlp-vi").posterior, Posterior::MeanField(_)));
}

#[test]
fn overrides_apply() {
    let recipe = Recipe::builtin("demo", &["train.steps=5".to_owned()]).unwrap();
    assert_eq!(recipe.train.steps, Some(5));
    let error = Recipe::builtin("demo", &["train.stpes=5".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("did you mean `train.steps`?"), "{error}");
}

#[test]
fn a_wrong_name_is_refused() {
    assert_eq!(
        builtin_text("load-mpl").unwrap_err().to_string(),
        "there is no built-in recipe `load-mpl`; there are `demo`, `load-mlp`, \
         `load-mlp-gaussian`, `load-mlp-vi`; did you mean `load-mlp`?"
    );
}
