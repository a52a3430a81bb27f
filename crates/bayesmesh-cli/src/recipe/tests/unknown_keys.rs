//! Keys and sections that do not exist, or not there.

use super::refusal;

#[test]
fn a_misspelt_key() {
    assert_eq!(
        refusal(&[("samples = 4", "smaples = 4")], &[]),
        r#"trial.toml:18:1: there is no key `train.smaples`
  18 | smaples = 4
     | ^^^^^^^
     did you mean `train.samples`?"#
    );
}

#[test]
fn a_key_of_another_section() {
    assert_eq!(
        refusal(&[("samples = 4", "lr = 1e-3")], &[]),
        r#"trial.toml:18:1: there is no key `train.lr`
  18 | lr = 1e-3
     | ^^
     did you mean `optimizer.rate`?"#
    );
}

#[test]
fn a_key_that_nothing_resembles() {
    assert_eq!(
        refusal(&[("dropout = 0.1", "flavour = 3")], &[]),
        r#"trial.toml:9:1: there is no key `model.flavour`
   9 | flavour = 3
     | ^^^^^^^
     `[model]` has `hidden`, `activation`, `dropout`, `input_dropout`, `residual`, `layer_norm`, `embedding`"#
    );
}

#[test]
fn a_key_without_its_section() {
    assert_eq!(
        refusal(&[(r#"name = "trial""#, "name = \"trial\"\nepochs = 10")], &[]),
        r#"trial.toml:2:1: there is no key `epochs`
   2 | epochs = 10
     | ^^^^^^
     did you mean `train.epochs`?"#
    );
}

#[test]
fn a_misspelt_section() {
    assert_eq!(
        refusal(&[("[train]", "[trian]")], &[]),
        r#"trial.toml:17:2: there is no section `[trian]`
  17 | [trian]
     |  ^^^^^
     did you mean `[train]`?"#
    );
}

#[test]
fn a_key_of_another_kind() {
    assert_eq!(
        refusal(&[(r#"kind = "squared-error-of-mean""#, "kind = \"crps\"\nfreedom = 4")], &[]),
        r#"trial.toml:16:1: `loss.freedom` is a key of `student-t-mixture`, but `loss.kind` is `crps`
  16 | freedom = 4
     | ^^^^^^^
     leave it out, or choose `kind = "student-t-mixture"`"#
    );
}

#[test]
fn keys_of_another_posterior() {
    assert_eq!(
        refusal(
            &[(
                r#"kind = "mc-dropout""#,
                "kind = \"mc-dropout\"\ninitial_std = 0.1\nprior = { kind = \"normal\" }"
            )],
            &[]
        ),
        r#"trial.toml:13:1: `posterior.initial_std` is a key of `mean-field`, but `posterior.kind` is `mc-dropout`
  13 | initial_std = 0.1
     | ^^^^^^^^^^^
     leave it out, or choose `kind = "mean-field"`

trial.toml:14:1: `posterior.prior` is a key of `mean-field`, but `posterior.kind` is `mc-dropout`
  14 | prior = { kind = "normal" }
     | ^^^^^
     leave it out, or choose `kind = "mean-field"`"#
    );
}

#[test]
fn a_key_of_another_kind_in_an_inline_table() {
    assert_eq!(
        refusal(
            &[(
                r#"kind = "mc-dropout""#,
                "kind = \"mean-field\"\nprior = { kind = \"normal\", weight = 0.5 }"
            )],
            &[]
        ),
        r#"trial.toml:13:28: `posterior.prior.weight` is a key of `scale-mixture`, but `posterior.prior.kind` is `normal`
  13 | prior = { kind = "normal", weight = 0.5 }
     |                            ^^^^^^
     leave it out, or choose `kind = "scale-mixture"`"#
    );
}

#[test]
fn a_key_where_the_kind_is_wrong_too() {
    assert_eq!(
        refusal(&[(r#"kind = "squared-error-of-mean""#, "kind = \"gaussian\"\nfoo = 1")], &[]),
        r#"trial.toml:15:8: `loss.kind` cannot be the text "gaussian"
  15 | kind = "gaussian"
     |        ^^^^^^^^^^
     did you mean `gaussian-of-draws`?
     it is one of `squared-error-of-mean`, `expected-squared-error`, `gaussian-of-draws`, `expected-gaussian`, `gaussian-mixture`, `student-t-mixture`, `quantile-mixture`, `crps`, `quantiles`, `expected-poisson`, `poisson-mixture`, `expected-negative-binomial`, `negative-binomial-mixture`, `expected-cross-entropy`, `cross-entropy-of-mean`

trial.toml:16:1: there is no key `loss.foo`
  16 | foo = 1
     | ^^^
     `[loss]` has `floor`, `freedom`, `level`, `alpha`, `count`"#
    );
}
