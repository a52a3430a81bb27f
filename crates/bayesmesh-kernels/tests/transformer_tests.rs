//! The operations of a transformer: against the forms composed from Burn's own operations, against
//! finite differences, at every SIMD level, and on any number of threads.

use bayesmesh_kernels::ops::{self, Window};
use bayesmesh_kernels::simd::Level;
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

/// A function of three tensors, each `[4, 6, 24]`, to be differentiated.
type Function = Box<dyn Fn([Tensor<3>; 3]) -> Tensor<3>>;

const SHAPE: [usize; 3] = [4, 6, 24];

/// The first row of a tensor, as gains, biases and the like.
fn row(x: &Tensor<3>) -> Tensor<1> {
    x.clone().slice([0..1, 0..1, 0..SHAPE[2]]).reshape([SHAPE[2]])
}

/// A tensor as a matrix of `[24, 24]`.
fn square(x: &Tensor<3>) -> Tensor<2> {
    x.clone().reshape([24, 24])
}

fn mask(count: usize) -> Tensor<3> {
    let far = numbers(9, [count, SHAPE[1], SHAPE[1]]).greater_elem(0.8);
    Tensor::zeros([count, SHAPE[1], SHAPE[1]], &Device::flex()).mask_fill(far.inner(), -100.0)
}

/// A convolution of 4 x 6 tokens of 6 numbers.
fn conv(
    f: fn(Tensor<3>, Tensor<2>, Tensor<1>, Window) -> Tensor<3>,
    x: Tensor<3>,
    weight: &Tensor<3>,
    bias: &Tensor<3>,
    window: Window,
) -> Tensor<3> {
    let inputs = 6 * window.side * window.side;
    let weight = Tensor::cat(vec![square(weight), square(bias)], 0);
    let weight = weight.reshape([192, 6]).narrow(0, 0, inputs) * (1.0 / (inputs as f32).sqrt());
    let bias = row(bias).narrow(0, 0, 6);
    f(x.reshape([4, 24, 6]), weight, bias, window)
}

/// What convolutions look at on such a grid.
fn windows() -> [(&'static str, Window); 6] {
    let image = |side, stride| Window::image([4, 6], side, stride);
    [
        ("convolution on the globe", Window::globe([4, 6], 1)),
        ("convolution of far neighbours", Window::globe([4, 6], 7)),
        ("convolution of an image", image(3, 1)),
        ("convolution with a stride", image(3, 2)),
        ("convolution with larger squares", image(5, 4)),
        ("convolution of single tokens", image(1, 2)),
    ]
}

/// Every operation with its composed form.
fn operations() -> Vec<(&'static str, Function, Function)> {
    fn images(x: Tensor<3>) -> Tensor<4> {
        x.reshape([4, 3, 4, 12])
    }
    fn with(f: impl Fn([Tensor<3>; 3]) -> Tensor<3> + 'static) -> Function {
        Box::new(f)
    }
    let mut all = vec![
        (
            "layer_norm",
            with(|[x, g, b]| ops::layer_norm(x, row(&g), row(&b), 1e-5)),
            with(|[x, g, b]| ops::layer_norm_composed(x, row(&g), row(&b), 1e-5)),
        ),
        (
            "group_norm",
            with(|[x, g, b]| ops::group_norm(x, row(&g), row(&b), 4, 1e-5, false)),
            with(|[x, g, b]| ops::group_norm_composed(x, row(&g), row(&b), 4, 1e-5, false)),
        ),
        (
            "gelu",
            with(|[x, _, _]| ops::gelu(x * 2.0)),
            with(|[x, _, _]| ops::gelu_composed(x * 2.0)),
        ),
        ("softmax", with(|[x, _, _]| ops::softmax(x)), with(|[x, _, _]| ops::softmax_composed(x))),
        (
            "attention",
            with(|[x, _, _]| ops::attention(x, 2, None)),
            with(|[x, _, _]| ops::attention_composed(x, 2, None)),
        ),
        (
            "attention of windows",
            with(|[x, _, _]| ops::attention(x, 4, Some(mask(2)))),
            with(|[x, _, _]| ops::attention_composed(x, 4, Some(mask(2).autodiff()))),
        ),
        (
            "patches",
            with(|[x, _, _]| ops::patches(images(x), 2)),
            with(|[x, _, _]| ops::patches_composed(images(x), 2)),
        ),
        (
            "linear_residual",
            with(|[x, w, r]| ops::linear_residual(x, square(&w), None, r)),
            with(|[x, w, r]| {
                ops::linear_composed(x, square(&w), None, ops::Epilogue::default()) + r
            }),
        ),
        (
            "linear_residual with bias",
            with(|[x, w, r]| ops::linear_residual(x, square(&w), Some(row(&w)), r)),
            with(|[x, w, r]| {
                ops::linear_composed(x, square(&w), Some(row(&w)), ops::Epilogue::default()) + r
            }),
        ),
    ];
    all.extend(windows().map(|(name, window)| {
        (
            name,
            with(move |[x, w, b]| conv(ops::conv, x, &w, &b, window)),
            with(move |[x, w, b]| conv(ops::conv_composed, x, &w, &b, window)),
        )
    }));
    all
}

/// The output, and the gradients of `Σ c·y²` with respect to the three tensors.
fn with_gradients(function: &Function) -> Vec<Vec<f32>> {
    let inputs = [0, 1, 2].map(|number| numbers(number, SHAPE).require_grad());
    let y = function(inputs.clone());
    let weights = numbers(3, y.dims());
    let grads = (weights * y.clone().square()).sum().backward();
    let mut results = vec![to_vec(y.inner())];
    // An input that a function does not use has no gradient.
    results.extend(inputs.iter().filter_map(|x| x.grad(&grads)).map(to_vec));
    results
}

fn assert_close(name: &str, left: &[Vec<f32>], right: &[Vec<f32>], tolerance: f32) {
    assert_eq!(left.len(), right.len(), "{name}");
    for (index, (left, right)) in left.iter().zip(right).enumerate() {
        assert_eq!(left.len(), right.len(), "{name}");
        let scale = right.iter().fold(0.0f32, |scale, v| scale.max(v.abs()));
        for (l, r) in left.iter().zip(right) {
            assert!((l - r).abs() <= tolerance * scale, "{name}, result {index}: {l} {r}");
        }
    }
}

#[test]
fn on_the_cpu_they_equal_their_composed_forms() {
    for (name, cpu, composed) in operations() {
        assert_close(name, &with_gradients(&cpu), &with_gradients(&composed), 3e-6);
    }
}

/// Not among the others: where it is cut it has no derivative that differences could show.
#[test]
fn a_rectified_normalisation_equals_its_composed_form() {
    for groups in [1, 3, 24] {
        type Norm = fn(Tensor<3>, Tensor<1>, Tensor<1>, usize, f32, bool) -> Tensor<3>;
        let with = |f: Norm| -> Function {
            Box::new(move |[x, g, b]| f(x, row(&g), row(&b), groups, 1e-5, true))
        };
        let [cpu, composed] = [ops::group_norm as Norm, ops::group_norm_composed].map(with);
        assert_close("rectified", &with_gradients(&cpu), &with_gradients(&composed), 3e-6);
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
            // Along a random direction, so that every element counts.
            let direction = numbers(4, SHAPE);
            let moved = |by: f64| {
                let mut inputs = inputs.clone().map(|x| x.inner().autodiff());
                inputs[which] = inputs[which].clone() + direction.clone() * by;
                value(inputs)
            };
            let [near, far] = [step, 2.0 * step].map(|h| (moved(h) - moved(-h)) / (2.0 * h));
            // Without the terms of third order.
            let difference = (4.0 * near - far) / 3.0;
            let slope: f64 = to_vec(gradient)
                .iter()
                .zip(to_vec(direction.inner()))
                .map(|(g, d)| f64::from(*g) * f64::from(d))
                .sum();
            let error = (slope - difference).abs() / (1.0 + slope.abs());
            assert!(error < 2e-4, "{name}, input {which}: {slope} against {difference}");
        }
    }
}

