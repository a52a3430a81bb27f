//! Weights from and for PyTorch, as safetensors files.
//!
//! A file has the names and the layout of a PyTorch `state_dict`, so that
//! `safetensors.torch.load_file` and `load_state_dict` read what is written here, and what
//! `safetensors.torch.save_file` writes can be read:
//!
//! - [`Vit`]: the names of the widely used `SimpleViT`, e.g. `transformer.layers.0.0.to_qkv.weight`
//! - [`Mlp`]: `layers.0.weight`, as of a `ModuleList` of `Linear` called `layers`; likewise
//!   `norms.0.weight` of `LayerNorm` and `embeddings.0.weight` of `Embedding`, where it has them
//! - [`Swin`]: `embed`, a `Conv2d`; blocks `layer1.0`, `middle.0`, `layer4.0` and so on, each with
//!   `qkv`, `proj`, `norm1`, `fc1`, `fc2`, `norm2`; `down.norm`, `down.linear`, `up.expand`,
//!   `up.norm`, `up.linear`; and `recover`, a `ConvTranspose2d`
//! - [`PatchTransformer`]: `embed`, `context`, `embeddings.0`; blocks `blocks.0` with
//!   `attention_norm`, `qkv`, `out`, `mlp_norm`, `up`, `down`; `norm` and `head`: `Linear`,
//!   `LayerNorm` and `Embedding`
//! - [`ResNet`]: `stem`, `blocks.0` with `norm1`, `conv1`, `norm2`, `conv2` and perhaps `short`,
//!   `norm` and `head`: `Conv2d`, `GroupNorm` and a `Linear`
//!
//! PyTorch keeps the weight of a linear layer as `[outputs, inputs]`, Burn as `[inputs, outputs]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bayesmesh::posterior::{Parameters, Slot};
use bayesmesh_files::{AtomicFile, FileError};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::{GlobeCnn, Mlp, PatchTransformer, ResNet, Swin, Vit, WeightsError};

/// A network, all of its tensors trained, whose weights can come from PyTorch and go there.
///
/// ```
/// use bayesmesh_models::{PyTorch, VitConfig};
///
/// # let folder = std::env::temp_dir().join(format!("bayesmesh-pytorch-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("vit.safetensors");
/// let config = VitConfig::tiny();
/// config.init(&Default::default()).save_pytorch(&path)?;
/// let network = config.init(&Default::default()).load_pytorch(&path)?;
/// # let _ = network;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait PyTorch: Module {
    /// What PyTorch calls the tensor at this path of the module.
    fn pytorch_name(path: &str) -> String;

    /// How PyTorch keeps a tensor: by default the weights of linear layers transposed.
    fn pytorch_layout(&self, slot: &Slot) -> Layout {
        let axes = (0..slot.shape.len()).collect();
        let mut layout = Layout { view: slot.shape.clone(), axes };
        if slot.layer == "Linear" && slot.shape.len() == 2 {
            layout.axes.reverse();
        }
        layout
    }

    /// Writes the weights to a safetensors file, complete or not at all.
    fn save_pytorch(&self, path: impl AsRef<Path>) -> Result<(), WeightsError> {
        save_means(&Parameters::new(self.clone()), path)
    }

    /// The network with the weights of a safetensors file, which must have exactly its tensors, in
    /// single, double or `bfloat16` precision.
    fn load_pytorch(self, path: impl AsRef<Path>) -> Result<Self, WeightsError> {
        let mut parameters = Parameters::new(self.clone());
        load_means(&mut parameters, path)?;
        Ok(self.map(&mut Fill { parameters: &parameters, next: 0 }))
    }
}

/// How PyTorch keeps a tensor of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The shape that ours is looked at in, with as many numbers as it has.
    pub view: Vec<usize>,
    /// Which of these axes come first, second and so on in PyTorch.
    pub axes: Vec<usize>,
}

impl Layout {
    /// The shape in PyTorch.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|&axis| self.view[axis]).collect()
    }

    /// For each number in PyTorch's order, its place in ours.
    pub fn places(&self) -> Vec<usize> {
        let step = |axis: usize| self.view[axis + 1..].iter().product::<usize>();
        let steps: Vec<usize> = self.axes.iter().map(|&axis| step(axis)).collect();
        let mut places = vec![0];
        for (size, step) in self.shape().into_iter().zip(steps) {
            let finer = |place: &usize| (0..size).map(move |index| place + index * step).collect();
            places = places.iter().flat_map(|place| -> Vec<usize> { finer(place) }).collect();
        }
        places
    }
}

