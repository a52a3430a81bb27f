//! The block of a page.

use super::bar;
use super::palette::Palette;
use super::range::{Range, extremes};
use super::raster;
use super::{MapField, MapPanel, MapScale, MapSeries, MapTime, MapVariable};
use crate::base64;
use crate::number::format_tick;
use crate::plot::calendar::date_and_time;
use crate::text::{escape, rich};

/// Lines every 30 degrees north and every 60 degrees east.
const GRATICULE: &str = "M-180-60h360M-180-30h360M-180 0h360M-180 30h360M-180 60h360\
                         M-120-90v180M-60-90v180M0-90v180M60-90v180M120-90v180";

/// The figure of `series`; `key` tells it from the others of the page.
pub(crate) fn figure(series: &MapSeries, key: &str) -> String {
    let title = element("h3", &series.title);
    let caption = element("figcaption", &series.caption);
    if series.grid.cells().is_none() || series.variables.iter().all(|v| v.panels.is_empty()) {
        let note = "<p class=\"note\">No data to show.</p>\n";
        return format!("<figure class=\"maps\">\n{title}{note}{caption}</figure>");
    }
    let coast = series.coast.path(&series.grid);
    let id = format!("coast-{key}");
    let (shared, overlay) = if coast.is_empty() {
        (String::new(), String::new())
    } else {
        let shared = format!("<svg class=\"off\"><path id=\"{id}\" d=\"{coast}\"/></svg>\n");
        let line = |class| format!("<use class=\"{class}\" href=\"#{id}\"/>");
        (shared, line("halo") + &line("coast"))
    };
    let overlay = format!(
        "<svg viewBox=\"-180 -90 360 180\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"graticule\" d=\"{GRATICULE}\"/>{overlay}</svg>"
    );
    let panels: String = series
        .variables
        .iter()
        .enumerate()
        .map(|(i, variable)| panels(series, i, variable, &overlay))
        .collect();
    let [left, top, width, height] = series.grid.placement().map(|share| 100.0 * share);
    format!(
        "<figure class=\"maps\" style=\"--left:{left:.4}%;--top:{top:.4}%;--width:{width:.4}%;\
         --height:{height:.4}%\">\n{title}{shared}{}{panels}{caption}</figure>",
        head(series)
    )
}

fn element(tag: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<{tag}>{}</{tag}>\n", rich(text)) }
}

/// What one chooses with, which the script shows, and what is chosen.
fn head(series: &MapSeries) -> String {
    let mut controls = String::new();
    if series.variables.len() > 1 {
        let option = |(i, variable): (usize, &MapVariable)| {
            format!("<option value=\"{i}\">{}</option>", escape(&variable.name))
        };
        let options: String = series.variables.iter().enumerate().map(option).collect();
        controls.push_str(&format!("<select aria-label=\"Variable\">{options}</select>\n"));
    }
    if let [first, .., last] = &series.times[..] {
        controls.push_str(&format!(
            "<label>Lead time <span>{}</span><input type=\"range\" min=\"0\" max=\"{}\" \
             value=\"0\"><span>{}</span></label>\n",
            hours(first),
            series.times.len() - 1,
            hours(last)
        ));
    }
    if !controls.is_empty() {
        controls = format!("<div class=\"controls\" hidden>\n{controls}</div>\n");
    }
    let one_of = |name: &str, texts: Vec<String>| -> String {
        let text = |(i, text): (usize, String)| format!("<span{}>{text}</span>", choice(name, i));
        texts.into_iter().enumerate().map(text).collect()
    };
    let variables = series.variables.iter().map(|variable| escape(&variable.name)).collect();
    let times = series.times.iter().map(when).collect();
    format!(
        "<div class=\"head\">\n{controls}<p class=\"state\"><strong>{}</strong> {}</p>\n</div>\n",
        one_of("variable", variables),
        one_of("time", times)
    )
}

