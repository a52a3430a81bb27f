//! Coverage under conditions: of each output, of wide and narrow predictions, of groups.

use super::{CoverageRow, Metric, RegressionBatch, Score, statistics_field};

/// Coverage of one stratum.
#[derive(Clone, Debug, PartialEq)]
pub struct Stratum {
    /// How many values it has.
    pub count: f64,
    /// Nominal and observed coverage at each level.
    pub coverage: Vec<CoverageRow>,
}

/// Coverage of central intervals in strata, which together have all values or none. No named
/// scores.
///
/// Intervals that are right on the whole can be too wide at night and too narrow in the morning.
#[derive(Clone, Debug)]
pub struct Strata {
    levels: Vec<f64>,
    /// Of each stratum the values, then those inside at each level.
    statistics: Vec<f64>,
}

impl Strata {
    /// So many, at these levels.
    pub fn new(strata: usize, levels: &[f64]) -> Self {
        Self { levels: levels.to_vec(), statistics: vec![0.0; strata * (1 + levels.len())] }
    }

    /// The levels.
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// Adds values, each in the stratum that is given with its probability `F(y)`.
    pub fn add(&mut self, values: impl Iterator<Item = (usize, f64)>) {
        let width = 1 + self.levels.len();
        for (stratum, pit) in values {
            let Some(sums) = self.statistics.chunks_exact_mut(width).nth(stratum) else { continue };
            sums[0] += 1.0;
            let level = 2.0 * (pit - 0.5).abs() - 1e-12;
            for (inside, wanted) in sums[1..].iter_mut().zip(&self.levels) {
                *inside += f64::from(u8::from(level <= *wanted));
            }
        }
    }

    /// Adds cells, of which `stratum` says by example, output and deviation before calibration
    /// where they belong.
    pub(super) fn add_cells(
        &mut self,
        batch: &RegressionBatch,
        stratum: impl Fn(usize, usize, f64) -> usize,
    ) {
        if self.statistics.is_empty() {
            return;
        }
        let rows = batch.rows().enumerate();
        let cells = rows.flat_map(|(row, cells)| {
            let stratum = &stratum;
            let cells = cells.iter().enumerate();
            cells.map(move |(output, cell)| (stratum(row, output, cell.raw_std), cell.central))
        });
        self.add(cells);
    }

    /// One row a stratum.
    pub fn rows(&self) -> Vec<Stratum> {
        let rows = self.statistics.chunks_exact(1 + self.levels.len());
        rows.map(|sums| {
            let levels = self.levels.iter().zip(&sums[1..]);
            let row = |(&nominal, inside): (&f64, &f64)| CoverageRow {
                nominal,
                observed: inside / sums[0],
            };
            Stratum { count: sums[0], coverage: levels.map(row).collect() }
        })
        .collect()
    }
}

impl Metric for Strata {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strata_count_for_themselves() {
        let mut strata = Strata::new(3, &[0.5, 0.9]);
        // Inside both, inside the wider, outside; another stratum; one that does not exist.
        let values = [(0, 0.5), (0, 0.9), (0, 0.99), (2, 0.25), (7, 0.5)];
        strata.add(values.into_iter());
        let rows = strata.rows();
        assert_eq!(rows.iter().map(|row| row.count).collect::<Vec<_>>(), [3.0, 0.0, 1.0]);
        let observed = |row: usize| rows[row].coverage.iter().map(|row| row.observed);
        assert_eq!(observed(0).collect::<Vec<_>>(), [1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(observed(2).collect::<Vec<_>>(), [1.0, 1.0]);
        assert!(observed(1).all(f64::is_nan));
    }
}