impl PyTorch for Vit {
    fn pytorch_name(path: &str) -> String {
        let (layer, tensor) = path.rsplit_once('.').unwrap_or(("", path));
        let layer = match layer.split('.').collect::<Vec<_>>()[..] {
            ["patch_norm"] => "to_patch_embedding.1".to_owned(),
            ["embed"] => "to_patch_embedding.2".to_owned(),
            ["embed_norm"] => "to_patch_embedding.3".to_owned(),
            ["blocks", i, "attention_norm"] => format!("transformer.layers.{i}.0.norm"),
            ["blocks", i, "qkv"] => format!("transformer.layers.{i}.0.to_qkv"),
            ["blocks", i, "out"] => format!("transformer.layers.{i}.0.to_out"),
            ["blocks", i, "mlp_norm"] => format!("transformer.layers.{i}.1.net.0"),
            ["blocks", i, "up"] => format!("transformer.layers.{i}.1.net.1"),
            ["blocks", i, "down"] => format!("transformer.layers.{i}.1.net.3"),
            ["norm"] => "transformer.norm".to_owned(),
            ["head"] => "linear_head".to_owned(),
            _ => layer.to_owned(),
        };
        let tensor = match tensor {
            "gamma" => "weight",
            "beta" => "bias",
            other => other,
        };
        format!("{layer}.{tensor}")
    }
}

impl PyTorch for Mlp {
    fn pytorch_name(path: &str) -> String {
        path.replace(".gamma", ".weight").replace(".beta", ".bias")
    }
}

impl PyTorch for PatchTransformer {
    fn pytorch_name(path: &str) -> String {
        path.replace(".gamma", ".weight").replace(".beta", ".bias")
    }
}

impl PyTorch for Swin {
    fn pytorch_name(path: &str) -> String {
        path.replace(".layer.gamma", ".weight").replace(".layer.beta", ".bias")
    }

    fn pytorch_layout(&self, slot: &Slot) -> Layout {
        let (patch, shape) = (self.config().patch, &slot.shape);
        let (view, axes) = match (slot.name.as_str(), &shape[..]) {
            ("embed.weight", [inputs, width]) => {
                (vec![patch, patch, inputs / (patch * patch), *width], vec![3, 2, 0, 1])
            }
            ("recover.weight", [inputs, outputs]) => {
                (vec![*inputs, outputs / (patch * patch), patch, patch], vec![0, 1, 2, 3])
            }
            (_, [inputs, outputs]) if slot.layer == "Linear" => {
                (vec![*inputs, *outputs], vec![1, 0])
            }
            _ => (shape.clone(), (0..shape.len()).collect()),
        };
        Layout { view, axes }
    }
}

impl PyTorch for GlobeCnn {
    fn pytorch_name(path: &str) -> String {
        path.replace(".layer.gamma", ".weight").replace(".layer.beta", ".bias")
    }

    /// Convolutions as `Conv2d` has them; the others as linear layers on patches.
    fn pytorch_layout(&self, slot: &Slot) -> Layout {
        let shape = &slot.shape;
        let convolution = slot.name.starts_with("blocks.") && slot.layer == "Linear";
        let (view, axes) = match &shape[..] {
            [inputs, outputs] if convolution => {
                (vec![3, 3, inputs / 9, *outputs], vec![3, 2, 0, 1])
            }
            [inputs, outputs] if slot.layer == "Linear" => (vec![*inputs, *outputs], vec![1, 0]),
            _ => (shape.clone(), (0..shape.len()).collect()),
        };
        Layout { view, axes }
    }
}

impl PyTorch for ResNet {
    fn pytorch_name(path: &str) -> String {
        path.replace(".gamma", ".weight").replace(".beta", ".bias")
    }

    /// Convolutions as `Conv2d` has them.
    fn pytorch_layout(&self, slot: &Slot) -> Layout {
        let (view, axes) = match &slot.shape[..] {
            [inputs, outputs] if slot.name == "head.weight" => {
                (vec![*inputs, *outputs], vec![1, 0])
            }
            [inputs, outputs] => {
                let side = self.side(&slot.name);
                (vec![side, side, inputs / (side * side), *outputs], vec![3, 2, 0, 1])
            }
            shape => (shape.to_vec(), (0..shape.len()).collect()),
        };
        Layout { view, axes }
    }
}

/// Writes the points and means of a posterior, see [`PyTorch::save_pytorch`].
pub fn save_means<N: PyTorch>(
    parameters: &Parameters<N>,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    save_members(&[parameters], path)
}

/// Writes the points and means of the members of an ensemble: those of member 3 as `members.3.…`,
/// as of a `ModuleList` called `members`. A single one is as [`save_means`] has it.
pub fn save_members<N: PyTorch>(
    members: &[&Parameters<N>],
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    save::<N>(members, path.as_ref(), |slot, values| values[..slot.len()].to_vec())
}

