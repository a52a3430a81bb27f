//! Text that is not TOML.

use super::refusal;

#[test]
fn no_value() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = ")], &[]),
        r#"trial.toml:18:11: this is not TOML: there is no value after the `=`
  18 | samples =
     |           ^"#
    );
}

#[test]
fn no_equals_sign() {
    assert_eq!(
        refusal(&[("samples = 4", "samples 4")], &[]),
        r#"trial.toml:18:9: this is not TOML: key with no value, expected `=`
  18 | samples 4
     |         ^"#
    );
}

#[test]
fn an_open_header() {
    assert_eq!(
        refusal(&[("[train]", "[train")], &[]),
        r#"trial.toml:17:7: this is not TOML: unclosed table, expected `]`
  17 | [train
     |       ^"#
    );
}

#[test]
fn the_same_key_twice() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = 4\nsamples = 5")], &[]),
        r#"trial.toml:19:1: this is not TOML: duplicate key
  19 | samples = 5
     | ^^^^^^^"#
    );
}

#[test]
fn an_open_quote() {
    assert_eq!(
        refusal(&[(r#"path = "load.csv""#, r#"path = "load.csv"#)], &[]),
        r#"trial.toml:5:17: this is not TOML: invalid basic string, expected `"`
   5 | path = "load.csv
     |                 ^"#
    );
}
