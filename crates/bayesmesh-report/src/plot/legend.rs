//! The legend, below the chart where it covers nothing.

use super::Plot;
use super::frame::{FONT, ROW};
use super::layer::Layer;
use super::path::coordinate;
use crate::text::{escape, fit, width};

const SWATCH: f64 = 22.0;
const TEXT_GAP: f64 = 6.0;
const ENTRY_GAP: f64 = 16.0;

/// Entries with their places.
pub(crate) struct Legend {
    entries: Vec<Entry>,
    top: f64,
}

struct Entry {
    text: String,
    swatch: String,
    x: f64,
    row: usize,
}

impl Legend {
    /// The entries of all layers with a label that is not among `named`, in the width of the
    /// chart.
    pub(crate) fn new(plot: &Plot, named: &[&str], chart_width: f64, top: f64) -> Self {
        let mut labels: Vec<&str> = Vec::new();
        for layer in &plot.layers {
            let label = layer.label();
            if !label.is_empty() && !labels.contains(&label) && !named.contains(&label) {
                labels.push(label);
            }
        }
        let (mut x, mut row) = (0.0, 0);
        let entries = labels.into_iter().map(|label| {
            let text = fit(label, FONT, chart_width - SWATCH - TEXT_GAP);
            let entry_width = SWATCH + TEXT_GAP + width(&text, FONT);
            if x > 0.0 && x + entry_width > chart_width {
                (x, row) = (0.0, row + 1);
            }
            let entry = Entry { text, swatch: swatch(plot, label), x, row };
            x += entry_width + ENTRY_GAP;
            entry
        });
        Self { entries: entries.collect(), top }
    }

    /// Room it takes.
    pub(crate) fn height(&self) -> f64 {
        self.entries.last().map_or(0.0, |last| (last.row + 1) as f64 * ROW + 2.0)
    }

    /// The elements of the legend.
    pub(crate) fn to_svg(&self) -> String {
        let mut svg = String::new();
        for Entry { text, swatch, x, row } in &self.entries {
            let y = self.top + (*row as f64 + 0.5) * ROW;
            svg.push_str(&format!(
                "<g transform=\"translate({} {})\">{swatch}\
                 <text x=\"{}\" y=\"4\">{}</text></g>",
                coordinate(*x),
                coordinate(y),
                SWATCH + TEXT_GAP,
                escape(text)
            ));
        }
        svg
    }
}

/// A picture of what `label` stands for, around the middle line of its row.
fn swatch(plot: &Plot, label: &str) -> String {
    let mut svg = String::new();
    for (i, layer) in plot.layers.iter().enumerate().filter(|(_, l)| l.label() == label) {
        let color = layer.color().class();
        match layer {
            Layer::Line { stroke, .. }
            | Layer::Steps { stroke, .. }
            | Layer::Rule { stroke, .. } => {
                let class = stroke.class();
                svg.push_str(&format!("<path class=\"{class} {color}\" d=\"M1 0H21\"/>"));
            }
            Layer::Points { .. } => {
                svg.push_str(&format!("<path class=\"dots {color}\" d=\"M11 0h0\"/>"));
            }
            Layer::Bars { .. } => {
                svg.push_str(&format!("<path class=\"bars {color}\" d=\"M3-5H19V5H3Z\"/>"));
            }
            Layer::Band { .. } => {
                // In the chart an inner band lies on the outer ones of its fan; so here.
                for below in &plot.layers[..=i] {
                    if let Layer::Band { opacity, color, .. } = below
                        && *color == layer.color()
                    {
                        svg.push_str(&format!(
                            "<path class=\"band {}\" fill-opacity=\"{opacity:.2}\" \
                             d=\"M0-6H22V6H0Z\"/>",
                            color.class()
                        ));
                    }
                }
            }
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Color};

    #[test]
    fn same_labels_share_an_entry_and_rows_wrap() {
        let points = [(0.0, 1.0)];
        let plot = Plot::new("", Axis::linear(""), Axis::linear(""))
            .with(Layer::line("observed", points, Color::Ink))
            .with(Layer::points("observed", points, Color::Ink))
            .with(Layer::line("", points, Color::Ink))
            .with(Layer::line("a name of some length", points, Color::Blue))
            .with(Layer::line("<elsewhere>", points, Color::Blue));
        let wide = Legend::new(&plot, &[], 800.0, 0.0);
        assert_eq!(wide.entries.len(), 3);
        assert_eq!(wide.height(), ROW + 2.0);
        let narrow = Legend::new(&plot, &[], 200.0, 0.0);
        assert!(narrow.height() > 2.0 * ROW);
        assert!(narrow.to_svg().contains("&lt;elsewhere&gt;"));
        assert_eq!(Legend::new(&plot, &["observed"], 800.0, 0.0).entries.len(), 2);
    }
}
