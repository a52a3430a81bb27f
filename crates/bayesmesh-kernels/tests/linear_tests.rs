//! The fused linear layer: against the form composed from Burn's own operations, against finite
//! differences, and with the draws of a stack.

use bayesmesh_kernels::ops::{Activation, Epilogue, Mask, dropout, linear, linear_composed};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{Device, Shape, Tensor, TensorData};

const ROWS: usize = 7;
const INPUTS: usize = 19;
const UNITS: usize = 37;
const DRAWS: usize = 3;

fn numbers<const D: usize>(number: u32, shape: [usize; D]) -> Tensor<D> {
    let mut values = vec![0.0; Shape::from(shape).num_elements()];
    Stream::new(1, Purpose::Synthesis).at_tensor(number).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::flex().autodiff())
}

fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().unwrap()
}

fn mask(draws: usize) -> Mask {
    let stream = Stream::new(2, Purpose::Dropout).at_draw(4);
    Mask { stream, draws: draws as u32, start: 2 * UNITS as u64, probability: 0.3 }
}

/// Every epilogue there is, for a batch of which `copies` are made.
fn epilogues(copies: usize) -> Vec<Epilogue> {
    let masks = [None, Some(mask(copies))];
    let activations = [Activation::Identity, Activation::Relu, Activation::Gelu];
    let each =
        |mask| activations.map(|activation| Epilogue { activation, copies, mask, narrow: false });
    masks.into_iter().flat_map(each).collect()
}

type Linear = fn(Tensor<3>, Tensor<2>, Option<Tensor<1>>, Epilogue) -> Tensor<3>;

/// y, and the gradients of `Σ c·y²` with respect to x, weight and bias.
fn with_gradients(linear: Linear, with_bias: bool, epilogue: Epilogue) -> Vec<Vec<f32>> {
    let x = numbers(0, [ROWS, 2, INPUTS]).require_grad();
    let weight = numbers(1, [INPUTS, UNITS]).require_grad();
    let bias = with_bias.then(|| numbers(2, [UNITS]).require_grad());
    let y = linear(x.clone(), weight.clone(), bias.clone(), epilogue);
    let weights = numbers(3, y.dims());
    let grads = (weights * y.clone().square()).sum().backward();
    let mut results = vec![
        to_vec(y.inner()),
        to_vec(x.grad(&grads).unwrap()),
        to_vec(weight.grad(&grads).unwrap()),
    ];
    results.extend(bias.map(|bias| to_vec(bias.grad(&grads).unwrap())));
    results
}

#[test]
fn on_the_cpu_it_equals_the_composed_form() {
    for copies in [1, DRAWS] {
        for epilogue in epilogues(copies) {
            for bias in [false, true] {
                let cpu = with_gradients(linear, bias, epilogue);
                let composed = with_gradients(linear_composed, bias, epilogue);
                assert_eq!(cpu.len(), composed.len());
                for (cpu, composed) in cpu.iter().zip(&composed) {
                    assert_eq!(cpu.len(), composed.len());
                    let scale = composed.iter().fold(0.0f32, |scale, v| scale.max(v.abs()));
                    for (cpu, composed) in cpu.iter().zip(composed) {
                        assert!((cpu - composed).abs() < 2e-6 * scale, "{cpu} {composed}");
                    }
                }
            }
        }
    }
}

/// `Σ c·y` is piecewise linear, so that differences are exact away from the kinks of ReLU; a step
/// as small as this one crosses none of them.
#[test]
fn its_gradients_are_those_of_finite_differences() {
    let step = 1e-3;
    let value = |x: &Tensor<2>, weight: &Tensor<2>, bias: &Tensor<1>, epilogue| {
        let y = linear(x.clone(), weight.clone(), Some(bias.clone()), epilogue);
        let weights = numbers(3, y.dims());
        (weights * y).sum()
    };
    let number = |t: Tensor<1>| f64::from(t.into_scalar::<f32>());
    let (x, weight, bias) = (numbers(0, [2, 5]), numbers(1, [5, UNITS]), numbers::<1>(2, [UNITS]));
    for epilogue in epilogues(DRAWS) {
        let tracked =
            (x.clone().require_grad(), weight.clone().require_grad(), bias.clone().require_grad());
        let grads = value(&tracked.0, &tracked.1, &tracked.2, epilogue).backward();
        let check = |analytic: f32, change: &dyn Fn(f32) -> Tensor<1>| {
            let difference = (number(change(step)) - number(change(-step))) / f64::from(2.0 * step);
            let error = (f64::from(analytic) - difference).abs();
            assert!(error < 0.02, "{analytic} against {difference}");
        };
        let bump = |t: &Tensor<2>, i: usize, j: usize, by: f32| {
            let one =
                Tensor::<2>::zeros(t.dims(), &t.device()).slice_fill([i..i + 1, j..j + 1], by);
            t.clone() + one
        };
        for (i, j) in [(0, 0), (1, 4), (0, 3)] {
            let grad = to_vec(tracked.0.grad(&grads).unwrap())[i * 5 + j];
            check(grad, &|by| value(&bump(&x, i, j, by), &weight, &bias, epilogue));
        }
        for (i, j) in [(0, 0), (4, 36), (2, 17)] {
            let grad = to_vec(tracked.1.grad(&grads).unwrap())[i * UNITS + j];
            check(grad, &|by| value(&x, &bump(&weight, i, j, by), &bias, epilogue));
        }
        for j in [0, 11, 36] {
            let grad = to_vec(tracked.2.grad(&grads).unwrap())[j];
            let bumped = |by| bump(&bias.clone().reshape([1, UNITS]), 0, j, by).reshape([UNITS]);
            check(grad, &|by| value(&x, &weight, &bumped(by), epilogue));
        }
    }
}

