//! The visible range of an axis.

use super::Plot;
use super::axis::{Axis, ScaleKind};
use super::layer::{Layer, Rule};
use super::scale::is_usable;

/// The visible ranges of both axes, or `None` if no layer has anything to show.
pub(crate) fn domains(plot: &Plot) -> Option<((f64, f64), (f64, f64))> {
    let mut x = Extent::new(plot.x.scale);
    let mut y = Extent::new(plot.y.scale);
    for layer in &plot.layers {
        match layer {
            Layer::Line { points, .. }
            | Layer::Steps { points, .. }
            | Layer::Points { points, .. } => {
                for &(px, py) in points {
                    add(&mut x, &mut y, &[px], &[py]);
                }
            }
            Layer::Band { points, .. } => {
                for &(px, lower, upper) in points {
                    add(&mut x, &mut y, &[px], &[lower, upper]);
                }
            }
            Layer::Bars { bars, .. } => {
                for bar in bars {
                    add(&mut x, &mut y, &[bar.left, bar.right], &[bar.height]);
                }
            }
            Layer::Rule { .. } => {}
        }
    }
    if x.is_empty() {
        return None;
    }
    let has_bars = plot.layers.iter().any(|layer| matches!(layer, Layer::Bars { .. }));
    if has_bars && plot.y.scale != ScaleKind::Log {
        y.add(0.0);
    }
    for layer in &plot.layers {
        match layer {
            Layer::Rule { rule: Rule::Horizontal(value), .. } => y.add(*value),
            Layer::Rule { rule: Rule::Vertical(value), .. } => x.add(*value),
            _ => {}
        }
    }
    let has_points = plot.layers.iter().any(|layer| matches!(layer, Layer::Points { .. }));
    let x_padding = if has_points { 0.02 } else { 0.0 };
    Some((x.domain(&plot.x, x_padding), y.domain(&plot.y, 0.05)))
}

/// Adds a mark if all of it can be placed.
fn add(x: &mut Extent, y: &mut Extent, xs: &[f64], ys: &[f64]) {
    if xs.iter().all(|&v| is_usable(v, x.kind)) && ys.iter().all(|&v| is_usable(v, y.kind)) {
        xs.iter().for_each(|&v| x.add(v));
        ys.iter().for_each(|&v| y.add(v));
    }
}

/// The least and the greatest value seen.
struct Extent {
    kind: ScaleKind,
    from: f64,
    to: f64,
}

impl Extent {
    fn new(kind: ScaleKind) -> Self {
        Self { kind, from: f64::INFINITY, to: f64::NEG_INFINITY }
    }

    fn is_empty(&self) -> bool {
        self.from > self.to
    }

    fn add(&mut self, value: f64) {
        if is_usable(value, self.kind) {
            self.from = self.from.min(value);
            self.to = self.to.max(value);
        }
    }

    /// The range of `axis`: the one asked for if it can be drawn, else the values seen with
    /// `padding` as a share of their span on both sides.
    fn domain(&self, axis: &Axis, padding: f64) -> (f64, f64) {
        if let Some((from, to)) = axis.range
            && is_usable(from, self.kind)
            && is_usable(to, self.kind)
            && self.is_wide(from, to)
        {
            return (from, to);
        }
        let (from, to) = self.widened();
        if self.kind == ScaleKind::Log {
            let factor = (to / from).powf(padding);
            return (from / factor, to * factor);
        }
        let margin = padding * (to - from);
        // An axis that nearly reaches zero reaches it, and none crosses it for padding's sake.
        let near_zero = |near: f64, far: f64| near >= 0.0 && near < 0.3 * far;
        let starts_at_zero = padding > 0.0 && self.kind == ScaleKind::Linear;
        let lower = if starts_at_zero && near_zero(from, to) { 0.0 } else { from - margin };
        let upper = if starts_at_zero && near_zero(-to, -from) { 0.0 } else { to + margin };
        (lower, upper)
    }

    /// The values seen, made wide enough to have a scale.
    fn widened(&self) -> (f64, f64) {
        let (from, to) = (self.from, self.to);
        if self.is_wide(from, to) {
            return (from, to);
        }
        let size = from.abs().max(to.abs());
        let half = match self.kind {
            ScaleKind::Log => return (from / 2.0, to * 2.0),
            ScaleKind::Time => (1e-6 * size).max(3600.0),
            ScaleKind::Linear if size > 1e-140 => 0.1 * size,
            ScaleKind::Linear => 1.0,
        };
        (from - half, to + half)
    }

    /// Whether the numbers between `from` and `to` can be told apart well enough for a scale.
    fn is_wide(&self, from: f64, to: f64) -> bool {
        if self.kind == ScaleKind::Log {
            return to / from > 1.0 + 1e-6;
        }
        to - from > (1e-11 * from.abs().max(to.abs())).max(1e-150)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Color;

    fn line(points: &[(f64, f64)]) -> Plot {
        Plot::new("", Axis::linear(""), Axis::linear("")).with(Layer::line(
            "",
            points.to_vec(),
            Color::Blue,
        ))
    }

    #[test]
    fn nothing_to_show_has_no_domain() {
        assert!(domains(&line(&[])).is_none());
        assert!(domains(&line(&[(f64::NAN, 1.0), (2.0, f64::INFINITY)])).is_none());
        let rule = Plot::new("", Axis::linear(""), Axis::linear(""))
            .with(Layer::rule("", Rule::Horizontal(1.0)));
        assert!(domains(&rule).is_none());
    }

    #[test]
    fn data_is_padded_and_reaches_zero_when_near() {
        assert_eq!(domains(&line(&[(0.0, 1.0), (4.0, 10.0)])), Some(((0.0, 4.0), (0.0, 10.45))));
        assert_eq!(domains(&line(&[(0.0, 90.0), (4.0, 110.0)])), Some(((0.0, 4.0), (89.0, 111.0))));
    }

    #[test]
    fn a_constant_gets_room_on_both_sides() {
        let (x, y) = domains(&line(&[(3.0, 0.0)])).expect("one point");
        assert!(x.0 < 3.0 && x.1 > 3.0 && y.0 < 0.0 && y.1 > 0.0);
    }

    #[test]
    fn a_range_that_cannot_be_drawn_is_ignored() {
        let mut plot = line(&[(1.0, 1.0), (2.0, 2.0)]);
        plot.x = Axis::log("").range(0.0, 10.0);
        assert_eq!(domains(&plot).expect("data").0, (1.0, 2.0));
        plot.x = Axis::log("").range(0.1, 10.0);
        assert_eq!(domains(&plot).expect("data").0, (0.1, 10.0));
    }
}
