//! The operations of the ViT at the paper's sizes, batch 64: forward, and forward with backward,
//! beside the forms composed from Burn's own operations.

use bayesmesh_kernels::ops::{self, Activation, Epilogue};
use burn::tensor::{Device, Distribution, Tensor};
use criterion::{Criterion, criterion_group, criterion_main};

const TOKENS: [usize; 3] = [64, 64, 192];

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex().autodiff())
}

/// Times `function` on a random tensor, alone and with its backward pass.
fn pair<const D: usize, const E: usize>(
    criterion: &mut Criterion,
    name: &str,
    shape: [usize; D],
    function: impl Fn(Tensor<D>) -> Tensor<E>,
) {
    let mut group = criterion.benchmark_group(name);
    let input = random(shape);
    group.sample_size(20);
    group.bench_function("forward", |bencher| bencher.iter(|| function(input.clone())));
    let leaf = input.clone().require_grad();
    group.bench_function("both", |bencher| {
        bencher.iter(|| function(leaf.clone()).sum().backward());
    });
    group.finish();
}

fn transformer(criterion: &mut Criterion) {
    let (gamma, beta) = (random([192]), random([192]));
    let norm = |x| ops::layer_norm(x, gamma.clone(), beta.clone(), 1e-5);
    pair(criterion, "layer_norm", TOKENS, norm);
    let norm = |x| ops::layer_norm_composed(x, gamma.clone(), beta.clone(), 1e-5);
    pair(criterion, "layer_norm_composed", TOKENS, norm);

    pair(criterion, "gelu", [64, 64, 768], ops::gelu);
    pair(criterion, "gelu_composed", [64, 64, 768], ops::gelu_composed);
    pair(criterion, "softmax", [192, 64, 64], ops::softmax);
    pair(criterion, "softmax_composed", [192, 64, 64], ops::softmax_composed);

    pair(criterion, "attention", [64, 64, 576], |x| ops::attention(x, 3, None));
    pair(criterion, "attention_composed", [64, 64, 576], |x| ops::attention_composed(x, 3, None));

    let (weight, bias) = (random([192, 768]), random([768]));
    let epilogue = Epilogue { activation: Activation::Gelu, ..Epilogue::default() };
    let up = |x| ops::linear(x, weight.clone(), Some(bias.clone()), epilogue);
    pair(criterion, "linear_gelu", TOKENS, up);
    let up = |x| ops::linear_composed(x, weight.clone(), Some(bias.clone()), epilogue);
    pair(criterion, "linear_gelu_composed", TOKENS, up);

    pair(criterion, "patches", [64, 3, 32, 32], |x| ops::patches(x, 4));
    pair(criterion, "patches_composed", [64, 3, 32, 32], |x| ops::patches_composed(x, 4));
}

criterion_group!(benches, transformer);
criterion_main!(benches);
