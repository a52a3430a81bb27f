//! Errors in `--set`.

use super::refusal;

#[test]
fn a_misspelt_key() {
    assert_eq!(
        refusal(&[], &["train.smaples=4"]),
        r#"--set train.smaples=4: there is no key `train.smaples`
     did you mean `train.samples`?"#
    );
}

#[test]
fn a_misspelt_section() {
    assert_eq!(
        refusal(&[], &["tarin.samples=4"]),
        r#"--set tarin.samples=4: there is no section `[tarin]`
     did you mean `[train]`?"#
    );
}

#[test]
fn a_key_without_its_section() {
    assert_eq!(
        refusal(&[], &["samples=4"]),
        r#"--set samples=4: there is no key `samples`
     did you mean `train.samples`?"#
    );
}

#[test]
fn a_word_instead_of_a_number() {
    assert_eq!(
        refusal(&[], &["train.samples=four"]),
        r#"--set train.samples=four: `train.samples` must be a whole number from 1 to 1000000, not the text "four""#
    );
}

#[test]
fn a_misspelt_kind() {
    assert_eq!(
        refusal(&[], &["posterior.kind=mean_field"]),
        r#"--set posterior.kind=mean_field: `posterior.kind` cannot be the text "mean_field"
     did you mean `mean-field`?
     it is one of `ensemble`, `functional-noise`, `mc-dropout`, `mean-field`, `point`"#
    );
}

#[test]
fn a_key_within_a_value() {
    assert_eq!(
        refusal(&[], &["train.samples.all=4"]),
        r#"--set train.samples.all=4: `train.samples` is a value, 4, and has no keys
     set it itself: `--set train.samples=…`"#
    );
}

#[test]
fn wrong_forms_in_their_order() {
    assert_eq!(
        refusal(&[], &["train.samples", "train..samples=4", "train.steps=", "=3"]),
        r#"--set train.samples: an override is a key, `=` and a value
     write for example `--set train.steps=50`

--set train..samples=4: `train..samples` is not the name of a key
     write section, dot and key, for example `--set train.steps=50`

--set train.steps=: there is no value for `train.steps`
     write it after the `=`, for example `--set train.steps=50`

--set =3: `` is not the name of a key
     write section, dot and key, for example `--set train.steps=50`"#
    );
}

#[test]
fn what_is_wrong_in_the_file_comes_first() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = 0")], &["data.inputs=0", "data.outputs=0"]),
        r#"trial.toml:18:11: `train.samples` must be a whole number from 1 to 1000000, not 0
  18 | samples = 0
     |           ^

--set data.inputs=0: `data.inputs` must be a whole number of at least 1, not 0

--set data.outputs=0: `data.outputs` must be a whole number of at least 1, not 0"#
    );
}
