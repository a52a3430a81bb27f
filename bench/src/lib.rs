//! Benchmarks: `benches/` of single operations, `src/bin/` of whole steps, `peers/` the competition.
