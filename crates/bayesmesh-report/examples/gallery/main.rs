//! Writes a report with every kind of block, from made-up data, to the path given as argument:
//! `cargo run --release --example gallery -- report.html`. With a second argument it also writes
//! the fan chart as an SVG file of its own.

mod data;

use std::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let page = arguments.next().ok_or("give the path of the page to write, e.g. report.html")?;
    fs::write(&page, data::report().to_html())?;
    println!("wrote {page}");
    if let Some(chart) = arguments.next() {
        fs::write(&chart, data::forecast().to_svg())?;
        println!("wrote {chart}");
    }
    Ok(())
}
