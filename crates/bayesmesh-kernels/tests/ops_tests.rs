//! Differentiable operations: gradients against finite differences, and the implementation for the
//! CPU device against the one composed from Burn's own operations.

use bayesmesh_kernels::gaussian::Scale;
use bayesmesh_kernels::ops::{Mask, dropout, dropout_composed, sample, sample_composed};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{Device, Tensor, TensorData};

const STREAM: Stream = Stream::new(11, Purpose::Weights).at_step(3).at_draw(2).at_tensor(5);

fn tensor(values: &[f32]) -> Tensor<1> {
    let device = Device::flex().autodiff();
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &device)
}

fn to_vec(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// Values of moderate size from a stream of their own.
fn numbers(tensor: u32, n: usize) -> Vec<f32> {
    let mut values = vec![0.0; n];
    Stream::new(1, Purpose::Synthesis).at_tensor(tensor).fill_normal(0, &mut values);
    values
}

fn assert_close(left: &[f32], right: &[f32], tolerance: f32) {
    assert_eq!(left.len(), right.len());
    for (i, (l, r)) in left.iter().zip(right).enumerate() {
        let bound = tolerance * (1.0 + l.abs().max(r.abs()));
        assert!((l - r).abs() <= bound, "element {i}: {l} against {r}");
    }
}

type Sample = fn(Tensor<1>, Tensor<1>, Stream, Scale) -> Tensor<1>;

/// Weights, and gradients of `Σ c·w²` with respect to mean and rho.
fn sample_with_gradients(sample: Sample, scale: Scale, n: usize) -> [Vec<f32>; 3] {
    let (mean, rho) = (numbers(0, n), numbers(1, n));
    let (mean, rho) = (tensor(&mean).require_grad(), tensor(&rho).require_grad());
    let w = sample(mean.clone(), rho.clone(), STREAM, scale);
    let loss = (w.clone().square() * tensor(&numbers(2, n))).sum();
    let grads = loss.backward();
    [w.inner(), mean.grad(&grads).unwrap(), rho.grad(&grads).unwrap()].map(to_vec)
}

#[test]
fn sampling_on_the_cpu_equals_the_composed_form() {
    for scale in [Scale::Exp, Scale::Softplus] {
        // Lengths around the sizes of chunks and vectors.
        for n in [1, 3, 7, 16, 255, 1000, 4099] {
            let cpu = sample_with_gradients(sample, scale, n);
            let composed = sample_with_gradients(sample_composed, scale, n);
            for (cpu, composed) in cpu.iter().zip(&composed) {
                assert_close(cpu, composed, 2e-6);
            }
        }
    }
}

#[test]
fn gradients_of_sampling_agree_with_finite_differences() {
    let n = 40;
    let (mean, rho, weight) = (numbers(0, n), numbers(1, n), numbers(2, n));
    for scale in [Scale::Exp, Scale::Softplus] {
        let [_, grad_mean, grad_rho] = sample_with_gradients(sample, scale, n);
        // The loss is a sum over elements, so one evaluation with all of them moved gives all
        // differences. In double precision from single-precision weights.
        let terms = |mean: &[f32], rho: &[f32]| -> Vec<f64> {
            let w = to_vec(sample(tensor(mean), tensor(rho), STREAM, scale).inner());
            let squares = w.iter().map(|&w| f64::from(w).powi(2));
            squares.zip(&weight).map(|(square, &c)| square * f64::from(c)).collect()
        };
        let step = 1.0 / 256.0; // exact in single precision
        let moved =
            |values: &[f32], by: f32| -> Vec<f32> { values.iter().map(|v| v + by).collect() };
        let differences = |plus: Vec<f64>, minus: Vec<f64>| -> Vec<f32> {
            let pairs = plus.iter().zip(&minus);
            pairs.map(|(p, m)| ((p - m) / (2.0 * f64::from(step))) as f32).collect()
        };
        let by_mean =
            differences(terms(&moved(&mean, step), &rho), terms(&moved(&mean, -step), &rho));
        let by_rho =
            differences(terms(&mean, &moved(&rho, step)), terms(&mean, &moved(&rho, -step)));
        assert_close(&grad_mean, &by_mean, 2e-4);
        assert_close(&grad_rho, &by_rho, 2e-4);
    }
}

#[test]
fn only_what_is_tracked_gets_a_gradient() {
    let (mean, rho) = (tensor(&[0.5, 1.0]).require_grad(), tensor(&[0.1, 0.2]));
    let grads = sample(mean.clone(), rho.clone(), STREAM, Scale::Exp).sum().backward();
    assert_eq!(to_vec(mean.grad(&grads).unwrap()), [1.0, 1.0]);
    assert!(rho.grad(&grads).is_none());

    let (mean, rho) = (tensor(&[0.5, 1.0]), tensor(&[0.1, 0.2]).require_grad());
    let grads = sample(mean.clone(), rho.clone(), STREAM, Scale::Exp).sum().backward();
    assert!(mean.grad(&grads).is_none());
    let mut noise = [0.0; 2];
    STREAM.fill_normal(0, &mut noise);
    let expected = [noise[0] * 0.1f32.exp(), noise[1] * 0.2f32.exp()];
    assert_close(&to_vec(rho.grad(&grads).unwrap()), &expected, 1e-6);
}

#[test]
fn samples_have_the_mean_and_the_deviation_asked_for() {
    let n = 100_000;
    let (mean, rho) = (tensor(&vec![2.0; n]), tensor(&vec![0.5f32.ln(); n]));
    let w = to_vec(sample(mean, rho, STREAM, Scale::Exp).inner());
    let average = w.iter().map(|&w| f64::from(w)).sum::<f64>() / n as f64;
    let variance = w.iter().map(|&w| (f64::from(w) - average).powi(2)).sum::<f64>() / n as f64;
    // Five standard errors: 0.5/√n and 0.25·√(2/n).
    assert!((average - 2.0).abs() < 0.008, "{average}");
    assert!((variance - 0.25).abs() < 0.0056, "{variance}");
}

fn dropout_with_gradient(
    dropout: fn(Tensor<2>, Mask) -> Tensor<2>,
    rows: std::ops::Range<usize>,
) -> [Vec<f32>; 2] {
    let units = 5;
    let values = numbers(3, 8 * units);
    let values = &values[rows.start * units..rows.end * units];
    let x = tensor(values).reshape([rows.len(), units]).detach().require_grad();
    let stream = Stream::new(2, Purpose::Dropout).at_draw(1);
    let start = (rows.start * units) as u64;
    let y = dropout(x.clone(), Mask { stream, draws: 1, start, probability: 0.3 });
    let grads = y.clone().square().sum().backward();
    [y.inner(), x.grad(&grads).unwrap()].map(|t| t.into_data().try_into_vec().unwrap())
}

#[test]
fn dropout_on_the_cpu_equals_the_composed_form() {
    let cpu = dropout_with_gradient(dropout, 0..8);
    assert_eq!(cpu, dropout_with_gradient(dropout_composed, 0..8));
    let dropped = cpu[0].iter().filter(|y| **y == 0.0).count();
    assert!((1..40).contains(&dropped), "{dropped} of 40 dropped");
}

#[test]
fn a_shard_of_a_batch_is_dropped_as_in_the_whole() {
    let whole = dropout_with_gradient(dropout, 0..8);
    let shard = dropout_with_gradient(dropout, 3..6);
    for (whole, shard) in whole.iter().zip(&shard) {
        assert_eq!(&whole[15..30], shard);
    }
}

#[test]
fn the_gradient_of_dropout_is_the_mask() {
    let [y, grad] = dropout_with_gradient(dropout, 0..8);
    // d/dx Σ y² = 2·y·m/(1−p), and y = x·m/(1−p).
    for (y, grad) in y.iter().zip(&grad) {
        let expected = 2.0 * y * if *y == 0.0 { 0.0 } else { 1.0 / 0.7 };
        assert!((grad - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{grad} {expected}");
    }
}

#[test]
fn stacked_draws_have_the_masks_of_single_ones() {
    let stream = Stream::new(2, Purpose::Dropout).at_draw(4);
    let x = tensor(&numbers(3, 6 * 5)).reshape([6, 5]);
    let mask = |draw: u32, draws: u32| Mask {
        stream: stream.skip_draws(draw),
        draws,
        start: 10,
        probability: 0.3,
    };
    let stacked = dropout(x.clone(), mask(0, 3));
    for draw in 0..3 {
        let block = |t: &Tensor<2>| t.clone().narrow(0, 2 * draw, 2);
        let single = dropout(block(&x), mask(draw as u32, 1));
        block(&stacked).into_data().assert_eq(&single.into_data(), true);
    }
}
