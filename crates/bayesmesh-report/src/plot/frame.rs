//! The layout of a chart: where the drawing area lies and what surrounds it.

use super::axis::ScaleKind;
use super::domain::domains;
use super::labels::{self, EndLabel};
use super::legend::Legend;
use super::scale::Scale;
use super::ticks::{Context, Tick, ticks};
use super::{Plot, Shape};
use crate::text::width;

/// Size of all text in a chart, in pixels; the style sheet says the same.
pub(crate) const FONT: f64 = 12.0;

/// Room for a line of text.
pub(crate) const ROW: f64 = 18.0;

/// Least room between neighbouring labels of the horizontal axis.
const LABEL_GAP: f64 = 10.0;

const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// Everything needed to draw a chart. The scales count pixels from the upper left corner of the
/// drawing area.
pub(crate) struct Frame {
    /// Width of the chart.
    pub(crate) width: f64,
    /// Height of the chart.
    pub(crate) height: f64,
    /// Left edge of the drawing area.
    pub(crate) left: f64,
    /// Upper edge of the drawing area.
    pub(crate) top: f64,
    /// Width of the drawing area.
    pub(crate) area_width: f64,
    /// Height of the drawing area.
    pub(crate) area_height: f64,
    /// The horizontal scale.
    pub(crate) x: Scale,
    /// The vertical scale.
    pub(crate) y: Scale,
    /// Labels under the drawing area, in at most two rows.
    pub(crate) x_labels: Vec<Placed>,
    /// Ticks of the vertical axis.
    pub(crate) y_ticks: Vec<Tick>,
    /// Pixels of the vertical grid lines.
    pub(crate) x_grid: Vec<f64>,
    /// Pixels of the ticks of the horizontal axis.
    pub(crate) x_marks: Vec<f64>,
    /// Upper edge of the name of the horizontal axis.
    pub(crate) x_name_top: f64,
    /// Names at the ends of the lines.
    pub(crate) end_labels: Vec<EndLabel>,
    /// What has no name at its end.
    pub(crate) legend: Legend,
}

/// A text centred on a pixel of the drawing area.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    /// Its centre.
    pub(crate) x: f64,
    /// 0 right under the axis, 1 below that.
    pub(crate) row: usize,
    /// What it says.
    pub(crate) text: String,
}

impl Frame {
    /// Lays out `plot` in a chart of the given width, with `header` pixels kept free above. `None`
    /// if there is no data.
    pub(crate) fn new(plot: &Plot, chart_width: f64, header: f64) -> Option<Self> {
        let (x_domain, y_domain) = domains(plot)?;
        let height = match plot.shape {
            Shape::Wide if chart_width > 600.0 => 300.0,
            Shape::Wide | Shape::Half => 220.0,
            Shape::Square => chart_width - 70.0,
        };
        let y_count = (height / 40.0).round() as usize;
        let y_ticks = ticks(plot.y.scale, y_domain, y_count);
        let y_width = y_ticks.iter().map(|t| width(&t.label, FONT)).fold(0.0, f64::max);
        let left = (y_width + 10.0).ceil();
        let top = header + if plot.y.name().is_empty() { 8.0 } else { 26.0 };

        // A half plot is too narrow to give away room on the right.
        let named = if chart_width > 600.0 { labels::named_at_end(plot) } else { Vec::new() };
        let right_of = |named: &[&str]| match labels::width_of(named) {
            0.0 => 12.0,
            label_width => label_width + 24.0,
        };
        let area = |right: f64| (chart_width - left - right).max(40.0);
        let scales = |area_width: f64, area_height: f64| {
            let x = Scale::new(plot.x.scale, x_domain, (0.0, area_width));
            let y = Scale::new(plot.y.scale, y_domain, (area_height, 0.0));
            (x, y)
        };
        let mut area_width = area(right_of(&named));
        let (x, y) = scales(area_width, height);
        let end_labels = labels::place(plot, &named, &x, &y, (area_width, height));
        if end_labels.is_empty() {
            area_width = area(12.0);
        }
        let area_height = if plot.shape == Shape::Square { area_width } else { height };
        let (x, y) = scales(area_width, area_height);

        let (x_ticks, x_labels) = x_labels(plot, &x, area_width, left, chart_width);
        let rows = if x_labels.iter().any(|label| label.row == 1) { 2.0 } else { 1.0 };
        let x_name_top = top + area_height + 6.0 + rows * ROW - 2.0;
        let legend_top = x_name_top + if plot.x.name().is_empty() { 4.0 } else { ROW + 7.0 };
        let named_at_end: Vec<&str> = end_labels.iter().map(|l| l.text.as_str()).collect();
        let legend = Legend::new(plot, &named_at_end, chart_width, legend_top);

        // Days have lines of their own, and so has a square, which is read both ways.
        let is_day = |tick: &&Tick| {
            plot.x.scale == ScaleKind::Time && tick.value.rem_euclid(SECONDS_OF_A_DAY) == 0.0
        };
        let has_line = |tick: &&Tick| plot.shape == Shape::Square || is_day(tick);
        let pixel = |tick: &Tick| x.at(tick.value);
        Some(Self {
            width: chart_width,
            height: (legend_top + legend.height() + 2.0).ceil(),
            left,
            top,
            area_width,
            area_height,
            x,
            y,
            x_grid: x_ticks.iter().filter(has_line).filter_map(pixel).collect(),
            x_marks: x_ticks.iter().filter_map(pixel).collect(),
            x_labels,
            y_ticks,
            x_name_top,
            end_labels,
            legend,
        })
    }
}

