//! The page as a browser shows it: everything is there, and nothing overflows on a phone or a
//! desktop. Skipped where no Chromium is found.

mod browser;
#[allow(dead_code)]
#[path = "../examples/gallery/data.rs"]
mod gallery;

use bayesmesh_report::{
    Axis, Block, Cell, Coast, Color, KeyFigure, Layer, MapGrid, MapPanel, MapScale, MapSeries,
    MapTime, MapVariable, Plot, Report, Section, Table,
};

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
        assert_eq!(layout.charts, 8, "at {width} px");
        // One mark for each layer.
        assert_eq!(layout.marks, 28, "at {width} px");
        assert_eq!(layout.tables, 1, "at {width} px");
        assert_eq!(layout.maps.len(), 4, "at {width} px");
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
    let panel = |scale| MapPanel::new(&long, scale).field(vec![1e30, -1e-30], &long);
    let variable = || {
        MapVariable::new(&long)
            .unit(&long)
            .with(panel(MapScale::Value))
            .with(panel(MapScale::Error))
    };
    let maps = MapSeries::new(&long, MapGrid::global(1, 2))
        .caption(&long)
        .times([MapTime::new(1e9), MapTime::new(-1e300)])
        .with(variable())
        .with(variable());
    let section = Section::new(&long)
        .with(Block::Maps(maps))
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

/// A page of the maps of the gallery, and of maps with a mask, at one time.
fn maps_page() -> String {
    let island = (0..32 * 64).map(|i| f32::from(u8::from(i / 64 > 10 && i % 64 < 9))).collect();
    let field = (0..32 * 64).map(|i| (i as f32 * 0.1).sin()).collect();
    let single =
        MapSeries::new("One map", MapGrid::global(32, 64)).coast(Coast::Mask(island)).with(
            MapVariable::new("waves").with(MapPanel::new("Sine", MapScale::Value).field(field, "")),
        );
    let section =
        Section::new("Maps").with(Block::Maps(gallery::weather::maps())).with(Block::Maps(single));
    Report { title: "Maps".into(), sections: vec![section], ..Report::default() }.to_html()
}

#[test]
fn the_slider_and_the_selector_change_the_maps() {
    let (page, widths) = (maps_page(), [360, 1280]);
    let shown = |action: &str| {
        let reader = browser::Reader { action, ..browser::Reader::default() };
        browser::layouts_for(reader, &page, &widths)
    };
    let Some(before) = shown("") else {
        println!("skipped: no chromium");
        return;
    };
    let slide = "const s = page.querySelector('.maps input'); s.value = 2;
                 s.dispatchEvent(new Event('input', { bubbles: true }));
                 if (s.getAttribute('aria-valuetext') !== page.querySelector('.state').innerText)
                   throw new Error('the slider does not say where it is');";
    let select = "const s = page.querySelector('.maps select'); s.value = 1;
                  s.dispatchEvent(new Event('input', { bubbles: true }));";
    let (slid, selected) = (shown(slide).expect("layouts"), shown(select).expect("layouts"));
    for layouts in [&before, &slid, &selected] {
        for (layout, width) in layouts.iter().zip(widths) {
            assert!(layout.problems.is_empty(), "at {width} px: {:#?}", layout.problems);
            assert_eq!((layout.maps.len(), layout.controls), (5, 2), "{:?}", layout.maps);
        }
    }
    let [before, slid, selected] = [&before[0], &slid[0], &selected[0]];
    assert_eq!(before.states[0], "24 h ahead, Wed 15 Mar 2017, 00:00 UTC");
    assert_eq!(slid.states[0], "72 h ahead, Fri 17 Mar 2017, 00:00 UTC");
    assert_eq!(selected.states[0], before.states[0]);
    for changed in [slid, selected] {
        let same = before.maps.iter().zip(&changed.maps).filter(|(a, b)| a == b).count();
        // The other block stays as it is.
        assert_eq!(same, 1, "{:?} and {:?}", before.maps, changed.maps);
        assert_eq!(before.maps[4], changed.maps[4]);
    }
    assert!(before.maps[0].starts_with("Truth: map of 2 m temperature"), "{:?}", before.maps);
    assert!(slid.maps[0].starts_with("Truth: map of 2 m temperature"), "{:?}", slid.maps);
    assert!(selected.maps[0].starts_with("Truth: map of 10 m wind"), "{:?}", selected.maps);
}

#[test]
fn maps_are_readable_in_the_dark_and_without_script() {
    let page = maps_page();
    let reader = browser::Reader { dark: true, ..browser::Reader::default() };
    let Some(dark) = browser::layouts_for(reader, &page, &[360, 1280]) else {
        println!("skipped: no chromium");
        return;
    };
    let (start, end) = (page.find("<script>").expect("a script"), page.rfind("</script>"));
    let mut without = page.clone();
    without.replace_range(start..end.expect("its end"), "");
    let plain = browser::layouts(&without, &[360, 1280]).expect("layouts");
    for (dark, plain) in dark.iter().zip(&plain) {
        assert!(dark.problems.is_empty() && plain.problems.is_empty(), "{dark:?} {plain:?}");
        assert_eq!(dark.maps, plain.maps);
        assert_eq!((dark.controls, plain.controls), (2, 0));
        assert_eq!(dark.states[0], "24 h ahead, Wed 15 Mar 2017, 00:00 UTC");
        // What the selector would tell is said in words.
        assert_eq!(plain.states[0], format!("2 m temperature {}", dark.states[0]));
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
