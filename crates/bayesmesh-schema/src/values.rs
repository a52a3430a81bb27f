//! The values that a key takes.

use std::fmt::{self, Display};

use crate::{Range, Section, quoted};

/// The values that a key takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
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
    List(Box<Values>, usize, usize),
    /// A section of its own.
    Section(Box<Section>),
}

/// A type that is the value of a key.
pub trait Value {
    /// What values it takes.
    fn values() -> Values;
}

impl Values {
    /// A section within a section.
    pub fn section(section: Section) -> Self {
        Self::Section(Box::new(section))
    }

    /// Numbers of this or more.
    #[must_use]
    pub fn at_least(self, least: f64) -> Self {
        self.limit(&|range| range.at_least(least), &|_, most| (least as i64, most))
    }

    /// Numbers above this.
    #[must_use]
    pub fn above(self, end: f64) -> Self {
        self.limit(&|range| range.above(end), &|_, most| (end as i64 + 1, most))
    }

    /// Numbers of this or less.
    #[must_use]
    pub fn at_most(self, most: f64) -> Self {
        self.limit(&|range| range.at_most(most), &|least, _| (least, most as i64))
    }

    /// Numbers below this.
    #[must_use]
    pub fn below(self, end: f64) -> Self {
        self.limit(&|range| range.below(end), &|least, _| (least, end as i64 - 1))
    }

    /// Lists of so many items or more.
    #[must_use]
    pub fn items(self, least: usize) -> Self {
        match self {
            Self::List(item, _, most) => Self::List(item, least, most),
            other => other,
        }
    }

    /// Limits the numbers, also those in a list.
    fn limit(self, range: &dyn Fn(Range) -> Range, count: &dyn Fn(i64, i64) -> (i64, i64)) -> Self {
        match self {
            Self::Number(all) => Self::Number(range(all)),
            Self::Count(least, most) => {
                let (least, most) = count(least, most);
                Self::Count(least, most)
            }
            Self::List(item, least, most) => {
                Self::List(Box::new(item.limit(range, count)), least, most)
            }
            other => other,
        }
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

macro_rules! values {
    ($($types:ty),+ => $values:expr) => {
        $(impl Value for $types {
            fn values() -> Values {
                $values
            }
        })+
    };
}

values!(u8 => Values::Count(0, u8::MAX.into()));
values!(u16 => Values::Count(0, u16::MAX.into()));
values!(u32 => Values::Count(0, u32::MAX.into()));
values!(u64, usize => Values::Count(0, i64::MAX));
values!(f32, f64 => Values::Number(Range::default()));
values!(bool => Values::Flag);
values!(String => Values::Text);

impl<T: Value> Value for Option<T> {
    fn values() -> Values {
        T::values()
    }
}

impl<T: Value> Value for Vec<T> {
    fn values() -> Values {
        Values::List(Box::new(T::values()), 0, usize::MAX)
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn values() -> Values {
        Values::List(Box::new(T::values()), N, N)
    }
}

impl<T: Value> Value for (T, T) {
    fn values() -> Values {
        <[T; 2]>::values()
    }
}
