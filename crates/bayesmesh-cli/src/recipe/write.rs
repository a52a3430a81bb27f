//! The resolved form of a recipe.

use super::schema::{Absent, KIND, RECIPE, Section, Values};

const HEADER: &str = "\
# A resolved recipe: every key with its value, defaults and overrides included.
# It is a recipe like any other: `bayesmesh train` with this file repeats the run.
";

/// Writes a table that has every key of the schema.
pub(super) fn document(recipe: &toml::Table) -> String {
    let mut text = HEADER.to_owned();
    write_section(&RECIPE, recipe, &mut text);
    text
}

fn write_section(section: &Section, table: &toml::Table, text: &mut String) {
    *text += "\n";
    if !section.name.is_empty() {
        *text += &format!("[{}]\n", section.name);
    }
    let kind = table.get(KIND).and_then(toml::Value::as_str);
    if let Some(kind) = table.get(KIND) {
        *text += &format!("{KIND} = {kind}\n");
    }
    // TOML wants the keys of a table before the tables within it.
    let mut inner = Vec::new();
    for key in section.keys.iter().filter(|key| key.is_of(kind)) {
        match (&key.values, table.get(key.name), &key.absent) {
            (Values::Section(section), Some(toml::Value::Table(table)), _) => {
                inner.push((section, table));
            }
            (_, Some(value), _) => *text += &format!("{} = {}\n", key.name, shown(value)),
            (_, None, Absent::Unset(meaning)) => {
                *text += &format!("# {} is not set: {meaning}\n", key.name);
            }
            (_, None, _) => {}
        }
    }
    for (section, table) in inner {
        write_section(section, table, text);
    }
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
