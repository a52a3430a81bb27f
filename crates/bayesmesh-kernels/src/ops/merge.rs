//! Four neighbouring tokens as one, and back.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};

use super::flex;
use super::fused::{self, Fused};

/// Puts every 2×2 tokens of a grid side by side, in the order (row, column, number). Where the rows
/// of the grid are odd, one of zeros is added at the bottom.
///
/// # Shapes
///
/// - `x`: `[rows, height·width, units]`
/// - output: `[rows, ⌈height/2⌉·width/2, 4·units]`
///
/// # Panics
///
/// If the tokens are not those of the grid, or its columns are odd.
pub fn merge_tokens(x: Tensor<3>, grid: [usize; 2]) -> Tensor<3> {
    let [_, tokens, _] = x.dims();
    check(grid);
    assert!(tokens == grid[0] * grid[1], "{tokens} tokens of a grid of {} x {}", grid[0], grid[1]);
    match flex::is_flex(&x.device()) {
        true => fused::run(Merge { grid }, [x.into_dispatch()]),
        false => merge_tokens_composed(x, grid),
    }
}

/// [`merge_tokens`] from Burn's own operations, for devices without an implementation of their own.
pub fn merge_tokens_composed(x: Tensor<3>, [height, width]: [usize; 2]) -> Tensor<3> {
    let [rows, _, units] = x.dims();
    let half = height.div_ceil(2);
    let bottom = Tensor::zeros([rows, width, units], &x.device());
    let x = if height % 2 == 0 { x } else { Tensor::cat(vec![x, bottom], 1) };
    x.reshape([rows, half, 2, width / 2, 2, units]).permute([0, 1, 3, 2, 4, 5]).reshape([
        rows,
        half * (width / 2),
        4 * units,
    ])
}

/// Divides every token into 2×2 of a grid that is twice as fine: the transpose of
/// [`merge_tokens`]. What is below the last row of the grid is left out.
///
/// # Shapes
///
/// - `x`: `[rows, ⌈height/2⌉·width/2, 4·units]`
/// - output: `[rows, height·width, units]`
///
/// # Panics
///
/// If the tokens are not those of the grid, its columns are odd, or 4 does not divide the numbers
/// of a token.
pub fn split_tokens(x: Tensor<3>, grid: [usize; 2]) -> Tensor<3> {
    let [_, tokens, units] = x.dims();
    check(grid);
    assert!(
        tokens == grid[0].div_ceil(2) * (grid[1] / 2) && units.is_multiple_of(4),
        "{tokens} tokens of {units} for a grid of {} x {}",
        grid[0],
        grid[1]
    );
    match flex::is_flex(&x.device()) {
        true => fused::run(Split { grid }, [x.into_dispatch()]),
        false => split_tokens_composed(x, grid),
    }
}

/// [`split_tokens`] from Burn's own operations, for devices without an implementation of their own.
pub fn split_tokens_composed(x: Tensor<3>, [height, width]: [usize; 2]) -> Tensor<3> {
    let [rows, _, units] = x.dims();
    let half = height.div_ceil(2);
    let fine: Tensor<3> = x
        .reshape([rows, half, width / 2, 2, 2, units / 4])
        .permute([0, 1, 3, 2, 4, 5])
        .reshape([rows, 2 * half * width, units / 4]);
    fine.narrow(1, 0, height * width)
}

fn check([_, width]: [usize; 2]) {
    assert!(width.is_multiple_of(2), "a grid of {width} columns cannot be halved");
}

/// `[rows, height·width, units]` to `[rows, ⌈height/2⌉·width/2, 4·units]`.
fn merge(fine: &FlexTensor, [height, width]: [usize; 2]) -> FlexTensor {
    let [rows, _, units] = fine.layout().shape().dims();
    let fine = flex::values(fine);
    let half = height.div_ceil(2);
    flex::build(Shape::new([rows, half * (width / 2), 4 * units]), |coarse| {
        for (index, pair) in coarse.chunks_exact_mut((2 * units).max(1)).enumerate() {
            // Two tokens of a row are neighbours on both sides.
            let (token, lower) = (index / 2, index % 2);
            let (row, place) = (token / (half * (width / 2)), token % (half * (width / 2)));
            let (y, x) = (2 * (place / (width / 2)) + lower, 2 * (place % (width / 2)));
            match y < height {
                true => {
                    let from = ((row * height + y) * width + x) * units;
                    pair.copy_from_slice(&fine[from..from + 2 * units]);
                }
                false => pair.fill(0.0),
            }
        }
    })
}

/// `[rows, ⌈height/2⌉·width/2, 4·units]` to `[rows, height·width, units]`.
fn split(coarse: &FlexTensor, [height, width]: [usize; 2]) -> FlexTensor {
    let [rows, _, units] = coarse.layout().shape().dims();
    let (coarse, units) = (flex::values(coarse), units / 4);
    let half = height.div_ceil(2);
    flex::build(Shape::new([rows, height * width, units]), |fine| {
        for (index, pair) in fine.chunks_exact_mut((2 * units).max(1)).enumerate() {
            let (line, x) = (index / (width / 2), index % (width / 2));
            let (row, y) = (line / height, line % height);
            let from = (((row * half + y / 2) * (width / 2) + x) * 2 + y % 2) * 2 * units;
            pair.copy_from_slice(&coarse[from..from + 2 * units]);
        }
    })
}

#[derive(Debug)]
struct Merge {
    grid: [usize; 2],
}

impl Fused for Merge {
    fn forward(&self, inputs: &[FlexTensor], _saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        merge(&inputs[0], self.grid)
    }

    fn backward(
        &self,
        _saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        vec![Some(split(&grad, self.grid))]
    }
}

#[derive(Debug)]
struct Split {
    grid: [usize; 2],
}

impl Fused for Split {
    fn forward(&self, inputs: &[FlexTensor], _saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        split(&inputs[0], self.grid)
    }

    fn backward(
        &self,
        _saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        vec![Some(merge(&grad, self.grid))]
    }
}
