//! Inputs and references that the tests of the Gaussian kernels share.

use bayesmesh_kernels::gaussian::Scale;
use bayesmesh_kernels::stream::{Purpose, Stream};

pub const SCALES: [Scale; 2] = [Scale::Exp, Scale::Softplus];
pub const START: u64 = 5;
pub const LENGTH: usize = 1003;

pub fn stream() -> Stream {
    Stream::new(99, Purpose::Weights).at_step(3).at_draw(1).at_tensor(2)
}

/// Means around 0, unconstrained deviations in [-8, 4), and a gradient.
pub fn inputs() -> [Vec<f32>; 3] {
    let mut inputs = [0, 1, 2].map(|_| vec![0.0; LENGTH]);
    let source = Stream::new(1, Purpose::Synthesis);
    source.fill_normal(0, &mut inputs[0]);
    source.at_tensor(1).fill_uniform(0, &mut inputs[1]);
    source.at_tensor(2).fill_normal(0, &mut inputs[2]);
    inputs[1].iter_mut().for_each(|rho| *rho = 12.0 * *rho - 8.0);
    inputs
}

pub fn noise() -> Vec<f32> {
    let mut noise = vec![0.0; LENGTH];
    stream().fill_normal(START, &mut noise);
    noise
}

/// σ(ρ) in double precision.
pub fn sigma(scale: Scale, rho: f64) -> f64 {
    match scale {
        Scale::Exp => rho.exp(),
        Scale::Softplus => rho.exp().ln_1p(),
    }
}

/// The derivative of `f` at `x` by central differences, the error being of fourth order.
pub fn derivative(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let h = 1e-5;
    let slope = |h: f64| (f(x + h) - f(x - h)) / (2.0 * h);
    (4.0 * slope(h) - slope(2.0 * h)) / 3.0
}

#[track_caller]
pub fn assert_close(value: f64, exact: f64, tolerance: f64, what: &str) {
    let error = (value - exact).abs();
    assert!(error <= tolerance * exact.abs().max(1.0), "{what}: {value} for {exact}");
}
