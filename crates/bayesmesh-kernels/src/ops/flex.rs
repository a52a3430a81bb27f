//! What every implementation for the Flex device needs.

use burn::backend::DispatchDevice;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Device, Shape};

/// Whether tensors of this device, with or without autodiff, are Flex tensors.
pub(super) fn is_flex(device: &Device) -> bool {
    matches!(device.clone().without_autodiff().as_dispatch(), DispatchDevice::Flex(_))
}

/// Runs `write` on an output of the given shape. `write` should write every element: what is in
/// them before has no meaning ([`scratch`]).
pub(super) fn build(shape: Shape, write: impl FnOnce(&mut [f32])) -> FlexTensor {
    let mut values = scratch(shape.num_elements());
    write(&mut values);
    from_vec(values, shape)
}

/// So many numbers without meaning, whatever the memory was used for before. Zeroing them would
/// cost as much as many of the operations here.
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn scratch(len: usize) -> Vec<f32> {
    let mut values: Vec<f32> = Vec::with_capacity(len);
    let start = values.as_mut_ptr();
    // SAFETY: the capacity is `len`, and any bits are a number. Rust forbids reading memory that
    // nobody has written, even where every value will do. The assembly does nothing, but the
    // compiler must assume that it writes through the pointer. So the bytes that are there count as
    // written, and the numbers are like any others.
    unsafe {
        std::arch::asm!("/* {} */", in(reg) start, options(nostack, preserves_flags));
        values.set_len(len);
    }
    values
}

/// So many numbers, where the assembly of the other one is not to be had.
#[cfg(not(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn scratch(len: usize) -> Vec<f32> {
    vec![0.0; len]
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
