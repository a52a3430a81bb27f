//! The trainable numbers of a network in one flat vector, and draws of the network made from them.

use std::ops::Range;
use std::sync::Arc;

use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use super::family::Family;
use super::leaves::{Leaf, SampledSlot, SamplingBackward, numbers};
use super::slot::{Buffer, Entry, Inventory, Slot};
use crate::checkpoint::NamedTensor;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::tensors::to_vec;

/// A network taken apart: its structure, and its numbers in one flat vector.
///
/// The flat vector is what gradients, communication, optimisers and checkpoints work on. Every rank
/// owns one, so that graphs of different ranks never share a leaf.
#[derive(Clone, Debug)]
pub struct Parameters<N> {
    /// The network without its trainable weights, which are in `values`.
    template: N,
    entries: Vec<Entry>,
    slots: Vec<Slot>,
    /// Shared with backward passes while they run, and by copies until one changes.
    values: Arc<Vec<f32>>,
    buffers: Vec<Buffer>,
    buffer_values: Vec<f32>,
    flags: Vec<bool>,
    device: Device,
}

impl<N: Module> Parameters<N> {
    /// Takes a network apart; every parameter is a point with the network's value.
    pub fn new(network: N) -> Self {
        let inventory = Inventory::of(&network);
        let device = network.devices().first().cloned().unwrap_or_default();
        let mut hollow = Hollow { entries: &inventory.entries, next: 0 };
        Self {
            template: network.valid().map(&mut hollow),
            entries: inventory.entries,
            slots: inventory.slots,
            values: Arc::new(inventory.values),
            buffers: inventory.buffers,
            buffer_values: inventory.buffer_values,
            flags: inventory.flags,
            device: device.without_autodiff(),
        }
    }

    /// Gives each slot the family chosen for it; one for which nothing is chosen keeps its own. The
    /// present centre of every weight stays, and `choose` says where its other numbers start: one
    /// value for each, the same for all weights of the slot.
    #[must_use]
    pub fn with_families(
        mut self,
        choose: impl Fn(&Slot) -> Option<(Arc<dyn Family>, Vec<f32>)>,
    ) -> Self {
        let chosen: Vec<_> = self.slots.iter().map(choose).collect();
        let numbers = |slot: &Slot, chosen: &Option<(_, Vec<f32>)>| match chosen {
            None => slot.range.len(),
            Some((_, starts)) => slot.len() * (1 + starts.len()),
        };
        let length = self.slots.iter().zip(&chosen).map(|(slot, chosen)| numbers(slot, chosen));
        // Room for all at once: a vector that grows would hold up to three times as much.
        let mut values = Vec::with_capacity(length.sum());
        for (slot, chosen) in self.slots.iter_mut().zip(chosen) {
            let start = values.len();
            match chosen {
                None => values.extend(&self.values[slot.range.clone()]),
                Some((family, starts)) => {
                    assert_eq!(
                        1 + starts.len(),
                        family.names().len(),
                        "a start for every number of {} but the first",
                        family.id()
                    );
                    values.extend(&self.values[slot.range.start..][..slot.len()]);
                    slot.family = family;
                    for start in starts {
                        values.extend(std::iter::repeat_n(start, slot.len()));
                    }
                }
            }
            slot.range = start..values.len();
        }
        self.values = Arc::new(values);
        self
    }

    /// Overwrites the first number of every weight, its centre, slot by slot.
    pub fn set_centres(&mut self, mut fill: impl FnMut(usize, &Slot, &mut [f32])) {
        let values = Arc::make_mut(&mut self.values);
        for (index, slot) in self.slots.iter().enumerate() {
            fill(index, slot, &mut values[slot.range.start..][..slot.len()]);
        }
    }

    /// The structure of the network. Its trainable tensors are zeros, which take no memory: the
    /// numbers are in [`values`](Self::values).
    pub fn network(&self) -> &N {
        &self.template
    }

    /// The parameter tensors, in module order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// All trainable numbers.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All trainable numbers, to change.
    pub fn values_mut(&mut self) -> &mut [f32] {
        Arc::make_mut(&mut self.values).as_mut_slice()
    }

    /// Takes the trainable numbers out, to be put back by [`set_values`](Self::set_values).
    pub(crate) fn take_values(&mut self) -> Arc<Vec<f32>> {
        std::mem::take(&mut self.values)
    }

    /// Replaces the trainable numbers.
    pub(crate) fn set_values(&mut self, values: Arc<Vec<f32>>) {
        self.values = values;
    }

