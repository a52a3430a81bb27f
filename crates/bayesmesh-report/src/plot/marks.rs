//! The layers inside the drawing area.

use super::frame::Frame;
use super::layer::{Layer, Rule};
use super::path::Path;
use super::thin;

/// The element that draws `layer`, or nothing if none of it can be placed.
pub(crate) fn draw(layer: &Layer, frame: &Frame) -> String {
    let color = layer.color().class();
    let (attributes, data) = match layer {
        Layer::Line { points, stroke, .. } => {
            (format!("class=\"{} {color}\"", stroke.class()), line(points, frame))
        }
        Layer::Steps { points, stroke, .. } => {
            (format!("class=\"{} {color}\"", stroke.class()), line(&corners(points), frame))
        }
        Layer::Rule { rule, stroke, .. } => {
            (format!("class=\"{} {color}\"", stroke.class()), line(&ends(*rule, frame), frame))
        }
        Layer::Points { points, .. } => (format!("class=\"dots {color}\""), dots(points, frame)),
        Layer::Bars { .. } => (format!("class=\"bars {color}\""), bars(layer, frame)),
        Layer::Band { points, opacity, .. } => {
            let opacity = opacity.clamp(0.0, 1.0);
            (format!("class=\"band {color}\" fill-opacity=\"{opacity:.2}\""), band(points, frame))
        }
    };
    if data.is_empty() { String::new() } else { format!("<path {attributes} d=\"{data}\"/>") }
}

fn line(points: &[(f64, f64)], frame: &Frame) -> String {
    let pixels = points.iter().map(|&(x, y)| Some((frame.x.at(x)?, frame.y.at(y)?)));
    let mut path = Path::default();
    for run in thin::line(pixels, frame.area_width) {
        path.polyline(run);
    }
    path.finish()
}

/// The corners of steps through `points`: each y holds until the next x.
fn corners(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * points.len());
    for (i, &(x, y)) in points.iter().enumerate() {
        if i > 0 {
            corners.push((x, points[i - 1].1));
        }
        corners.push((x, y));
    }
    corners
}

/// Points on a reference line, from edge to edge.
fn ends(rule: Rule, frame: &Frame) -> Vec<(f64, f64)> {
    let (x, y) = (frame.x.domain(), frame.y.domain());
    match rule {
        Rule::Horizontal(value) => vec![(x.0, value), (x.1, value)],
        Rule::Vertical(value) => vec![(value, y.0), (value, y.1)],
        Rule::Diagonal => {
            let (from, to) = (x.0.max(y.0), x.1.min(y.1));
            if from >= to {
                return Vec::new();
            }
            // The line is curved if only one of the axes is logarithmic.
            let pieces = if frame.x.kind() == frame.y.kind() { 1 } else { 64 };
            let at = |i: i32| from + (to - from) * f64::from(i) / f64::from(pieces);
            (0..=pieces).map(|i| (at(i), at(i))).collect()
        }
    }
}

fn dots(points: &[(f64, f64)], frame: &Frame) -> String {
    let pixels = points.iter().filter_map(|&(x, y)| Some((frame.x.at(x)?, frame.y.at(y)?)));
    let mut path = Path::default();
    for dot in thin::dots(pixels) {
        path.polyline([dot]);
    }
    path.finish()
}

fn band(points: &[(f64, f64, f64)], frame: &Frame) -> String {
    let pixels = points
        .iter()
        .map(|&(x, lower, upper)| Some((frame.x.at(x)?, frame.y.at(lower)?, frame.y.at(upper)?)));
    let mut path = Path::default();
    for run in thin::band(pixels, frame.area_width) {
        let upper = run.iter().map(|&(x, _, upper)| (x, upper));
        let lower = run.iter().rev().map(|&(x, lower, _)| (x, lower));
        path.polygon(upper.chain(lower));
    }
    path.finish()
}

fn bars(layer: &Layer, frame: &Frame) -> String {
    let Layer::Bars { bars, .. } = layer else {
        return String::new();
    };
    let base = frame.y.base();
    let pixels = bars.iter().filter_map(|bar| {
        let (a, b) = (frame.x.at(bar.left)?, frame.x.at(bar.right)?);
        Some((a.min(b), a.max(b), frame.y.at(bar.height)?))
    });
    let mut path = Path::default();
    for (left, right, top) in thin::bars(pixels, base, frame.area_width) {
        // Neighbours that are wide enough are set apart by a pixel.
        let gap = if right - left > 4.0 { 0.5 } else { 0.0 };
        let (left, right) = (left + gap, right - gap);
        path.polygon([(left, base), (left, top), (right, top), (right, base)]);
    }
    path.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Bar, Color, Plot};

    fn frame_of(plot: &Plot) -> Frame {
        Frame::new(plot, 400.0, 0.0).expect("data")
    }

    fn unit_plot(layer: Layer) -> Plot {
        let axis = |name: &str| Axis::linear(name).range(0.0, 1.0);
        Plot::new("", axis("x"), axis("y")).with(layer)
    }

    #[test]
    fn gaps_in_the_data_are_gaps_in_the_path() {
        let points = [(0.0, 0.5), (0.2, 0.5), (0.4, f64::NAN), (0.6, 0.5), (1.0, 0.5)];
        let plot = unit_plot(Layer::line("", points, Color::Blue));
        let svg = draw(&plot.layers[0], &frame_of(&plot));
        assert_eq!(svg.matches('M').count(), 2, "{svg}");
    }

    #[test]
    fn a_million_points_make_a_small_path() {
        let points = (0..1_000_000).map(|i| {
            let x = f64::from(i) * 1e-6;
            (x, (x * 1e4).sin())
        });
        let plot = unit_plot(Layer::line("", points, Color::Blue));
        let svg = draw(&plot.layers[0], &frame_of(&plot));
        assert!(svg.len() < 30_000, "{} bytes", svg.len());
    }

    #[test]
    fn steps_turn_at_right_angles() {
        assert_eq!(corners(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
    }

    #[test]
    fn the_diagonal_joins_the_corners() {
        let plot = unit_plot(Layer::line("", [(0.0, 0.0)], Color::Blue));
        let frame = frame_of(&plot);
        assert_eq!(ends(Rule::Diagonal, &frame), [(0.0, 0.0), (1.0, 1.0)]);
    }

    #[test]
    fn bars_stand_on_zero_and_skip_what_is_missing() {
        let bar = |height| Bar { left: 0.0, right: 0.5, height };
        let bars = vec![bar(0.5), bar(f64::NAN)];
        let plot = unit_plot(Layer::Bars { label: String::new(), bars, color: Color::Blue });
        let frame = frame_of(&plot);
        let svg = draw(&plot.layers[0], &frame);
        assert_eq!(svg.matches('Z').count(), 1);
        assert!(svg.contains(&format!("M0.5 {}", frame.area_height)), "{svg}");
    }
}