/// Attributes of what is shown for one of the choices of `name` only. The first is chosen.
fn choice(name: &str, index: usize) -> String {
    let class = if index == 0 { "" } else { " class=\"off\"" };
    format!("{class} data-{name}=\"{index}\"")
}

fn hours(time: &MapTime) -> String {
    if !time.lead.is_finite() {
        return "– h".to_owned();
    }
    let step = if time.lead.fract() == 0.0 { 1.0 } else { 0.1 };
    // A few digits are enough for what is no lead time of any forecast.
    format!("{} h", format_tick(time.lead, time.lead.abs().mul_add(1e-6, step)))
}

/// The time in words.
fn when(time: &MapTime) -> String {
    let valid = time.valid.and_then(date_and_time).map(|text| format!(", {text} UTC"));
    format!("{} ahead{}", hours(time), valid.unwrap_or_default())
}

/// The maps of a variable.
fn panels(series: &MapSeries, index: usize, variable: &MapVariable, overlay: &str) -> String {
    let shown = series.times.len().max(1);
    let panel = |panel: &MapPanel| {
        // Panels of the same scale share a range.
        let alike = variable.panels.iter().filter(|other| other.scale == panel.scale);
        let fields = alike.flat_map(|p| p.fields.iter().take(shown));
        let usable = fields.filter(|field| series.grid.cells() == Some(field.values.len()));
        let values = usable.flat_map(|field| field.values.iter().copied());
        let range = Range::new(panel.scale, values);
        self::panel(series, variable, panel, range, overlay)
    };
    let class = if variable.panels.len() == 1 { "panels single" } else { "panels" };
    let class = if index == 0 { class.to_owned() } else { format!("{class} off") };
    let html: String = variable.panels.iter().map(panel).collect();
    format!("<div class=\"{class}\" data-variable=\"{index}\">\n{html}</div>\n")
}

fn panel(
    series: &MapSeries,
    variable: &MapVariable,
    panel: &MapPanel,
    range: Option<Range>,
    overlay: &str,
) -> String {
    let palette = palette(panel.scale);
    // Without a finite value there is no range; any will do for pictures without colour.
    let drawn = range.unwrap_or(Range { from: 0.0, to: 1.0, below: false, above: false });
    let (mut notes, mut images) = (String::new(), String::new());
    for time in 0..series.times.len().max(1) {
        let field = panel.fields.get(time);
        let png = field.and_then(|f| raster::png(&series.grid, &f.values, &drawn, palette));
        let note = match (&png, field) {
            (Some(_), Some(field)) => note(field, &drawn, &variable.unit),
            _ => "No data to show.".to_owned(),
        };
        let choice = choice("time", time);
        notes.push_str(&format!("<span{choice}>{note}</span>"));
        if let Some(png) = png {
            let data = base64::encode(&png);
            images.push_str(&format!(
                "<img{choice} alt=\"\" src=\"data:image/png;base64,{data}\">\n"
            ));
        }
    }
    let bar = range.map(|range| bar::to_html(&range, palette, &variable.unit)).unwrap_or_default();
    format!(
        "<div class=\"panel\">\n<p class=\"what\"><strong>{}</strong> {notes}</p>\n\
         <div class=\"map\" role=\"img\" aria-label=\"{}: map of {}\">\n{images}{overlay}</div>\n\
         {bar}</div>\n",
        rich(&panel.title),
        escape(&panel.title),
        escape(&variable.name),
    )
}

fn palette(scale: MapScale) -> Palette {
    match scale {
        MapScale::Value => Palette::Viridis,
        MapScale::Spread => Palette::Purple,
        MapScale::SignedValue | MapScale::Error => Palette::BlueRed,
    }
}

/// The note of a field, or the range of its values.
fn note(field: &MapField, range: &Range, unit: &str) -> String {
    if !field.note.is_empty() {
        return rich(&field.note);
    }
    let Some((least, greatest)) = extremes(field.values.iter().copied()) else {
        return "No values".to_owned();
    };
    let text = format!("{} to {} {unit}", bar::fine(least, range), bar::fine(greatest, range));
    escape(text.trim_end())
}
