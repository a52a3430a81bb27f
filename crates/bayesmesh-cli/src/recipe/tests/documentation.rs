//! `docs/recipes.md` has every key and no other.

use bayesmesh_schema::{Absent, Values};

use super::parse;
use crate::recipe::Catalogue;

const DOCUMENT: &str = include_str!("../../../../../docs/recipes.md");
const BEGIN: &str = "<!-- keys: made from the schema, checked by a test -->\n\n";
const END: &str = "\n<!-- end of keys -->";

#[test]
fn the_document_has_the_keys_of_the_schema() {
    let (_, keys) = DOCUMENT.split_once(BEGIN).expect("the keys begin with a comment");
    let (keys, _) = keys.split_once(END).expect("the keys end with a comment");
    let expected = Catalogue::builtin().reference();
    let missing: Vec<&str> =
        expected.lines().filter(|line| !keys.lines().any(|other| other == *line)).collect();
    let surplus: Vec<&str> =
        keys.lines().filter(|line| !expected.lines().any(|other| other == *line)).collect();
    assert!(
        missing.is_empty() && surplus.is_empty() && keys == expected,
        "docs/recipes.md differs from the schema.\nMissing: {missing:#?}\nSurplus: {surplus:#?}\n\
         All of it:\n\n{expected}"
    );
}

#[test]
fn the_reference_names_every_key_and_kind() {
    let catalogue = Catalogue::builtin();
    let reference = catalogue.reference();
    let sections = catalogue.schema().all();
    for section in sections.iter().filter(|section| !section.name.is_empty()) {
        let heading = format!("### `[{}]`\n", section.name);
        let (_, text) = reference.split_once(&heading).expect("every section has a heading");
        let text = text.split("\n### ").next().unwrap();
        for name in section.keys(None).map(|key| key.name) {
            assert!(text.contains(&format!("\n| `{name}` |")), "{}", section.full_name(name));
        }
        for kind in section.kind_names() {
            assert!(text.contains(&format!("\n| `\"{kind}\"` |")), "{} {kind}", section.name);
        }
    }
}

/// The recipes in the prose are recipes.
#[test]
fn the_examples_of_the_document_are_valid() {
    let examples: Vec<&str> =
        DOCUMENT.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        parse(example, &[]).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Examples in messages can be copied, and every key says what it means.
#[test]
fn the_schema_is_consistent() {
    for section in Catalogue::builtin().schema().all() {
        if !section.name.is_empty() {
            let example: toml::Table = section.example().parse().expect("examples are TOML");
            let example = toml::Value::Table(example);
            let mut value = Some(&example);
            for name in section.name.split('.') {
                value = value.and_then(|value| value.get(name));
            }
            assert!(value.is_some_and(toml::Value::is_table), "{}", section.name);
        }
        assert!(section.default_kind.is_none_or(|kind| section.kind(Some(kind)).is_some()));
        for key in section.keys(None) {
            let name = section.full_name(key.name);
            assert!(!key.meaning.is_empty() && key.meaning.ends_with('.'), "{name}");
            if let (Absent::Refused(example), Values::Text) = (&key.absent, &key.values) {
                assert!(example.starts_with('"'), "{name}");
            }
        }
    }
}
