//! The SVG elements of a chart.

use super::Plot;
use super::frame::{FONT, Frame, Placed, ROW};
use super::marks;
use super::path::coordinate;
use crate::text::{escape, fit};

/// Width of a chart over the full page.
const WIDE: f64 = 880.0;

/// Width of a chart for half the page, and for a phone.
const COMPACT: f64 = 400.0;

/// Marks reach this far over the edge of the drawing area before they are cut off, so that a line
/// along the edge keeps its width.
const OVERHANG: f64 = 3.0;

const THEME: &str = include_str!("../style/theme.css");
const STYLE: &str = include_str!("../style/chart.css");

/// The charts of `plot` for a page.
pub(crate) fn inline(plot: &Plot) -> Vec<String> {
    let variants: &[(f64, &str)] = if plot.shape.is_narrow() {
        &[(COMPACT, "chart")]
    } else {
        &[(WIDE, "chart wide"), (COMPACT, "chart compact")]
    };
    let chart = |&(width, class): &(f64, &str)| {
        let frame = Frame::new(plot, width, 0.0)?;
        let (width, height) = (coordinate(frame.width), coordinate(frame.height));
        Some(format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{}\">\n{}</svg>\n",
            escape(&description(plot)),
            body(plot, &frame)
        ))
    };
    variants.iter().filter_map(chart).collect()
}

/// The chart of `plot` as a file of its own.
pub(crate) fn standalone(plot: &Plot) -> String {
    const MARGIN: f64 = 16.0;
    let width = if plot.shape.is_narrow() { COMPACT } else { WIDE };
    let header = if plot.title.is_empty() { 0.0 } else { 28.0 };
    let frame = Frame::new(plot, width, header);
    let height = frame.as_ref().map_or(header + 40.0, |frame| frame.height);
    let content = match &frame {
        Some(frame) => body(plot, frame),
        None => format!("<text y=\"{}\">No data to show.</text>", header + 20.0),
    };
    let title = match plot.title.as_str() {
        "" => String::new(),
        title => format!("<text class=\"title\" y=\"14\">{}</text>\n", escape(title)),
    };
    let description = escape(&description(plot));
    let (outer_width, outer_height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{outer_width}\" \
         height=\"{outer_height}\" viewBox=\"-{MARGIN} -{MARGIN} {outer_width} {outer_height}\" \
         role=\"img\" aria-label=\"{description}\">\n<title>{description}</title>\n\
         <style>\n{THEME}{STYLE}</style>\n\
         <rect class=\"paper\" x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{outer_width}\" \
         height=\"{outer_height}\"/>\n{title}{content}</svg>\n"
    )
}

/// What the chart shows, in words.
fn description(plot: &Plot) -> String {
    let mut labels: Vec<&str> =
        plot.layers.iter().map(|layer| layer.label()).filter(|label| !label.is_empty()).collect();
    labels.dedup();
    let parts = [
        plot.title.clone(),
        format!("{} against {}", plot.y.name(), plot.x.name()),
        labels.join(", "),
    ];
    parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(". ")
}

fn body(plot: &Plot, frame: &Frame) -> String {
    let mut svg = String::new();
    let (left, top) = (frame.left, frame.top);
    let (right, bottom) = (left + frame.area_width, top + frame.area_height);

    let mut grid = String::new();
    for tick in &frame.y_ticks {
        let Some(y) = frame.y.at(tick.value).map(|y| y + top) else {
            continue;
        };
        let y_text = coordinate(y);
        grid.push_str(&format!("M{} {y_text}H{}", coordinate(left), coordinate(right)));
        svg.push_str(&text("tick end", left - 8.0, y + 4.0, &tick.label));
    }
    for x in &frame.x_grid {
        let x = coordinate(left + x);
        grid.push_str(&format!("M{x} {}V{}", coordinate(top), coordinate(bottom)));
    }
    let mut axis = format!("M{} {}H{}", coordinate(left), coordinate(bottom), coordinate(right));
    for x in &frame.x_marks {
        axis.push_str(&format!("M{} {}v4", coordinate(left + x), coordinate(bottom)));
    }
    for Placed { x, row, text: label } in &frame.x_labels {
        let class = if *row == 0 { "tick mid" } else { "mid" };
        let y = bottom + ROW * (1.0 + *row as f64);
        svg.push_str(&text(class, left + x, y, label));
    }
    svg.push_str(&text("name", 0.0, top - 14.0, &fit(&plot.y.name(), FONT, frame.width)));
    let x_name = fit(&plot.x.name(), FONT, frame.area_width);
    svg.push_str(&text("name mid", (left + right) / 2.0, frame.x_name_top + 14.0, &x_name));

    let layers: String = plot.layers.iter().map(|layer| marks::draw(layer, frame)).collect();
    // An inner svg element cuts off what lies outside of it and needs no identifier for that.
    svg.push_str(&format!(
        "<path class=\"grid\" d=\"{grid}\"/>\n<path class=\"axis\" d=\"{axis}\"/>\n\
         <svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"-{OVERHANG} -{OVERHANG} {width} {height}\">{layers}</svg>\n",
        x = coordinate(left - OVERHANG),
        y = coordinate(top - OVERHANG),
        width = coordinate(frame.area_width + 2.0 * OVERHANG),
        height = coordinate(frame.area_height + 2.0 * OVERHANG),
    ));
    for label in &frame.end_labels {
        let y = top + label.y;
        svg.push_str(&format!(
            "<path class=\"{} {}\" d=\"M{} {}h12\"/>",
            label.stroke,
            label.color.class(),
            coordinate(right + 6.0),
            coordinate(y)
        ));
        svg.push_str(&text("", right + 23.0, y + 4.0, &label.text));
    }
    svg.push_str(&frame.legend.to_svg());
    svg
}

fn text(class: &str, x: f64, y: f64, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    let class = if class.is_empty() { String::new() } else { format!("class=\"{class}\" ") };
    format!(
        "<text {class}x=\"{}\" y=\"{}\">{}</text>\n",
        coordinate(x),
        coordinate(y),
        escape(content)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Color, Layer, Shape};

    fn plot() -> Plot {
        Plot::new("a < b", Axis::linear("step"), Axis::log("loss").unit("MW²")).with(Layer::line(
            "train & test",
            [(0.0, 1.0), (10.0, 0.1)],
            Color::Blue,
        ))
    }

    #[test]
    fn a_file_of_its_own_is_well_formed_and_has_its_style() {
        let svg = plot().to_svg();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(svg.contains("<style>") && svg.contains("prefers-color-scheme"));
        assert!(svg.contains("a &lt; b") && svg.contains("train &amp; test"));
        assert!(svg.contains("loss (MW²)"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        let empty = Plot::new("none", Axis::default(), Axis::default()).to_svg();
        assert!(empty.contains("No data to show"));
    }

    #[test]
    fn a_wide_plot_has_a_drawing_for_phones() {
        assert_eq!(plot().charts().len(), 2);
        assert_eq!(plot().shape(Shape::Half).charts().len(), 1);
        for chart in plot().charts() {
            assert!(chart.contains("role=\"img\"") && chart.contains("aria-label=\"a &lt; b."));
        }
    }
}
