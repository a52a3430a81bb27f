//! Keys that do not go together.

use super::{IMAGES, refusal};

#[test]
fn dropout_without_dropout() {
    assert_eq!(
        refusal(&[("dropout = 0.1", "dropout = 0")], &[]),
        r#"trial.toml:9:11: `mc-dropout` without dropout has no randomness: all draws would be the same
   9 | dropout = 0
     |           ^
     set for example `model.dropout = 0.1`, or use `posterior.kind = "point"` or `"mean-field"`"#
    );
}

#[test]
fn dropout_left_out() {
    assert_eq!(
        refusal(&[("dropout = 0.1\n", "")], &[]),
        r#"trial.toml:7:1: `mc-dropout` without dropout has no randomness: all draws would be the same
   7 | [model]
     | ^^^^^^^
     set for example `model.dropout = 0.1`, or use `posterior.kind = "point"` or `"mean-field"`"#
    );
}

#[test]
fn dropout_without_hidden_units() {
    assert_eq!(
        refusal(&[("dropout = 0.1", "dropout = 0.1\nhidden = []")], &[]),
        r#"trial.toml:10:10: `mc-dropout` drops hidden units, but the network has none: all draws would be the same
  10 | hidden = []
     |          ^^
     add a hidden layer, for example `hidden = [128]`, or use another posterior"#
    );
}

