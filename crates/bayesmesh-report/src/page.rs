//! The HTML document.

use crate::map;
use crate::plot::Plot;
use crate::report::{Block, KeyFigure, Report, Section};
use crate::text::{escape, rich};

const STYLES: [&str; 4] = [
    include_str!("style/theme.css"),
    include_str!("style/chart.css"),
    include_str!("style/page.css"),
    include_str!("style/map.css"),
];

/// The whole page of `report`.
pub(crate) fn document(report: &Report) -> String {
    let title = escape(&report.title);
    let style = STYLES.concat();
    let lead = element("p", "lead", &report.lead);
    let headline = headline(&report.headline);
    let sections: String = report.sections.iter().enumerate().map(section).collect();
    let footer = element("footer", "", &report.footer);
    let script = script(report);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n{lead}</header>\n{headline}{sections}{footer}\
         </main>\n{script}</body>\n</html>\n"
    )
}

/// An element with rich text, or nothing where there is no text.
fn element(tag: &str, class: &str, text: &str) -> String {
    match (text, class) {
        ("", _) => String::new(),
        (text, "") => format!("<{tag}>{}</{tag}>\n", rich(text)),
        (text, class) => format!("<{tag} class=\"{class}\">{}</{tag}>\n", rich(text)),
    }
}

fn headline(figures: &[KeyFigure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut html = String::from("<ul class=\"headline\">\n");
    for KeyFigure { label, value, unit, note } in figures {
        let unit = match unit.as_str() {
            "" => String::new(),
            unit => format!(" <small>{}</small>", escape(unit)),
        };
        html.push_str(&format!(
            "<li>{}<span class=\"value\">{}{unit}</span>\n{}</li>\n",
            element("span", "label", label),
            escape(value),
            element("span", "remark", note)
        ));
    }
    html.push_str("</ul>\n");
    html
}

/// The script that a reader chooses maps with; nothing where there is no choice.
fn script(report: &Report) -> String {
    let mut blocks = report.sections.iter().flat_map(|section| &section.blocks);
    if blocks.any(|block| matches!(block, Block::Maps(maps) if maps.needs_script())) {
        format!("<script>\n{}</script>\n", map::SCRIPT)
    } else {
        String::new()
    }
}

fn section((index, section): (usize, &Section)) -> String {
    let title = element("h2", "", &section.title);
    let text = element("p", "", section.text.as_deref().unwrap_or(""));
    let key = |i: usize| format!("{index}-{i}");
    let blocks = section.blocks.iter().enumerate().map(|(i, b)| block(b, &key(i)) + "\n");
    let blocks: String = blocks.collect();
    format!("<section>\n{title}{text}<div class=\"blocks\">\n{blocks}</div>\n</section>\n")
}

/// A block; `key` tells it from the other blocks of the page.
fn block(block: &Block, key: &str) -> String {
    match block {
        Block::Plot(plot) => figure(plot),
        Block::Table(table) => table.to_html(),
        Block::Facts(facts) => facts_list(facts),
        Block::Note(text) => element("p", "note", text),
        Block::Images(gallery) => gallery.to_html(),
        Block::Maps(maps) => maps.to_html(key),
    }
}

fn figure(plot: &Plot) -> String {
    let class = if plot.shape.is_narrow() { "plot half" } else { "plot" };
    let title = element("h3", "", &plot.title);
    let caption = element("figcaption", "", &plot.caption);
    let chart = match plot.charts() {
        charts if charts.is_empty() => "<p class=\"note\">No data to show.</p>\n".to_owned(),
        charts => charts.concat(),
    };
    format!("<figure class=\"{class}\">\n{title}{chart}{caption}</figure>")
}

fn facts_list(facts: &[(String, String)]) -> String {
    let rows: String = facts
        .iter()
        .map(|(name, value)| {
            format!("<div><dt>{}</dt><dd>{}</dd></div>\n", rich(name), rich(value))
        })
        .collect();
    format!("<dl class=\"facts\">\n{rows}</dl>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Color, Layer};

    #[test]
    fn a_plot_without_data_is_a_note() {
        let plot = Plot::new("Loss", Axis::linear("step"), Axis::log("loss")).with(Layer::line(
            "train",
            [(0.0, f64::NAN), (1.0, -1.0)],
            Color::Blue,
        ));
        let html = figure(&plot);
        assert!(html.contains("No data to show") && !html.contains("<svg"), "{html}");
    }

    #[test]
    fn the_page_escapes_text_and_loads_nothing() {
        let report = Report {
            title: "<script>alert(1)</script>".into(),
            headline: vec![KeyFigure::new("a", "<1").unit("<b>")],
            sections: vec![
                Section::new("x<y")
                    .text("`a<b`")
                    .with(Block::Facts(vec![("<k>".into(), "<v>".into())])),
            ],
            ..Report::default()
        };
        let html = report.to_html();
        for forbidden in ["<script", "<link", "<k>", "<v>", "<b>", "url(", "@import", "x<y"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        assert!(html.contains("<code>a&lt;b</code>"));
    }
}
