//! The promises of the divergences and priors: they are their formulas, and their gradients those
//! of finite differences.

mod gaussian_cases;

use bayesmesh_kernels::gaussian::{Prior, Scale, kl_monte_carlo, kl_normal, sample};
use gaussian_cases::{
    LENGTH, SCALES, START, assert_close, derivative, inputs, noise, sigma, stream,
};

const PRIORS: [Prior; 3] = [
    Prior::Normal { mean: 0.0, std: 1.0 },
    Prior::Normal { mean: -0.3, std: 0.2 },
    Prior::ScaleMixture { weight: 0.25, std_wide: 1.5, std_narrow: 0.05 },
];

/// KL(N(μ, σ²) ‖ N(m, s²)).
fn kl(mean: f64, sigma: f64, prior_mean: f64, prior_std: f64) -> f64 {
    let ratio = sigma / prior_std;
    let distance = (mean - prior_mean) / prior_std;
    -ratio.ln() + 0.5 * (ratio * ratio + distance * distance - 1.0)
}

#[test]
fn the_analytic_divergence_is_its_formula_and_so_is_its_gradient() {
    let [mean, rho, _] = inputs();
    for scale in SCALES {
        for (prior_mean, prior_std) in [(0.0f32, 1.0f32), (0.5, 0.1), (-2.0, 7.0)] {
            // The gradient is added to what is there.
            let (mut grad_mean, mut grad_rho) = (vec![1.0; LENGTH], vec![2.0; LENGTH]);
            let value = kl_normal(
                scale,
                &mean,
                &rho,
                prior_mean,
                prior_std,
                0.25,
                &mut grad_mean,
                &mut grad_rho,
            );
            let (prior_mean, prior_std) = (f64::from(prior_mean), f64::from(prior_std));
            let mut exact = 0.0;
            for i in 0..LENGTH {
                let (mean, rho) = (f64::from(mean[i]), f64::from(rho[i]));
                let of = |mean, rho| kl(mean, sigma(scale, rho), prior_mean, prior_std);
                exact += of(mean, rho);
                let by_mean = 1.0 + 0.25 * derivative(|mean| of(mean, rho), mean);
                let by_rho = 2.0 + 0.25 * derivative(|rho| of(mean, rho), rho);
                assert_close(grad_mean[i].into(), by_mean, 1e-6, "∂μ");
                assert_close(grad_rho[i].into(), by_rho, 1e-6, "∂ρ");
            }
            assert_close(value, exact, 1e-7, "KL");
        }
    }
}

#[test]
fn the_divergence_from_itself_is_nothing() {
    let rho = Scale::Exp.inverse(0.25);
    let (mut grad_mean, mut grad_rho) = ([0.0; 500], [0.0; 500]);
    let std = Scale::Exp.apply(rho);
    let means = [0.75; 500];
    let value =
        kl_normal(Scale::Exp, &means, &[rho; 500], 0.75, std, 1.0, &mut grad_mean, &mut grad_rho);
    assert!(value.abs() < 500.0 * 1e-7, "{value}");
    assert_eq!(grad_mean, [0.0; 500]);
    assert!(grad_rho.iter().all(|grad| grad.abs() < 2e-7));
}

/// A collapsed posterior is far from its prior but not a NaN: training can come back from it.
#[test]
fn the_divergence_of_a_vanishing_deviation_is_finite() {
    for scale in SCALES {
        let (mut grad_mean, mut grad_rho) = ([0.0; 2], [0.0; 2]);
        let value = kl_normal(
            scale,
            &[0.0; 2],
            &[-60.0, -200.0],
            0.0,
            1.0,
            1.0,
            &mut grad_mean,
            &mut grad_rho,
        );
        assert_close(value, 60.0 + 200.0 - 1.0, 1e-7, "KL");
        assert_eq!(grad_rho, [-1.0; 2]);
    }
}

