//! A table of a recipe.

use crate::{Key, Keys, Values};

/// The name of the key that says which kind a section is.
pub const KIND: &str = "kind";

/// A table of a recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its full name, e.g. `posterior.prior`; empty for the top of the file.
    pub name: String,
    /// What it describes.
    pub meaning: &'static str,
    /// What it can be, as its key `kind` says. One without a name where it is one thing only.
    pub kinds: Vec<Kind>,
    /// The kind where none is given; with `None` the section must be there and say.
    pub default_kind: Option<&'static str>,
    /// A short valid form of its contents, shown where the section is missing.
    example: &'static str,
}

/// One of the things that a section can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// The value of `kind`; empty where the section is one thing only.
    pub name: &'static str,
    /// What it means, as a phrase without an end.
    pub meaning: String,
    /// Its keys but `kind`, in the order in which they are written.
    pub keys: Vec<Key>,
}

impl Kind {
    /// A kind of a section.
    pub fn new(name: &'static str, meaning: &'static str, keys: Vec<Key>) -> Self {
        Self { name, meaning: meaning.trim_end_matches('.').to_owned(), keys }
    }

    /// The kind whose keys are those of a type, which means what the type does.
    pub fn of<T: Keys>(name: &'static str) -> Self {
        let mut kind = Self::new(name, T::meaning(), T::keys());
        // A sentence there, a phrase here.
        if let Some(first) = kind.meaning.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        kind
    }
}

impl Section {
    /// A section of one thing, without a name.
    pub fn of_keys(meaning: &'static str, keys: Vec<Key>, example: &'static str) -> Self {
        let kinds = vec![Kind::new("", "", keys)];
        Self { name: String::new(), meaning, kinds, default_kind: None, example }
    }

    /// A section of one of several things, without a name.
    pub fn of_kinds(
        meaning: &'static str,
        kinds: Vec<Kind>,
        default_kind: Option<&'static str>,
        example: &'static str,
    ) -> Self {
        Self { name: String::new(), meaning, kinds, default_kind, example }
    }

    /// Its full name; those of the sections within it follow.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        for kind in &mut self.kinds {
            for key in &mut kind.keys {
                if let Values::Section(inner) = &mut key.values {
                    let full = if name.is_empty() {
                        key.name.to_owned()
                    } else {
                        format!("{name}.{}", key.name)
                    };
                    **inner = inner.as_ref().clone().named(&full);
                }
            }
        }
        self
    }

    /// Whether the key `kind` says what it is.
    pub fn has_kinds(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.name.is_empty())
    }

    /// The full name of a key.
    pub fn full_name(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            section => format!("{section}.{key}"),
        }
    }

    /// Whether a recipe must have the section.
    pub fn is_required(&self) -> bool {
        self.has_kinds() && self.default_kind.is_none()
    }

    /// The names of its kinds; none where it is one thing only.
    pub fn kind_names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name).filter(|name| !name.is_empty()).collect()
    }

    /// Its kinds with their meanings, a line each.
    pub fn kind_list(&self) -> String {
        let lines: Vec<String> =
            self.kinds.iter().map(|kind| format!("`{}`: {}", kind.name, kind.meaning)).collect();
        lines.join("\n")
    }

    /// The kind of that name; of a section that is one thing only, that.
    pub fn kind(&self, name: Option<&str>) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == name.unwrap_or_default())
    }

    /// The keys of a kind; without a kind, those of all.
    pub fn keys(&self, kind: Option<&str>) -> impl Iterator<Item = &Key> {
        let kind = kind.map(str::to_owned);
        let kinds = self.kinds.iter();
        kinds
            .filter(move |own| kind.as_ref().is_none_or(|kind| own.name == kind))
            .flat_map(|kind| &kind.keys)
    }

    /// The kinds that have a key of that name, with the key.
    pub fn owners<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Kind, &'a Key)> {
        let find = move |kind: &'a Kind| {
            kind.keys.iter().find(|key| key.name == name).map(|key| (kind, key))
        };
        self.kinds.iter().filter_map(find)
    }

    /// The sections directly within this one.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.keys(None).filter_map(|key| match &key.values {
            Values::Section(section) => Some(&**section),
            _ => None,
        })
    }

    /// This section and all within it.
    pub fn all(&self) -> Vec<&Section> {
        let mut all = vec![self];
        all.extend(self.sections().flat_map(Section::all));
        all
    }

    /// A short valid form.
    pub fn example(&self) -> String {
        format!("[{}]\n{}", self.name, self.example)
    }
}
