//! A backward pass that tells about gradients as soon as they are known.
//!
//! Burn hands out gradients when the whole backward pass is done. Whoever wants to send those of
//! the last layers to other ranks while those of the first are computed needs them earlier. Burn's
//! container of gradients can call a hook whenever an operation, any operation, adds to one; here
//! it is put in place by a step of the tape that comes right after the scalar.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::{DistributedRegistration, GradID, Gradients};
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, BackendTensor, Dispatch, DispatchTensorKind, Flex, TensorPrimitive,
    backend_extension,
};
use burn::tensor::container::TensorContainer;
use burn::tensor::{Gradients as TensorGradients, Tensor};

use super::flex;

/// A tensor of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TapeId(NodeId);

impl TapeId {
    /// That of a tensor whose gradients can be watched: on the CPU device, with autodiff.
    pub fn of<const D: usize>(tensor: &Tensor<D>) -> Option<Self> {
        let DispatchTensorKind::Autodiff(inner) = tensor.clone().into_dispatch().kind else {
            return None;
        };
        // With another device switched on there are other kinds.
        #[allow(irrefutable_let_patterns)]
        if let DispatchTensorKind::Flex(BackendTensor::Autodiff(tensor)) = *inner {
            return Some(TapeId(tensor.id()));
        }
        None
    }
}

/// Follows a backward pass.
pub trait Watcher: Debug + Send + 'static {
    /// An operation has added to the gradient of `tensor`. Others may still do so, where the tensor
    /// is used more than once. Called on the thread that runs the backward pass.
    fn arrived(&mut self, tensor: TapeId, gradient: Arrived<'_>);
}

/// A gradient in the container of the backward pass.
pub struct Arrived<'a> {
    tensor: TapeId,
    gradients: &'a mut TensorContainer<GradID>,
}

impl Arrived<'_> {
    /// Takes the gradient out, in row-major order: what arrives later starts from nothing, and
    /// after the backward pass only that is found. Only for leaves; the gradients of others are
    /// needed to go on.
    pub fn take<T>(self, read: impl FnOnce(&[f32]) -> T) -> T {
        let gradient = self.gradients.remove::<TensorPrimitive<Flex>>(&self.tensor.0.value);
        let gradient = gradient.expect("told about when it was put there").tensor();
        read(flex::values(&flex::contiguous(gradient)))
    }
}

impl Debug for Arrived<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Arrived").field(&self.tensor).finish()
    }
}

/// `scalar.backward()`, with a watcher that is told about every gradient when it arrives. On other
/// devices than the CPU it is told nothing.
pub fn backward_watched(scalar: Tensor<1>, watcher: impl Watcher) -> TensorGradients {
    if !flex::is_flex(&scalar.device()) {
        return scalar.backward();
    }
    let watcher: Handle = Arc::new(Mutex::new(Some(Box::new(watcher))));
    Tensor::<1>::from_dispatch(Dispatch::watched(scalar.into_dispatch(), watcher)).backward()
}

/// The watcher until the backward pass takes it.
type Handle = Arc<Mutex<Option<Box<dyn Watcher>>>>;

#[backend_extension(Autodiff, Flex)]
pub(crate) trait WatchOps: Backend {
    fn watched(scalar: FloatTensor<Self>, watcher: Handle) -> FloatTensor<Self>;
}

impl WatchOps for Flex {
    fn watched(scalar: FlexTensor, _watcher: Handle) -> FlexTensor {
        scalar
    }
}

impl<C: CheckpointStrategy> WatchOps for Autodiff<Flex, C> {
    fn watched(scalar: FloatTensor<Self>, watcher: Handle) -> FloatTensor<Self> {
        let (scalar, node) = scalar.into_parts();
        match First.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(watcher, scalar),
            OpsKind::UnTracked(prep) => prep.finish(scalar),
        }
    }
}

/// The identity, the first step of the backward pass.
#[derive(Debug)]
struct First;

impl Backward<Flex, 1> for First {
    type State = Handle;

