//! The parameter tensors of a network, by name, and where their numbers are kept.

use std::ops::Range;
use std::sync::Arc;

use burn::module::{Flag, Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::family::{Family, Point};
use crate::tensors::to_vec;

/// One parameter tensor of the network.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its path in the module, e.g. `layers.0.attention.weight`.
    pub name: String,
    /// The type of the layer it belongs to, e.g. `Linear`.
    pub layer: String,
    /// Its shape in the module.
    pub shape: Vec<usize>,
    /// How many inputs feed one unit of its layer.
    pub fan_in: usize,
    /// How its weights are distributed.
    pub family: Arc<dyn Family>,
    /// Where its trainable numbers are in the flat vector.
    pub range: Range<usize>,
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, layer, shape, fan_in, family, range } = self;
        let same = (name, layer, shape, fan_in, range)
            == (&other.name, &other.layer, &other.shape, &other.fan_in, &other.range);
        same && **family == *other.family
    }
}

impl Slot {
    /// How many weights the tensor has.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the tensor has no weights.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the tensor belongs to one of Burn's normalisation layers.
    pub fn is_normalisation(&self) -> bool {
        const LAYERS: [&str; 5] =
            ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RmsNorm"];
        LAYERS.contains(&self.layer.as_str())
    }

    /// Whether the tensor is a point estimate unless asked otherwise: that of a normalisation
    /// layer, of [`LearnedNoise`](crate::LearnedNoise), a [`NoiseMap`](crate::NoiseMap) or an
    /// [`OutputScale`](crate::OutputScale).
    pub fn is_point_by_default(&self) -> bool {
        const LAYERS: [&str; 3] = ["LearnedNoise", "NoiseMap", "OutputScale"];
        self.is_normalisation() || LAYERS.contains(&self.layer.as_str())
    }

    /// How large its weights are at most when they are
    /// [initialised](super::Posterior::initialised); `None` where they keep their value.
    pub(crate) fn initial_bound(&self) -> Option<f32> {
        let root = (self.fan_in.max(1) as f32).sqrt();
        match self.layer.as_str() {
            "NoiseMap" => Some(crate::NoiseMap::START * 3f32.sqrt() / root),
            _ if self.is_point_by_default() => None,
            _ => Some(1.0 / root),
        }
    }

    /// The name of the number at `index` of the flat vector, for messages.
    pub(crate) fn describe(&self, index: usize) -> String {
        match self.family.names()[(index - self.range.start) / self.len().max(1)] {
            "" => self.name.clone(),
            number => format!("{number} of {}", self.name),
        }
    }
}

/// A tensor that belongs to the network but is not trained: running statistics, frozen weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buffer {
    pub name: String,
    pub shape: Vec<usize>,
    pub range: Range<usize>,
}

/// What the n-th float tensor of the module is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry {
    Slot(usize),
    Buffer(usize),
}

/// Everything found in a module, all parameters as points, with their values.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub entries: Vec<Entry>,
    pub slots: Vec<Slot>,
    pub values: Vec<f32>,
    pub buffers: Vec<Buffer>,
    pub buffer_values: Vec<f32>,
    /// Which layers behave differently in training, in visiting order.
    pub flags: Vec<bool>,
    path: Vec<(String, String)>,
}

impl Inventory {
    /// Lists the float tensors of a module in the order in which Burn visits them.
    pub fn of<M: Module>(module: &M) -> Self {
        // Room for all at once: a vector that grows would hold up to three times as much.
        let values = Vec::with_capacity(module.num_params());
        let mut inventory = Self { values, ..Self::default() };
        // In training mode, because only there does a parameter or a layer say what it does.
        module.clone().train().visit(&mut inventory);
        inventory.settle_fan_in();
        inventory
    }

    /// A bias takes the fan-in of the weight beside it.
    fn settle_fan_in(&mut self) {
        let parent = |name: &str| name.rsplit_once('.').map_or("", |(parent, _)| parent).to_owned();
        let weights: Vec<(String, usize)> = self
            .slots
            .iter()
            .filter(|slot| slot.shape.len() > 1)
            .map(|slot| (parent(&slot.name), slot.fan_in))
            .collect();
        for slot in self.slots.iter_mut().filter(|slot| slot.shape.len() <= 1) {
            let parent = parent(&slot.name);
            if let Some((_, fan_in)) = weights.iter().find(|(of, _)| *of == parent) {
                slot.fan_in = *fan_in;
            }
        }
    }
}

/// Burn keeps a linear weight as `[inputs, outputs]` and a convolution as `[outputs, inputs, ...]`.
/// An embedding is a linear layer on indicators, of which one is on at a time.
fn fan_in(layer: &str, shape: &[usize]) -> usize {
    match shape {
        _ if layer == "Embedding" => 1,
        [] => 1,
        [n] => *n,
        [inputs, _] => *inputs,
        [_, rest @ ..] => rest.iter().product(),
    }
}

impl ModuleVisitor for Inventory {
    fn enter_module(&mut self, name: &str, container: &str) {
        let layer = container.rsplit(':').next().unwrap_or(container);
        self.path.push((name.to_owned(), layer.to_owned()));
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.flags.push(flag.is_enabled());
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let names: Vec<&str> = self.path.iter().map(|(name, _)| name.as_str()).collect();
        let name = names.join(".");
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        let values = to_vec(tensor.clone());
        if tensor.is_require_grad() {
            let start = self.values.len();
            self.entries.push(Entry::Slot(self.slots.len()));
            let layer = self.path.last().map_or(String::new(), |(_, layer)| layer.clone());
            self.slots.push(Slot {
                name,
                fan_in: fan_in(&layer, &shape),
                layer,
                shape,
                family: Arc::new(Point),
                range: start..start + values.len(),
            });
            self.values.extend(values);
        } else {
            let start = self.buffer_values.len();
            self.entries.push(Entry::Buffer(self.buffers.len()));
            self.buffers.push(Buffer { name, shape, range: start..start + values.len() });
            self.buffer_values.extend(values);
        }
    }
}
