//! All keys as Markdown: the tables of `docs/recipes.md`.

use bayesmesh_schema::{Absent, KIND, Key, Section, Values, quoted};

/// Every section with its kinds and keys: values, default and meaning, as Markdown.
pub(super) fn reference(schema: &Section) -> String {
    let sections: Vec<String> = schema.all().into_iter().map(describe).collect();
    sections.join("\n")
}

fn describe(section: &Section) -> String {
    let mut text = match section.name.as_str() {
        "" => "### Top of the file\n".to_owned(),
        name => format!("### `[{name}]`\n"),
    };
    if !section.name.is_empty() {
        text += &format!("\n{}\n", section.meaning);
    }
    if section.has_kinds() {
        let default = match section.default_kind {
            Some(kind) => format!("default `\"{kind}\"`"),
            None => "required".to_owned(),
        };
        text += &format!("\n| `{KIND}` ({default}) | meaning |\n|---|---|\n");
        for kind in &section.kinds {
            text += &format!("| `\"{}\"` | {} |\n", kind.name, kind.meaning);
        }
    }
    let rows = rows(section);
    if rows.is_empty() {
        return text;
    }
    text += match section.has_kinds() {
        true => "\n| key | for | value | default | meaning |\n|---|---|---|---|---|\n",
        false => "\n| key | value | default | meaning |\n|---|---|---|---|\n",
    };
    for (key, kinds) in rows {
        let kinds = match (section.has_kinds(), kinds.len() == section.kinds.len()) {
            (false, _) => String::new(),
            (true, true) => " all |".to_owned(),
            (true, false) => format!(" {} |", quoted(&kinds)),
        };
        text += &row(key, &kinds);
    }
    text
}

/// The keys of a section, each with the kinds that have it just so.
fn rows(section: &Section) -> Vec<(&Key, Vec<&str>)> {
    let mut rows: Vec<(&Key, Vec<&str>)> = Vec::new();
    for kind in &section.kinds {
        for key in &kind.keys {
            match rows.iter_mut().find(|(known, _)| *known == key) {
                Some((_, kinds)) => kinds.push(kind.name),
                None => rows.push((key, vec![kind.name])),
            }
        }
    }
    rows
}

fn row(key: &Key, kinds: &str) -> String {
    let Key { name, values, meaning, .. } = key;
    let default = match (values, &key.absent) {
        (Values::Section(section), _) if section.is_required() => "required".to_owned(),
        (Values::Section(_), _) => "its defaults".to_owned(),
        (_, Absent::Refused(example)) => format!("required, e.g. `{example}`"),
        (_, Absent::Value(value)) => format!("`{value}`"),
        (_, Absent::Unset(meaning)) => format!("not set: {meaning}"),
        (_, Absent::Derived(_, explanation)) => (*explanation).to_owned(),
    };
    format!("| `{name}` |{kinds} {values} | {default} | {meaning} |\n")
}
