//! The text of a recipe with its overrides, to say where a problem is.

use super::error::{At, Problem, RecipeError};
use super::problems::{Found, Problems};
use super::tree::Place;

/// Where a recipe comes from.
pub(super) struct Source<'a> {
    /// What the recipe is called in messages, e.g. its file.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Its overrides.
    pub overrides: &'a [String],
}

impl Source<'_> {
    /// What a reader is told of a place.
    pub fn at(&self, place: &Place) -> At {
        let name = self.name.to_owned();
        match place {
            Place::Nowhere => At::Recipe { name },
            Place::Override(index) => {
                At::Override { index: *index, text: self.overrides[*index].clone() }
            }
            Place::File(span) => {
                let boundary = |at: usize| {
                    let at = at.min(self.text.len());
                    (0..=at).rev().find(|&i| self.text.is_char_boundary(i))
                };
                let start = boundary(span.start).unwrap_or(0);
                let end = boundary(span.end).unwrap_or(0);
                let (before, after) = self.text.split_at(start);
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let rest = after.split('\n').next().unwrap_or("").trim_end();
                let line_end = start + rest.len();
                At::Line {
                    line: before.matches('\n').count() + 1,
                    column: self.text[line_start..start].chars().count() + 1,
                    width: self.text[start..end.clamp(start, line_end)].chars().count(),
                    text: self.text[line_start..line_end].trim_end().to_owned(),
                    name,
                }
            }
        }
    }

    /// The error of a text that is not TOML.
    pub fn refuse_syntax(&self, error: &toml::de::Error) -> RecipeError {
        let place = error.span().map_or(Place::Nowhere, Place::File);
        let message = match self.at(&place) {
            At::Line { text, .. } if text.ends_with('=') => "there is no value after the `=`",
            _ => error.message().trim_end(),
        };
        self.refuse_one(place, format!("this is not TOML: {message}"))
    }

    /// The error of a recipe that fails as a whole.
    pub fn refuse_whole(&self, error: &dyn std::fmt::Display) -> RecipeError {
        self.refuse_one(Place::Nowhere, error.to_string().trim_end().to_owned())
    }

    fn refuse_one(&self, place: Place, message: String) -> RecipeError {
        let mut problems = Problems::default();
        problems.push(|| Found { place, key: String::new(), message, help: None });
        self.refuse(problems)
    }

    /// The error that lists problems in their order, the first of many.
    pub fn refuse(&self, problems: Problems) -> RecipeError {
        const MOST: usize = 20;
        let count = problems.count();
        let shown = problems.sorted().into_iter().take(MOST).map(|found| Problem {
            at: self.at(&found.place),
            key: found.key,
            message: found.message,
            help: found.help,
        });
        RecipeError::Invalid { name: self.name.to_owned(), problems: shown.collect(), count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source =
            Source { name: "x.toml", text: "a = 1\r\nünï = \"→\" # c\r\n", overrides: &[] };
        let start = source.text.find('"').unwrap();
        let At::Line { line, column, width, text, .. } = source.at(&Place::File(start..start + 5))
        else {
            panic!("a place in the file is on a line");
        };
        assert_eq!((line, column, width), (2, 7, 3));
        assert_eq!(text, "ünï = \"→\" # c");
    }

    #[test]
    fn places_out_of_bounds_are_the_end() {
        let source = Source { name: "x.toml", text: "é", overrides: &[] };
        for span in [0..1, 1..2, 1..1, 2..2, 7..9] {
            assert!(matches!(source.at(&Place::File(span)), At::Line { line: 1, .. }));
        }
    }
}
