//! The golden file, and the numbers it is about.
#![allow(dead_code)] // each test uses a part

use std::path::{Path, PathBuf};

use bayesmesh::{Purpose, Stream};
use bayesmesh_models::VitConfig;
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::Value;

/// A file of `tests/golden`.
pub fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// `vit.json`, made by `scripts/golden_vit.py`.
pub fn golden() -> Value {
    let text = std::fs::read_to_string(golden_path("vit.json")).expect("part of the project");
    serde_json::from_str(&text).expect("valid JSON")
}

pub fn list(value: &Value) -> Vec<f64> {
    let value = if value.is_object() { &value["data"] } else { value };
    value.as_array().expect("a list").iter().map(|n| n.as_f64().expect("a number")).collect()
}

pub fn sizes(value: &Value) -> Vec<usize> {
    list(value).into_iter().map(|n| n as usize).collect()
}

pub fn config(value: &Value) -> VitConfig {
    let size = |name: &str| value[name].as_u64().expect("a size") as usize;
    VitConfig {
        image: size("image"),
        channels: size("channels"),
        patch: size("patch"),
        width: size("width"),
        depth: size("depth"),
        heads: size("heads"),
        mlp: size("mlp"),
        classes: size("classes"),
    }
}

/// `offset + scale·(2u − 1)` of the numbers of a stream, as the script makes them.
pub fn stream_values(draw: u32, tensor: u32, n: usize, scale: f32, offset: f32) -> Vec<f32> {
    let stream = Stream::new(0x0123_4567_89ab_cdef, Purpose::Synthesis);
    let mut values = vec![0.0; n];
    stream.at_draw(draw).at_tensor(tensor).fill_uniform(0, &mut values);
    values.iter_mut().for_each(|u| *u = offset + scale * (2.0 * *u - 1.0));
    values
}

/// The images of a case.
pub fn images(case: &Value) -> Tensor<4> {
    let about = &case["images"];
    let shape = sizes(&about["shape"]);
    let scale = about["scale"].as_f64().expect("a number") as f32;
    let tensor = about["tensor"].as_u64().expect("a number") as u32;
    let values = stream_values(0, tensor, shape.iter().product(), scale, 0.0);
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}

/// A safetensors file of single-precision tensors.
pub fn write_file(path: &Path, tensors: &[(String, Vec<usize>, Vec<f32>)]) {
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, _, values)| bytes(values)).collect();
    let views = tensors.iter().zip(&data).map(|((name, shape, _), data)| {
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

pub fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("single precision")
}

/// A folder that is removed in the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bayesmesh-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
