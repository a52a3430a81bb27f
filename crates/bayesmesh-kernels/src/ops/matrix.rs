//! Products of matrices in memory.

use gemm::Parallelism;

/// Multiplications from which on dividing a product pays: about a hundred microseconds of work.
const LARGE: usize = 1 << 22;

/// A matrix of borrowed numbers, row after row or column after column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    by_columns: bool,
}

impl<'a> Matrix<'a> {
    /// The numbers row after row.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "a matrix of {rows} x {columns}");
        Self { values, rows, columns, by_columns: false }
    }

    /// The transpose: the same numbers read the other way.
    pub fn transposed(self) -> Self {
        let (rows, columns) = (self.columns, self.rows);
        Self { rows, columns, by_columns: !self.by_columns, ..self }
    }

    /// The matrix product, row after row. Large ones use the threads of the rank's pool.
    pub fn times(self, right: Matrix) -> Vec<f32> {
        assert_eq!(self.columns, right.rows, "the inner sizes of a product");
        let (rows, columns) = (self.rows, right.columns);
        let mut product: Vec<f32> = Vec::with_capacity(rows * columns);
        let work = rows * columns * self.columns;
        let parallelism = match rayon::current_num_threads() {
            threads if threads > 1 && work >= LARGE => Parallelism::Rayon(threads),
            _ => Parallelism::None,
        };
        let ((left_column, left_row), (right_column, right_row)) =
            (self.strides(), right.strides());
        // SAFETY: the strides stay within `values`, whose length `new` has checked; the capacity is
        // that of the product, every element of which is written and, the first flag being false,
        // none read.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                self.columns,
                product.as_mut_ptr(),
                1,
                columns as isize,
                false,
                self.values.as_ptr(),
                left_column,
                left_row,
                right.values.as_ptr(),
                right_column,
                right_row,
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
            product.set_len(rows * columns);
        }
        product
    }

    /// The steps from column to column and from row to row.
    fn strides(&self) -> (isize, isize) {
        match self.by_columns {
            false => (1, self.columns as isize),
            true => (self.rows as isize, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_all_layouts() {
        let a: Vec<f32> = (0..15).map(|i| i as f32 - 4.0).collect();
        let b: Vec<f32> = (0..35).map(|i| (i * i % 11) as f32).collect();
        let entry = |m: Matrix, i: usize, j: usize| {
            m.values[if m.by_columns { j * m.rows + i } else { i * m.columns + j }]
        };
        for (left, right) in [
            (Matrix::new(&a, 3, 5), Matrix::new(&b, 5, 7)),
            (Matrix::new(&a, 5, 3).transposed(), Matrix::new(&b, 5, 7)),
            (Matrix::new(&a, 3, 5), Matrix::new(&b, 7, 5).transposed()),
            (Matrix::new(&a, 5, 3).transposed(), Matrix::new(&b, 7, 5).transposed()),
        ] {
            let product = left.times(right);
            for i in 0..3 {
                for j in 0..7 {
                    let sum: f32 = (0..5).map(|k| entry(left, i, k) * entry(right, k, j)).sum();
                    assert_eq!(product[i * 7 + j], sum);
                }
            }
        }
    }

    #[test]
    fn an_empty_inner_size_gives_zeros() {
        assert_eq!(Matrix::new(&[], 2, 0).times(Matrix::new(&[], 0, 3)), [0.0; 6]);
    }
}