/// Writes the standard deviations of a posterior under the names of the weights; those of points
/// are 0.
pub fn save_stds<N: PyTorch>(
    parameters: &Parameters<N>,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    save::<N>(&[parameters], path.as_ref(), |slot, values| slot.family.deviations(values))
}

/// Replaces the points and means of a posterior, see [`PyTorch::load_pytorch`]; on an error nothing
/// is changed.
pub fn load_means<N: PyTorch>(
    parameters: &mut Parameters<N>,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|error| FileError::new(path, "read", &error))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| {
        let reason = error.to_string();
        WeightsError::NotSafetensors { path: path.into(), reason }
    })?;
    let mut found: BTreeMap<String, TensorView> = file.tensors().into_iter().collect();
    let (mut loaded, mut missing) = (Vec::new(), Vec::new());
    for slot in parameters.slots() {
        let name = N::pytorch_name(&slot.name);
        match found.remove(&name) {
            Some(tensor) => loaded.push((slot.clone(), name, tensor)),
            None => missing.push(name),
        }
    }
    if !(missing.is_empty() && found.is_empty()) {
        let unexpected = found.into_keys().collect();
        return Err(WeightsError::Names { path: path.into(), missing, unexpected });
    }
    let values = loaded.into_iter().map(|(slot, name, tensor)| {
        let layout = parameters.network().pytorch_layout(&slot);
        let found = read(path, &name, &tensor, &layout.shape())?;
        let mut values = vec![0.0; found.len()];
        for (place, value) in layout.places().into_iter().zip(found) {
            values[place] = value;
        }
        Ok((slot.range.start, values))
    });
    for (start, values) in values.collect::<Result<Vec<_>, WeightsError>>()? {
        parameters.values_mut()[start..][..values.len()].copy_from_slice(&values);
    }
    Ok(())
}

/// Writes what `select` makes of the numbers of each slot.
fn save<N: PyTorch>(
    members: &[&Parameters<N>],
    path: &Path,
    select: impl Fn(&Slot, &[f32]) -> Vec<f32>,
) -> Result<(), WeightsError> {
    let slots = members.iter().enumerate().flat_map(|(index, parameters)| {
        parameters.slots().iter().map(move |slot| (index, *parameters, slot))
    });
    let tensors = slots.map(|(index, parameters, slot)| {
        let values = select(slot, &parameters.values()[slot.range.clone()]);
        let layout = parameters.network().pytorch_layout(slot);
        let places = layout.places().into_iter();
        let bytes: Vec<u8> = places.flat_map(|place| values[place].to_le_bytes()).collect();
        let name = N::pytorch_name(&slot.name);
        let name = match members.len() {
            1 => name,
            _ => format!("members.{index}.{name}"),
        };
        (name, layout.shape(), bytes)
    });
    let tensors: Vec<_> = tensors.collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
        (name.as_str(), view.expect("as many numbers as the shape of the slot says"))
    });
    // Says who can read it; some programs insist.
    let format = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    let file = safetensors::serialize(views, Some(format)).expect("names and shapes are in order");
    AtomicFile::write(path, file).map_err(|error| FileError::new(path, "write", &error).into())
}

/// The numbers of a tensor of a file.
fn read(
    path: &Path,
    name: &str,
    tensor: &TensorView,
    expected: &[usize],
) -> Result<Vec<f32>, WeightsError> {
    let (path, name) = (path.to_path_buf(), name.to_owned());
    if tensor.shape() != expected {
        let (expected, found) = (expected.to_vec(), tensor.shape().to_vec());
        return Err(WeightsError::Shape { path, tensor: name, expected, found });
    }
    let data = tensor.data();
    let values: Vec<f32> = match tensor.dtype() {
        Dtype::F32 => data.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        Dtype::F64 => data.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect(),
        // The upper half of a single.
        Dtype::BF16 => {
            data.as_chunks().0.iter().map(|&[l, h]| f32::from_le_bytes([0, 0, l, h])).collect()
        }
        other => {
            return Err(WeightsError::Type { path, tensor: name, found: other.to_string() });
        }
    };
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(values),
        false => Err(WeightsError::NotFinite { path, tensor: name }),
    }
}

/// Puts the points of parameters back into the network they came from.
struct Fill<'a, N> {
    parameters: &'a Parameters<N>,
    next: usize,
}

impl<N: Module> ModuleMapper for Fill<'_, N> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let slot = &self.parameters.slots()[self.next];
        self.next += 1;
        let values = self.parameters.values()[slot.range.clone()].to_vec();
        let data = TensorData::new(values, slot.shape.clone());
        let id = param.id;
        let tensor = Tensor::from_data(data, &param.lazy_device().without_autodiff());
        param.transform_for_load(tensor, id)
    }
}
