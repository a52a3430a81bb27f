//! All keys as Markdown: the tables of `docs/recipes.md`.

use super::schema::{Absent, KIND, Key, RECIPE, Section, Values, quoted};

/// Every section with its kinds and keys: values, default and meaning, as Markdown.
pub fn reference() -> String {
    let sections: Vec<String> = RECIPE.all().into_iter().map(describe).collect();
    sections.join("\n")
}

fn describe(section: &Section) -> String {
    let mut text = match section.name {
        "" => "### Top of the file\n".to_owned(),
        name => format!("### `[{name}]`\n"),
    };
    if !section.name.is_empty() {
        text += &format!("\n{}\n", section.meaning);
    }
    if !section.kinds.is_empty() {
        let default = match section.default_kind {
            Some(kind) => format!("default `\"{kind}\"`"),
            None => "required".to_owned(),
        };
        text += &format!("\n| `{KIND}` ({default}) | meaning |\n|---|---|\n");
        for kind in section.kinds {
            text += &format!("| `\"{}\"` | {} |\n", kind.name, kind.meaning);
        }
    }
    if section.keys.is_empty() {
        return text;
    }
    let by_kind = section.keys.iter().any(|key| !key.kinds.is_empty());
    text += match by_kind {
        true => "\n| key | for | value | default | meaning |\n|---|---|---|---|---|\n",
        false => "\n| key | value | default | meaning |\n|---|---|---|---|\n",
    };
    for key in section.keys {
        text += &row(key, by_kind);
    }
    text
}

fn row(key: &Key, by_kind: bool) -> String {
    let Key { name, values, meaning, .. } = key;
    let kinds = match (by_kind, key.kinds) {
        (false, _) => String::new(),
        (true, []) => " all |".to_owned(),
        (true, kinds) => format!(" {} |", quoted(kinds)),
    };
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
