//! What every implementation for the Flex device needs.

use burn::backend::DispatchDevice;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Device, Shape};

/// Whether tensors of this device, with or without autodiff, are Flex tensors.
pub(super) fn is_flex(device: &Device) -> bool {
    matches!(device.clone().without_autodiff().as_dispatch(), DispatchDevice::Flex(_))
}

/// Runs `write` on an output of the given shape. `write` must write every element and read none
/// that it has not written: what is in them is left over from earlier use of the memory.
pub(super) fn build(shape: Shape, write: impl FnOnce(&mut [f32])) -> FlexTensor {
    let mut values = scratch(shape.num_elements());
    write(&mut values);
    from_vec(values, shape)
}

/// So many numbers without meaning, to be written before they are read. Zeroing them first would
/// cost as much as many of the operations here.
pub(super) fn scratch(len: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    // SAFETY: the capacity is `len`, and every bit pattern is a valid f32. The callers, all in this
    // module, write each element before they read it.
    #[allow(clippy::uninit_vec)]
    unsafe {
        values.set_len(len);
    }
    values
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

/// The same values to change: in place where nobody else has them, else a copy.
pub(super) fn into_values(tensor: FlexTensor) -> FlexTensor {
    let whole = tensor.storage::<f32>().len() == values(&tensor).len();
    match whole && tensor.is_unique() {
        true => tensor,
        false => from_vec(values(&tensor).to_vec(), tensor.layout().shape().clone()),
    }
}

/// The length of the last axis, and how many rows of that length there are.
pub(super) fn rows(tensor: &FlexTensor) -> (usize, usize) {
    let shape = tensor.layout().shape();
    let columns = shape.as_slice().last().copied().unwrap_or(1);
    (shape.num_elements() / columns.max(1), columns)
}
