//! Standard normal numbers on one core, into a buffer that is used again.
//!
//! usage: normals     prints the milliseconds of ten million, the best of twenty

use std::time::Instant;

use bayesmesh::{Purpose, Stream};

fn main() {
    let mut numbers = vec![0.0; 10_000_000];
    let stream = Stream::new(0, Purpose::Weights);
    let fill = |draw| {
        let start = Instant::now();
        stream.at_draw(draw).fill_normal(0, &mut numbers);
        start.elapsed().as_secs_f64() * 1e3
    };
    let best = (0..20).map(fill).fold(f64::INFINITY, f64::min);
    println!("{best}");
}