#[test]
fn its_mask_is_that_of_dropout_bit_by_bit() {
    let (x, weight) = (numbers(0, [DRAWS * ROWS, INPUTS]), numbers(1, [INPUTS, UNITS]));
    let plain = linear(x.clone(), weight.clone(), None, Epilogue::default());
    let fused = Epilogue { mask: Some(mask(DRAWS)), ..Epilogue::default() };
    let fused = linear(x, weight, None, fused);
    assert_eq!(to_vec(fused), to_vec(dropout(plain, mask(DRAWS))));
}

/// One product for all draws, or one for each: what comes out is the same draw by draw.
#[test]
fn copies_are_a_stack_of_equal_inputs() {
    let (x, weight) = (numbers(0, [ROWS, INPUTS]), numbers(1, [INPUTS, UNITS]));
    let run = |copied: bool| {
        let (x, weight) = (x.clone().require_grad(), weight.clone().require_grad());
        let (input, copies) = match copied {
            true => (x.clone(), DRAWS),
            false => (x.clone().repeat_dim(0, DRAWS), 1),
        };
        let epilogue = Epilogue {
            activation: Activation::Relu,
            copies,
            mask: Some(mask(DRAWS)),
            narrow: false,
        };
        let y = linear(input, weight.clone(), None, epilogue);
        let grads = (numbers(3, y.dims()) * y.clone()).sum().backward();
        (to_vec(y.inner()), to_vec(x.grad(&grads).unwrap()), to_vec(weight.grad(&grads).unwrap()))
    };
    let (copied, stacked) = (run(true), run(false));
    assert_eq!(copied.0.len(), DRAWS * ROWS * UNITS);
    for (one, other) in [(&copied.0, &stacked.0), (&copied.1, &stacked.1), (&copied.2, &stacked.2)]
    {
        for (one, other) in one.iter().zip(other) {
            assert!((one - other).abs() < 1e-4, "{one} {other}");
        }
    }
}

#[test]
fn what_is_not_a_number_stays_visible() {
    let x = numbers(0, [2, INPUTS]) * f32::NAN;
    let epilogue =
        Epilogue { activation: Activation::Relu, copies: 1, mask: Some(mask(1)), narrow: false };
    let y = to_vec(linear(x, numbers(1, [INPUTS, UNITS]), None, epilogue));
    assert!(y.iter().all(|y| y.is_nan()));
}

/// More rows than go through a layer at a time, and not a multiple of them.
#[test]
fn many_rows_are_like_few() {
    let rows = 1100;
    for activation in [Activation::Identity, Activation::Relu, Activation::Gelu] {
        let results = [linear::<2> as fn(_, _, _, _) -> _, linear_composed::<2>].map(|linear| {
            let x = numbers(0, [rows, INPUTS]).require_grad();
            let weight = numbers(1, [INPUTS, UNITS]).require_grad();
            let bias = numbers::<1>(2, [UNITS]).require_grad();
            let epilogue = Epilogue { activation, ..Epilogue::default() };
            let y: Tensor<2> = linear(x.clone(), weight.clone(), Some(bias.clone()), epilogue);
            let grads = (numbers(3, y.dims()) * y.clone().square()).sum().backward();
            [
                to_vec(y.inner()),
                to_vec(x.grad(&grads).unwrap()),
                to_vec(weight.grad(&grads).unwrap()),
                to_vec(bias.grad(&grads).unwrap()),
            ]
        });
        let [cpu, composed] = results;
        for (cpu, composed) in cpu.iter().zip(&composed) {
            let scale = composed.iter().fold(0.0f32, |scale, v| scale.max(v.abs()));
            for (cpu, composed) in cpu.iter().zip(composed) {
                assert!((cpu - composed).abs() < 3e-6 * scale, "{cpu} {composed}");
            }
        }
    }
}
