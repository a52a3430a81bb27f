//! The operations of a transformer with windows on the globe: against the forms composed from
//! Burn's own operations, against finite differences, and on any number of threads.

use bayesmesh_kernels::ops::{
    self, Globe, Mask, WindowBlock, WindowBlockWeights, Windows, globe_fields, globe_patches,
    merge_tokens, split_tokens, window_attention, window_block,
};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{Device, Shape, Tensor, TensorData};

/// Normal numbers from a stream of their own, on a tape.
fn numbers<const D: usize>(number: u32, shape: [usize; D]) -> Tensor<D> {
    let mut values = vec![0.0; Shape::from(shape).num_elements()];
    Stream::new(1, Purpose::Synthesis).at_tensor(number).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().unwrap()
}

/// Rows and columns of tokens, and numbers in each.
const GRID: [usize; 2] = [5, 6];
const SHAPE: [usize; 3] = [2, 30, 12];

type Function = Box<dyn Fn([Tensor<3>; 3]) -> Tensor<3>>;

fn with(f: impl Fn([Tensor<3>; 3]) -> Tensor<3> + 'static) -> Function {
    Box::new(f)
}

/// The first so many numbers of a tensor.
fn first(x: &Tensor<3>, count: usize) -> Tensor<1> {
    let [a, b, c] = x.dims();
    x.clone().reshape([a * b * c]).narrow(0, 0, count)
}

fn matrix(x: &Tensor<3>, rows: usize, columns: usize) -> Tensor<2> {
    first(x, rows * columns).reshape([rows, columns]) * (1.0 / (rows as f32).sqrt())
}

fn flat(x: Tensor<4>) -> Tensor<3> {
    let [a, b, c, d] = x.dims();
    x.reshape([a, b, c * d])
}

fn globe(turns: [usize; 2]) -> Globe {
    // Three latitudes in patches of two: one is added.
    Globe { grid: [3, 12], patch: 2, turns: turns.into() }
}

fn weights(w: &Tensor<3>, b: &Tensor<3>) -> WindowBlockWeights {
    WindowBlockWeights {
        qkv: (matrix(w, 12, 36), first(b, 36)),
        proj: (matrix(b, 12, 12), first(w, 12)),
        norm1: (first(w, 12), first(b, 12)),
        fc1: (matrix(w, 12, 20), first(b, 20)),
        fc2: (matrix(b, 20, 12), first(w, 12)),
        norm2: (first(b, 12), first(w, 12)),
    }
}

fn block(recompute: bool, masked: bool, shifted: bool) -> WindowBlock {
    let stream = Stream::new(3, Purpose::Dropout);
    let mask =
        |tensor| Mask { stream: stream.at_tensor(tensor), draws: 1, start: 0, probability: 0.3 };
    WindowBlock {
        windows: Windows { grid: GRID, window: [2, 3], shifted },
        heads: 2,
        epsilon: 1e-5,
        attention_mask: masked.then(|| mask(0)),
        hidden_mask: masked.then(|| mask(1)),
        recompute,
    }
}

