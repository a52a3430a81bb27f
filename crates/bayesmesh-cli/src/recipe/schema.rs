//! What a recipe may contain, as data: sections, their kinds and their keys.
//!
//! The checks, the resolved form, the suggestions in errors and the tables of `docs/recipes.md` all
//! come from here. Each section is declared beside the type that it is read into.

use std::fmt::{self, Display};

use super::{checkpoint, data, evaluate, loss, model, optimizer, posterior, schedule, train};

/// The name of the key that says which kind a section is.
pub(super) const KIND: &str = "kind";

/// A table of a recipe.
pub(super) struct Section {
    /// Its full name, e.g. `posterior.prior`; empty for the top of the file.
    pub name: &'static str,
    /// What it describes.
    pub meaning: &'static str,
    /// What it can be, as its key `kind` says; empty for a section of one kind only.
    pub kinds: &'static [Kind],
    /// The kind where none is given; with `None` the section must be there and say.
    pub default_kind: Option<&'static str>,
    /// Its keys but `kind`, in the order in which they are written. A key whose default differs
    /// from kind to kind has a row for each.
    pub keys: &'static [Key],
    /// A short valid form, shown where the section is missing.
    pub example: &'static str,
}

/// One of the things that a section can be.
pub(super) struct Kind {
    /// The value of `kind`.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

impl Kind {
    /// A kind with its meaning.
    pub const fn new(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning }
    }
}

/// A key of a section.
pub(super) struct Key {
    /// Its name within the section.
    pub name: &'static str,
    /// What values it takes.
    pub values: Values,
    /// What holds where it is not given.
    pub absent: Absent,
    /// What it means.
    pub meaning: &'static str,
    /// The kinds of the section that have it; empty for all.
    pub kinds: &'static [&'static str],
    /// What people call it elsewhere, for suggestions.
    pub also: &'static [&'static str],
}

/// What holds where a key is not given.
pub(super) enum Absent {
    /// It must be given; with an example of a value, in TOML.
    Refused(&'static str),
    /// This value, in TOML.
    Value(&'static str),
    /// Nothing is set, which means this.
    Unset(&'static str),
    /// What follows from the keys before it; with an explanation.
    Derived(fn(&toml::Table) -> &'static str, &'static str),
}

/// The values that a key takes.
pub(super) enum Values {
    /// Any text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Count(i64, i64),
    /// A finite number of a range.
    Number(Range),
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list with a number of items between the two given.
    List(&'static Values, usize, usize),
    /// A section of its own.
    Section(&'static Section),
}

/// A range of numbers.
pub(super) struct Range {
    low: Option<End>,
    high: Option<End>,
}

/// One end of a range.
struct End {
    at: f64,
    included: bool,
}

impl Range {
    /// Every finite number.
    pub const ANY: Self = Self { low: None, high: None };
    /// Zero or more.
    pub const NOT_NEGATIVE: Self = Self { low: Some(End { at: 0.0, included: true }), high: None };
    /// From 0, included, to 1, excluded.
    pub const BELOW_ONE: Self = Self::within(true, false);
    /// From 0 to 1, both included.
    pub const SHARE: Self = Self::within(true, true);
    /// From 0 to 1, both excluded.
    pub const INSIDE_ONE: Self = Self::within(false, false);

    /// More than a number.
    pub const fn above(at: f64) -> Self {
        Self { low: Some(End { at, included: false }), high: None }
    }

    const fn within(with_zero: bool, with_one: bool) -> Self {
        Self {
            low: Some(End { at: 0.0, included: with_zero }),
            high: Some(End { at: 1.0, included: with_one }),
        }
    }

    /// Whether a number is finite and in the range.
    pub fn contains(&self, x: f64) -> bool {
        let above = |end: &End| x > end.at || (end.included && x == end.at);
        let below = |end: &End| x < end.at || (end.included && x == end.at);
        x.is_finite() && self.low.as_ref().is_none_or(above) && self.high.as_ref().is_none_or(below)
    }
}

impl Values {
    /// A whole number of at least this.
    pub const fn at_least(least: i64) -> Self {
        Self::Count(least, i64::MAX)
    }
}

/// What is expected, for errors and documentation: "a whole number of at least 1".
impl Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Count(least, i64::MAX) => write!(f, "a whole number of at least {least}"),
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Number(range) => write!(f, "a number{range}"),
            Self::Choice(names) => write!(f, "one of {}", quoted(names)),
            Self::List(item, least, most) => match (*least, *most) {
                (0, usize::MAX) => write!(f, "a list, each item {item}"),
                (least, usize::MAX) => write!(f, "a list of at least {least}, each {item}"),
                (_, most) => write!(f, "a list of {most}, each {item}"),
            },
            Self::Section(_) => f.write_str("a section"),
        }
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(End { at, included }) = self.low {
            let relation = if included { "of at least" } else { "above" };
            write!(f, " {relation} {at}")?;
        }
        if let Some(End { at, included }) = self.high {
            let relation = if included { "at most" } else { "below" };
            write!(f, " and {relation} {at}")?;
        }
        Ok(())
    }
}

/// Names between backticks, separated by commas.
pub(super) fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl Key {
    /// A key of all kinds of its section.
    pub const fn new(
        name: &'static str,
        values: Values,
        absent: Absent,
        meaning: &'static str,
    ) -> Self {
        Self { name, values, absent, meaning, kinds: &[], also: &[] }
    }

    /// A section within a section.
    pub const fn section(name: &'static str, section: &'static Section) -> Self {
        let values = Values::Section(section);
        Self::new(name, values, Absent::Value("{}"), section.meaning)
    }

    /// The key exists for these kinds only.
    pub const fn of(mut self, kinds: &'static [&'static str]) -> Self {
        self.kinds = kinds;
        self
    }

    /// Other words for it.
    pub const fn also(mut self, words: &'static [&'static str]) -> Self {
        self.also = words;
        self
    }

