//! Products of matrices in memory.

use gemm::Parallelism;

/// Multiplications from which on dividing a product pays: about a hundred microseconds of work.
const LARGE: usize = 1 << 22;

/// A matrix of borrowed numbers: a whole slice, or regularly spaced parts of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
}

/// What a product is written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onto {
    /// Whatever is there is lost, and never read.
    Nothing,
    /// The product is added to what is there.
    Sum,
}

impl<'a> Matrix<'a> {
    /// The numbers row after row.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix of {rows} x {columns}");
        Self::view(values, rows, columns, columns)
    }

    /// Rows that begin `row_step` numbers apart, the first of them with the slice.
    pub fn view(values: &'a [f32], rows: usize, columns: usize, row_step: usize) -> Self {
        assert!(fits(values.len(), rows, columns, row_step), "{rows} x {columns} numbers");
        Self { values, rows, columns, row_step, column_step: 1 }
    }

    /// Rows that begin `row_step` numbers apart and may overlap, the first of them with the slice.
    pub fn windows(values: &'a [f32], rows: usize, columns: usize, row_step: usize) -> Self {
        let needed = rows.saturating_sub(1) * row_step + columns;
        assert!(needed <= values.len(), "{rows} windows of {columns} numbers, {row_step} apart");
        Self { values, rows, columns, row_step, column_step: 1 }
    }

    /// The transpose: the same numbers read the other way.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Writes `factor` times the matrix product into rows that begin `row_step` numbers apart.
    /// Large products use the threads of the rank's pool.
    pub fn times_onto(
        self,
        right: Matrix,
        factor: f32,
        onto: Onto,
        product: &mut [f32],
        row_step: usize,
    ) {
        assert_eq!(self.columns, right.rows, "the inner sizes of a product");
        let (rows, columns) = (self.rows, right.columns);
        assert!(fits(product.len(), rows, columns, row_step), "room for {rows} x {columns}");
        let work = rows * columns * self.columns;
        let parallelism = match rayon::current_num_threads() {
            threads if threads > 1 && work >= LARGE => Parallelism::Rayon(threads),
            _ => Parallelism::None,
        };
        // SAFETY: the steps stay within the slices, as `view`, `windows` and `fits` have checked.
        // Where the first flag is false, no element of the product is read.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                self.columns,
                product.as_mut_ptr(),
                1,
                row_step as isize,
                onto == Onto::Sum,
                self.values.as_ptr(),
                self.column_step as isize,
                self.row_step as isize,
                right.values.as_ptr(),
                right.column_step as isize,
                right.row_step as isize,
                1.0,
                factor,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}

/// Whether rows of so many columns, so far apart, are within so many numbers.
fn fits(len: usize, rows: usize, columns: usize, row_step: usize) -> bool {
    rows == 0 || columns == 0 || (columns <= row_step && (rows - 1) * row_step + columns <= len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(m: Matrix, i: usize, j: usize) -> f32 {
        m.values[i * m.row_step + j * m.column_step]
    }

    fn product(left: Matrix, right: Matrix) -> Vec<f32> {
        let mut product = vec![f32::NAN; left.rows * right.columns];
        left.times_onto(right, 1.0, Onto::Nothing, &mut product, right.columns);
        product
    }

    #[test]
    fn products_of_all_layouts() {
        let a: Vec<f32> = (0..32).map(|i| i as f32 - 4.0).collect();
        let b: Vec<f32> = (0..63).map(|i| (i * i % 11) as f32).collect();
        for (left, right) in [
            (Matrix::new(&a[..15], 3, 5), Matrix::new(&b[..35], 5, 7)),
            (Matrix::new(&a[..15], 5, 3).transposed(), Matrix::new(&b[..35], 5, 7)),
            (Matrix::new(&a[..15], 3, 5), Matrix::new(&b[..35], 7, 5).transposed()),
            (Matrix::view(&a, 3, 5, 9), Matrix::view(&b, 7, 5, 8).transposed()),
            (Matrix::view(&a[2..], 5, 3, 6).transposed(), Matrix::view(&b[1..], 5, 7, 10)),
        ] {
            let exact = |i, j| (0..5).map(|k| entry(left, i, k) * entry(right, k, j)).sum::<f32>();
            let product = product(left, right);
            let mut onto = vec![1.0; 2 * 9 + 7];
            left.times_onto(right, 2.0, Onto::Sum, &mut onto, 9);
            for i in 0..3 {
                for j in 0..7 {
                    assert_eq!(product[i * 7 + j], exact(i, j));
                    assert_eq!(onto[i * 9 + j], 1.0 + 2.0 * exact(i, j));
                }
            }
            assert_eq!(onto[7..9], [1.0, 1.0]);
        }
    }

    #[test]
    fn an_empty_inner_size_gives_zeros() {
        assert_eq!(product(Matrix::new(&[], 2, 0), Matrix::new(&[], 0, 3)), [0.0; 6]);
    }

    #[test]
    #[should_panic(expected = "3 x 5")]
    fn a_view_beyond_the_slice_is_refused() {
        Matrix::view(&[0.0; 20], 3, 5, 8);
    }
}
