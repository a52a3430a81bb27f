//! Smooth random fields of deviation 1, and turning them.

use std::f64::consts::PI;

use bayesmesh_kernels::stream::Stream;

use crate::era5::grid::Grid;

/// Makes smooth fields of independent numbers, by a Gaussian kernel along each axis.
///
/// Every value is a weighted sum of independent standard normal numbers whose squared weights add
/// up to 1, so its deviation is exactly 1 wherever it is. Around the globe the fields are the same
/// in distribution, whichever column is called the first.
#[derive(Clone, Debug)]
pub(super) struct Smooth {
    rows: usize,
    columns: usize,
    /// Weights of the columns from −w to w around a point.
    around: Vec<f32>,
    /// For each row, the first row that it is made of, and their weights.
    along: Vec<(usize, Vec<f32>)>,
}

impl Smooth {
    /// Fields that reach so many degrees, at least 1.2 columns.
    pub fn new(grid: &Grid, reach: f64) -> Self {
        let (rows, columns) = (grid.latitudes().len(), grid.longitudes().len());
        let kernel = |distance: f64| (-0.5 * distance * distance).exp();
        let step = 360.0 / columns as f64;
        let across = reach.max(1.2 * step);
        let width = ((3.5 * across / step).ceil() as usize).min((columns - 1) / 2) as i64;
        let around = (-width..=width).map(|k| kernel(k as f64 * step / across)).collect();
        let along = grid.latitudes().iter().map(|here| {
            let near: Vec<usize> = (0..rows)
                .filter(|&row| (grid.latitudes()[row] - here).abs() <= 3.5 * reach)
                .collect();
            let weights = near.iter().map(|&row| kernel((grid.latitudes()[row] - here) / reach));
            (near[0], unit(weights.collect()))
        });
        Self { rows, columns, around: unit(around), along: along.collect() }
    }

    /// The field that a stream has: `[latitude, longitude]`.
    pub fn field(&self, stream: &Stream) -> Vec<f32> {
        let mut white = vec![0.0; self.rows * self.columns];
        stream.fill_normal(0, &mut white);
        let width = self.around.len() / 2;
        let mut rows = vec![0.0f32; white.len()];
        for (from, into) in
            white.chunks_exact(self.columns).zip(rows.chunks_exact_mut(self.columns))
        {
            for (k, &weight) in self.around.iter().enumerate() {
                // Column c takes from c + k − width, around the globe.
                turn_add(from, into, (self.columns + width - k) % self.columns, weight);
            }
        }
        let mut out = vec![0.0f32; white.len()];
        for (into, (first, weights)) in out.chunks_exact_mut(self.columns).zip(&self.along) {
            for (row, &weight) in weights.iter().enumerate() {
                let from = &rows[(first + row) * self.columns..][..self.columns];
                turn_add(from, into, 0, weight);
            }
        }
        out
    }
}

/// Weights whose squares add up to 1.
fn unit(weights: Vec<f64>) -> Vec<f32> {
    let norm = weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
    weights.into_iter().map(|weight| (weight / norm) as f32).collect()
}

/// Adds a row, turned by a number of columns: column c goes to c + turn.
fn turn_add(from: &[f32], into: &mut [f32], turn: usize, weight: f32) {
    let (head, tail) = from.split_at(from.len() - turn);
    let (first, last) = into.split_at_mut(turn);
    first.iter_mut().zip(tail).for_each(|(into, from)| *into += weight * from);
    last.iter_mut().zip(head).for_each(|(into, from)| *into += weight * from);
}

/// Moves each row of a field east by a number of columns that need not be whole: exactly, by the
/// trigonometric polynomial through its values.
#[derive(Clone, Debug)]
pub(super) struct Turning {
    columns: usize,
    /// For each row, what each column contributes to the one as many columns further east.
    kernels: Vec<Vec<f32>>,
}

impl Turning {
    /// By these numbers of columns, one for each row.
    pub fn new(shifts: &[f64], columns: usize) -> Self {
        let kernel = |shift: f64| {
            let at = |column: usize| dirichlet(column as f64 - shift, columns) as f32;
            (0..columns).map(at).collect()
        };
        Self { columns, kernels: shifts.iter().map(|&shift| kernel(shift)).collect() }
    }

    pub fn apply(&self, field: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; field.len()];
        let rows = field.chunks_exact(self.columns).zip(out.chunks_exact_mut(self.columns));
        for ((from, into), kernel) in rows.zip(&self.kernels) {
            for (turn, &weight) in kernel.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                turn_add(from, into, turn, weight);
            }
        }
        out
    }
}

/// The polynomial of period `n` that is 1 at 0 and 0 at the other whole numbers.
fn dirichlet(x: f64, n: usize) -> f64 {
    let n = n as f64;
    let angle = PI * x / n;
    if angle.sin().abs() < 1e-12 {
        return 1.0;
    }
    let odd = (n as usize) % 2 == 1;
    let last = if odd { angle.sin() } else { angle.tan() };
    let value = (PI * x).sin() / (n * last);
    // What rounding leaves of a zero is none.
    if value.abs() < 1e-9 { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use bayesmesh_kernels::stream::Purpose;

    use super::*;

    #[test]
    fn whole_turns_are_exact_and_others_turn_waves() {
        let columns = 16;
        let field: Vec<f32> = (0..2 * columns).map(|i| (i * i % 7) as f32).collect();
        let turned = Turning::new(&[3.0, 0.0], columns).apply(&field);
        for c in 0..columns {
            assert_eq!(turned[(c + 3) % columns], field[c]);
            assert_eq!(turned[columns + c], field[columns + c]);
        }
        let wave = |shift: f64| -> Vec<f32> {
            let at = |c: usize| (2.0 * PI * 3.0 * (c as f64 - shift) / columns as f64).sin() as f32;
            (0..columns).map(at).collect()
        };
        let turned = Turning::new(&[1.3], columns).apply(&wave(0.0));
        for (found, expected) in turned.iter().zip(wave(1.3)) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
    }

    #[test]
    fn smooth_fields_have_deviation_one_and_neighbours_are_alike() {
        let grid = Grid::even(9, 16);
        let smooth = Smooth::new(&grid, 40.0);
        let fields = 4000;
        let mut squares = vec![0.0f64; grid.points()];
        let (mut near, mut far) = (0.0, 0.0);
        for step in 0..fields {
            let field = smooth.field(&Stream::new(3, Purpose::Synthesis).at_step(step));
            for (square, value) in squares.iter_mut().zip(&field) {
                *square += f64::from(*value).powi(2) / f64::from(fields);
            }
            near += f64::from(field[64] * field[79]) / f64::from(fields);
            far += f64::from(field[64] * field[72]) / f64::from(fields);
        }
        // A variance of 4000 numbers has the deviation √(2/4000) = 0.022; 5 of these.
        for square in squares {
            assert!((square - 1.0).abs() < 0.112, "{square}");
        }
        // The first and the last column are neighbours; kernels of 40° give a correlation of
        // exp(−(22.5/40)²/4) = 0.92 to the next column, and exp(−(180/40)²/4) = 0.006 half way
        // round.
        assert!((near - 0.92).abs() < 0.08 && far.abs() < 0.08, "{near} {far}");
    }
}
