//! `--set key=value`.

use super::error::Problem;
use super::schema::{KIND, RECIPE, Section, Values};
use super::source::Source;
use super::tree::{Entry, Node, Place, Value};

/// Writes all overrides into a tree, in their order; returns what is wrong with their form.
pub(super) fn apply(source: &Source<'_>, tree: &mut Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, text) in source.overrides.iter().enumerate() {
        if let Err((message, help)) = apply_one(text, &Place::Override(index), tree) {
            problems.push(Problem {
                at: source.at(&Place::Override(index)),
                key: String::new(),
                message,
                help: Some(help),
            });
        }
    }
    problems
}

fn apply_one(text: &str, place: &Place, tree: &mut Node) -> Result<(), (String, String)> {
    let Some((key, value)) = text.split_once('=') else {
        return Err((
            "an override is a key, `=` and a value".to_owned(),
            "write for example `--set train.steps=50`".to_owned(),
        ));
    };
    let names: Vec<&str> = key.split('.').map(str::trim).collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err((
            format!("`{}` is not the name of a key", key.trim()),
            "write section, dot and key, for example `--set train.steps=50`".to_owned(),
        ));
    }
    let value = value.trim();
    if value.is_empty() {
        return Err((
            format!("there is no value for `{}`", key.trim()),
            "write it after the `=`, for example `--set train.steps=50`".to_owned(),
        ));
    }
    let node = read_value(&names, value, place);
    let (last, sections) = names.split_last().expect("a split text has a part");
    let mut table = tree;
    for (depth, name) in sections.iter().enumerate() {
        let entries = entries_of(table, &sections[..depth])?;
        let index = entries.iter().position(|entry| entry.name == *name).unwrap_or_else(|| {
            entries.push(Entry::new(name, Node::empty(place.clone())));
            entries.len() - 1
        });
        table = &mut entries[index].node;
    }
    let entries = entries_of(table, sections)?;
    if *last == KIND {
        drop_keys_of_other_kinds(sections, &node, entries);
    }
    entries.retain(|entry| entry.name != *last);
    entries.push(Entry::new(last, node));
    Ok(())
}

/// The keys of a section, to change.
fn entries_of<'a>(
    table: &'a mut Node,
    names: &[&str],
) -> Result<&'a mut Vec<Entry>, (String, String)> {
    let found = table.describe();
    match &mut table.value {
        Value::Table(entries) => Ok(entries),
        _ => {
            let name = names.join(".");
            Err((
                format!("`{name}` is a value, {found}, and has no keys"),
                format!("set it itself: `--set {name}=…`"),
            ))
        }
    }
}

/// As TOML where it is, else as text, so that paths and names need no quotes.
fn read_value(names: &[&str], value: &str, place: &Place) -> Node {
    let quoted = value.starts_with(['"', '\'']);
    if takes_text(names) && !quoted {
        return Node::bare(value, place.clone());
    }
    Node::single(value, place).unwrap_or_else(|_| Node::bare(value, place.clone()))
}

/// The section of that name.
fn section_of(names: &[&str]) -> Option<&'static Section> {
    let name = names.join(".");
    let all = RECIPE.all();
    all.into_iter().find(|section| section.name == name)
}

fn takes_text(names: &[&str]) -> bool {
    names.split_last().is_some_and(|(last, sections)| {
        let mut rows = section_of(sections).into_iter().flat_map(|s| s.rows(last));
        rows.any(|key| matches!(key.values, Values::Text))
    })
}

/// Another kind of a section has other keys. Those that the file gives for its own kind go with it.
fn drop_keys_of_other_kinds(sections: &[&str], kind: &Node, entries: &mut Vec<Entry>) {
    let (Some(section), Value::Text(kind)) = (section_of(sections), &kind.value) else {
        return;
    };
    let given = entries.iter().find(|entry| entry.name == KIND);
    let before = match given.map(|entry| &entry.node.value) {
        Some(Value::Text(before)) => Some(before.as_str()),
        Some(_) => return,
        None => section.default_kind,
    };
    if !section.has_kind(kind) || before == Some(kind) {
        return;
    }
    entries.retain(|entry| {
        let mut rows = section.rows(&entry.name).peekable();
        let known = rows.peek().is_some();
        let stays = rows.any(|key| key.is_of(Some(kind)));
        !known || stays || !matches!(entry.place, Place::File(_))
    });
}
