//! The page as a browser shows it: everything is there, and nothing overflows on a phone or a
//! desktop. Skipped where no Chromium is found.

mod browser;
#[allow(dead_code)]
#[path = "../examples/gallery/data.rs"]
mod gallery;

use bayesmesh_report::{Axis, Block, Cell, Color, KeyFigure, Layer, Plot, Report, Section, Table};

const WIDTHS: [u32; 2] = [400, 1400];

#[test]
fn the_gallery_fits_phones_and_desktops() {
    let Some(layouts) = browser::layouts(&gallery::report().to_html(), &WIDTHS) else {
        println!("skipped: no chromium");
        return;
    };
    for (layout, width) in layouts.iter().zip(WIDTHS) {
        assert_eq!(layout.width, width);
        assert!(layout.problems.is_empty(), "at {width} px: {:#?}", layout.problems);
        assert_eq!(layout.charts, 6, "at {width} px");
        // One mark for each layer.
        assert_eq!(layout.marks, 23, "at {width} px");
        assert_eq!(layout.tables, 1, "at {width} px");
    }
}

#[test]
fn texts_without_a_place_to_break_do_not_widen_the_page() {
    let long = "x".repeat(300);
    let plot = Plot::new(&long, Axis::time(&long), Axis::log(&long).unit(&long)).with(Layer::line(
        &long,
        [(0.0, 1e-9), (1e9, 1e12)],
        Color::Blue,
    ));
    let table = Table {
        caption: long.clone(),
        header: vec![long.clone(); 3],
        rows: vec![vec![Cell::from(long.as_str()), Cell::number(1e300, 3)]],
        highlight: None,
    };
    let section = Section::new(&long)
        .text(format!("`{long}`"))
        .with(Block::Plot(plot))
        .with(Block::Table(table))
        .with(Block::Facts(vec![(long.clone(), long.clone())]))
        .with(Block::Note(format!("`{long}`")));
    let report = Report {
        title: long.clone(),
        lead: long.clone(),
        headline: vec![KeyFigure::new(&long, &long).unit(&long).note(&long); 5],
        sections: vec![section],
        footer: long,
    };
    let Some(layouts) = browser::layouts(&report.to_html(), &WIDTHS) else {
        println!("skipped: no chromium");
        return;
    };
    for layout in layouts {
        assert!(layout.problems.is_empty(), "at {} px: {:#?}", layout.width, layout.problems);
    }
}

#[test]
fn a_page_that_overflows_is_found() {
    let svg = "<svg role=\"img\" aria-label=\"wide\" width=\"500\" height=\"200\"></svg>";
    let Some(layouts) = browser::layouts(&format!("<!doctype html><body>{svg}"), &WIDTHS) else {
        println!("skipped: no chromium");
        return;
    };
    let [phone, desktop] = &layouts[..] else { panic!("two layouts") };
    let found = |text: &str| phone.problems.iter().any(|problem| problem.contains(text));
    assert!(found("the page is 508 px wide") && found("reaches from"), "{:?}", phone.problems);
    assert_eq!(desktop.problems, ["chart wide lacks path data"]);
}
