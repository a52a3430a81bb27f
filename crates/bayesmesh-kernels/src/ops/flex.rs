//! What every implementation for the Flex device needs.

use burn::backend::DispatchDevice;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Device, Shape};

/// Whether tensors of this device, with or without autodiff, are Flex tensors.
pub(super) fn is_flex(device: &Device) -> bool {
    matches!(device.clone().without_autodiff().as_dispatch(), DispatchDevice::Flex(_))
}

/// Runs `write` on an output of the given shape that starts as zeros.
pub(super) fn build(shape: Shape, write: impl FnOnce(&mut [f32])) -> FlexTensor {
    let mut values = vec![0.0f32; shape.num_elements()];
    write(&mut values);
    from_vec(values, shape)
}

/// A tensor of these values, in row-major order.
pub(super) fn from_vec(values: Vec<f32>, shape: Shape) -> FlexTensor {
    debug_assert_eq!(values.len(), shape.num_elements());
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(shape), DType::F32)
}

/// The same values, contiguous and starting at the beginning of their storage.
pub(super) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    match tensor.layout().contiguous_offsets() {
        Some(_) => tensor,
        None => tensor.to_contiguous(),
    }
}

/// The values of a tensor that went through [`contiguous`].
pub(super) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor
        .as_slice::<f32>()
        .expect("a contiguous f32 tensor: these operations are defined on single precision")
}
