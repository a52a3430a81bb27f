//! Adam is burn-optim's.

use bayesmesh_kernels::adam::{Adam, Decay, Moments};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::{AdamConfig, AdamWConfig, Optimizer};
use burn::tensor::{Device, Tensor, TensorData};

/// Three pieces, of which threads may each take one.
const N: usize = 2 * 65_536 + 1003;
const BETAS: (f32, f32) = (0.9, 0.999);
const EPSILON: f32 = 1e-8;
const DECAY: f32 = 0.03;

fn normals(tensor: u32) -> Vec<f32> {
    let mut values = vec![0.0; N];
    Stream::new(5, Purpose::Synthesis).at_tensor(tensor).fill_normal(0, &mut values);
    values
}

/// The values after each of some steps with ours and with Burn's optimiser.
fn both<O: Optimizer>(ours: Adam, burns: O) -> impl Iterator<Item = (Vec<f32>, Vec<f32>)> {
    let tensor =
        |values| Tensor::<1>::from_data(TensorData::new::<f32, _>(values, [N]), &Device::default());
    let mut values = normals(0);
    let mut expected = values.clone();
    let mut moments = Moments::default();
    let mut state = None;
    (1..20).map(move |step| {
        let rate = 0.1 / f64::from(step);
        let gradient = normals(step);
        ours.step(rate, &mut values, &gradient, &mut moments);
        let (next, new_state) =
            burns.step(rate, tensor(expected.clone()), tensor(gradient), state.take());
        state = new_state;
        expected = next.try_into_vec_as::<f32>().unwrap();
        (values.clone(), expected.clone())
    })
}

#[test]
fn adam_gives_the_bits_of_burn_optim() {
    let config = AdamConfig::new().with_epsilon(EPSILON);
    for penalty in [0.0, DECAY] {
        let ours = Adam { betas: BETAS, epsilon: EPSILON, decay: Decay::Penalty(penalty) };
        let decay = (penalty > 0.0).then(|| WeightDecayConfig::new(penalty));
        for (ours, burns) in both(ours, config.clone().with_weight_decay(decay).build()) {
            assert_eq!(ours, burns);
        }
    }
}

/// burn-optim's AdamW divides by the bias corrections in another order than its Adam.
#[test]
fn adamw_is_that_of_burn_optim_to_rounding() {
    let ours = Adam { betas: BETAS, epsilon: EPSILON, decay: Decay::Decoupled(DECAY) };
    let config = AdamWConfig::new().with_epsilon(EPSILON).with_weight_decay(DECAY);
    for (ours, burns) in both(ours, config.build()) {
        for (ours, burns) in ours.iter().zip(&burns) {
            assert!((ours - burns).abs() < 1e-6, "{ours} {burns}");
        }
    }
}
