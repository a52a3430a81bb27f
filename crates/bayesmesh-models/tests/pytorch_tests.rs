//! Weights go to PyTorch's files and come back unchanged, and what does not fit is refused.

mod common;

use std::fs;
use std::path::Path;

use bayesmesh::posterior::{Parameters, Scale};
use bayesmesh::{MeanField, Posterior, Prior};
use bayesmesh_models::{Mlp, MlpConfig, PyTorch, Vit, VitConfig, WeightsError, pytorch};
use burn::tensor::Device;
use common::{Scratch, config, golden, golden_path, stream_values, write_file};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

fn small() -> Vit {
    config(&golden()["small"]["config"]).init(&Device::default())
}

fn mlp() -> Mlp {
    MlpConfig::new(3, vec![5, 4], 2).init(&Device::default())
}

/// With categories, embedded in two numbers each, and normalised layers.
fn table() -> Mlp {
    let (categories, embedding) = (vec![3, 4], Some(2));
    let config = MlpConfig { categories, embedding, ..MlpConfig::new(3, vec![5], 1) };
    MlpConfig { layer_norm: true, residual: true, ..config }.init(&Device::default())
}

fn values<N: PyTorch>(network: &N) -> Vec<f32> {
    Parameters::new(network.clone()).values().to_vec()
}

type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

/// The tensors of a file, sorted by name.
fn tensors(path: &Path) -> Tensors {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Tensors = file
        .tensors()
        .into_iter()
        .map(|(name, view)| {
            assert_eq!(view.dtype(), Dtype::F32);
            let numbers = view.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b));
            (name, view.shape().to_vec(), numbers.collect())
        })
        .collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    tensors
}

#[test]
fn what_pytorch_saved_is_saved_as_it_was() {
    let scratch = Scratch::new("pytorch-same");
    let theirs = golden_path("vit_small.safetensors");
    let ours = scratch.file("ours.safetensors");
    small().load_pytorch(&theirs).unwrap().save_pytorch(&ours).unwrap();
    assert_eq!(tensors(&ours), tensors(&theirs));
    // The same network gives the same file.
    let again = scratch.file("again.safetensors");
    small().load_pytorch(&ours).unwrap().save_pytorch(&again).unwrap();
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&again).unwrap());
    // Nothing else is left in the folder.
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 2);
}

#[test]
fn networks_come_back_unchanged_and_trainable() {
    fn check<N: PyTorch>(make: impl Fn() -> N, path: &Path) {
        let network = make();
        network.save_pytorch(path).unwrap();
        let other = make();
        assert_ne!(values(&network), values(&other));
        // On a device that records gradients, too.
        for other in [other.clone(), other.train()] {
            let loaded = other.clone().load_pytorch(path).unwrap();
            assert_eq!(loaded.devices(), other.devices());
            assert_eq!(values(&network), values(&loaded));
            let slots = |network: &N| Parameters::new(network.clone()).slots().to_vec();
            assert_eq!(slots(&network), slots(&loaded));
        }
    }
    let scratch = Scratch::new("pytorch-round");
    check(|| VitConfig::tiny().init(&Device::default()), &scratch.file("vit.safetensors"));
    check(mlp, &scratch.file("mlp.safetensors"));
    check(table, &scratch.file("table.safetensors"));
    let shapes = |file: &str| -> Vec<(String, Vec<usize>)> {
        tensors(&scratch.file(file)).into_iter().map(|(name, shape, _)| (name, shape)).collect()
    };
    let expected: [(&str, &[usize]); 6] = [
        ("layers.0.bias", &[5]),
        ("layers.0.weight", &[5, 3]),
        ("layers.1.bias", &[4]),
        ("layers.1.weight", &[4, 5]),
        ("layers.2.bias", &[2]),
        ("layers.2.weight", &[2, 4]),
    ];
    let owned = |list: &[(&str, &[usize])]| -> Vec<(String, Vec<usize>)> {
        list.iter().map(|&(name, shape)| (name.to_owned(), shape.to_vec())).collect()
    };
    assert_eq!(shapes("mlp.safetensors"), owned(&expected));
    // One number and two embeddings of two.
    let expected: [(&str, &[usize]); 8] = [
        ("embeddings.0.weight", &[3, 2]),
        ("embeddings.1.weight", &[4, 2]),
        ("layers.0.bias", &[5]),
        ("layers.0.weight", &[5, 5]),
        ("layers.1.bias", &[1]),
        ("layers.1.weight", &[1, 5]),
        ("norms.0.bias", &[5]),
        ("norms.0.weight", &[5]),
    ];
    assert_eq!(shapes("table.safetensors"), owned(&expected));
}

