//! Holds a tree against the schema: what is unknown, ill-typed, out of range or missing.

use bayesmesh_schema::{Absent, KIND, Key, Section, Values, quoted};

use super::problems::{Found, Problems};
use super::suggest;
use super::tree::{Entry, Node, Place, Value};

/// Makes a table of a tree that has every key with its value, defaults included, and collects what
/// is wrong with it.
pub(super) struct Check<'a> {
    schema: &'a Section,
    /// What was wrong.
    pub problems: Problems,
}

impl<'a> Check<'a> {
    /// Nothing is wrong yet.
    pub fn new(schema: &'a Section) -> Self {
        Self { schema, problems: Problems::default() }
    }

    /// Checks a section. Of what is wrong, nothing is in the result.
    pub fn section(&mut self, section: &Section, node: Option<&Node>) -> toml::Table {
        let mut table = toml::Table::new();
        let empty = Node::empty(Place::Nowhere);
        if node.is_none() && section.is_required() {
            self.refuse(&Place::Nowhere, &section.name, || {
                let message = format!("the section `[{}]` is missing", section.name);
                (message, format!("{} For example:\n{}", section.meaning, section.example()))
            });
            return table;
        }
        let node = node.unwrap_or(&empty);
        let Some(entries) = node.entries() else {
            self.refuse_value(&section.name, &Values::section(section.clone()), node);
            return table;
        };
        let Ok(kind) = self.kind(section, node) else {
            self.refuse_unknown(section, None, entries);
            return table;
        };
        if let Some(kind) = kind {
            table.insert(KIND.to_owned(), kind.into());
        }
        self.refuse_unknown(section, kind, entries);
        for key in section.keys(kind) {
            if let Some(value) = self.key(section, key, node, &table) {
                table.insert(key.name.to_owned(), value);
            }
        }
        table
    }