    /// Whether a section of that kind has the key.
    pub fn is_of(&self, kind: Option<&str>) -> bool {
        self.kinds.is_empty() || kind.is_some_and(|kind| self.kinds.contains(&kind))
    }
}

impl Section {
    /// The full name of a key.
    pub fn full_name(&self, key: &str) -> String {
        match self.name {
            "" => key.to_owned(),
            section => format!("{section}.{key}"),
        }
    }

    /// Whether a recipe must have the section.
    pub fn is_required(&self) -> bool {
        !self.kinds.is_empty() && self.default_kind.is_none()
    }

    /// The names of its kinds.
    pub fn kind_names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name).collect()
    }

    /// Its kinds with their meanings, a line each.
    pub fn kind_list(&self) -> String {
        let lines: Vec<String> =
            self.kinds.iter().map(|kind| format!("`{}`: {}", kind.name, kind.meaning)).collect();
        lines.join("\n")
    }

    /// Whether one of its kinds has that name.
    pub fn has_kind(&self, name: &str) -> bool {
        self.kinds.iter().any(|kind| kind.name == name)
    }

    /// The rows of a key.
    pub fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Key> {
        self.keys.iter().filter(move |key| key.name == name)
    }

    /// The sections directly within this one.
    pub fn sections(&self) -> impl Iterator<Item = &'static Section> {
        self.keys.iter().filter_map(|key| match key.values {
            Values::Section(section) => Some(section),
            _ => None,
        })
    }

    /// This section and all within it.
    pub fn all(&'static self) -> Vec<&'static Section> {
        let mut all = vec![self];
        all.extend(self.sections().flat_map(Section::all));
        all
    }
}

/// The whole recipe.
pub(super) static RECIPE: Section = Section {
    name: "",
    meaning: "The top of the file.",
    kinds: &[],
    default_kind: None,
    keys: &[
        Key::new(
            "name",
            Values::Text,
            Absent::Refused("\"load-mlp\""),
            "What the run is called, in its folder and its report. Letters, digits, `-`, `_` and \
             `.` only.",
        )
        .also(&["title", "experiment"]),
        Key::section("data", &data::SECTION),
        Key::section("model", &model::SECTION),
        Key::section("posterior", &posterior::SECTION),
        Key::section("loss", &loss::SECTION),
        Key::section("train", &train::SECTION),
        Key::section("optimizer", &optimizer::SECTION).also(&["optimiser", "optim"]),
        Key::section("schedule", &schedule::SECTION).also(&["scheduler", "lr_schedule"]),
        Key::section("evaluate", &evaluate::SECTION).also(&["evaluation", "eval", "test"]),
        Key::section("checkpoint", &checkpoint::SECTION).also(&["checkpoints"]),
    ],
    example: "",
};