#[test]
fn element_wise_work_gives_the_same_bits_at_every_level() {
    let here = [0, 1, 2, 3].map(|index| operations().swap_remove(index));
    for (name, function, _) in &here {
        // Attention and linear layers contain products, whose bits are those of the `gemm` crate
        // and do not depend on the level forced here.
        let baseline = Level::Baseline.force(|| with_gradients(function));
        for level in Level::available() {
            assert_eq!(level.force(|| with_gradients(function)), baseline, "{name} at {level:?}");
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let large = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let x = numbers(0, [40, 64, 96]).require_grad();
            let (gamma, beta) = (numbers(1, [96]).require_grad(), numbers(2, [96]).require_grad());
            let weight = numbers(3, [32, 96]).require_grad();
            let y = ops::layer_norm(x.clone(), gamma.clone(), beta.clone(), 1e-5);
            let y = ops::attention(y, 4, None);
            let epilogue =
                ops::Epilogue { activation: ops::Activation::Gelu, ..Default::default() };
            let y = ops::linear(y, weight.clone(), Some(beta.clone()), epilogue);
            let grads = ops::softmax(y).square().sum().backward();
            let of = |g: Option<Vec<f32>>| g.unwrap();
            [
                of(x.grad(&grads).map(to_vec)),
                of(gamma.grad(&grads).map(to_vec)),
                of(beta.grad(&grads).map(to_vec)),
                of(weight.grad(&grads).map(to_vec)),
            ]
        })
    };
    let one = large(1);
    for threads in [2, 3] {
        assert_eq!(large(threads), one, "{threads} threads");
    }
}

#[test]
fn what_is_not_a_number_stays_visible() {
    let spoiled = numbers(0, SHAPE).slice_assign(
        [1..2, 2..3, 3..4],
        Tensor::full([1, 1, 1], f32::NAN, &Device::flex().autodiff()),
    );
    for (name, function, _) in operations() {
        // It looks at every fourth token only, and not at the one that is spoilt.
        if name == "convolution of single tokens" {
            continue;
        }
        let y = to_vec(function([spoiled.clone(), numbers(1, SHAPE), numbers(2, SHAPE)]).inner());
        assert!(y.iter().any(|v| v.is_nan()), "{name}");
        assert!(y.iter().any(|v| v.is_finite()), "{name} spoils other examples");
    }
}

#[test]
fn gelu_of_large_numbers() {
    let x = Tensor::<1>::from_data([-1e30f32, -200.0, -0.0, 0.0, 200.0, 1e30], &Device::flex());
    assert_eq!(to_vec(ops::gelu(x)), [0.0, 0.0, 0.0, 0.0, 200.0, 1e30]);
}

#[test]
#[should_panic(expected = "queries, keys and values of 5 heads")]
fn heads_that_do_not_divide_the_width_are_refused() {
    ops::attention(numbers(0, SHAPE), 5, None);
}

#[test]
#[should_panic(expected = "do not divide images of 4 x 6")]
fn patches_that_do_not_divide_the_image_are_refused() {
    ops::patches(numbers(0, [1, 3, 4, 6]), 4);
}
