//! Whatever the fields, maps are drawn: no panic, and nothing a browser cannot read.

use bayesmesh_report::{
    Block, Coast, MapGrid, MapPanel, MapScale, MapSeries, MapTime, MapVariable, Report, Section,
};

const SCALES: [MapScale; 4] =
    [MapScale::Value, MapScale::SignedValue, MapScale::Spread, MapScale::Error];

fn page(maps: MapSeries) -> String {
    let section = Section::new("Maps").with(Block::Maps(maps));
    Report { sections: vec![section], ..Report::default() }.to_html()
}

/// Maps of one variable with a panel of each scale, each with these fields.
fn series(grid: MapGrid, fields: &[Vec<f32>]) -> MapSeries {
    let times = (0..fields.len()).map(|i| MapTime::new(6.0 * i as f64).valid(1e9));
    let panel = |scale| MapPanel::new("Panel", scale).fields(fields.iter().cloned());
    let variable = MapVariable { panels: SCALES.map(panel).to_vec(), ..MapVariable::new("x") };
    MapSeries::new("Maps", grid).times(times).with(variable)
}

/// The page without the pictures, whose data may spell anything.
fn text(page: &str) -> String {
    let pieces = page.split("base64,").map(|piece| piece.split_once('"').map_or(piece, |p| p.1));
    let first = page.split("base64,").next().unwrap_or("");
    first.to_owned() + &pieces.skip(1).collect::<String>()
}

fn check(name: &str, page: &str) {
    for word in ["NaN", "inf", "%;%", "Infinity"] {
        assert!(!text(page).contains(word), "{name}: {word}");
    }
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count(), "{name}");
}

#[test]
fn extreme_fields_have_maps() {
    let values =
        [f32::NAN, f32::INFINITY, f32::MAX, f32::MIN, 0.0, 1e-45, f32::MIN_POSITIVE, 1.0, -273.15];
    for (i, &a) in values.iter().enumerate() {
        for &b in &values {
            let fields = [vec![a, b, a, a, b, b], vec![b; 6]];
            let page = page(series(MapGrid::global(2, 3), &fields));
            check(&format!("{a} and {b}"), &page);
            assert_eq!(page.matches("<img").count(), 8);
            // Panels without a finite value have no colours to explain.
            let bars = if a.is_finite() || b.is_finite() { 4 } else { 0 };
            assert_eq!(page.matches("class=\"strip\"").count(), bars, "{i}: {a} and {b}");
        }
    }
}

#[test]
fn one_cell_no_cell_and_another_size() {
    let one = page(series(MapGrid::global(1, 1), &[vec![3.0]]).coast(Coast::Mask(vec![1.0])));
    check("one cell", &one);
    assert_eq!(one.matches("<img").count(), 4);
    assert!(!one.contains("<use"), "a coast without sea");

    let none = page(series(MapGrid::global(0, 0), &[Vec::new()]));
    check("no cell", &none);
    assert!(none.contains("No data to show") && !none.contains("<img"));

    let other = page(series(MapGrid::global(2, 2), &[vec![0.0; 5], vec![1.0; 4]]));
    check("another size", &other);
    assert_eq!(other.matches("<img").count(), 4);
    assert_eq!(other.matches("No data to show").count(), 4);

    let empty = page(MapSeries::new("", MapGrid::global(2, 2)));
    check("no variable", &empty);
    assert!(empty.contains("No data to show"));
}

#[test]
fn times_without_date_and_out_of_the_calendar() {
    for time in [MapTime::new(f64::NAN), MapTime::new(1e300).valid(1e300), MapTime::new(-1.5)] {
        let page = page(series(MapGrid::global(1, 2), &[vec![1.0, 2.0]]).times([time, time]));
        check(&format!("{time:?}"), &page);
        assert!(page.contains(" h ahead"));
    }
}

#[test]
fn panels_of_one_scale_share_their_colours() {
    let panel = |value: f32| MapPanel::new("P", MapScale::Value).fields([vec![value, 8.0]]);
    let variable = MapVariable::new("x").with(panel(2.0)).with(panel(6.0));
    let page = page(MapSeries::new("", MapGrid::global(1, 2)).with(variable));
    let bars: Vec<&str> = page.split("class=\"bar").skip(1).collect();
    assert_eq!(bars.len(), 2);
    let ticks = |bar: &str| {
        bar.split("class=\"ticks\"").nth(1).map(|t| t.split("</div>").next().map(str::to_owned))
    };
    assert_eq!(ticks(bars[0]), ticks(bars[1]));
    // Each picture has the range of its own field as its note.
    assert!(page.contains("2.00 to 8.00") && page.contains("6.00 to 8.00"));
}

#[test]
fn the_script_is_there_only_for_a_choice() {
    let field = vec![1.0, 2.0];
    let one = page(series(MapGrid::global(1, 2), std::slice::from_ref(&field)));
    assert!(!one.contains("<script") && !one.contains("<input") && !one.contains("<select"));
    let two = page(series(MapGrid::global(1, 2), &[field.clone(), field]));
    assert_eq!(two.matches("<script>").count(), 1);
    assert_eq!(two.matches("<input").count(), 1);
    for forbidden in ["http:", "https:", "url(", "@import", "<link"] {
        assert!(!two.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn names_are_escaped_and_every_block_has_its_own_coast() {
    let maps = || {
        let panel = MapPanel::new("<p>", MapScale::Error).field(vec![1.0, 2.0], "<n>");
        let variable = MapVariable::new("<v>").unit("<u>").with(panel);
        MapSeries::new("<t>", MapGrid::global(1, 2))
            .caption("<c>")
            .coast(Coast::Earth)
            .with(variable.clone())
            .with(variable)
    };
    let section = Section::new("Maps").with(Block::Maps(maps())).with(Block::Maps(maps()));
    let html = Report { sections: vec![section], ..Report::default() }.to_html();
    for tag in ["<p>&", "<n>", "<v>", "<u>", "<t>", "<c>"] {
        assert!(!html.contains(tag), "{tag}");
    }
    for id in ["id=\"coast-0-0\"", "id=\"coast-0-1\""] {
        assert_eq!(html.matches(id).count(), 1, "{id}");
    }
    // Drawn over both variables: a line and its halo.
    assert_eq!(html.matches("href=\"#coast-0-1\"").count(), 4);
}

/// Three variables with four panels at twenty lead times on the grid of the paper.
#[test]
fn many_maps_make_a_page_that_can_be_sent() {
    let field = |seed: usize| -> Vec<f32> {
        let value = |i: usize| {
            let (row, column) = ((i / 240) as f32, (i % 240) as f32);
            let turn = (seed % 20) as f32 * 0.3;
            let wave = |a: f32, b: f32| (a * row + b * column + turn).sin();
            wave(0.05, 0.10)
                + 0.5 * wave(0.17, 0.05)
                + 0.3 * wave(-0.2, 0.25)
                + 0.1 * wave(0.7, 0.6)
        };
        (0..121 * 240).map(value).collect()
    };
    let fields: Vec<Vec<f32>> = (0..20).map(field).collect();
    let mut maps = series(MapGrid::global(121, 240), &fields).coast(Coast::Earth);
    maps.variables = vec![maps.variables[0].clone(); 3];
    let page = page(maps);
    assert_eq!(page.matches("<img").count(), 240);
    assert!(page.len() < 6_000_000, "{} bytes", page.len());
}
