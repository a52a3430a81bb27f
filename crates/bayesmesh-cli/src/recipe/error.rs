//! What can be wrong with a recipe, and how it is shown.

use std::fmt::{self, Display};
use std::io;

use bayesmesh_schema::quoted;

/// Why a recipe cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The file cannot be read.
    #[error("cannot read the recipe {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// What is wrong and what to do.
        reason: String,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not text.
    #[error("{path}:{line}: not UTF-8 text: {reason}")]
    NotText {
        /// The file.
        path: String,
        /// The line of the first byte that is no text, from 1.
        line: usize,
        /// What is wrong and what to do.
        reason: String,
    },
    /// There is no such built-in recipe.
    #[error(
        "there is no built-in recipe `{name}`; there are {}{}",
        quoted(names),
        did_you_mean(*nearest)
    )]
    NoSuchBuiltin {
        /// What was asked for.
        name: String,
        /// What there is.
        names: Vec<&'static str>,
        /// The one with the most similar name.
        nearest: Option<&'static str>,
    },
    /// The contents are wrong.
    #[error("{}", listed(name, problems, *count))]
    Invalid {
        /// The recipe.
        name: String,
        /// What is wrong, in the order of the file, then of the overrides; of much the first.
        problems: Vec<Problem>,
        /// How much is wrong in all.
        count: usize,
    },
}

/// One thing that is wrong with a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: At,
    /// The full name of the key, e.g. `train.samples`; empty where no key is at fault.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do; may have several lines.
    pub help: Option<String>,
}

/// Where a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// In the recipe as a whole.
    Recipe {
        /// The recipe.
        name: String,
    },
    /// On a line of the file.
    Line {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// How many characters are meant.
        width: usize,
        /// The text of the line.
        text: String,
        /// The file.
        name: String,
    },
    /// In an override.
    Override {
        /// Which of them, from 0.
        index: usize,
        /// Its text, e.g. `train.samples=4`.
        text: String,
    },
}

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipe { name } => f.write_str(name),
            Self::Line { line, column, name, .. } => write!(f, "{name}:{line}:{column}"),
            Self::Override { text, .. } => write!(f, "--set {text}"),
        }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        if let At::Line { line, column, width, text, .. } = &self.at {
            let (shown, before) = excerpt(text, *column);
            let margin = " ".repeat(line.to_string().len().max(4));
            let carets = (*width).clamp(1, shown.chars().count().saturating_sub(before).max(1));
            write!(f, "\n{line:>4} | {shown}")?;
            let (indent, carets) = (" ".repeat(before), "^".repeat(carets));
            write!(f, "\n{margin} | {indent}{carets}")?;
        }
        for line in self.help.iter().flat_map(|help| help.lines()) {
            write!(f, "\n     {line}")?;
        }
        Ok(())
    }
}

/// The part of a line around a column that fits a terminal, and the characters before the column.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    const WIDEST: usize = 90;
    const LEAD: usize = 30;
    let before = column.saturating_sub(1);
    let chars = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    if line.chars().count() <= WIDEST {
        return (chars.collect(), before);
    }
    let skipped = before.saturating_sub(LEAD);
    let shown: String = chars.clone().skip(skipped).take(WIDEST).collect();
    let end = if chars.count() > skipped + WIDEST { "…" } else { "" };
    match skipped {
        0 => (format!("{shown}{end}"), before),
        _ => (format!("…{shown}{end}"), before - skipped + 1),
    }
}

fn listed(name: &str, problems: &[Problem], count: usize) -> String {
    let mut text = match count {
        1 => format!("the recipe {name} cannot be used:\n"),
        n => format!("the recipe {name} cannot be used, for {n} reasons:\n"),
    };
    for problem in problems {
        text += &format!("\n{problem}\n");
    }
    if count > problems.len() {
        text += &format!("\n… and {} more\n", count - problems.len());
    }
    text.truncate(text.trim_end().len());
    text
}

fn did_you_mean(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_column() {
        let line = format!("{}X{}", "a".repeat(100), "b".repeat(100));
        let (shown, before) = excerpt(&line, 101);
        assert_eq!(shown.chars().nth(before), Some('X'));
        assert_eq!(shown.chars().count(), 92);
        assert!(shown.starts_with('…') && shown.ends_with('…'));
        assert_eq!(excerpt("short", 3), ("short".to_owned(), 2));
        assert_eq!(excerpt("a\tb", 3), ("a b".to_owned(), 2));
    }

    #[test]
    fn many_problems_are_cut() {
        let problem = Problem {
            at: At::Override { index: 0, text: "a=1".to_owned() },
            key: "a".to_owned(),
            message: "unknown".to_owned(),
            help: None,
        };
        let text = listed("x", &vec![problem; 20], 25);
        assert!(text.starts_with("the recipe x cannot be used, for 25 reasons:"));
        assert_eq!(text.matches("--set a=1").count(), 20);
        assert!(text.ends_with("… and 5 more"));
    }
}
