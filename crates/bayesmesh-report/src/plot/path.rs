//! The data of an SVG path, as short as a tenth of a pixel allows.

use std::fmt::Write;

/// Builds the attribute `d` of a path.
#[derive(Debug, Default)]
pub(crate) struct Path {
    data: String,
    last: Option<(String, String)>,
}

impl Path {
    /// Lines through `points`, as one open piece. A single point becomes a line of no length,
    /// which round ends draw as a dot.
    pub(crate) fn polyline(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        self.last = None;
        let mut drawn = 0;
        for (x, y) in points {
            let point = (coordinate(x), coordinate(y));
            if self.last.as_ref() == Some(&point) {
                continue;
            }
            // Pairs after "M" are lines without a letter of their own.
            let lead = if drawn == 0 { "M" } else { " " };
            let _ = write!(self.data, "{lead}{} {}", point.0, point.1);
            self.last = Some(point);
            drawn += 1;
        }
        if drawn == 1 {
            self.data.push_str("h0");
        }
    }

    /// The area inside `points`.
    pub(crate) fn polygon(&mut self, points: impl IntoIterator<Item = (f64, f64)>) {
        self.polyline(points);
        if !self.data.is_empty() {
            self.data.push('Z');
        }
    }

    /// The text of the attribute.
    pub(crate) fn finish(self) -> String {
        self.data
    }
}

/// A coordinate with at most one decimal.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0").unwrap_or(&text) {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(coordinate(12.0), "12");
        assert_eq!(coordinate(12.34), "12.3");
        assert_eq!(coordinate(-0.01), "0");
    }

    #[test]
    fn pieces_follow_each_other_and_repeats_are_dropped() {
        let mut path = Path::default();
        path.polyline([(0.0, 1.0), (0.01, 1.0), (2.0, 3.5)]);
        path.polyline([(4.0, 4.0)]);
        assert_eq!(path.finish(), "M0 1 2 3.5M4 4h0");
        let mut area = Path::default();
        area.polygon([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]);
        assert_eq!(area.finish(), "M0 0 1 0 1 1Z");
    }
}
