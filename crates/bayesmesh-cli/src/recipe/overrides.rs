//! `--set key=value`.

use bayesmesh_schema::{KIND, Section, Values};

use super::problems::{Found, Problems};
use super::tree::{Entry, Node, Place, Value};

/// Writes all overrides into a tree, in their order; adds what is wrong with their form.
pub(super) fn apply(schema: &Section, overrides: &[String], tree: &mut Node, to: &mut Problems) {
    for (index, text) in overrides.iter().enumerate() {
        let place = Place::Override(index);
        if let Err((message, help)) = apply_one(schema, text, &place, tree) {
            to.push(|| Found { place, key: String::new(), message, help: Some(help) });
        }
    }
}

fn apply_one(
    schema: &Section,
    text: &str,
    place: &Place,
    tree: &mut Node,
) -> Result<(), (String, String)> {
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
    let node = read_value(schema, &names, value, place);
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
        drop_keys_of_other_kinds(schema, sections, &node, entries);
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
fn read_value(schema: &Section, names: &[&str], value: &str, place: &Place) -> Node {
    let quoted = value.starts_with(['"', '\'']);
    let listed = value.starts_with('[') && takes(schema, names, is_list_of_texts);
    let is_text = |values: &Values| *values == Values::Text || is_list_of_texts(values);
    if takes(schema, names, is_text) && !quoted && !listed {
        return Node::bare(value, place.clone());
    }
    Node::single(value, place).unwrap_or_else(|_| Node::bare(value, place.clone()))
}

/// The section of that name.
fn section_of<'a>(schema: &'a Section, names: &[&str]) -> Option<&'a Section> {
    let name = names.join(".");
    schema.all().into_iter().find(|section| section.name == name)
}

fn takes(schema: &Section, names: &[&str], of: impl Fn(&Values) -> bool) -> bool {
    names.split_last().is_some_and(|(last, sections)| {
        section_of(schema, sections)
            .is_some_and(|section| section.owners(last).any(|(_, key)| of(&key.values)))
    })
}

fn is_list_of_texts(values: &Values) -> bool {
    matches!(values, Values::List(item, ..) if **item == Values::Text)
}

/// Another kind of a section has other keys. Those that the file gives for its own kind go with it.
fn drop_keys_of_other_kinds(
    schema: &Section,
    sections: &[&str],
    kind: &Node,
    entries: &mut Vec<Entry>,
) {
    let (Some(section), Value::Text(kind)) = (section_of(schema, sections), &kind.value) else {
        return;
    };
    let given = entries.iter().find(|entry| entry.name == KIND);
    let before = match given.map(|entry| &entry.node.value) {
        Some(Value::Text(before)) => Some(before.as_str()),
        Some(_) => return,
        None => section.default_kind,
    };
    if section.kind(Some(kind)).is_none() || before == Some(kind) {
        return;
    }
    entries.retain(|entry| {
        let mut owners = section.owners(&entry.name).peekable();
        let known = owners.peek().is_some();
        let stays = owners.any(|(owner, _)| owner.name == kind);
        !known || stays || !matches!(entry.place, Place::File(_))
    });
}