#[test]
fn a_posterior_gives_means_and_standard_deviations() {
    let scratch = Scratch::new("pytorch-posterior");
    let [means, stds] = ["means", "stds"].map(|name| scratch.file(name));
    for scale in [Scale::Exp, Scale::Softplus] {
        let posterior = MeanField::new(small(), Prior::normal(0.0, 1.0)).unwrap();
        let mut posterior = posterior.with_scale(scale).initialised(3);
        let parameters = posterior.parameters_mut();
        let numbers = stream_values(0, 0, parameters.values().len(), 0.5, 0.0);
        parameters.values_mut().copy_from_slice(&numbers);
        pytorch::save_means(parameters, &means).unwrap();
        pytorch::save_stds(parameters, &stds).unwrap();
        let (means_file, stds_file) = (tensors(&means), tensors(&stds));
        assert_eq!(means_file.len(), parameters.slots().len());
        let slots = parameters.slots().to_vec();
        for ((mean, std), pair) in means_file.iter().zip(&stds_file).zip(0..) {
            assert_eq!((&mean.0, &mean.1), (&std.0, &std.1), "tensor {pair}");
            let slot = slots.iter().find(|s| Vit::pytorch_name(&s.name) == mean.0).unwrap();
            let range = &numbers[slot.range.clone()];
            // The last entry of a matrix is where it was.
            assert_eq!(mean.2.last(), range[..slot.len()].last());
            match slot.is_normalisation() {
                true => assert!(std.2.iter().all(|&s| s == 0.0)),
                false => {
                    assert_eq!(std.2.last().copied(), range.last().map(|&rho| scale.apply(rho)));
                }
            }
        }

        // Means come back; standard deviations stay as they are.
        let mut other = MeanField::new(small(), Prior::normal(0.0, 1.0)).unwrap();
        let before = other.parameters().values().to_vec();
        pytorch::load_means(other.parameters_mut(), &means).unwrap();
        let after = other.parameters().values();
        for slot in other.parameters().slots() {
            let middle = slot.range.start + slot.len();
            assert_eq!(after[slot.range.start..middle], numbers[slot.range.start..middle]);
            assert_eq!(after[middle..slot.range.end], before[middle..slot.range.end]);
        }
    }
}

#[test]
fn other_precisions_are_read() {
    let scratch = Scratch::new("pytorch-types");
    let original = tensors(&golden_path("vit_small.safetensors"));
    let path = scratch.file("other.safetensors");
    let write = |dtype: Dtype, bytes: fn(f32) -> Vec<u8>| {
        let data: Vec<Vec<u8>> =
            original.iter().map(|t| t.2.iter().flat_map(|&v| bytes(v)).collect()).collect();
        let views = original.iter().zip(&data).map(|((name, shape, _), data)| {
            (name.as_str(), TensorView::new(dtype, shape.clone(), data).unwrap())
        });
        fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        small().load_pytorch(&path)
    };
    let exact = values(&small().load_pytorch(golden_path("vit_small.safetensors")).unwrap());
    let double = write(Dtype::F64, |v| f64::from(v).to_le_bytes().to_vec()).unwrap();
    assert_eq!(values(&double), exact);
    let brain = write(Dtype::BF16, |v| v.to_le_bytes()[2..].to_vec()).unwrap();
    let cut = |v: &f32| f32::from_bits(v.to_bits() & 0xFFFF_0000);
    assert_eq!(values(&brain), exact.iter().map(cut).collect::<Vec<f32>>());
    let message = write(Dtype::F16, |_| vec![0; 2]).unwrap_err().to_string();
    assert!(message.contains("has type F16, only F32, F64 and BF16"), "{message}");
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let scratch = Scratch::new("pytorch-errors");
    let good = tensors(&golden_path("vit_small.safetensors"));
    let path = scratch.file("bad.safetensors");
    let shown = path.display().to_string();
    let refused = |change: &dyn Fn(&mut Tensors)| {
        let mut tensors = good.clone();
        change(&mut tensors);
        write_file(&path, &tensors);
        let mut parameters = Parameters::new(small());
        let before = parameters.values().to_vec();
        let error = pytorch::load_means(&mut parameters, &path).unwrap_err();
        assert_eq!(parameters.values(), before, "changed by a bad file");
        let message = error.to_string();
        assert!(message.starts_with(&shown), "{message}");
        message
    };
    let place = |name: &str| good.iter().position(|t| t.0 == name).unwrap();
    let head = place("linear_head.weight");

    let message = refused(&|tensors| tensors[head].1 = vec![16, 5]);
    let words = "'linear_head.weight' has shape [16, 5] in it, [5, 16] is expected";
    assert!(message.contains(words), "{message}");

    let message = refused(&|tensors| tensors[head].0 = "head.weight".into());
    let words = "it has no 'linear_head.weight'; it has the unknown 'head.weight'";
    assert!(message.contains(words), "{message}");

    let message = refused(&|tensors| tensors.truncate(1));
    assert!(message.contains("it has no '") && message.contains(" and 24 more"), "{message}");

    let message = refused(&|tensors| tensors.push(("pos_embedding".into(), vec![1], vec![0.0])));
    assert!(message.contains("it has the unknown 'pos_embedding'"), "{message}");

    let message = refused(&|tensors| tensors[head].2[7] = f32::NAN);
    assert!(message.contains("'linear_head.weight' has a number that is not finite"), "{message}");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let scratch = Scratch::new("pytorch-files");
    let path = scratch.file("weights.safetensors");
    let load = || small().load_pytorch(&path).unwrap_err();
    assert!(load().to_string().contains("no such file"), "{}", load());
    assert!(small().load_pytorch(&scratch.0).unwrap_err().to_string().contains("is a folder"));
    let whole = fs::read(golden_path("vit_small.safetensors")).unwrap();
    for bytes in [b"not what it seems".as_slice(), &whole[..4], &whole[..whole.len() - 1]] {
        fs::write(&path, bytes).unwrap();
        assert!(matches!(load(), WeightsError::NotSafetensors { .. }), "{}", load());
    }
    let error = small().save_pytorch(scratch.file("absent/weights.safetensors")).unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
}