/// Every operation with its composed form.
fn operations() -> Vec<(String, Function, Function)> {
    let fields = |x: Tensor<3>| -> Tensor<4> { x.reshape([2, 10, 3, 12]) };
    let mut all: Vec<(String, Function, Function)> = vec![
        (
            "layer_norm_residual".into(),
            with(|[x, g, r]| ops::layer_norm_residual(x, first(&g, 12), first(&r, 12), 1e-5, r)),
            with(|[x, g, r]| ops::layer_norm_composed(x, first(&g, 12), first(&r, 12), 1e-5) + r),
        ),
        (
            "merge_tokens".into(),
            with(|[x, ..]| merge_tokens(x, GRID)),
            with(|[x, ..]| ops::merge_tokens_composed(x, GRID)),
        ),
        (
            "split_tokens".into(),
            with(|[x, ..]| split_tokens(x, [9, 12])),
            with(|[x, ..]| ops::split_tokens_composed(x, [9, 12])),
        ),
    ];
    for turns in [[0, 0], [7, 2]] {
        all.push((
            format!("globe_patches {turns:?}"),
            with(move |[x, ..]| globe_patches(fields(x), globe(turns))),
            with(move |[x, ..]| ops::globe_patches_composed(fields(x), &globe(turns))),
        ));
        // Twelve tokens of thirty numbers: two rows of six patches, of which 28 are used.
        let tokens = |x: Tensor<3>| x.reshape([2, 12, 30]).narrow(2, 0, 28);
        all.push((
            format!("globe_fields {turns:?}"),
            with(move |[x, b, _]| flat(globe_fields(tokens(x), first(&b, 7), globe(turns)))),
            with(move |[x, b, _]| {
                flat(ops::globe_fields_composed(tokens(x), first(&b, 7), &globe(turns)))
            }),
        ));
    }
    // With and without padding, columns and rows that cannot be halved, a window as high as the
    // grid.
    for window in [[2, 3], [5, 2], [1, 6], [3, 1], [4, 3], [8, 2]] {
        for shifted in [false, true] {
            let windows = Windows { grid: GRID, window, shifted };
            all.push((
                format!("window_attention {window:?} {shifted}"),
                with(move |[x, b, _]| window_attention(x, first(&b, 12), windows, 2)),
                with(move |[x, b, _]| {
                    // The bias plays no part where there is no padding.
                    let bias = first(&b, 12);
                    let bias = if windows.are_padded() { bias } else { bias.detach() };
                    ops::window_attention_composed(x, bias, windows, 2)
                }),
            ));
        }
    }
    for recompute in [false, true] {
        for masked in [false, true] {
            all.push((
                format!("window_block, again {recompute}, dropout {masked}"),
                with(move |[x, w, b]| {
                    window_block(x, weights(&w, &b), block(recompute, masked, true))
                }),
                with(move |[x, w, b]| {
                    ops::window_block_composed(x, weights(&w, &b), block(false, masked, true))
                }),
            ));
        }
    }
    all
}

/// The output, and the gradients of `Σ c·y²` with respect to the tensors that are used.
fn with_gradients(function: &Function) -> Vec<Vec<f32>> {
    let inputs = [0, 1, 2].map(|number| numbers(number, SHAPE).require_grad());
    let y = function(inputs.clone());
    let weights = numbers(3, y.dims());
    let grads = (weights * y.clone().square()).sum().backward();
    let mut results = vec![to_vec(y.inner())];
    results.extend(inputs.iter().filter_map(|x| x.grad(&grads)).map(to_vec));
    results
}

#[test]
fn on_the_cpu_they_equal_their_composed_forms() {
    for (name, cpu, composed) in operations() {
        let (left, right) = (with_gradients(&cpu), with_gradients(&composed));
        assert_eq!(left.len(), right.len(), "{name}");
        for (index, (left, right)) in left.iter().zip(&right).enumerate() {
            let scale = right.iter().fold(0.0f32, |scale, v| scale.max(v.abs()));
            for (l, r) in left.iter().zip(right) {
                assert!((l - r).abs() <= 5e-6 * scale, "{name}, result {index}: {l} {r}");
            }
        }
    }
}

#[test]
fn their_gradients_are_those_of_finite_differences() {
    let step = 1e-2;
    for (name, function, _) in operations() {
        let inputs = [0, 1, 2].map(|number| numbers(number, SHAPE).require_grad());
        let value = |inputs: [Tensor<3>; 3]| {
            let y = function(inputs);
            let weights = to_vec(numbers(3, y.dims()));
            let y = to_vec(y.inner());
            y.iter().zip(weights).map(|(y, w)| f64::from(*y) * f64::from(w)).sum::<f64>()
        };
        let y = function(inputs.clone());
        let grads = (numbers(3, y.dims()) * y).sum().backward();
        for which in 0..3 {
            let Some(gradient) = inputs[which].grad(&grads) else { continue };
            let direction = numbers(4, SHAPE) * 0.3;
            let moved = |by: f64| {
                let mut inputs = inputs.clone().map(|x| x.inner().autodiff());
                inputs[which] = inputs[which].clone() + direction.clone() * by;
                value(inputs)
            };
            let [near, far] = [step, 2.0 * step].map(|h| (moved(h) - moved(-h)) / (2.0 * h));
            let difference = (4.0 * near - far) / 3.0;
            let slope: f64 = to_vec(gradient)
                .iter()
                .zip(to_vec(direction.inner()))
                .map(|(g, d)| f64::from(*g) * f64::from(d))
                .sum();
            let error = (slope - difference).abs() / (1.0 + slope.abs());
            assert!(error < 1e-3, "{name}, input {which}: {slope} against {difference}");
        }
    }
}

