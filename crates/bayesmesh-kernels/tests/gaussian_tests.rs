//! The promises of the Gaussian kernels: a draw is its formula, its gradient that of finite
//! differences, and no bit depends on the pieces or the machine.

mod gaussian_cases;

use bayesmesh_kernels::gaussian::{
    Prior, Scale, kl_monte_carlo, kl_normal, sample, sample_backward,
};
use bayesmesh_kernels::simd::Level;
use gaussian_cases::{
    LENGTH, SCALES, START, assert_close, derivative, inputs, noise, sigma, stream,
};

#[test]
fn scales_are_within_their_precision() {
    for scale in SCALES {
        for k in -4000..4000 {
            let rho = k as f32 * 0.02;
            let exact = sigma(scale, rho.into());
            let relative = f64::from(scale.apply(rho)) / exact - 1.0;
            assert!(relative.abs() < 2.4e-7, "{scale:?}({rho}): {relative}");
            let exact = match scale {
                Scale::Exp => exact,
                Scale::Softplus => 1.0 / (1.0 + f64::from(-rho).exp()),
            };
            let relative = f64::from(scale.derivative(rho)) / exact - 1.0;
            assert!(relative.abs() < 3.6e-7, "{scale:?}'({rho}): {relative}");
        }
    }
}

#[test]
fn scales_treat_special_values_sensibly() {
    for scale in SCALES {
        assert!(scale.apply(f32::NAN).is_nan());
        assert!(scale.derivative(f32::NAN).is_nan());
        assert_eq!(scale.apply(f32::INFINITY), f32::INFINITY);
        assert_eq!(scale.apply(f32::NEG_INFINITY), 0.0);
        assert_eq!(scale.derivative(f32::NEG_INFINITY), 0.0);
        assert_eq!(scale.apply(-1000.0), 0.0);
        // Subnormal, but not yet nothing.
        assert!(scale.apply(-100.0) > 0.0);
        assert_eq!(scale.inverse(0.0), f32::NEG_INFINITY);
        assert!(scale.inverse(-1.0).is_nan());
    }
    assert_eq!(Scale::Exp.apply(1000.0), f32::INFINITY);
    assert_eq!(Scale::Exp.apply(0.0), 1.0);
    assert_eq!(Scale::Softplus.apply(1000.0), 1000.0);
    assert_eq!(Scale::Softplus.derivative(1000.0), 1.0);
}

#[test]
fn inverse_undoes_the_scale() {
    for scale in SCALES {
        for std in [1e-30f32, 1e-6, 0.01, 0.3, 1.0, 5.0, 80.0] {
            let back = scale.apply(scale.inverse(std));
            // Rounding ρ to single precision moves ln σ by up to |ρ| · 2⁻²⁴.
            let tolerance = 3e-7 + std.ln().abs() * 6e-8;
            assert!((back / std - 1.0).abs() < tolerance, "{scale:?}: {back} for {std}");
        }
    }
    assert_eq!(Scale::Softplus.inverse(1e30), 1e30);
}

#[test]
fn a_sample_is_the_mean_plus_sigma_times_the_noise() {
    let [mean, rho, _] = inputs();
    let noise = noise();
    for scale in SCALES {
        let mut out = vec![0.0; LENGTH];
        sample(&stream(), START, scale, &mean, &rho, &mut out);
        for i in 0..LENGTH {
            assert_eq!(out[i], mean[i] + scale.apply(rho[i]) * noise[i]);
        }
        for (from, to) in [(0, 1), (1, 4), (2, 131), (100, 228), (127, 640), (999, LENGTH)] {
            let mut piece = vec![0.0; to - from];
            let (mean, rho) = (&mean[from..to], &rho[from..to]);
            sample(&stream(), START + from as u64, scale, mean, rho, &mut piece);
            assert_eq!(piece, out[from..to]);
        }
    }
}

#[test]
fn the_gradient_of_a_sample_is_that_of_finite_differences() {
    let [_, rho, grad] = inputs();
    let noise = noise();
    for scale in SCALES {
        let mut grad_rho = vec![f32::NAN; LENGTH];
        sample_backward(&stream(), START, scale, &rho, &grad, &mut grad_rho);
        for i in 0..LENGTH {
            assert_eq!(grad_rho[i], grad[i] * noise[i] * scale.derivative(rho[i]));
            let weight = |rho: f64| f64::from(noise[i]) * sigma(scale, rho);
            let exact = f64::from(grad[i]) * derivative(weight, rho[i].into());
            assert_close(grad_rho[i].into(), exact, 1e-6, "∂ρ");
        }
        let mut piece = vec![0.0; 300];
        let (rho, grad) = (&rho[150..450], &grad[150..450]);
        sample_backward(&stream(), START + 150, scale, rho, grad, &mut piece);
        assert_eq!(piece, grad_rho[150..450]);
    }
}

/// Everything the kernels give, as bits.
fn results() -> Vec<u64> {
    let [mean, rho, grad] = inputs();
    let mut all = Vec::new();
    for scale in SCALES {
        let [mut out, mut grad_mean, mut grad_rho] = [0, 1, 2].map(|_| vec![0.0; LENGTH]);
        sample(&stream(), START, scale, &mean, &rho, &mut out);
        all.extend(out.iter().map(|x| u64::from(x.to_bits())));
        sample_backward(&stream(), START, scale, &rho, &grad, &mut out);
        all.extend(out.iter().map(|x| u64::from(x.to_bits())));
        for std in [1.0, 0.5] {
            let (by_mean, by_rho) = (&mut grad_mean, &mut grad_rho);
            let analytic = kl_normal(scale, &mean, &rho, 0.1, std, 0.3, by_mean, by_rho);
            let prior = Prior::Normal { mean: 0.1, std };
            let estimate =
                kl_monte_carlo(&stream(), START, scale, &mean, &rho, &prior, 0.7, by_mean, by_rho);
            // The values hold the library's ln(std), exact on every machine for 1 only.
            if std == 1.0 {
                all.extend([analytic.to_bits(), estimate.to_bits()]);
            }
        }
        all.extend(grad_mean.iter().chain(&grad_rho).map(|x| u64::from(x.to_bits())));
    }
    all
}

#[test]
fn all_levels_give_the_same_bits() {
    let baseline = Level::Baseline.force(results);
    for level in Level::available() {
        assert!(baseline == level.force(results), "{level:?}");
    }
    assert!(baseline == results());
}

/// A hash of all bits, written down once: it must come out on every machine and in every release.
#[test]
fn the_bits_are_those_of_every_other_machine() {
    let hash = results().into_iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3)
    });
    assert_eq!(hash, 0x2DF3_4025_5621_93E9);
}

#[test]
#[should_panic(expected = "differ in length")]
fn slices_of_different_lengths_are_refused() {
    sample(&stream(), 0, Scale::Exp, &[0.0; 3], &[0.0; 2], &mut [0.0; 3]);
}
