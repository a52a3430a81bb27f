//! One frame for all operations with a backward pass of their own on the CPU device.
//!
//! Burn's extension mechanism wants a trait, an implementation for the device and one for autodiff
//! of every operation. Here that is done once, for operations of one to five tensors and, as a
//! block of a transformer has, of thirteen; an operation is then a [`Fused`]: a forward and a
//! backward pass on tensors in memory.

use std::fmt::Debug;
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, DispatchTensor, Flex, backend_extension};
use burn::tensor::Tensor;

use super::flex;

/// An operation on tensors of the CPU device.
pub(super) trait Fused: Debug + Send + Sync + 'static {
    /// The output for contiguous inputs. Where there will be a backward pass, what it needs is
    /// pushed on `saved`.
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor;

    /// The gradients of the inputs that are `wanted`, from what was saved and the gradient of the
    /// output, which is contiguous.
    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>>;
}

/// An operation as the extension mechanism carries it.
pub(super) type Operation = Arc<dyn Fused>;

/// Runs an operation on the CPU device, with or without autodiff.
pub(super) fn run<const N: usize, const D: usize>(
    operation: impl Fused,
    inputs: [DispatchTensor; N],
) -> Tensor<D> {
    Tensor::from_dispatch(run_any(Arc::new(operation), inputs.into()))
}

/// [`run`] for tensors whose number and ranks are known only at run time.
pub(super) fn run_any(operation: Operation, inputs: Vec<DispatchTensor>) -> DispatchTensor {
    let count = inputs.len();
    let mut inputs = inputs.into_iter();
    let mut next = || inputs.next().expect("as many inputs as the arm below takes");
    match count {
        1 => Dispatch::fused1(next(), operation),
        2 => Dispatch::fused2(next(), next(), operation),
        3 => Dispatch::fused3(next(), next(), next(), operation),
        4 => Dispatch::fused4(next(), next(), next(), next(), operation),
        5 => Dispatch::fused5(next(), next(), next(), next(), next(), operation),
        13 => {
            let mut all = || [(); 13].map(|()| next());
            let [a, b, c, d, e, f, g, h, i, j, k, l, m] = all();
            Dispatch::fused13(a, b, c, d, e, f, g, h, i, j, k, l, m, operation)
        }
        _ => unreachable!("operations have one to five inputs, or thirteen"),
    }
}

#[backend_extension(Autodiff, Flex)]
pub(crate) trait FusedOps: Backend {
    fn fused1(a: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self>;
    fn fused2(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self>;
    fn fused3(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self>;
    fn fused4(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self>;
    fn fused5(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self>;
    #[allow(clippy::too_many_arguments)]
    fn fused13(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        e: FloatTensor<Self>,
        f: FloatTensor<Self>,
        g: FloatTensor<Self>,
        h: FloatTensor<Self>,
        i: FloatTensor<Self>,
        j: FloatTensor<Self>,
        k: FloatTensor<Self>,
        l: FloatTensor<Self>,
        m: FloatTensor<Self>,
        operation: Operation,
    ) -> FloatTensor<Self>;
}

/// The six methods of an implementation, by a function of an array of inputs.
macro_rules! by_arity {
    ($run:path) => {
        fn fused1(a: FloatTensor<Self>, operation: Operation) -> FloatTensor<Self> {
            $run([a], operation)
        }
        fn fused2(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            operation: Operation,
        ) -> FloatTensor<Self> {
            $run([a, b], operation)
        }
        fn fused3(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            c: FloatTensor<Self>,
            operation: Operation,
        ) -> FloatTensor<Self> {
            $run([a, b, c], operation)
        }
        fn fused4(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            c: FloatTensor<Self>,
            d: FloatTensor<Self>,
            operation: Operation,
        ) -> FloatTensor<Self> {
            $run([a, b, c, d], operation)
        }
        fn fused5(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            c: FloatTensor<Self>,
            d: FloatTensor<Self>,
            e: FloatTensor<Self>,
            operation: Operation,
        ) -> FloatTensor<Self> {
            $run([a, b, c, d, e], operation)
        }
        #[allow(clippy::too_many_arguments)]
        fn fused13(
            a: FloatTensor<Self>,
            b: FloatTensor<Self>,
            c: FloatTensor<Self>,
            d: FloatTensor<Self>,
            e: FloatTensor<Self>,
            f: FloatTensor<Self>,
            g: FloatTensor<Self>,
            h: FloatTensor<Self>,
            i: FloatTensor<Self>,
            j: FloatTensor<Self>,
            k: FloatTensor<Self>,
            l: FloatTensor<Self>,
            m: FloatTensor<Self>,
            operation: Operation,
        ) -> FloatTensor<Self> {
            $run([a, b, c, d, e, f, g, h, i, j, k, l, m], operation)
        }
    };
}

impl FusedOps for Flex {
    by_arity!(untracked);
}

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    by_arity!(tracked::<_, C>);
}

fn untracked<const N: usize>(inputs: [FlexTensor; N], operation: Operation) -> FlexTensor {
    operation.forward(&inputs.map(flex::contiguous), None)
}

fn tracked<const N: usize, C: CheckpointStrategy>(
    inputs: [FloatTensor<Autodiff<Flex, C>>; N],
    operation: Operation,
) -> FloatTensor<Autodiff<Flex, C>> {
    let mut tensors = Vec::with_capacity(N);
    let nodes = inputs.map(|input| {
        let (tensor, node) = input.into_parts();
        tensors.push(flex::contiguous(tensor));
        node
    });
    match Step.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let mut saved = Vec::new();
            let output = operation.forward(&tensors, Some(&mut saved));
            prep.finish((operation, saved), output)
        }
        OpsKind::UnTracked(prep) => prep.finish(operation.forward(&tensors, None)),
    }
}

/// The step of the tape for any operation.
#[derive(Debug)]
struct Step;

impl<const N: usize> Backward<Flex, N> for Step {
    type State = (Operation, Vec<FlexTensor>);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (operation, saved) = ops.state;
        let grad = flex::contiguous(grads.consume::<Flex>(&ops.node));
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let gradients = operation.backward(saved, grad, &wanted);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}
