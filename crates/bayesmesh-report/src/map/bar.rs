//! The colour bar under a map.

use super::palette::{Palette, hex};
use super::range::Range;
use crate::number::format_tick;
use crate::plot::ticks::{Tick, linear};
use crate::text::{escape, width};

/// Size of the labels in pixels, as the style has it.
const FONT: f64 = 12.0;

/// The least width of a bar in pixels: on a phone, beside a short unit.
const LEAST_WIDTH: f64 = 230.0;

/// Room between two labels in pixels.
const GAP: f64 = 12.0;

/// The bar of a scale, with labels and the unit. It ends in a point where values lie beyond it.
pub(crate) fn to_html(range: &Range, palette: Palette, unit: &str) -> String {
    let ends = [(range.below, "below", 0.0), (range.above, "above", 1.0)];
    let pointed = || ends.iter().filter(|(beyond, ..)| *beyond);
    let class: String = pointed().map(|(_, name, _)| format!(" {name}")).collect();
    let points: String = pointed()
        .map(|(.., place)| format!("<i style=\"background:{}\"></i>", hex(palette.color(*place))))
        .collect();
    let unit = match unit {
        "" => String::new(),
        unit => format!("<span class=\"unit\">{}</span>", escape(unit)),
    };
    format!(
        "<div class=\"bar{class}\"><div class=\"strip\" style=\"background:{}\">{points}</div>\
         {unit}<div class=\"ticks\">{}</div></div>\n",
        palette.gradient(),
        labels(range)
    )
}

/// A number of the scale, to a hundredth of the order of its span.
pub(crate) fn fine(value: f64, range: &Range) -> String {
    let order = 10f64.powf((range.to - range.from).log10().floor());
    format_tick(value, order / 100.0)
}

/// As many labels as there is room for on a phone.
fn labels(range: &Range) -> String {
    let place = |value: f64| (value - range.from) / (range.to - range.from);
    let ticks = |count| linear((range.from, range.to), count);
    let apart = |ticks: &Vec<Tick>| {
        ticks.windows(2).all(|pair| {
            let room = (place(pair[1].value) - place(pair[0].value)) * LEAST_WIDTH;
            room >= (width(&pair[0].label, FONT) + width(&pair[1].label, FONT)) / 2.0 + GAP
        })
    };
    // Where no two labels fit beside each other, one is left.
    let alone = || ticks(2).into_iter().take(1).collect();
    let ticks = (2..=5).rev().map(ticks).find(apart).unwrap_or_else(alone);
    let label = |Tick { value, label: text, .. }: &Tick| {
        // A label near the end of the bar moves inside.
        let half = (width(text, FONT) / 2.0).ceil();
        let percent = 100.0 * place(*value);
        format!(
            "<i style=\"left:{percent:.1}%\"></i><span style=\"left:clamp({half}px,{percent:.1}%,\
             100% - {half}px)\">{}</span>",
            escape(text)
        )
    };
    ticks.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: f64, to: f64) -> Range {
        Range { from, to, below: false, above: true }
    }

    #[test]
    fn labels_are_round_numbers_inside_the_range() {
        let html = to_html(&range(-21.3, 24.9), Palette::BlueRed, "m/s");
        for label in [">−20<", ">−10<", ">0<", ">10<", ">20<", ">m/s<"] {
            assert!(html.contains(label), "{label} in {html}");
        }
        assert!(html.contains("class=\"bar above\""), "{html}");
    }

    #[test]
    fn numbers_of_any_size_have_few_labels() {
        for exponent in -44..38 {
            let size = 10f64.powi(exponent);
            for (from, to) in [(0.0, 1.7 * size), (-size, size), (273.0 * size, 273.4 * size)] {
                let html = labels(&range(from, to));
                let count = html.matches("<span").count();
                assert!((1..=6).contains(&count), "{count} labels from {from} to {to}");
                assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
            }
        }
    }

    #[test]
    fn a_value_is_finer_than_the_labels() {
        assert_eq!(fine(-21.34, &range(-20.0, 20.0)), "−21.3");
        assert_eq!(fine(101_325.2, &range(96_000.0, 104_000.0)), "101,325");
        assert_eq!(fine(0.0123, &range(0.0, 0.02)), "0.0123");
    }
}
