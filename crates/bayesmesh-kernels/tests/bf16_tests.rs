//! Operations with products of bf16: outputs and gradients against the forms composed from Burn's
//! own operations in single precision (within 2e-6 of the exact ones, a thousandth of what is
//! allowed here), on any number of threads, with the instruction and without.

use bayesmesh_kernels::Precision;
use bayesmesh_kernels::ops::{
    self, Activation, Epilogue, WindowBlock, WindowBlockWeights, Windows,
};
use bayesmesh_kernels::simd::{Level, has_bf16};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{DType, Device, Shape, Tensor, TensorData};

/// Normal numbers from a stream of their own, on a tape.
fn numbers<const D: usize>(number: u32, shape: [usize; D]) -> Tensor<D> {
    let mut values = vec![0.0; Shape::from(shape).num_elements()];
    Stream::new(1, Purpose::Synthesis).at_tensor(number).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().unwrap()
}

/// Sequences, tokens and numbers in each: more rows than one piece has, and none of the sizes is a
/// multiple of those of tiles.
const SHAPE: [usize; 3] = [15, 30, 36];
const HEADS: usize = 4;
const HIDDEN: usize = 70;

/// The inputs of an operation: x, weights of `[36, 36]`, `[36, 108]`, `[36, 70]`, `[70, 36]`, and
/// rows of 36, 36, 36, 108 and 70 numbers.
struct Inputs {
    x: Tensor<3>,
    weights: [Tensor<2>; 4],
    rows: [Tensor<1>; 5],
}

impl Inputs {
    fn new() -> Self {
        let [_, _, width] = SHAPE;
        let sizes = [[width, width], [width, 3 * width], [width, HIDDEN], [HIDDEN, width]];
        let weight = |i: usize| {
            let [from, to] = sizes[i];
            (numbers(1 + i as u32, [from, to]) * (1.0 / (from as f32).sqrt())).detach()
        };
        let row = |i: usize, width| numbers(5 + i as u32, [width]).detach();
        let leaf = |w: Tensor<2>| w.require_grad();
        Self {
            x: numbers(0, SHAPE).require_grad(),
            weights: [0, 1, 2, 3].map(|i| leaf(weight(i))),
            rows: [(0, width), (1, width), (2, width), (3, 3 * width), (4, HIDDEN)]
                .map(|(i, width)| row(i, width).require_grad()),
        }
    }
}

type Function = Box<dyn Fn(&Inputs) -> Tensor<3> + Send + Sync>;

fn with(f: impl Fn(&Inputs) -> Tensor<3> + Send + Sync + 'static) -> Function {
    Box::new(f)
}

const PLAIN: Epilogue =
    Epilogue { activation: Activation::Identity, copies: 1, mask: None, narrow: false };
const NARROW: Epilogue = Epilogue { narrow: true, ..PLAIN };
const GELU: Epilogue = Epilogue { activation: Activation::Gelu, ..PLAIN };

/// A block of a transformer, normalised before its parts: by operations that hand bf16 on.
fn block(i: &Inputs) -> Tensor<3> {
    let [out, qkv, up, down] = i.weights.clone();
    let [gamma, beta, bias, _, of_up] = i.rows.clone();
    let norm = (gamma, beta, 1e-5);
    let z = ops::norm_linear(i.x.clone(), norm.clone(), qkv, None, NARROW);
    let x = ops::linear_residual(ops::attention(z, HEADS, None), out, None, i.x.clone());
    let to_next = Epilogue { narrow: true, ..GELU };
    let z = ops::norm_linear(x.clone(), norm, up, Some(of_up), to_next);
    ops::linear_residual(z, down, Some(bias), x)
}

