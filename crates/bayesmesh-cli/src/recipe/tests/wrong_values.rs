//! Values that a key does not take.

use super::refusal;

#[test]
fn a_number_in_quotes() {
    assert_eq!(
        refusal(&[("samples = 4", r#"samples = "4""#)], &[]),
        r#"trial.toml:18:11: `train.samples` must be a whole number from 1 to 1000000, not the text "4"
  18 | samples = "4"
     |           ^^^
     leave out the quotes: `samples = 4`"#
    );
}

#[test]
fn a_whole_number_with_a_point() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = 4.0")], &[]),
        r#"trial.toml:18:11: `train.samples` must be a whole number from 1 to 1000000, not 4.0
  18 | samples = 4.0
     |           ^^^
     write it without point and exponent: `samples = 4`"#
    );
}

#[test]
fn numbers_out_of_range() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = 0\nbatch = -64")], &[]),
        r#"trial.toml:18:11: `train.samples` must be a whole number from 1 to 1000000, not 0
  18 | samples = 0
     |           ^

trial.toml:19:9: `train.batch` must be a whole number of at least 1, not -64
  19 | batch = -64
     |         ^^^"#
    );
}

#[test]
fn a_number_too_large() {
    assert_eq!(
        refusal(&[("samples = 4", "seed = 9223372036854775808")], &[]),
        r#"trial.toml:18:8: `train.seed` must be a whole number of at least 0, not 9223372036854775808, which is beyond the 64 bits of TOML (at most 9223372036854775807)
  18 | seed = 9223372036854775808
     |        ^^^^^^^^^^^^^^^^^^^"#
    );
}

#[test]
fn numbers_that_are_not_finite() {
    assert_eq!(
        refusal(&[("samples = 4", "heat = inf\nclip_norm = nan")], &[]),
        r#"trial.toml:18:8: `train.heat` must be a number of at least 0, not inf, which is not finite
  18 | heat = inf
     |        ^^^

trial.toml:19:13: `train.clip_norm` must be a number above 0, not nan, which is not finite
  19 | clip_norm = nan
     |             ^^^"#
    );
}

#[test]
fn a_fraction_out_of_range() {
    assert_eq!(
        refusal(&[("dropout = 0.1", "dropout = 1.0")], &[]),
        r#"trial.toml:9:11: `model.dropout` must be a number of at least 0 and below 1, not 1.0
   9 | dropout = 1.0
     |           ^^^"#
    );
}

#[test]
fn freedom_without_a_variance() {
    assert_eq!(
        refusal(
            &[(r#"kind = "squared-error-of-mean""#, "kind = \"student-t-mixture\"\nfreedom = 2")],
            &[]
        ),
        r#"trial.toml:16:11: `loss.freedom` must be a number above 2, not 2
  16 | freedom = 2
     |           ^"#
    );
}

#[test]
fn a_flag_in_quotes() {
    assert_eq!(
        refusal(&[("samples = 4", r#"exact = "true""#)], &[]),
        r#"trial.toml:18:9: `train.exact` must be `true` or `false`, not the text "true"
  18 | exact = "true"
     |         ^^^^^^
     leave out the quotes: `exact = true`"#
    );
}

#[test]
fn a_flag_as_a_number() {
    assert_eq!(
        refusal(&[("samples = 4", "exact = 1")], &[]),
        r#"trial.toml:18:9: `train.exact` must be `true` or `false`, not 1
  18 | exact = 1
     |         ^"#
    );
}

#[test]
fn a_misspelt_choice() {
    assert_eq!(
        refusal(&[("samples = 4", r#"reduce = "reproducable""#)], &[]),
        r#"trial.toml:18:10: `train.reduce` cannot be the text "reproducable"
  18 | reduce = "reproducable"
     |          ^^^^^^^^^^^^^^
     did you mean `reproducible`?
     it is one of `fast`, `reproducible`"#
    );
}

#[test]
fn a_kind_that_nothing_resembles() {
    assert_eq!(
        refusal(&[(r#"kind = "mc-dropout""#, r#"kind = "hmc""#)], &[]),
        r#"trial.toml:12:8: `posterior.kind` cannot be the text "hmc"
  12 | kind = "hmc"
     |        ^^^^^
     it is one of
     `ensemble`: as many ordinary networks as `train.samples` says, each from first weights of its own; a prediction has at most as many draws; dropout in training only
     `functional-noise`: random numbers that the network takes, a vector or fields of them, differ from draw to draw
     `mc-dropout`: dropout stays on in prediction; its masks differ from draw to draw
     `mean-field`: variational inference with an independent Gaussian for every weight
     `point`: the ordinary network, for comparison; dropout in training only"#
    );
}

#[test]
fn a_number_instead_of_a_list() {
    assert_eq!(
        refusal(&[("dropout = 0.1", "dropout = 0.1\nhidden = 128")], &[]),
        r#"trial.toml:10:10: `model.hidden` must be a list, each item a whole number of at least 1, not 128
  10 | hidden = 128
     |          ^^^
     put it in brackets: `hidden = [128]`"#
    );
}

#[test]
fn wrong_items_of_a_list() {
    assert_eq!(
        refusal(&[("dropout = 0.1", "dropout = 0.1\nhidden = [128, 0, \"x\"]")], &[]),
        r#"trial.toml:10:16: `model.hidden[1]` must be a whole number of at least 1, not 0
  10 | hidden = [128, 0, "x"]
     |                ^

trial.toml:10:19: `model.hidden[2]` must be a whole number of at least 1, not the text "x"
  10 | hidden = [128, 0, "x"]
     |                   ^^^"#
    );
}

#[test]
fn a_list_of_another_length() {
    assert_eq!(
        refusal(&[(r#"path = "load.csv""#, "path = \"load.csv\"\nsplit = [0.7, 0.3]")], &[]),
        r#"trial.toml:6:9: `data.split` must be a list of 3, each a number above 0 and below 1, not the list [0.7, 0.3]
   6 | split = [0.7, 0.3]
     |         ^^^^^^^^^^"#
    );
}

#[test]
fn a_date_instead_of_a_text() {
    assert_eq!(
        refusal(&[(r#"path = "load.csv""#, "path = 2015-01-01")], &[]),
        r#"trial.toml:5:8: `data.path` must be text, not the date 2015-01-01
   5 | path = 2015-01-01
     |        ^^^^^^^^^^
     put it in quotes: `path = "2015-01-01"`"#
    );
}

#[test]
fn an_empty_text() {
    assert_eq!(
        refusal(&[(r#"path = "load.csv""#, r#"path = """#)], &[]),
        r#"trial.toml:5:8: `data.path` must be text, not the text "", which is blank
   5 | path = ""
     |        ^^"#
    );
}

#[test]
fn a_kind_instead_of_a_section() {
    assert_eq!(
        refusal(&[(r#"kind = "mc-dropout""#, "kind = \"mean-field\"\nprior = \"normal\"")], &[]),
        r#"trial.toml:13:9: `posterior.prior` must be a section, not the text "normal"
  13 | prior = "normal"
     |         ^^^^^^^^
     write `prior = { kind = "normal" }`, or a section `[posterior.prior]` with it"#
    );
}

#[test]
fn a_list_of_tables() {
    assert_eq!(
        refusal(&[("[train]", "[[train]]")], &[]),
        r#"trial.toml:17:1: `train` must be a section, not a list of tables
  17 | [[train]]
     | ^^^^^^^^^
     For example:
     [train]
     epochs = 10
     samples = 16
     batch = 64"#
    );
}