    /// Running statistics and frozen weights.
    pub fn buffers(&self) -> &[f32] {
        &self.buffer_values
    }

    /// Running statistics and frozen weights, to change.
    pub fn buffers_mut(&mut self) -> &mut [f32] {
        &mut self.buffer_values
    }

    /// Whether all draws have the same weights.
    pub fn is_certain(&self) -> bool {
        self.slots.iter().all(|slot| slot.family.is_certain())
    }

    /// Sums a penalty over the weights that differ between draws, as far as their numbers are in
    /// `range` of the flat vector, and adds `weight` times its derivatives to `gradient`, which has
    /// the length of the range: what [`Posterior::penalty`](super::Posterior::penalty) asks for.
    ///
    /// `of_weight` gets the slot and the numbers of one weight, writes the derivative by each of
    /// them and returns the penalty. It counts where the first number of the weight is.
    pub fn penalty(
        &self,
        weight: f32,
        range: Range<usize>,
        gradient: &mut [f32],
        of_weight: impl Fn(&Slot, &[f32], &mut [f32]) -> f64,
    ) -> f64 {
        let mut sum = 0.0;
        for slot in self.slots.iter().filter(|slot| !slot.family.is_certain()) {
            let width = slot.family.names().len();
            let (mut numbers, mut derivatives) = (vec![0.0; width], vec![0.0; width]);
            for first in slot.range.start..slot.range.start + slot.len() {
                let places = || (first..slot.range.end).step_by(slot.len());
                if !places().any(|place| range.contains(&place)) {
                    continue;
                }
                numbers.iter_mut().zip(places()).for_each(|(n, place)| *n = self.values[place]);
                derivatives.fill(0.0);
                let penalty = of_weight(slot, &numbers, &mut derivatives);
                if range.contains(&first) {
                    sum += penalty;
                }
                for (place, derivative) in places().zip(&derivatives) {
                    if range.contains(&place) {
                        gradient[place - range.start] += weight * derivative;
                    }
                }
            }
        }
        sum
    }

    /// The device on which draws of the network live, without autodiff.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Replaces all numbers, e.g. by those of a checkpoint.
    pub fn restore(&mut self, values: &[f32], buffers: &[f32]) -> Result<()> {
        self.check_lengths(values.len(), buffers.len())?;
        self.values_mut().copy_from_slice(values);
        self.buffer_values.copy_from_slice(buffers);
        Ok(())
    }

    /// Replaces all numbers by those of saved tensors, each of which is freed when it is copied.
    pub(crate) fn restore_tensors(
        &mut self,
        values: impl Iterator<Item = NamedTensor>,
        buffers: impl Iterator<Item = NamedTensor>,
    ) -> Result<()> {
        let flat = |length: usize, tensors: &mut dyn Iterator<Item = NamedTensor>| {
            let mut flat = Vec::with_capacity(length);
            tensors.for_each(|tensor| flat.extend_from_slice(&tensor.values));
            flat
        };
        let (mut values, mut buffers) = (values, buffers);
        let values = flat(self.values.len(), &mut values);
        let buffers = flat(self.buffer_values.len(), &mut buffers);
        self.check_lengths(values.len(), buffers.len())?;
        self.values = Arc::new(values);
        self.buffer_values = buffers;
        Ok(())
    }

