//! How long it takes to read a table, to find out what its columns are, and to encode it.
//!
//! usage: read_table FILE TARGET [TIMES]     or     read_table make ROWS FILE.csv
//!
//! `make` writes a table with categories, dates, booleans and missing values. Prints the seconds of
//! the fastest of some times; `bench/peers/read_table.py` does the same with pandas and polars.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use bayesmesh::{Purpose, Stream};
use bayesmesh_data::table::{Encoder, Kinds, Reading, infer, read, target_values};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["make", rows, file] => Ok(std::fs::write(file, table(rows.parse()?))?),
        [file, target] => measure(file, target, 5),
        [file, target, times] => measure(file, target, times.parse()?),
        _ => Err("usage: read_table FILE TARGET [TIMES], or read_table make ROWS FILE.csv".into()),
    }
}

fn measure(file: &str, target: &str, times: usize) -> Outcome {
    let targets = vec![target.to_owned()];
    let mut best = [f64::INFINITY; 2];
    let mut shape = (0, 0);
    for _ in 0..times.max(1) {
        let start = Instant::now();
        let frame = read(Path::new(file), &Reading::default(), &mut |_| {})?;
        let reading = start.elapsed().as_secs_f64();
        let found = infer(&frame, &Kinds { targets: targets.clone(), ..Kinds::default() })?;
        let rows: Vec<usize> = (0..frame.rows).collect();
        let encoder = Encoder::fit(&frame, &found, &rows, &targets, &[])?;
        let encoded = encoder.encode(&frame, false)?;
        target_values(&frame, &targets)?;
        let all = start.elapsed().as_secs_f64();
        best = [best[0].min(reading), best[1].min(all)];
        shape = (frame.rows, encoded.width);
    }
    let ([reading, all], (rows, width)) = (best, shape);
    println!("bayesmesh: {all:.3} s for {rows} rows of {width} numbers; {reading:.3} s to read");
    Ok(())
}

/// Houses that were sold.
fn table(rows: usize) -> String {
    const CITIES: [&str; 10] =
        ["Berlin", "Hamburg", "Köln", "Leipzig", "Kiel", "Bonn", "Ulm", "Trier", "Jena", "Mainz"];
    const HEATING: [&str; 4] = ["gas", "oil", "heat pump", ""];
    let stream = Stream::new(1, Purpose::Synthesis);
    let mut text = "id,sold,city,rooms,area,age,garden,heating,price\n".to_owned();
    for row in 0..rows as u64 {
        let chance = |tensor: u32| f64::from(stream.at_tensor(tensor).uniform(row));
        let below = |tensor: u32, bound: u32| stream.at_tensor(tensor).below(row, bound) as usize;
        let (city, rooms, heating) = (below(0, 10), below(1, 7) + 1, below(2, 4));
        let area = 15.0 + 22.0 * rooms as f64 + 30.0 * (chance(3) - 0.5);
        let (age, garden) = (120.0 * chance(4).powi(2), chance(5) < 0.4);
        let day = below(6, 3000) as f64;
        let noise = (10.0 + 0.1 * area) * (chance(7) + chance(8) + chance(9) - 1.5) * 2.0;
        let price = 50.0 + 12.0 * city as f64 + 2.4 * area - 0.6 * age
            + if garden { 25.0 } else { 0.0 }
            + if heating == 2 { 15.0 } else { 0.0 }
            + 20.0 * (day / 500.0).sin()
            + noise;
        let (year, month, of_month) =
            (2015 + day as usize / 365, day as usize % 12 + 1, day as usize % 28 + 1);
        let area = if chance(10) < 0.05 { String::new() } else { format!("{area:.1}") };
        let age = if chance(11) < 0.1 { "NA".to_owned() } else { format!("{age:.0}") };
        let (city, heating) = (CITIES[city], HEATING[heating]);
        writeln!(
            text,
            "{row},{year}-{month:02}-{of_month:02},{city},{rooms},{area},{age},{garden},{heating},\
             {price:.2}"
        )
        .expect("texts grow");
    }
    text
}
