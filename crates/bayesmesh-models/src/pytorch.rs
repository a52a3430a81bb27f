//! Weights from and for PyTorch, as safetensors files.
//!
//! A file has the names and the layout of a PyTorch `state_dict`, so that
//! `safetensors.torch.load_file` and `load_state_dict` read what is written here, and what
//! `safetensors.torch.save_file` writes can be read:
//!
//! - [`Vit`]: the names of the widely used `SimpleViT`, e.g. `transformer.layers.0.0.to_qkv.weight`
//! - [`Mlp`]: `layers.0.weight`, as of a `ModuleList` of `Linear` called `layers`
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

use crate::{Mlp, Vit, WeightsError};

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
        path.to_owned()
    }
}

/// Writes the points and means of a posterior, see [`PyTorch::save_pytorch`].
pub fn save_means<N: PyTorch>(
    parameters: &Parameters<N>,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    save::<N>(parameters, path.as_ref(), |slot, values| values[..slot.len()].to_vec())
}

/// Writes the standard deviations of a posterior under the names of the weights; those of points
/// are 0.
pub fn save_stds<N: PyTorch>(
    parameters: &Parameters<N>,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    save::<N>(parameters, path.as_ref(), |slot, values| slot.family.deviations(values))
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
        let mut values = read(path, &name, &tensor, &pytorch_shape(&slot))?;
        if is_linear(&slot) {
            values = transpose(&values, slot.shape[1], slot.shape[0]);
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
    parameters: &Parameters<N>,
    path: &Path,
    select: impl Fn(&Slot, &[f32]) -> Vec<f32>,
) -> Result<(), WeightsError> {
    let tensors = parameters.slots().iter().map(|slot| {
        let mut values = select(slot, &parameters.values()[slot.range.clone()]);
        if is_linear(slot) {
            values = transpose(&values, slot.shape[0], slot.shape[1]);
        }
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        (N::pytorch_name(&slot.name), pytorch_shape(slot), bytes)
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

/// Whether PyTorch keeps the tensor transposed.
fn is_linear(slot: &Slot) -> bool {
    slot.layer == "Linear" && slot.shape.len() == 2
}

fn pytorch_shape(slot: &Slot) -> Vec<usize> {
    let mut shape = slot.shape.clone();
    if is_linear(slot) {
        shape.reverse();
    }
    shape
}

/// `[rows, columns]` to `[columns, rows]`.
fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
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