    fn backward(self, ops: Ops<Handle, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<Flex>(&ops.node);
        let watcher = ops.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watcher) = watcher {
            // Nothing is lost: the only gradient so far was that of the scalar.
            let hook = Box::new(Hook(Mutex::new(watcher)));
            *grads = Gradients::new_distributed::<Flex>(ops.node.clone(), grad.clone(), hook);
            grads.consume::<Flex>(&ops.node);
        }
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            grads.register::<Flex>(parent.id, grad);
        }
    }
}

/// The watcher as Burn calls it. Burn wants to share it between threads, which it never does.
struct Hook(Mutex<Box<dyn Watcher>>);

impl DistributedRegistration for Hook {
    fn on_register(&mut self, id: &NodeId, gradients: &mut TensorContainer<GradID>) {
        let tensor = TapeId(*id);
        let watcher = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        watcher.arrived(tensor, Arrived { tensor, gradients });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::ops::{Epilogue, linear};

    /// What a watcher has seen: the place of the leaf among the watched, and its gradient.
    type Seen = Arc<Mutex<Vec<(usize, Vec<f32>)>>>;

    #[derive(Debug)]
    struct Taker {
        leaves: HashMap<TapeId, usize>,
        seen: Seen,
    }

    impl Watcher for Taker {
        fn arrived(&mut self, tensor: TapeId, gradient: Arrived<'_>) {
            if let Some(&leaf) = self.leaves.get(&tensor) {
                let values = gradient.take(<[f32]>::to_vec);
                self.seen.lock().unwrap().push((leaf, values));
            }
        }
    }

    fn matrix(values: [f32; 4]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), [2, 2]), &Device::default())
    }

    #[test]
    fn gradients_are_told_in_the_order_of_the_backward_pass_and_taken_out() {
        let x = matrix([1.0, -2.0, 0.5, 3.0]).autodiff();
        let weights = [
            matrix([0.5, 1.0, -1.0, 2.0]),
            matrix([1.5, -0.5, 0.25, 1.0]),
            matrix([2.0, 0.0, 1.0, -1.0]),
            matrix([1.0, 1.0, 1.0, 1.0]),
        ]
        .map(|weight| weight.autodiff().require_grad());
        // The first through an operation of ours, the second through one of Burn's, the third used
        // twice, the fourth not at all.
        let scalar = || {
            let [a, b, c, _] = &weights;
            let y = linear(x.clone(), a.clone(), None, Epilogue::default());
            let y = y.tanh().matmul(b.clone()).tanh();
            (y.clone().matmul(c.clone()).tanh().matmul(c.clone())).sum()
        };
        let gradients = scalar().backward();
        let expected: Vec<_> = weights.iter().map(|weight| weight.grad(&gradients)).collect();

        let leaves = weights.iter().enumerate();
        let leaves = leaves.map(|(place, leaf)| (TapeId::of(leaf).unwrap(), place)).collect();
        let seen = Seen::default();
        let gradients = backward_watched(scalar(), Taker { leaves, seen: seen.clone() });
        assert!(weights.iter().all(|weight| weight.grad(&gradients).is_none()));
        let seen = seen.lock().unwrap();
        let order: Vec<usize> = seen.iter().map(|(leaf, _)| *leaf).collect();
        assert_eq!(order, [2, 2, 1, 0]);
        for (leaf, expected) in expected.iter().enumerate() {
            let parts: Vec<_> = seen.iter().filter(|part| part.0 == leaf).collect();
            let Some(expected) = expected else {
                assert!(parts.is_empty());
                continue;
            };
            let mut sum = parts[0].1.clone();
            for part in &parts[1..] {
                sum.iter_mut().zip(&part.1).for_each(|(sum, part)| *sum += part);
            }
            assert_eq!(sum, expected.to_data().try_to_vec::<f32>().unwrap());
        }
    }

    #[test]
    fn only_tensors_with_autodiff_are_on_the_tape() {
        let plain = matrix([0.0; 4]);
        assert_eq!(TapeId::of(&plain), None);
        let leaf = plain.autodiff().require_grad();
        assert_eq!(TapeId::of(&leaf), TapeId::of(&leaf.clone()));
        assert_ne!(TapeId::of(&leaf), TapeId::of(&matrix([0.0; 4]).autodiff().require_grad()));
    }
}
