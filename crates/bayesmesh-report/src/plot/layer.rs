//! Layers: the things a plot draws.

use super::color::{Color, Stroke};
use crate::number::format_number;

/// One thing drawn in a plot. Layers with the same label share an entry of the legend; a layer
/// with an empty label has none. Values that are not finite (or beyond ±1e150) leave gaps.
#[derive(Debug, Clone)]
pub enum Layer {
    /// Points `(x, y)` joined by straight lines, in the order given.
    Line {
        /// Name of the series.
        label: String,
        /// The points. Long series are thinned if x increases.
        points: Vec<(f64, f64)>,
        /// Its colour.
        color: Color,
        /// How it is drawn.
        stroke: Stroke,
    },
    /// Like a line, but each y holds from its x to the next.
    Steps {
        /// Name of the series.
        label: String,
        /// The points. Long series are thinned if x increases.
        points: Vec<(f64, f64)>,
        /// Its colour.
        color: Color,
        /// How it is drawn.
        stroke: Stroke,
    },
    /// Dots at `(x, y)`.
    Points {
        /// Name of the series.
        label: String,
        /// The points.
        points: Vec<(f64, f64)>,
        /// Its colour.
        color: Color,
    },
    /// The area between a lower and an upper line.
    Band {
        /// Name of the band.
        label: String,
        /// `(x, lower, upper)`.
        points: Vec<(f64, f64, f64)>,
        /// Its colour.
        color: Color,
        /// Between 0 (invisible) and 1 (opaque).
        opacity: f64,
    },
    /// Upright bars from zero.
    Bars {
        /// Name of the series.
        label: String,
        /// The bars.
        bars: Vec<Bar>,
        /// Their colour.
        color: Color,
    },
    /// A straight reference line across the plot.
    Rule {
        /// Name of the reference.
        label: String,
        /// Where it runs.
        rule: Rule,
        /// Its colour.
        color: Color,
        /// How it is drawn.
        stroke: Stroke,
    },
}

/// A bar of [`Layer::Bars`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// Left edge.
    pub left: f64,
    /// Right edge.
    pub right: f64,
    /// Height above zero.
    pub height: f64,
}

/// Where a reference line runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// At this y.
    Horizontal(f64),
    /// At this x.
    Vertical(f64),
    /// Where y = x.
    Diagonal,
}

/// A predictive interval over a series, for [`super::Plot::with_fan`].
#[derive(Debug, Clone)]
pub struct Interval {
    /// Its nominal probability, e.g. 0.95.
    pub level: f64,
    /// `(x, lower, upper)`.
    pub points: Vec<(f64, f64, f64)>,
}

impl Layer {
    /// A solid line.
    pub fn line(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
        color: Color,
    ) -> Self {
        let points = points.into_iter().collect();
        Self::Line { label: label.into(), points, color, stroke: Stroke::Solid }
    }

    /// A solid line of steps.
    pub fn steps(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
        color: Color,
    ) -> Self {
        let points = points.into_iter().collect();
        Self::Steps { label: label.into(), points, color, stroke: Stroke::Solid }
    }

    /// Dots.
    pub fn points(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
        color: Color,
    ) -> Self {
        Self::Points { label: label.into(), points: points.into_iter().collect(), color }
    }

    /// A light band between the second and the third number of each point.
    pub fn band(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, f64)>,
        color: Color,
    ) -> Self {
        let points = points.into_iter().collect();
        Self::Band { label: label.into(), points, color, opacity: 0.2 }
    }

    /// Bars of `heights` between `edges`, which are one more than the heights.
    pub fn histogram(
        label: impl Into<String>,
        edges: &[f64],
        heights: &[f64],
        color: Color,
    ) -> Self {
        let bars = edges
            .windows(2)
            .zip(heights)
            .map(|(edge, &height)| Bar { left: edge[0], right: edge[1], height })
            .collect();
        Self::Bars { label: label.into(), bars, color }
    }

    /// Bars of the given width around x, of the heights y, e.g. of the ranks of a rank histogram.
    pub fn bars(
        label: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
        width: f64,
        color: Color,
    ) -> Self {
        let bar = |(x, height)| Bar { left: x - width / 2.0, right: x + width / 2.0, height };
        Self::Bars { label: label.into(), bars: points.into_iter().map(bar).collect(), color }
    }

    /// A dashed grey reference line.
    pub fn rule(label: impl Into<String>, rule: Rule) -> Self {
        Self::Rule { label: label.into(), rule, color: Color::Grey, stroke: Stroke::Dashed }
    }

    /// The same layer with another stroke; bands, bars and dots have none and stay as they are.
    pub fn stroke(mut self, new: Stroke) -> Self {
        if let Self::Line { stroke, .. } | Self::Steps { stroke, .. } | Self::Rule { stroke, .. } =
            &mut self
        {
            *stroke = new;
        }
        self
    }

    /// The name in the legend.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Line { label, .. }
            | Self::Steps { label, .. }
            | Self::Points { label, .. }
            | Self::Band { label, .. }
            | Self::Bars { label, .. }
            | Self::Rule { label, .. } => label,
        }
    }

    /// The colour.
    pub(crate) fn color(&self) -> Color {
        match self {
            Self::Line { color, .. }
            | Self::Steps { color, .. }
            | Self::Points { color, .. }
            | Self::Band { color, .. }
            | Self::Bars { color, .. }
            | Self::Rule { color, .. } => *color,
        }
    }
}

/// The bands of a fan chart from the widest to the narrowest, so that they darken inwards.
pub(crate) fn fan(mut intervals: Vec<Interval>, color: Color) -> Vec<Layer> {
    intervals.sort_by(|a, b| b.level.total_cmp(&a.level));
    intervals
        .into_iter()
        .enumerate()
        .map(|(depth, Interval { level, points })| {
            let decimals = if (100.0 * level).fract().abs() < 1e-9 { 0 } else { 1 };
            let label = format!("{} % interval", format_number(100.0 * level, decimals));
            // Inner bands lie on the outer ones: the tint adds up, a little faster inwards.
            let opacity = (0.17 + 0.05 * depth as f64).min(0.35);
            Layer::Band { label, points, color, opacity }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fan_has_its_widest_band_at_the_back() {
        let interval = |level| Interval { level, points: vec![(0.0, -level, level)] };
        let layers = fan(vec![interval(0.5), interval(0.95), interval(0.8)], Color::Blue);
        let labels: Vec<&str> = layers.iter().map(Layer::label).collect();
        assert_eq!(labels, ["95 % interval", "80 % interval", "50 % interval"]);
    }

    #[test]
    fn a_histogram_takes_the_bars_its_edges_allow() {
        let layer = Layer::histogram("pit", &[0.0, 0.5, 1.0], &[2.0, 3.0, 4.0], Color::Blue);
        let Layer::Bars { bars, .. } = layer else { panic!("not bars") };
        assert_eq!(bars.len(), 2);
        assert_eq!(bars[1], Bar { left: 0.5, right: 1.0, height: 3.0 });
    }

    #[test]
    fn bars_stand_around_their_place() {
        let layer = Layer::bars("ranks", [(0.0, 2.0), (1.0, 3.0)], 1.0, Color::Blue);
        let Layer::Bars { bars, .. } = layer else { panic!("not bars") };
        assert_eq!(bars[1], Bar { left: 0.5, right: 1.5, height: 3.0 });
    }
}