#[test]
fn the_monte_carlo_divergence_is_its_formula_and_so_is_its_gradient() {
    let [mean, rho, _] = inputs();
    let noise = noise();
    for scale in SCALES {
        for prior in PRIORS {
            let (mut grad_mean, mut grad_rho) = (vec![1.0; LENGTH], vec![2.0; LENGTH]);
            let value = kl_monte_carlo(
                &stream(),
                START,
                scale,
                &mean,
                &rho,
                &prior,
                0.5,
                &mut grad_mean,
                &mut grad_rho,
            );
            let mut drawn = vec![0.0; LENGTH];
            sample(&stream(), START, scale, &mean, &rho, &mut drawn);
            let mut exact = 0.0;
            for i in 0..LENGTH {
                let (noise, drawn) = (f64::from(noise[i]), f64::from(drawn[i]));
                let rho = f64::from(rho[i]);
                // ln q(w) - ln p(w) where the mean has moved by `shift` and ρ is `moved`. It starts
                // from the weight as drawn, since where p bends sharply the rounding of w shows.
                let of = |shift: f64, moved: f64| {
                    let w = drawn + shift + noise * (sigma(scale, moved) - sigma(scale, rho));
                    let log_q = -0.5 * noise * noise
                        - sigma(scale, moved).ln()
                        - 0.5 * std::f64::consts::TAU.ln();
                    log_q - prior.log_density(w)
                };
                exact += of(0.0, rho);
                let by_mean = 1.0 + 0.5 * derivative(|shift| of(shift, rho), 0.0);
                let by_rho = 2.0 + 0.5 * derivative(|moved| of(0.0, moved), rho);
                assert_close(grad_mean[i].into(), by_mean, 1e-6, "∂μ");
                assert_close(grad_rho[i].into(), by_rho, 1e-6, "∂ρ");
            }
            assert_close(value, exact, 1e-7, "KL");
        }
    }
}

/// Over many draws the estimate comes to the closed form; its deviation from it is the standard
/// error of the mean, estimated from the draws themselves.
#[test]
fn the_monte_carlo_divergence_estimates_the_analytic_one() {
    let [mean, rho, _] = inputs();
    let (mean, rho) = (&mean[..50], &rho[..50]);
    let (mut grad_mean, mut grad_rho) = ([0.0; 50], [0.0; 50]);
    let analytic =
        kl_normal(Scale::Softplus, mean, rho, -0.3, 0.7, 0.0, &mut grad_mean, &mut grad_rho);
    let prior = Prior::Normal { mean: -0.3, std: 0.7 };
    let draws = 20_000;
    let estimates: Vec<f64> = (0..draws)
        .map(|draw| {
            let stream = stream().at_draw(draw);
            let scale = Scale::Softplus;
            kl_monte_carlo(&stream, 0, scale, mean, rho, &prior, 0.0, &mut grad_mean, &mut grad_rho)
        })
        .collect();
    let average = estimates.iter().sum::<f64>() / f64::from(draws);
    let variance =
        estimates.iter().map(|x| (x - average).powi(2)).sum::<f64>() / f64::from(draws - 1);
    let off = (average - analytic) / (variance / f64::from(draws)).sqrt();
    assert!(off.abs() < 3.0, "{average} for {analytic}, {off} deviations off");
    assert_eq!((grad_mean, grad_rho), ([0.0; 50], [0.0; 50]));
}

#[test]
fn priors_are_densities_with_their_slopes() {
    for prior in PRIORS {
        let step = 1e-3;
        let total: f64 = (-20_000..20_000).map(|k| prior.log_density(k as f64 * step).exp()).sum();
        assert!((total * step - 1.0).abs() < 1e-9, "{prior:?}: {}", total * step);
        for k in -300..300 {
            let w = f64::from(k) * 0.01;
            let exact = (prior.log_density(w + 1e-6) - prior.log_density(w - 1e-6)) / 2e-6;
            assert_close(prior.log_density_derivative(w), exact, 1e-6, "slope");
        }
    }
}

#[test]
fn the_scale_mixture_is_stable_and_has_the_right_limits() {
    let mixture =
        |weight, std_wide, std_narrow| Prior::ScaleMixture { weight, std_wide, std_narrow };
    let normal = |std| Prior::Normal { mean: 0.0, std };
    for w in [0.0, 0.01, -1.0, 30.0, 1e6] {
        let same = [
            (mixture(1.0, 0.5, 0.01), normal(0.5)),
            (mixture(0.0, 0.5, 0.01), normal(0.01)),
            (mixture(0.3, 0.5, 0.5), normal(0.5)),
        ];
        for (mixture, normal) in same {
            assert_close(mixture.log_density(w), normal.log_density(w), 1e-12, "density");
            let slope = normal.log_density_derivative(w);
            assert_close(mixture.log_density_derivative(w), slope, 1e-12, "slope");
        }
    }
    // Far out the narrow part is gone: e^-(30/0.001)²/2 is no number.
    let far = mixture(0.25, 1.0, 0.001).log_density(30.0);
    assert_close(far, 0.25f64.ln() + normal(1.0).log_density(30.0), 1e-14, "far");
}
