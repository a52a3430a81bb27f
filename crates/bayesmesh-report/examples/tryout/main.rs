use bayesmesh_report::*;
fn f32s(p: &str) -> Vec<f32> {
    std::fs::read(p).unwrap().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}
fn main() {
    let data = f32s("/tmp/w/try/fields.f32");
    let land = f32s("/tmp/w/try/land.f32");
    let times: Vec<f64> = std::fs::read("/tmp/w/try/times.f64")
        .unwrap()
        .chunks(8)
        .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
        .collect();
    let fields: Vec<Vec<f32>> = data.chunks(240 * 121).map(<[f32]>::to_vec).collect();
    let var = |i: usize, name: &str, unit: &str, scale| {
        let p = |k: usize, t: &str, s| {
            MapPanel::new(t, s)
                .fields(fields[(4 * i + k) * 20..(4 * i + k + 1) * 20].iter().cloned())
        };
        MapVariable::new(name)
            .unit(unit)
            .with(p(0, "Truth", scale))
            .with(p(1, "Ensemble mean", scale))
            .with(p(2, "Spread", MapScale::Spread))
            .with(p(3, "Error of the mean", MapScale::Error))
    };
    let coast = if std::env::args().nth(2).is_some() { Coast::Mask(land) } else { Coast::Earth };
    let maps = MapSeries::new("A forecast of five days", MapGrid::global(121, 240))
        .caption("Mean and spread of 16 draws, from 23 April 2026, 00:00 UTC. Truth is the analysis of GFS at the time of the forecast. Colours are the same at all lead times.")
        .coast(coast)
        .times(times.iter().enumerate().map(|(i, t)| MapTime::new(6.0 * (i + 1) as f64).valid(*t)))
        .with(var(2, "2 m temperature", "°C", MapScale::Value))
.with(var(0, "10 m wind speed", "m/s", MapScale::Value))
        .with(var(1, "10 m wind, eastward", "m/s", MapScale::SignedValue))
        .with(var(2, "2 m temperature", "°C", MapScale::Value));
    let t = std::time::Instant::now();
    let html = Report {
        title: "Weather forecast".into(),
        lead: "A small network on the globe.".into(),
        sections: vec![
            Section::new("Maps")
                .text("What the network says of the world.")
                .with(Block::Maps(maps)),
        ],
        ..Report::default()
    }
    .to_html();
    println!("{} KB in {:?}", html.len() / 1024, t.elapsed());
    std::fs::write(std::env::args().nth(1).unwrap(), html).unwrap();
}