    /// Refuses a saved state of other lengths.
    fn check_lengths(&self, values: usize, buffers: usize) -> Result<()> {
        if values == self.values.len() && buffers == self.buffer_values.len() {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "the saved state has {values} trainable numbers and {buffers} of running statistics, \
             the network {} and {}; it belongs to another network or posterior",
            self.values.len(),
            self.buffer_values.len()
        )))
    }

    /// The trainable numbers tensor by tensor, in order: name, shape and values. A slot gives a
    /// tensor for each [name](Family::names) of its family, e.g. `….mean` and `….rho`.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (String, &[usize], &[f32])> {
        self.slots.iter().flat_map(|slot| {
            let starts = slot.range.clone().step_by(slot.len().max(1));
            slot.family.names().iter().zip(starts).map(|(number, start)| {
                let name = match *number {
                    "" => slot.name.clone(),
                    number => format!("{}.{number}", slot.name),
                };
                (name, &slot.shape[..], &self.values[start..][..slot.len()])
            })
        })
    }

    /// A copy of the trainable numbers tensor by tensor, in order. A slot gives a tensor for each
    /// [name](Family::names) of its family, e.g. `….mean` and `….rho`.
    pub fn named_values(&self) -> Vec<NamedTensor> {
        let tensors = self.tensors().map(|(name, shape, values)| NamedTensor {
            name,
            shape: shape.to_vec(),
            values: values.to_vec(),
        });
        tensors.collect()
    }

    /// Running statistics and frozen weights tensor by tensor, in order.
    pub fn named_buffers(&self) -> Vec<NamedTensor> {
        let tensors = self.buffers.iter().map(|buffer| NamedTensor {
            name: buffer.name.clone(),
            shape: buffer.shape.clone(),
            values: self.buffer_values[buffer.range.clone()].to_vec(),
        });
        tensors.collect()
    }

    /// The name of the tensor to which a number of the flat vector belongs.
    pub(crate) fn describe(&self, index: usize) -> String {
        let slot = self.slots.iter().find(|slot| slot.range.contains(&index));
        slot.map_or_else(|| "a running statistic".to_owned(), |slot| slot.describe(index))
    }

    /// What all draws of a step have in common, from which they are taken.
    pub fn snapshot(&self) -> Snapshot<'_, N> {
        // What is the same in every draw is made once for all of them.
        let certain = self.slots.iter().map(|slot| {
            let values = || self.tensor(self.values[slot.range.clone()].to_vec());
            slot.family.is_certain().then(values)
        });
        let buffers = self.buffers.iter();
        let buffers =
            buffers.map(|buffer| self.tensor(self.buffer_values[buffer.range.clone()].to_vec()));
        Snapshot { parameters: self, certain: certain.collect(), buffers: buffers.collect() }
    }

    fn tensor(&self, values: Vec<f32>) -> Tensor<1> {
        let length = values.len();
        Tensor::from_data(TensorData::new(values, [length]), &self.device)
    }
}

/// Puts zeros in place of trainable tensors, one number for all of them.
struct Hollow<'a> {
    entries: &'a [Entry],
    next: usize,
}

impl ModuleMapper for Hollow<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let entry = self.entries[self.next];
        self.next += 1;
        let tensor = param.val();
        match entry {
            Entry::Slot(_) if tensor.shape().num_elements() > 1 => {
                let zero = Tensor::<D>::zeros([1; D], &tensor.device());
                Param::initialized(param.id, zero.expand(tensor.dims()))
            }
            Entry::Slot(_) | Entry::Buffer(_) => param,
        }
    }
}

/// Which tape a drawn network records on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tape {
    /// Gradients reach the trainable numbers.
    Recording,
    /// Layers behave as in training, nothing is recorded.
    Paused,
    /// Layers behave as in prediction.
    Off,
}

/// The parameters at one step. Cheap to draw from, any number of times.
#[derive(Debug)]
pub struct Snapshot<'a, N> {
    parameters: &'a Parameters<N>,
    /// The slots that do not differ between draws.
    certain: Vec<Option<Tensor<1>>>,
    buffers: Vec<Tensor<1>>,
}

/// The noise of a slot in a draw.
fn noise(draw: &Draw, slot: usize) -> Stream {
    draw.stream(Purpose::Weights).at_tensor(slot as u32)
}

impl<N: Module> Snapshot<'_, N> {
    /// The network of a draw, its weights sampled by their families.
    ///
    /// The sampled weights are the leaves of the tape. What their gradients mean for the trainable
    /// numbers is known in closed form, so sampling needs no place on it.
    pub fn draw(&self, draw: &Draw, tape: Tape) -> Drawn<N> {
        let mut mapper =
            Assembler { snapshot: self, draw, tape, leaves: Vec::new(), next: 0, next_flag: 0 };
        // `valid` gives the copy running statistics of its own: draws must not share them.
        let network = self.parameters.template.valid().map(&mut mapper);
        Drawn { network, leaves: mapper.leaves, draw: draw.clone() }
    }

    /// The weights of a slot in a draw.
    fn weights(&self, index: usize, draw: &Draw) -> Tensor<1> {
        if let Some(weights) = &self.certain[index] {
            return weights.clone();
        }
        let parameters = self.parameters;
        let slot = &parameters.slots[index];
        let mut weights = vec![0.0; slot.len()];
        let numbers = &parameters.values[slot.range.clone()];
        slot.family.sample(&noise(draw, index), numbers, &mut weights);
        parameters.tensor(weights)
    }
}