    /// The kind of a section, if it has kinds.
    fn kind(&mut self, section: &Section, node: &Node) -> Result<Option<&'static str>, ()> {
        if !section.has_kinds() {
            return Ok(None);
        }
        let name = section.full_name(KIND);
        let Some(given) = node.get(KIND) else {
            if section.is_required() {
                self.refuse(&node.place, &name, || {
                    let message = format!("the key `{name}` is missing");
                    (message, format!("it is one of\n{}", section.kind_list()))
                });
            }
            return section.default_kind.map(Some).ok_or(());
        };
        let known = match &given.value {
            Value::Text(text) => section.kinds.iter().find(|kind| kind.name == text),
            _ => None,
        };
        match known {
            Some(kind) => Ok(Some(kind.name)),
            None => {
                self.refuse_choice(&name, &section.kind_names(), given, &section.kind_list());
                Err(())
            }
        }
    }

    /// Reports what a section of that kind does not have. Without a kind, only what none has.
    fn refuse_unknown(&mut self, section: &Section, kind: Option<&str>, entries: &[Entry]) {
        let has_kinds = section.has_kinds();
        for entry in entries.iter().filter(|e| !(has_kinds && e.name == KIND)) {
            let name = section.full_name(&entry.name);
            let owners = || section.owners(&entry.name).map(|(owner, _)| owner.name);
            if owners().next().is_none() {
                let schema = self.schema;
                self.refuse(&entry.place, &name, || unknown(schema, section, kind, entry));
            } else if let Some(kind) = kind
                && !owners().any(|owner| owner == kind)
            {
                self.refuse(&entry.place, &name, || {
                    let (owners, place) = (owners().collect::<Vec<_>>(), section.full_name(KIND));
                    let all = quoted(&owners);
                    (
                        format!("`{name}` is a key of {all}, but `{place}` is `{kind}`"),
                        format!("leave it out, or choose `{KIND} = \"{}\"`", owners[0]),
                    )
                });
            }
        }
    }

    /// The value of a key: what is given, else what holds without it.
    fn key(
        &mut self,
        section: &Section,
        key: &Key,
        node: &Node,
        before: &toml::Table,
    ) -> Option<toml::Value> {
        let name = section.full_name(key.name);
        if let Values::Section(inner) = &key.values {
            return Some(self.section(inner, node.get(key.name)).into());
        }
        if let Some(given) = node.get(key.name) {
            return self.value(&name, &key.values, given);
        }
        let default = match key.absent {
            Absent::Value(text) => text,
            Absent::Derived(value, _) => value(&|name| text_of(before, name)),
            Absent::Unset(_) => return None,
            Absent::Refused(example) => {
                self.refuse(&node.place, &name, || {
                    let help =
                        format!("{}\nadd for example `{} = {example}`", key.meaning, key.name);
                    (format!("the key `{name}` is missing"), help)
                });
                return None;
            }
        };
        let default = Node::single(default, &Place::Nowhere).expect("defaults are TOML");
        self.value(&name, &key.values, &default)
    }

    /// A value, if it is one of those expected.
    fn value(&mut self, name: &str, values: &Values, node: &Node) -> Option<toml::Value> {
        if let (Values::Choice(choices), Value::Text(text)) = (values, &node.value)
            && !choices.contains(&text.as_str())
        {
            self.refuse_choice(name, choices, node, &quoted(choices));
            return None;
        }
        if let (Values::List(item, least, most), Value::List(nodes)) = (values, &node.value)
            && (*least..=*most).contains(&nodes.len())
        {
            let before = self.problems.count();
            let items = nodes.iter().enumerate();
            let list: Vec<_> = items
                .filter_map(|(i, node)| self.value(&format!("{name}[{i}]"), item, node))
                .collect();
            return (self.problems.count() == before).then_some(list.into());
        }
        // A list of one text may be written as that text.
        if let (Values::List(item, 0 | 1, _), Value::Text(_)) = (values, &node.value)
            && **item == Values::Text
            && let Some(only) = scalar(item, node)
        {
            return Some(vec![only].into());
        }
        let read = scalar(values, node);
        if read.is_none() {
            self.refuse_value(name, values, node);
        }
        read
    }

    /// `all` explains the choices, where none of them can have been meant.
    fn refuse_choice(&mut self, name: &str, choices: &[&str], node: &Node, all: &str) {
        self.refuse(&node.place, name, || {
            let meant = match &node.value {
                Value::Text(text) => suggest::nearest(text, choices.iter().copied()),
                _ => None,
            };
            let help = match meant {
                Some(meant) => format!("did you mean `{meant}`?\nit is one of {}", quoted(choices)),
                None => format!("it is one of\n{all}"),
            };
            (format!("`{name}` cannot be {}", node.describe()), help)
        });
    }

    fn refuse_value(&mut self, name: &str, values: &Values, node: &Node) {
        self.problems.push(|| {
            let reason = match (values, &node.value) {
                (Values::Text, Value::Text(_)) => ", which is blank".to_owned(),
                (_, Value::Whole(None)) => {
                    format!(", which is beyond the 64 bits of TOML (at most {})", i64::MAX)
                }
                (_, Value::Number(x)) if !x.is_finite() => ", which is not finite".to_owned(),
                _ => String::new(),
            };
            Found {
                place: node.place.clone(),
                key: name.to_owned(),
                message: format!("`{name}` must be {values}, not {}{reason}", node.describe()),
                help: remedy(name, values, node),
            }
        });
    }

    fn refuse(&mut self, place: &Place, key: &str, words: impl FnOnce() -> (String, String)) {
        self.problems.push(|| {
            let (message, help) = words();
            Found { place: place.clone(), key: key.to_owned(), message, help: Some(help) }
        });
    }
}

/// The text of a key in a table, or in one within it: `prior.kind`.
fn text_of(table: &toml::Table, name: &str) -> Option<String> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    let value = table.get(first)?;
    match rest {
        Some(rest) => text_of(value.as_table()?, rest),
        None => value.as_str().map(str::to_owned),
    }
}