fn block_composed(i: &Inputs) -> Tensor<3> {
    let [out, qkv, up, down] = i.weights.clone();
    let [gamma, beta, bias, _, of_up] = i.rows.clone();
    let norm = (gamma, beta, 1e-5);
    let z = ops::norm_linear_composed(i.x.clone(), norm.clone(), qkv, None, PLAIN);
    let z = ops::attention_composed(z, HEADS, None);
    let x = ops::linear_composed(z, out, None, PLAIN) + i.x.clone();
    let z = ops::norm_linear_composed(x.clone(), norm, up, Some(of_up), GELU);
    ops::linear_composed(z, down, Some(bias), PLAIN) + x
}

fn window_block(recompute: bool) -> (WindowBlock, impl Fn(&Inputs) -> WindowBlockWeights) {
    let windows = Windows { grid: [5, 6], window: [2, 3], shifted: true };
    let (attention_mask, hidden_mask) = (None, None);
    let block = WindowBlock {
        windows,
        heads: HEADS,
        epsilon: 1e-5,
        attention_mask,
        hidden_mask,
        recompute,
    };
    let weights = |i: &Inputs| {
        let [proj, qkv, fc1, fc2] = i.weights.clone();
        let [gamma, beta, bias, of_qkv, of_fc1] = i.rows.clone();
        WindowBlockWeights {
            qkv: (qkv, of_qkv),
            proj: (proj, bias.clone()),
            norm1: (gamma.clone(), beta.clone()),
            fc1: (fc1, of_fc1),
            fc2: (fc2, bias),
            norm2: (gamma, beta),
        }
    };
    (block, weights)
}