/// As many ticks as their labels have room for, and the labels.
fn x_labels(
    plot: &Plot,
    x: &Scale,
    area_width: f64,
    left: f64,
    chart_width: f64,
) -> (Vec<Tick>, Vec<Placed>) {
    let bounds = (-left, chart_width - left);
    let most = ((area_width / 64.0) as usize).max(2);
    let mut count = most;
    loop {
        let ticks = ticks(plot.x.scale, x.domain(), count);
        let row = |row: usize, text: &dyn Fn(&Tick) -> Option<String>| -> Vec<Placed> {
            let placed = |tick: &Tick| Some(place(x.at(tick.value)?, row, text(tick)?, bounds));
            ticks.iter().filter_map(placed).collect()
        };
        let first = row(0, &|tick| Some(tick.label.clone()));
        if count > 2 && !first.windows(2).all(|pair| apart(&pair[0], &pair[1])) {
            count -= 1;
            continue;
        }
        let mut labels = first;
        labels.extend(context_row(&ticks, x, bounds));
        return (ticks, labels);
    }
}

/// The second row: what begins at a tick comes before what the axis merely starts in.
fn context_row(ticks: &[Tick], x: &Scale, bounds: (f64, f64)) -> Vec<Placed> {
    let mut contexts: Vec<_> =
        ticks.iter().filter_map(|tick| Some((x.at(tick.value)?, tick.context.as_ref()?))).collect();
    let placed = |&(at, context): &(f64, &Context), full: bool| {
        let text = if full { &context.full } else { &context.text };
        place(at, 1, text.clone(), bounds)
    };
    if let [first, second, ..] = contexts[..]
        && !first.1.begins
        && !apart(&placed(&first, false), &placed(&second, false))
    {
        contexts.remove(0);
    }
    let mut row: Vec<Placed> = Vec::new();
    for (i, context) in contexts.iter().enumerate() {
        let full = placed(context, true);
        // The first has the year, if the next leaves room for it.
        let fits = contexts.get(1).is_none_or(|next| apart(&full, &placed(next, false)));
        let label = if i == 0 && fits { full } else { placed(context, false) };
        if row.last().is_none_or(|previous| apart(previous, &label)) {
            row.push(label);
        }
    }
    row
}

/// A text centred at `x`, or as near to it as the bounds allow.
fn place(x: f64, row: usize, text: String, bounds: (f64, f64)) -> Placed {
    let half = width(&text, FONT) / 2.0;
    let x = x.min(bounds.1 - half).max(bounds.0 + half);
    Placed { x, row, text }
}

/// Whether two neighbouring labels leave room between them.
fn apart(a: &Placed, b: &Placed) -> bool {
    b.x - a.x >= (width(&a.text, FONT) + width(&b.text, FONT)) / 2.0 + LABEL_GAP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Color, Layer};

    fn plot(x: Axis, to: f64) -> Plot {
        Plot::new("", x, Axis::linear("load")).with(Layer::line(
            "load",
            [(0.0, 40_000.0), (to, 60_000.0)],
            Color::Blue,
        ))
    }

    #[test]
    fn labels_of_every_span_and_width_stay_apart_and_inside() {
        for chart_width in [300.0, 400.0, 880.0] {
            for exponent in -9..12 {
                for x in [Axis::linear("x"), Axis::time("x"), Axis::log("x").range(1e-3, 1e5)] {
                    let to = 2.3 * 10f64.powi(exponent);
                    let frame = Frame::new(&plot(x, to), chart_width, 0.0).expect("data");
                    for row in 0..2 {
                        let labels: Vec<_> =
                            frame.x_labels.iter().filter(|l| l.row == row).collect();
                        let close = labels.windows(2).find(|p| !apart(p[0], p[1]));
                        assert!(close.is_none(), "{close:?} in {chart_width} px");
                    }
                    for label in &frame.x_labels {
                        let half = width(&label.text, FONT) / 2.0;
                        let x = frame.left + label.x;
                        assert!(x - half > -0.1 && x + half < chart_width + 0.1, "{label:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_square_is_square() {
        let plot = plot(Axis::linear("x"), 1.0).shape(Shape::Square);
        let frame = Frame::new(&plot, 400.0, 0.0).expect("data");
        assert_eq!(frame.area_width, frame.area_height);
    }
}
