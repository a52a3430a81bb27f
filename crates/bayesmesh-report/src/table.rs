//! Tables.

use crate::number::format_number;
use crate::text::{escape, rich};

/// A table with one header row. Rows may be shorter than the header: missing cells stay empty.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Shown under the table; empty for none.
    pub caption: String,
    /// Titles of the columns.
    pub header: Vec<String>,
    /// The rows, each a cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Index of the row to emphasise, e.g. the best model.
    pub highlight: Option<usize>,
}

/// A cell of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words, aligned left.
    Text(String),
    /// A number, aligned right; a dash when it is not finite.
    Number {
        /// The value.
        value: f64,
        /// Digits after the point.
        decimals: usize,
    },
    /// A number on a tint, e.g. in a confusion matrix.
    Shaded {
        /// The value.
        value: f64,
        /// Digits after the point.
        decimals: usize,
        /// How strong the tint is, from 0 (none) to 1.
        shade: f64,
    },
}

impl Cell {
    /// A number with `decimals` digits after the point.
    pub fn number(value: f64, decimals: usize) -> Self {
        Self::Number { value, decimals }
    }

    /// The same on a tint of the given strength, from 0 to 1.
    pub fn shaded(value: f64, decimals: usize, shade: f64) -> Self {
        Self::Shaded { value, decimals, shade }
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Number { .. } | Self::Shaded { .. })
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Table {
    pub(crate) fn to_html(&self) -> String {
        if self.rows.is_empty() {
            return "<p class=\"note\">No rows to show.</p>".to_owned();
        }
        let columns = self.rows.iter().map(Vec::len).chain([self.header.len()]).max().unwrap_or(0);
        let numeric: Vec<bool> = (0..columns)
            .map(|c| self.rows.iter().any(|row| row.get(c).is_some_and(Cell::is_number)))
            .collect();
        let class = |c: usize| if numeric[c] { " class=\"num\"" } else { "" };

        let mut html = String::from("<figure class=\"table\">");
        // A box that scrolls must be reachable by keyboard, hence the tab index and the name.
        let name = if self.caption.is_empty() { "Table" } else { &self.caption };
        html.push_str(&format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>",
            escape(name)
        ));
        if !self.header.is_empty() {
            html.push_str("<thead><tr>");
            for c in 0..columns {
                let title = self.header.get(c).map_or("", String::as_str);
                html.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(c), rich(title)));
            }
            html.push_str("</tr></thead>");
        }
        html.push_str("<tbody>");
        for (r, row) in self.rows.iter().enumerate() {
            html.push_str(if self.highlight == Some(r) { "<tr class=\"best\">" } else { "<tr>" });
            for c in 0..columns {
                let content = match row.get(c) {
                    Some(Cell::Text(text)) => rich(text),
                    Some(
                        Cell::Number { value, decimals } | Cell::Shaded { value, decimals, .. },
                    ) => format_number(*value, *decimals),
                    None => String::new(),
                };
                let tint = match row.get(c) {
                    Some(Cell::Shaded { shade, .. }) if shade.is_finite() => {
                        format!(" style=\"--shade:{:.0}%\"", 100.0 * shade.clamp(0.0, 1.0))
                    }
                    _ => String::new(),
                };
                html.push_str(&format!("<td{}{tint}>{content}</td>", class(c)));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></div>");
        if !self.caption.is_empty() {
            html.push_str(&format!("<figcaption>{}</figcaption>", rich(&self.caption)));
        }
        html.push_str("</figure>");
        html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_marked_short_rows_filled_and_text_escaped() {
        let table = Table {
            header: vec!["model".into(), "RMSE".into()],
            rows: vec![vec!["a<b".into(), Cell::number(1234.5, 1)], vec!["none".into()]],
            highlight: Some(0),
            ..Table::default()
        };
        let html = table.to_html();
        assert!(html.contains("<th scope=\"col\" class=\"num\">RMSE</th>"));
        assert!(html.contains("<tr class=\"best\"><td>a&lt;b</td><td class=\"num\">1,234.5</td>"));
        assert!(html.contains("<td>none</td><td class=\"num\"></td>"));
    }

    #[test]
    fn shades_are_within_bounds() {
        let cells = [0.0, 0.256, 7.0, f64::NAN].map(|shade| Cell::shaded(1.0, 0, shade));
        let html = Table { rows: vec![cells.into()], ..Table::default() }.to_html();
        for tint in ["--shade:0%", "--shade:26%", "--shade:100%", "<td class=\"num\">1</td>"] {
            assert!(html.contains(tint), "{html}");
        }
    }

    #[test]
    fn a_table_without_rows_is_a_note() {
        let table = Table { header: vec!["model".into()], ..Table::default() };
        assert!(!table.to_html().contains("<table"));
    }
}