/// Every operation with products, its composed form, and by how much of the root mean square of
/// what is compared it may be off, in the root of the mean square. A number is rounded by at most
/// 2⁻⁹ of it, by 2⁻⁹/√3 = 1.1e-3 in that sense, and roundings add as their squares: a product has
/// two of them, a gradient two more, and those of what its factors were made from.
fn operations() -> Vec<(&'static str, Function, Function, f64)> {
    let mut all: Vec<(&'static str, Function, Function, f64)> = Vec::new();
    for (name, activation) in [
        ("linear", Activation::Identity),
        ("linear with ReLU", Activation::Relu),
        ("linear with GELU", Activation::Gelu),
    ] {
        let epilogue = Epilogue { activation, ..PLAIN };
        let bias = |i: &Inputs| Some(i.rows[4].clone());
        all.push((
            name,
            with(move |i| ops::linear(i.x.clone(), i.weights[2].clone(), bias(i), epilogue)),
            with(move |i| {
                ops::linear_composed(i.x.clone(), i.weights[2].clone(), bias(i), epilogue)
            }),
            // Derivatives of GELU are rounded too, and multiplied by what else is.
            if activation == Activation::Gelu { 6e-3 } else { 4e-3 },
        ));
    }
    all.push((
        "linear with a residual",
        with(|i| ops::linear_residual(i.x.clone(), i.weights[0].clone(), None, i.x.clone())),
        with(|i| {
            ops::linear_composed(i.x.clone(), i.weights[0].clone(), None, PLAIN) + i.x.clone()
        }),
        4e-3,
    ));
    let norm = |i: &Inputs| (i.rows[0].clone(), i.rows[1].clone(), 1e-5);
    all.push((
        "norm and linear",
        with(move |i| ops::norm_linear(i.x.clone(), norm(i), i.weights[2].clone(), None, GELU)),
        with(move |i| {
            ops::norm_linear_composed(i.x.clone(), norm(i), i.weights[2].clone(), None, GELU)
        }),
        8e-3,
    ));
    all.push((
        "attention",
        with(|i| ops::attention(i.x.clone(), HEADS, None)),
        with(|i| ops::attention_composed(i.x.clone(), HEADS, None)),
        // Three products in a row, and a softmax that makes relative errors of absolute ones.
        1.2e-2,
    ));
    all.push(("a block", with(block), with(block_composed), 2e-2));
    for recompute in [false, true] {
        let ((block, weights), (_, weights_again)) =
            (window_block(recompute), window_block(recompute));
        all.push((
            if recompute { "a window block again" } else { "a window block" },
            with(move |i| ops::window_block(i.x.clone(), weights(i), block)),
            with(move |i| ops::window_block_composed(i.x.clone(), weights_again(i), block)),
            3e-2,
        ));
    }
    all
}

/// The output, and the gradients of `Σ c·y²` with respect to x and all weights that are used.
fn with_gradients(function: &Function, precision: Precision) -> Vec<Vec<f32>> {
    let inputs = Inputs::new();
    let y = precision.scope(|| function(&inputs));
    assert_eq!(y.dtype(), DType::F32);
    // Outside of the scope: an operation keeps its precision for the backward pass.
    let grads = (numbers(20, y.dims()) * y.clone().square()).sum().backward();
    let mut results = vec![to_vec(y.inner()), to_vec(inputs.x.grad(&grads).unwrap())];
    results.extend(inputs.weights.iter().filter_map(|w| w.grad(&grads)).map(to_vec));
    results.extend(inputs.rows.iter().filter_map(|r| r.grad(&grads)).map(to_vec));
    results
}

/// The root of the mean square of the distance, relative to that of the second.
fn distance(left: &[f32], right: &[f32]) -> f64 {
    assert_eq!(left.len(), right.len());
    let square = |x: f64| x * x;
    let both = left.iter().zip(right);
    let error: f64 = both.map(|(l, r)| square(f64::from(l - r))).sum();
    (error / right.iter().map(|r| square(f64::from(*r))).sum::<f64>()).sqrt()
}

#[test]
fn outputs_and_gradients_are_those_of_single_precision_within_rounding() {
    for (name, ours, composed, tolerance) in operations() {
        let exact = with_gradients(&composed, Precision::F32);
        for (single, exact) in with_gradients(&ours, Precision::F32).iter().zip(&exact) {
            let off = distance(single, exact);
            assert!(off < 5e-6, "{name}: {off} in single precision");
        }
        let narrow = with_gradients(&ours, Precision::Bf16);
        assert_eq!(narrow.len(), exact.len());
        let off: Vec<f64> =
            narrow.iter().zip(&exact).map(|(narrow, exact)| distance(narrow, exact)).collect();
        println!("{name}: off by {off:.5?}");
        assert!(off.iter().all(|off| *off < tolerance), "{name}: {off:?}");
        // It is not single precision after all.
        assert!(off[0] > 2e-4 && off[1] > 2e-4, "{name}: {off:?}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for precision in [Precision::F32, Precision::Bf16] {
        for (name, ours, ..) in operations() {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.scope(|_| with_gradients(&ours, precision))
            };
            let one = on(1);
            assert!(one == on(2) && one == on(3), "{name} in {precision:?}");
        }
    }
}

/// Products of bf16 are exact in single precision; the order of sums differs, and so do numbers
/// that are then rounded to another bf16.
#[test]
fn without_the_instruction_results_are_the_same_within_rounding() {
    println!("bf16 in hardware: {}", has_bf16());
    for (name, ours, ..) in operations() {
        let best = with_gradients(&ours, Precision::Bf16);
        for level in Level::available() {
            let widened = level.force(|| with_gradients(&ours, Precision::Bf16));
            for (best, widened) in best.iter().zip(&widened) {
                let off = distance(widened, best);
                assert!(off < 2e-3, "{name} at {level:?}: {off}");
            }
        }
    }
    // Where nothing is rounded in between it is the order of sums alone.
    let linear =
        with(|i| ops::linear(i.x.clone(), i.weights[2].clone(), Some(i.rows[4].clone()), PLAIN));
    let best = with_gradients(&linear, Precision::Bf16);
    let widened = Level::Baseline.force(|| with_gradients(&linear, Precision::Bf16));
    assert!(distance(&widened[0], &best[0]) < 3e-7);
}
