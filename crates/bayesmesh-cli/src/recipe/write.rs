//! The resolved form of a recipe.

use bayesmesh_schema::{Absent, KIND, Section, Values};

const HEADER: &str = "\
# A resolved recipe: every key with its value, defaults and overrides included.
# It is a recipe like any other: `bayesmesh train` with this file repeats the run.
";

/// Writes a table that has every key of the schema.
pub(super) fn document(schema: &Section, recipe: &toml::Table) -> String {
    let mut text = HEADER.to_owned();
    each_section(schema, recipe, &mut |section, table| {
        text += "\n";
        if !section.name.is_empty() {
            text += &format!("[{}]\n", section.name);
        }
        for line in lines(section, table) {
            text += &match line {
                Line::Set(key, value) => format!("{key} = {value}\n"),
                Line::Unset(key, meaning) => format!("# {key} is not set: {meaning}\n"),
            };
        }
    });
    text
}

/// Every key that is set, with its value, in the order of the document.
pub(super) fn keys(schema: &Section, recipe: &toml::Table) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    each_section(schema, recipe, &mut |section, table| {
        for line in lines(section, table) {
            if let Line::Set(key, value) = line {
                keys.push((section.full_name(key), value));
            }
        }
    });
    keys
}

/// A line of a section.
enum Line {
    Set(&'static str, String),
    Unset(&'static str, &'static str),
}

/// The kind that a table says it is.
fn kind(table: &toml::Table) -> Option<&str> {
    table.get(KIND).and_then(toml::Value::as_str)
}

/// Calls `each` with a section and those within it, which TOML wants after its keys.
fn each_section(
    section: &Section,
    table: &toml::Table,
    each: &mut dyn FnMut(&Section, &toml::Table),
) {
    each(section, table);
    for key in section.keys(kind(table)) {
        if let (Values::Section(inner), Some(toml::Value::Table(table))) =
            (&key.values, table.get(key.name))
        {
            each_section(inner, table, each);
        }
    }
}

fn lines(section: &Section, table: &toml::Table) -> Vec<Line> {
    let kind_line = table.get(KIND).map(|kind| Line::Set(KIND, kind.to_string()));
    let keys = section.keys(kind(table)).filter_map(|key| {
        match (&key.values, table.get(key.name), &key.absent) {
            (Values::Section(_), ..) => None,
            (_, Some(value), _) => Some(Line::Set(key.name, shown(value))),
            (_, None, Absent::Unset(meaning)) => Some(Line::Unset(key.name, meaning)),
            (_, None, _) => None,
        }
    });
    kind_line.into_iter().chain(keys).collect()
}

/// A value in TOML; small numbers with an exponent rather than many zeros.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(x) if x.is_finite() => format!("{x:?}"),
        toml::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
