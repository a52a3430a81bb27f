//! Names written at the right ends of lines, where they need no legend.

use super::Plot;
use super::color::Color;
use super::frame::{FONT, ROW};
use super::layer::{Layer, Rule};
use super::scale::Scale;
use crate::text::width;

/// A name at the end of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EndLabel {
    /// Its middle, from the top of the drawing area.
    pub(crate) y: f64,
    /// The name.
    pub(crate) text: String,
    /// The classes of the line's stroke.
    pub(crate) stroke: &'static str,
    /// The line's colour.
    pub(crate) color: Color,
}

/// Width in pixels up to which a name may stand beside the drawing area.
const WIDEST: f64 = 170.0;

/// The labels of the lines that could be named at their ends: those of a plot that consists of
/// lines and rules only. With bands or bars, one legend for all reads better.
pub(crate) fn named_at_end(plot: &Plot) -> Vec<&str> {
    let is_line = |layer: &Layer| {
        matches!(layer, Layer::Line { .. } | Layer::Steps { .. } | Layer::Rule { .. })
    };
    if !plot.layers.iter().all(is_line) {
        return Vec::new();
    }
    let ends = |layer: &&Layer| match layer {
        Layer::Line { label, .. } | Layer::Steps { label, .. } => !label.is_empty(),
        Layer::Rule { label, rule: Rule::Horizontal(_), .. } => !label.is_empty(),
        _ => false,
    };
    let names: Vec<&str> = plot.layers.iter().filter(ends).map(Layer::label).collect();
    let repeated = |name: &str| plot.layers.iter().filter(|l| l.label() == name).count() > 1;
    let unfit = names.iter().any(|name| repeated(name) || width(name, FONT) > WIDEST);
    if unfit { Vec::new() } else { names }
}

/// Width of the widest of `names`.
pub(crate) fn width_of(names: &[&str]) -> f64 {
    names.iter().map(|name| width(name, FONT)).fold(0.0, f64::max)
}

/// Places the labels of the layers in `named`, or none if one of the lines ends elsewhere than at
/// the right edge or there is not enough height for all.
pub(crate) fn place(
    plot: &Plot,
    named: &[&str],
    x: &Scale,
    y: &Scale,
    (area_width, area_height): (f64, f64),
) -> Vec<EndLabel> {
    let mut labels = Vec::new();
    for layer in plot.layers.iter().filter(|layer| named.contains(&layer.label())) {
        let (end, stroke) = match layer {
            Layer::Line { points, stroke, .. } | Layer::Steps { points, stroke, .. } => {
                let pixel = |&(px, py): &(f64, f64)| Some((x.at(px)?, y.at(py)?));
                let inside = |p: &(f64, f64)| (-1.0..=area_width + 1.0).contains(&p.0);
                let end = points.iter().rev().filter_map(pixel).find(inside);
                (end.filter(|end| end.0 >= 0.93 * area_width).map(|end| end.1), stroke)
            }
            Layer::Rule { rule: Rule::Horizontal(value), stroke, .. } => (y.at(*value), stroke),
            _ => continue,
        };
        let Some(end) = end else { return Vec::new() };
        labels.push(EndLabel {
            y: end,
            text: layer.label().to_owned(),
            stroke: stroke.class(),
            color: layer.color(),
        });
    }
    if labels.len() as f64 * ROW > area_height {
        return Vec::new();
    }
    labels.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    spread(&mut places, ROW - 2.0, (4.0, area_height - 4.0));
    for (label, y) in labels.iter_mut().zip(places) {
        label.y = y;
    }
    labels
}

/// Moves increasing `places` apart to at least `gap`, staying within `bounds`.
fn spread(places: &mut [f64], gap: f64, bounds: (f64, f64)) {
    let mut least = bounds.0;
    for place in places.iter_mut() {
        *place = place.max(least);
        least = *place + gap;
    }
    let mut most = bounds.1;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, ScaleKind};

    #[test]
    fn labels_are_moved_apart_within_bounds() {
        let mut places = [10.0, 12.0, 13.0, 98.0];
        spread(&mut places, 16.0, (0.0, 100.0));
        assert_eq!(places, [10.0, 26.0, 42.0, 98.0]);
        let mut low = [97.0, 98.0, 99.0];
        spread(&mut low, 16.0, (0.0, 100.0));
        assert_eq!(low, [68.0, 84.0, 100.0]);
    }

    #[test]
    fn only_lines_that_reach_the_edge_are_named_there() {
        let plot = |to: f64| {
            Plot::new("", Axis::linear(""), Axis::linear(""))
                .with(Layer::line("a", [(0.0, 0.0), (10.0, 1.0)], Color::Blue))
                .with(Layer::line("b", [(0.0, 0.0), (to, 0.5)], Color::Orange))
        };
        let x = Scale::new(ScaleKind::Linear, (0.0, 10.0), (0.0, 100.0));
        let y = Scale::new(ScaleKind::Linear, (0.0, 1.0), (100.0, 0.0));
        let size = (100.0, 100.0);
        let names = |labels: Vec<EndLabel>| labels.into_iter().map(|l| l.text).collect::<Vec<_>>();
        assert_eq!(names(place(&plot(10.0), &["a", "b"], &x, &y, size)), ["a", "b"]);
        assert!(place(&plot(5.0), &["a", "b"], &x, &y, size).is_empty());
        let with_band = plot(10.0).with(Layer::band("c", [(0.0, 0.0, 1.0)], Color::Blue));
        assert!(named_at_end(&with_band).is_empty());
    }
}
