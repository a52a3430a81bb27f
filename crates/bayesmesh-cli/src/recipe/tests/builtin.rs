//! The recipes that come with the program.

use std::collections::BTreeSet;
use std::path::Path;

use crate::recipe::builtin::BUILTIN;
use crate::recipe::{
    Activation, Augment, Data, Kl, Loss, Method, Model, Normalisation, Posterior, Prior, Recipe,
    Schedule, Windows, builtin_names, builtin_text,
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

/// What the paper says of its first use case, and what is chosen where it is silent.
#[test]
fn cifar10_vit_is_the_paper() {
    let recipe = Recipe::builtin("cifar10-vit", &[]).unwrap();
    let Data::Cifar10 { limit: None, test_limit: None, images, .. } = &recipe.data else {
        panic!("all images")
    };
    assert_eq!((images.validation, images.augmentation), (0.1, true));
    assert_eq!(recipe.model, PAPERS_VIT);
    assert_eq!(recipe.loss, Loss::ExpectedCrossEntropy);
    assert_eq!((recipe.train.samples, recipe.train.batch, recipe.train.epochs), (16, 256, 80));
    assert_eq!((recipe.train.heat, recipe.train.augment), (1.0, Augment::PerDraw));
    let Posterior::MeanField(field) = &recipe.posterior else { panic!("every weight is Gaussian") };
    assert_eq!((field.kl, field.prior), (Kl::Analytic, Prior::Normal { mean: 0.0, std: 1.0 }));
    assert_eq!((field.initial_std, field.initial_std_per_fan_in), (0.01, true));
    assert_eq!(recipe.optimizer.rate, 1e-3);
    assert!(matches!(recipe.optimizer.method, Method::Adam { weight_decay: 0.0, .. }));
}

/// What the authors' code says.
#[test]
fn cifar10_vit_reference_is_the_code() {
    let recipe = Recipe::builtin("cifar10-vit-reference", &[]).unwrap();
    let images = recipe.data.images().unwrap();
    assert_eq!(images.normalisation, Normalisation::Reference);
    assert_eq!((images.validation, images.split_seed), (0.1, 90));
    assert_eq!(recipe.model, PAPERS_VIT);
    assert_eq!(recipe.loss, Loss::CrossEntropyOfMean { floor: 1e-5 });
    assert_eq!((recipe.train.samples, recipe.train.batch, recipe.train.epochs), (16, 128, 80));
    assert_eq!((recipe.train.heat, recipe.train.seed), (0.1, 90));
    let Posterior::MeanField(field) = &recipe.posterior else { panic!("every weight is Gaussian") };
    assert_eq!(field.kl, Kl::MonteCarlo);
    assert!(matches!(recipe.optimizer.method, Method::Adam { weight_decay: 1e-4, .. }));
    assert_eq!(recipe.schedule, Schedule::Constant);
}

const PAPERS_VIT: Model = Model::Vit { patch: 4, width: 192, depth: 6, heads: 3, mlp: 768 };

#[test]
fn the_others_are_what_they_are_called() {
    let recipe = |name| Recipe::builtin(name, &[]).unwrap();
    assert!(matches!(recipe("demo").data, Data::LoadSynthetic { .. }));
    assert!(matches!(recipe("images-demo").data, Data::Cifar10Synthetic { .. }));
    assert_eq!(recipe("cifar10-vit-quick").model, PAPERS_VIT);
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
         `load-mlp-gaussian`, `load-mlp-vi`, `images-demo`, `cifar10-vit`, `cifar10-vit-quick`, \
         `cifar10-vit-reference`; did you mean `load-mlp`?"
    );
}
