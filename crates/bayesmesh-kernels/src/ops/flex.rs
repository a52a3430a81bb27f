//! What every implementation for the Flex device needs.

use std::any::TypeId;
use std::ops::{Deref, Range};

use burn::backend::DispatchDevice;
use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Device, Shape};
use half::bf16;
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::product::Element;
pub(super) use crate::scratch::scratch;
use crate::simd::{Kernel, dispatch, parallel};

/// Numbers that a thread converts at a time.
const BLOCK: usize = 1 << 15;

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

/// A tensor of these values, in row-major order.
pub(super) fn from_vec<E: Element>(values: Vec<E>, shape: Shape) -> FlexTensor {
    debug_assert_eq!(values.len(), shape.num_elements());
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(shape), E::dtype())
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

/// The numbers of a tensor that may be of either kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers<'a> {
    F32(&'a [f32]),
    /// Between operations of a block that agree on it.
    Bf16(&'a [bf16]),
}

/// The numbers of a tensor that went through [`contiguous`].
pub(super) fn numbers(tensor: &FlexTensor) -> Numbers<'_> {
    match tensor.dtype() {
        DType::BF16 => Numbers::Bf16(tensor.as_slice().expect("contiguous, of this type")),
        _ => Numbers::F32(values(tensor)),
    }
}

/// A range of a tensor's numbers in single precision, copied where they are not.
#[derive(Debug)]
pub(super) enum Wide<'a> {
    Borrowed(&'a [f32]),
    Copied(Vec<f32>),
}

impl<'a> Wide<'a> {
    /// Of a tensor that went through [`contiguous`], all of it.
    pub fn of(tensor: &'a FlexTensor) -> Self {
        Self::range(tensor, 0..tensor.layout().shape().num_elements())
    }

    /// Of such a tensor, a part.
    pub fn range(tensor: &'a FlexTensor, range: Range<usize>) -> Self {
        match numbers(tensor) {
            Numbers::F32(values) => Wide::Borrowed(&values[range]),
            Numbers::Bf16(values) => {
                let mut copied = scratch(range.len());
                convert(&values[range], &mut copied);
                Wide::Copied(copied)
            }
        }
    }
}

impl Deref for Wide<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Wide::Borrowed(values) => values,
            Wide::Copied(values) => values,
        }
    }
}

/// Runs `write` on numbers in single precision, which are rounded to what is wanted.
pub(super) fn with_f32<E: Element>(out: &mut [E], write: impl FnOnce(&mut [f32])) {
    if TypeId::of::<E>() == TypeId::of::<f32>() {
        return write(bytemuck::cast_slice_mut(out));
    }
    let mut values = scratch(out.len());
    write(&mut values);
    convert(&values, out);
}

/// Copies numbers as numbers of another kind, rounded where that is coarser.
pub(super) fn convert<S: Element, E: Element>(from: &[S], to: &mut [E]) {
    struct Convert<'a, S, E>(&'a [S], &'a mut [E]);

    impl<S: Element, E: Element> Kernel for Convert<'_, S, E> {
        type Output = ();

        #[inline(always)]
        fn run(self) {
            for (to, from) in self.1.iter_mut().zip(self.0) {
                *to = E::of(*from);
            }
        }
    }
    dispatch(Convert(from, to));
}

/// The numbers of a tensor that is known to be of this kind.
pub(super) fn of<E: Element>(tensor: &FlexTensor) -> &[E] {
    tensor.as_slice().expect("a contiguous tensor of this kind")
}

/// A tensor with numbers of this kind.
pub(super) fn converted<E: Element>(tensor: FlexTensor) -> FlexTensor {
    fn from<S: Element, E: Element>(tensor: FlexTensor) -> FlexTensor {
        if S::dtype() == E::dtype() {
            return tensor;
        }
        let values = of::<S>(&tensor);
        let mut numbers = scratch::<E>(values.len());
        let blocks = values.par_chunks(BLOCK).zip(numbers.par_chunks_mut(BLOCK));
        parallel(blocks, |(values, numbers)| convert(values, numbers));
        from_vec(numbers, tensor.layout().shape().clone())
    }
    match tensor.dtype() {
        DType::BF16 => from::<bf16, E>(tensor),
        _ => from::<f32, E>(tensor),
    }
}

/// A tensor with numbers of a kind that is known at run time.
pub(super) fn as_kind(tensor: FlexTensor, kind: DType) -> FlexTensor {
    match kind {
        DType::BF16 => converted::<bf16>(tensor),
        _ => converted::<f32>(tensor),
    }
}

/// The length of a row of whole groups.
pub(super) fn row_step<E: Element>(width: usize) -> usize {
    width.next_multiple_of(E::PER_GROUP)
}

/// Rounds rows and fills them up to whole groups.
pub(super) fn enter<E: Element>(rows: &[f32], width: usize, entering: &mut [E]) {
    let step = row_step::<E>(width);
    if step == width {
        return convert(rows, entering);
    }
    for (row, entering) in rows.chunks_exact(width).zip(entering.chunks_exact_mut(step)) {
        convert(row, &mut entering[..width]);
        entering[width..].fill(E::default());
    }
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