#[test]
fn a_loss_for_classes() {
    assert_eq!(
        refusal(&[(r#""squared-error-of-mean""#, r#""cross-entropy-of-mean""#)], &[]),
        r#"trial.toml:15:8: this loss is for classes, but the data have numbers to predict
  15 | kind = "cross-entropy-of-mean"
     |        ^^^^^^^^^^^^^^^^^^^^^^^
     use a loss for regression, for example `kind = "squared-error-of-mean"`"#
    );
}

#[test]
fn too_few_draws_for_their_spread() {
    assert_eq!(
        refusal(&[(r#""squared-error-of-mean""#, r#""gaussian-of-draws""#)], &["train.samples=1"]),
        r#"--set train.samples=1: this loss compares draws and needs at least 2, not 1
     use `train.samples = 2` or more, or another loss"#
    );
}

#[test]
fn too_few_draws_for_pairs() {
    assert_eq!(
        refusal(
            &[
                (r#""squared-error-of-mean""#, "\"crps\"\nalpha = 0.95"),
                ("samples = 4", "samples = 1")
            ],
            &[]
        ),
        r#"trial.toml:19:11: the fair CRPS compares draws and needs at least 2, not 1
  19 | samples = 1
     |           ^
     use `train.samples = 2` or more, or another loss"#
    );
}

#[test]
fn the_spread_of_a_point() {
    assert_eq!(
        refusal(
            &[
                (r#""squared-error-of-mean""#, r#""gaussian-of-draws""#),
                (r#""mc-dropout""#, r#""point""#)
            ],
            &[]
        ),
        r#"trial.toml:15:8: `gaussian-of-draws` reads the uncertainty from the spread of the draws, but those of a `point` posterior are all the same
  15 | kind = "gaussian-of-draws"
     |        ^^^^^^^^^^^^^^^^^^^
     use `loss.kind = "expected-gaussian"`, where the network predicts its noise, or another posterior"#
    );
}

#[test]
fn shares_that_do_not_sum_to_one() {
    assert_eq!(
        refusal(&[(r#"path = "load.csv""#, "path = \"load.csv\"\nsplit = [0.6, 0.1, 0.2]")], &[]),
        r#"trial.toml:6:9: the shares of `data.split` sum to 0.9, not to 1
   6 | split = [0.6, 0.1, 0.2]
     |         ^^^^^^^^^^^^^^^
     shares for training, validation and test, for example `split = [0.6, 0.1, 0.3]`"#
    );
}

#[test]
fn too_short_a_series() {
    assert_eq!(
        refusal(
            &[("kind = \"load\"\npath = \"load.csv\"", "kind = \"load-synthetic\"\ndays = 9")],
            &[]
        ),
        r#"trial.toml:5:8: 9 days are too few: the smallest part of `data.split` must hold an example of 120 values
   5 | days = 9
     |        ^
     use at least `days = 14`, or fewer `inputs` and `outputs`"#
    );
}

#[test]
fn a_mixture_in_closed_form() {
    assert_eq!(
        refusal(
            &[(
                r#""mc-dropout""#,
                "\"mean-field\"\nkl = \"analytic\"\nprior.kind = \"scale-mixture\""
            )],
            &[]
        ),
        r#"trial.toml:13:6: a scale-mixture prior has no distance in closed form
  13 | kl = "analytic"
     |      ^^^^^^^^^^
     use `kl = "monte-carlo"`, or a normal prior"#
    );
}

#[test]
fn the_weight_of_no_prior() {
    assert_eq!(
        refusal(&[("samples = 4", "heat = 0.1")], &[]),
        r#"trial.toml:18:8: `train.heat` weighs the distance to the prior, which only `mean-field` has
  18 | heat = 0.1
     |        ^^^
     leave it out, or use `posterior.kind = "mean-field"`"#
    );
}

#[test]
fn the_warm_up_of_no_prior() {
    assert_eq!(
        refusal(&[("samples = 4", "kl_warmup = 10")], &[]),
        r#"trial.toml:18:13: `train.kl_warmup` weighs the distance to the prior, which only `mean-field` has
  18 | kl_warmup = 10
     |             ^^
     leave it out, or use `posterior.kind = "mean-field"`"#
    );
}

#[test]
fn a_floor_above_the_rate() {
    assert_eq!(
        refusal(
            &[("samples = 4", "samples = 4\n[schedule]\nkind = \"cosine\"\nfloor = 0.01")],
            &[]
        ),
        r#"trial.toml:21:9: the learning rate cannot fall from 0.001 to 0.01
  21 | floor = 0.01
     |         ^^^^
     use a `schedule.floor` of at most `optimizer.rate`"#
    );
}

#[test]
fn levels_that_do_not_ascend() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = 4\n[evaluate]\nlevels = [0.9, 0.5]")], &[]),
        r#"trial.toml:20:10: `evaluate.levels` must ascend, each level once
  20 | levels = [0.9, 0.5]
     |          ^^^^^^^^^^
     for example `levels = [0.5, 0.8, 0.9, 0.95]`"#
    );
}

#[test]
fn a_name_that_is_no_file_name() {
    assert_eq!(
        refusal(&[(r#""trial""#, r#""a/b""#)], &[]),
        r#"trial.toml:1:8: the name "a/b" cannot be part of a file name
   1 | name = "a/b"
     |        ^^^^^
     use letters, digits, `-`, `_` and `.` only, for example `name = "load-mlp"`"#
    );
}

#[test]
fn a_transformer_for_a_series() {
    assert_eq!(
        refusal(&[("\"mlp\"\ndropout = 0.1", "\"vit\""), (r#""mc-dropout""#, r#""point""#)], &[]),
        r#"trial.toml:8:8: a vision transformer takes images, but the data are a series
   8 | kind = "vit"
     |        ^^^^^
     use `model.kind = "mlp"`, or images, for example `data.kind = "cifar10"`"#
    );
}

#[test]
fn a_perceptron_and_a_loss_of_numbers_for_images() {
    assert_eq!(
        refusal(&[], &["data.kind=cifar10"]),
        r#"trial.toml:8:8: a perceptron takes a series, but the data are images
   8 | kind = "mlp"
     |        ^^^^^
     use `model.kind = "vit"`, or a series, for example `data.kind = "load"`

trial.toml:15:8: this loss is for numbers, but the data have classes to predict
  15 | kind = "squared-error-of-mean"
     |        ^^^^^^^^^^^^^^^^^^^^^^^
     use a loss for classification, for example `kind = "expected-cross-entropy"`"#
    );
}

/// What is said of a classification with one more override.
fn image_refusal(setting: &str) -> String {
    refusal(&[], &[&IMAGES[..], &[setting]].concat())
}

#[test]
fn a_width_that_its_heads_do_not_divide() {
    assert_eq!(
        image_refusal("model.width=190"),
        "--set model.width=190: a width of 190 is not divisible by 3: its 3 heads share it\n     \
         use for example `width = 180` or `width = 192`"
    );
    assert_eq!(
        image_refusal("model.width=189"),
        "--set model.width=189: a width of 189 is not divisible by 4: sines and cosines of two \
         directions are added to it\n     use for example `width = 180` or `width = 192`"
    );
    assert!(image_refusal("model.width=8").ends_with("use for example `width = 12`"));
}

#[test]
fn patches_that_do_not_divide_an_image() {
    assert_eq!(
        image_refusal("model.patch=5"),
        "--set model.patch=5: patches of 5×5 pixels do not divide images of 32×32\n     use 1, 2, \
         4, 8, 16 or 32"
    );
}

#[test]
fn dropout_of_a_transformer() {
    assert_eq!(
        image_refusal("posterior.kind=mc-dropout"),
        "--set posterior.kind=mc-dropout: `mc-dropout` drops hidden units, but a vision transformer \
         has no dropout: all draws would be the same\n     use `kind = \"mean-field\"`, or `kind = \
         \"point\"` for comparison"
    );
}