/// Puts tensors into the module in the order in which [`Inventory`] found their places.
struct Assembler<'a, N> {
    snapshot: &'a Snapshot<'a, N>,
    draw: &'a Draw,
    tape: Tape,
    /// Those of the slots so far, where the tape records.
    leaves: Vec<Box<dyn Leaf>>,
    next: usize,
    next_flag: usize,
}

impl<N: Module> ModuleMapper for Assembler<'_, N> {
    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        let in_training = self.snapshot.parameters.flags[self.next_flag];
        self.next_flag += 1;
        flag.with_value(in_training && self.tape != Tape::Off)
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let parameters = self.snapshot.parameters;
        let entry = parameters.entries[self.next];
        self.next += 1;
        let (values, shape) = match entry {
            Entry::Buffer(index) => {
                (self.snapshot.buffers[index].clone(), &parameters.buffers[index].shape)
            }
            Entry::Slot(index) => {
                (self.snapshot.weights(index, self.draw), &parameters.slots[index].shape)
            }
        };
        let shape: [usize; D] = shape[..].try_into().expect("the rank found by the inventory");
        // In its shape before it becomes a leaf: a step of the tape between the leaf and the layer
        // would run at the very end of the backward pass, and the gradient would be known only
        // then.
        let values = values.reshape(shape);
        let values = match (self.tape, entry) {
            (Tape::Off, _) => values,
            (Tape::Paused, _) | (Tape::Recording, Entry::Buffer(_)) => values.autodiff(),
            (Tape::Recording, Entry::Slot(_)) => {
                let leaf = values.autodiff().require_grad();
                self.leaves.push(Box::new(leaf.clone()));
                leaf
            }
        };
        Param::initialized(param.id, values)
    }
}

/// The network of one draw, with the leaves its gradients arrive at.
#[derive(Debug)]
pub struct Drawn<N> {
    /// The network, of the type the user wrote.
    pub network: N,
    /// Slot by slot; none where the tape does not record.
    leaves: Vec<Box<dyn Leaf>>,
    draw: Draw,
}

impl<N: Module> Drawn<N> {
    /// Adds the gradients of a backward pass to a flat vector laid out like the parameters.
    pub(crate) fn add_gradients(
        &self,
        parameters: &Parameters<N>,
        mut gradients: Gradients,
        into: &mut [f32],
    ) {
        let backward = self.sampling_backward(parameters);
        for (index, leaf) in self.leaves.iter().enumerate() {
            if let Some(gradient) = leaf.take(&mut gradients) {
                backward.add(index, numbers(&gradient), into);
            }
        }
    }

    /// The leaves of the tape, slot by slot.
    pub(crate) fn leaves(&self) -> &[Box<dyn Leaf>] {
        &self.leaves
    }

    /// What gradients of the leaves mean for the parameters this network was drawn from.
    pub(crate) fn sampling_backward(&self, parameters: &Parameters<N>) -> SamplingBackward {
        let slots = parameters.slots.iter().enumerate().map(|(index, slot)| SampledSlot {
            range: slot.range.clone(),
            family: Arc::clone(&slot.family),
            noise: noise(&self.draw, index),
        });
        SamplingBackward { values: Arc::clone(&parameters.values), slots: slots.collect() }
    }

    /// Adds `weight` times the change of the running statistics in a forward pass to a flat vector.
    pub(crate) fn add_buffers(&self, parameters: &Parameters<N>, weight: f32, into: &mut [f32]) {
        if parameters.buffers.is_empty() {
            return;
        }
        // `valid` makes pending updates of running statistics visible.
        let updated = Inventory::of_buffers(&self.network.valid(), &parameters.entries);
        for ((sum, new), old) in into.iter_mut().zip(updated).zip(&parameters.buffer_values) {
            // What did not change may be infinite, e.g. a mask among the frozen weights.
            if new != *old {
                *sum += weight * (new - old);
            }
        }
    }
}

impl Inventory {
    /// The values of the untrained tensors of a module of known structure.
    fn of_buffers<M: Module>(module: &M, entries: &[Entry]) -> Vec<f32> {
        struct Reader<'a> {
            entries: &'a [Entry],
            next: usize,
            values: Vec<f32>,
        }
        impl ModuleVisitor for Reader<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Entry::Buffer(_) = self.entries[self.next] {
                    self.values.extend(to_vec(param.val()));
                }
                self.next += 1;
            }
        }
        let mut reader = Reader { entries, next: 0, values: Vec::new() };
        module.visit(&mut reader);
        reader.values
    }
}
