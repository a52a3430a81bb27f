//! A TOML document whose every key and value knows where it was written.

use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At these bytes of the file.
    File(Range<usize>),
    /// In the override of this index.
    Override(usize),
    /// Nowhere in particular: a default, or something missing at the top of the file.
    Nowhere,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Where it was written.
    pub place: Place,
    /// As it was written.
    pub text: String,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Text.
    Text(String),
    /// A whole number; `None` if 64 bits do not hold it.
    Whole(Option<i64>),
    /// Another number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A date or a time.
    Date,
    /// A list.
    List(Vec<Node>),
    /// A table, in no particular order.
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The key.
    pub name: String,
    /// Where the key was written.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Entry {
    /// A key that was written where its value was.
    pub fn new(name: &str, node: Node) -> Self {
        Self { name: name.to_owned(), place: node.place.clone(), node }
    }
}

impl Node {
    /// Reads a document whose bytes have the places given.
    pub fn document(text: &str, place: &dyn Fn(Range<usize>) -> Place) -> Result<Self, Error> {
        let table = DeTable::parse(text)?.into_inner();
        Ok(Self {
            place: Place::Nowhere,
            text: String::new(),
            value: table_of(&table, text, place),
        })
    }

    /// Reads a single value, all of it from one place.
    pub fn single(text: &str, place: &Place) -> Result<Self, Error> {
        let value = DeValue::parse(text)?;
        Ok(node_of(value.get_ref(), value.span(), text, &|_| place.clone()))
    }

    /// A text that was not written as TOML.
    pub fn bare(text: &str, place: Place) -> Self {
        Self { place, text: format!("{text:?}"), value: Value::Text(text.to_owned()) }
    }

    /// An empty table.
    pub fn empty(place: Place) -> Self {
        Self { place, text: String::new(), value: Value::Table(Vec::new()) }
    }

    /// The entries of a table.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key of a table.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let entry = self.entries()?.iter().find(|entry| entry.name == name)?;
        Some(&entry.node)
    }

    /// Where a key was written, e.g. `model.dropout`; if nowhere, where its section was.
    pub fn locate(&self, key: &str) -> Place {
        let mut node = self;
        for name in key.split('.') {
            match node.get(name) {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place.clone()
    }

    /// What it is, for messages: `the text "x"`, `the list [1, 2]`, `12`.
    pub fn describe(&self) -> String {
        const LONGEST: usize = 40;
        let mut text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.chars().count() > LONGEST {
            text = text.chars().take(LONGEST).chain(['…']).collect();
        }
        match &self.value {
            Value::Text(_) => format!("the text {text}"),
            Value::Date => format!("the date {text}"),
            Value::List(_) if !text.starts_with("[[") => format!("the list {text}"),
            Value::List(_) => "a list of tables".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Whole(_) | Value::Number(_) | Value::Flag(_) => text,
        }
    }
}

fn table_of(table: &DeTable<'_>, source: &str, place: &dyn Fn(Range<usize>) -> Place) -> Value {
    let entries = table.iter().map(|(key, value)| Entry {
        name: key.get_ref().to_string(),
        place: place(key.span()),
        node: node_of(value.get_ref(), value.span(), source, place),
    });
    Value::Table(entries.collect())
}

fn node_of(
    value: &DeValue<'_>,
    span: Range<usize>,
    source: &str,
    place: &dyn Fn(Range<usize>) -> Place,
) -> Node {
    let read = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => Value::Whole(i64::from_str_radix(n.as_str(), n.radix()).ok()),
        DeValue::Float(x) => Value::Number(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(
            items.iter().map(|item| node_of(item.get_ref(), item.span(), source, place)).collect(),
        ),
        DeValue::Table(table) => table_of(table, source, place),
    };
    Node {
        text: source.get(span.clone()).unwrap_or_default().to_owned(),
        place: place(span),
        value: read,
    }
}