/// Output and gradients of a block, each of whose weights is a tensor of its own.
fn block_gradients(block: WindowBlock) -> Vec<Vec<f32>> {
    let line = |number, n: usize| numbers(number, [n]).require_grad();
    let table = |number, shape: [usize; 2]| (numbers(number, shape) * 0.3).detach().require_grad();
    let x = numbers(10, SHAPE).require_grad();
    let weights = WindowBlockWeights {
        qkv: (table(11, [12, 36]), line(12, 36)),
        proj: (table(13, [12, 12]), line(14, 12)),
        norm1: (line(15, 12), line(16, 12)),
        fc1: (table(17, [12, 20]), line(18, 20)),
        fc2: (table(19, [20, 12]), line(20, 12)),
        norm2: (line(21, 12), line(22, 12)),
    };
    let y = window_block(x.clone(), weights.clone(), block);
    let grads = (numbers(23, SHAPE) * y.clone()).sum().backward();
    let mut all = vec![to_vec(y.inner()), to_vec(x.grad(&grads).unwrap())];
    for (weight, bias) in [&weights.qkv, &weights.proj, &weights.fc1, &weights.fc2] {
        all.extend([to_vec(weight.grad(&grads).unwrap()), to_vec(bias.grad(&grads).unwrap())]);
    }
    for (gamma, beta) in [&weights.norm1, &weights.norm2] {
        all.extend([to_vec(gamma.grad(&grads).unwrap()), to_vec(beta.grad(&grads).unwrap())]);
    }
    all
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads_nor_on_running_a_block_again() {
    for masked in [false, true] {
        let run = |threads: usize, recompute: bool| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| block_gradients(block(recompute, masked, true)))
        };
        let one = run(1, false);
        for (threads, recompute) in [(1, true), (2, false), (3, true)] {
            assert!(run(threads, recompute) == one, "{threads} threads, again: {recompute}");
        }
    }
}

/// Tokens at the bottom and at the top, which a shifted window brings together, do not see each
/// other; those on both sides of the first meridian do.
#[test]
fn shifted_windows_wrap_in_longitude_only() {
    let windows = Windows { grid: [4, 6], window: [2, 2], shifted: true };
    let changed = |token: usize| -> Vec<usize> {
        let x = numbers(0, [1, 24, 12]);
        let other = x.clone().slice_assign([0..1, token..token + 1, 0..12], numbers(5, [1, 1, 12]));
        let of = |x| to_vec(window_attention(x, numbers(1, [12]), windows, 2).inner());
        let (before, after) = (of(x), of(other));
        (0..24).filter(|token| before[token * 4..][..4] != after[token * 4..][..4]).collect()
    };
    // In the last column of the second row: with the first column, and the row below.
    assert_eq!(changed(6 + 5), [6, 11, 12, 17]);
    // In the top row: with the first column of that row only.
    assert_eq!(changed(5), [0, 5]);
}

#[test]
#[should_panic(expected = "windows of 2 x 4 on 30 tokens of a grid of 5 x 6")]
fn windows_that_do_not_divide_the_globe_are_refused() {
    let windows = Windows { grid: GRID, window: [2, 4], shifted: false };
    window_attention(numbers(0, SHAPE), numbers(1, [12]), windows, 2);
}
