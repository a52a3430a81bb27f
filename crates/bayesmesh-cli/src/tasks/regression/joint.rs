//! Whether sample paths hang together as the truth does.

use bayesmesh::comm::share;
use bayesmesh::data::Truth;
use bayesmesh::metrics::{JointScores, Metric as _, Score, jackknife_error, shuffled};
use bayesmesh::{Error, Predictive, Purpose, Result, Stream};

/// The most examples whose paths are scored.
const MOST: usize = 400;
/// Paths of each.
const PATHS: usize = 64;
/// Groups of paths that are left out in turn, for standard errors over draws.
const GROUPS: usize = 8;
/// Energy and variogram score.
const SCORES: usize = 2;

/// Scores of the paths of some test examples, evenly chosen: of joint paths, of the same without
/// each group of them, and of paths that are shuffled from output to output.
pub(super) struct Joint {
    /// Every so many examples.
    every: usize,
    outputs: usize,
    seed: u64,
}

impl Joint {
    pub fn new(examples: usize, outputs: usize, seed: u64) -> Self {
        Self { every: examples.div_ceil(MOST).max(1), outputs, seed }
    }

    /// Numbers of each example: whether it is one of those, then two scores for each set of paths.
    pub fn columns(&self) -> usize {
        // Of a single number there is nothing that could hang together.
        if self.outputs < 2 { 0 } else { 1 + SCORES * (1 + GROUPS + 1) }
    }

    /// The numbers of some examples.
    pub fn row(&self, rows: &[usize], prediction: &Predictive, truth: &Truth) -> Result<Vec<f64>> {
        let (columns, outputs) = (self.columns(), self.outputs);
        let mut cells = vec![0.0; columns * rows.len()];
        let Truth::Values(truth) = truth else {
            return Err(Error::Data("paths are of values, and these are labels".to_owned()));
        };
        if columns == 0 {
            return Ok(cells);
        }
        for (index, &row) in rows.iter().enumerate().filter(|(_, row)| *row % self.every == 0) {
            let mut paths = prediction.of_rows(index..index + 1).paths(PATHS, self.seed, row)?;
            let truth = &truth[index * outputs..][..outputs];
            let cells = &mut cells[index * columns..][..columns];
            cells[0] = 1.0;
            let mut sets = cells[1..].chunks_exact_mut(SCORES);
            let mut next = |paths: &[f32]| -> Result<()> {
                let mut scores = JointScores::new();
                scores.add(paths, truth)?;
                let scores = scores.scores();
                let set = sets.next().expect("as many sets as there are places");
                set.iter_mut().zip(scores).for_each(|(cell, score)| *cell = score.value);
                Ok(())
            };
            next(&paths)?;
            // Path i is that of draw i, counted round.
            let draws = prediction.draws().min(PATHS);
            for group in 0..GROUPS {
                let left_out = share(draws, GROUPS, group);
                let rest = paths.chunks_exact(outputs).enumerate();
                let rest = rest.filter(|(path, _)| !left_out.contains(&(path % draws)));
                next(&rest.flat_map(|(_, path)| path).copied().collect::<Vec<_>>())?;
            }
            // No path is that far on.
            let stream = Stream::new(self.seed, Purpose::Paths).at_step(row as u32);
            let stream = stream.at_draw(u32::MAX);
            shuffled(&mut paths, PATHS, outputs, &stream)?;
            next(&paths)?;
        }
        Ok(cells)
    }

    /// The scores from the numbers of all examples.
    pub fn scores(&self, cells: &[f64], suffix: &str, unit: f64) -> Vec<Score> {
        let columns = self.columns();
        if columns == 0 {
            return Vec::new();
        }
        let scored: Vec<&[f64]> =
            cells.chunks_exact(columns).filter(|cells| cells[0] == 1.0).collect();
        let count = scored.len() as f64;
        let mean = |column: usize| scored.iter().map(|cells| cells[column]).sum::<f64>() / count;
        let names = ["energy_score", "variogram_score"];
        let mut scores = Vec::new();
        for (index, name) in names.into_iter().enumerate() {
            let column = |set: usize| 1 + set * SCORES + index;
            let deviation = |column: usize| {
                let centre = mean(column);
                let squares: f64 = scored.iter().map(|c| (c[column] - centre).powi(2)).sum();
                (squares / (count - 1.0) / count).sqrt()
            };
            let groups: Vec<f64> = (1..=GROUPS).map(|group| mean(column(group))).collect();
            let se_draws = jackknife_error(&groups);
            // The variogram score is of roots of differences, and so in the unit itself.
            let of = |column: usize, name: String, se_draws: f64| {
                let score = Score {
                    se_draws,
                    se_examples: deviation(column),
                    ..Score::new("", mean(column))
                };
                score.in_unit(name, unit)
            };
            scores.push(of(column(0), format!("{name}{suffix}"), se_draws));
            scores.push(of(column(1 + GROUPS), format!("{name}_shuffled{suffix}"), f64::NAN));
        }
        scores
    }
}
