//! Images as sequences of patches.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};

use super::flex;
use super::fused::{self, Fused};

/// Cuts images into square patches: token `(r, c)` is the patch in row r and column c, row after
/// row, and holds its pixels in the order (row, column, channel).
///
/// # Shapes
///
/// - `images`: `[rows, channels, height, width]`
/// - output: `[rows, height/patch · width/patch, patch²·channels]`
///
/// # Panics
///
/// If the patch does not divide the height and the width.
pub fn patches(images: Tensor<4>, patch: usize) -> Tensor<3> {
    let [_, _, height, width] = images.dims();
    assert!(
        patch > 0 && height.is_multiple_of(patch) && width.is_multiple_of(patch),
        "patches of {patch} x {patch} do not divide images of {height} x {width}"
    );
    match flex::is_flex(&images.device()) {
        true => fused::run(Patches { patch }, [images.into_dispatch()]),
        false => patches_composed(images, patch),
    }
}

/// [`patches`] from Burn's own operations, for devices without an implementation of their own.
pub fn patches_composed(images: Tensor<4>, patch: usize) -> Tensor<3> {
    let [rows, channels, height, width] = images.dims();
    let (down, across) = (height / patch, width / patch);
    images
        .reshape([rows, channels, down, patch, across, patch])
        .permute([0, 2, 4, 3, 5, 1])
        .reshape([rows, down * across, patch * patch * channels])
}

#[derive(Debug)]
struct Patches {
    patch: usize,
}

impl Patches {
    /// Calls `copy` with the place of every number in the images and in the patches.
    fn for_each(
        &self,
        [rows, channels, height, width]: [usize; 4],
        mut copy: impl FnMut(usize, usize),
    ) {
        let patch = self.patch;
        let mut to = 0;
        for row in 0..rows {
            let image = row * channels * height * width;
            for corner in (0..height).step_by(patch) {
                for left in (0..width).step_by(patch) {
                    for y in corner..corner + patch {
                        for x in left..left + patch {
                            for channel in 0..channels {
                                copy(image + (channel * height + y) * width + x, to);
                                to += 1;
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Fused for Patches {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let dims @ [rows, channels, height, width] = inputs[0].layout().shape().dims();
        let images = flex::values(&inputs[0]);
        let area = self.patch * self.patch;
        let shape = Shape::new([rows, height * width / area, area * channels]);
        // Only the shape is needed again; the tensor shares its numbers.
        saved.into_iter().for_each(|saved| saved.push(inputs[0].clone()));
        flex::build(shape, |patches| self.for_each(dims, |from, to| patches[to] = images[from]))
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let shape = saved[0].layout().shape().clone();
        let grad = flex::values(&grad);
        let dims = shape.dims();
        vec![Some(flex::build(shape, |images| {
            self.for_each(dims, |image, patch| images[image] = grad[patch]);
        }))]
    }
}