/// What is said of an entry that no kind of a section has.
fn unknown(
    schema: &Section,
    section: &Section,
    kind: Option<&str>,
    entry: &Entry,
) -> (String, String) {
    let name = section.full_name(&entry.name);
    let is_section = section.name.is_empty() && entry.node.entries().is_some();
    let message = match is_section {
        true => format!("there is no section `[{name}]`"),
        false => format!("there is no key `{name}`"),
    };
    if let Some(meant) = suggest::nearest_key(schema, section, kind, &entry.name) {
        let is_section = schema.sections().any(|section| section.name == meant);
        let meant = if is_section { format!("[{meant}]") } else { meant };
        return (message, format!("did you mean `{meant}`?"));
    }
    let mut names: Vec<&str> = Vec::new();
    for key in section.keys(kind) {
        if !names.contains(&key.name) {
            names.push(key.name);
        }
    }
    let help = match (section.name.as_str(), names.is_empty()) {
        ("", _) => format!("there are {}", quoted(&names)),
        (name, false) => format!("`[{name}]` has {}", quoted(&names)),
        (name, true) => format!("`[{name}]` of this kind has no other keys"),
    };
    (message, help)
}

/// A value that is neither a list nor a section, if it is one of those expected.
fn scalar(values: &Values, node: &Node) -> Option<toml::Value> {
    match (values, &node.value) {
        (Values::Text, Value::Text(text)) => {
            (!text.trim().is_empty()).then_some(text.as_str().into())
        }
        // Which of them it is, was checked before.
        (Values::Choice(_), Value::Text(text)) => Some(text.as_str().into()),
        (Values::Flag, Value::Flag(flag)) => Some((*flag).into()),
        (Values::Count(least, most), Value::Whole(Some(n))) => {
            (least..=most).contains(&n).then_some((*n).into())
        }
        (Values::Number(range), Value::Number(x)) => range.contains(*x).then_some((*x).into()),
        (Values::Number(range), Value::Whole(Some(n))) => {
            let x = *n as f64;
            range.contains(x).then_some(x.into())
        }
        _ => None,
    }
}

/// How to write what was probably meant.
fn remedy(name: &str, values: &Values, node: &Node) -> Option<String> {
    let key = name.rsplit('.').next().unwrap_or(name);
    let fits = |node: &Node, values: &Values| scalar(values, node).is_some();
    match (values, &node.value) {
        (Values::Section(section), Value::Text(kind)) if section.kind(Some(kind)).is_some() => {
            Some(format!(
                "write `{key} = {{ {KIND} = \"{kind}\" }}`, or a section `[{name}]` with it"
            ))
        }
        (Values::Section(section), _) => Some(format!("For example:\n{}", section.example())),
        (Values::Text, Value::Text(_) | Value::List(_) | Value::Table(_)) => None,
        (Values::Text, _) => Some(format!("put it in quotes: `{key} = \"{}\"`", node.text)),
        (Values::List(item, 0 | 1, usize::MAX), _) if fits(node, item) => {
            Some(format!("put it in brackets: `{key} = [{}]`", node.text))
        }
        (Values::Count(..), Value::Number(x)) => {
            let whole = Node::single(&format!("{x:.0}"), &Place::Nowhere).ok()?;
            (x.fract() == 0.0 && fits(&whole, values))
                .then(|| format!("write it without point and exponent: `{key} = {x:.0}`"))
        }
        (_, Value::Text(text)) => {
            let bare = Node::single(text, &Place::Nowhere).ok()?;
            let bare_fits = match (values, &bare.value) {
                (Values::List(item, ..), Value::List(items)) => {
                    items.iter().all(|node| fits(node, item))
                }
                _ => fits(&bare, values),
            };
            bare_fits.then(|| format!("leave out the quotes: `{key} = {text}`"))
        }
        _ => None,
    }
}
