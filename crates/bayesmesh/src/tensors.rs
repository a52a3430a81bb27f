//! Tensors on the host.

use burn::tensor::Tensor;

/// The values of a tensor in row-major order.
pub(crate) fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.without_autodiff().try_into_vec_as::<f32>().expect("float tensors can be read back")
}
