//! The optimisers of burn-optim on the flat vector of trainable numbers.

use std::collections::BTreeMap;

use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    Adam, AdamConfig, AdamW, AdamWConfig, Optimizer as BurnOptimizer, RecordState, Sgd, SgdConfig,
    StateSink, StateSource,
};
use burn::tensor::{Device, Tensor, TensorData};

use crate::error::{Error, Result};

/// Which optimiser, with its constants. The defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptimizerConfig {
    /// Adam; `weight_decay` is the L2 form that is added to the gradient.
    Adam {
        /// Decay of the first and the second moment.
        betas: (f32, f32),
        /// Added to the root of the second moment.
        epsilon: f32,
        /// Multiple of the parameter added to its gradient.
        weight_decay: f32,
    },
    /// Adam with decoupled weight decay.
    AdamW {
        /// Decay of the first and the second moment.
        betas: (f32, f32),
        /// Added to the root of the second moment.
        epsilon: f32,
        /// Share of the parameter removed at each step, times the learning rate.
        weight_decay: f32,
    },
    /// Stochastic gradient descent.
    Sgd {
        /// Zero for none.
        momentum: f64,
        /// Multiple of the parameter added to its gradient.
        weight_decay: f32,
    },
}

impl OptimizerConfig {
    /// Adam with β = (0.9, 0.999), ε = 1e-8 and no weight decay.
    pub fn adam() -> Self {
        Self::Adam { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.0 }
    }

    /// AdamW with β = (0.9, 0.999), ε = 1e-8 and a weight decay of 0.01.
    pub fn adamw() -> Self {
        Self::AdamW { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.01 }
    }

    /// Plain stochastic gradient descent.
    pub fn sgd() -> Self {
        Self::Sgd { momentum: 0.0, weight_decay: 0.0 }
    }

    pub(super) fn build(self) -> Optimizer {
        let decay =
            |weight_decay: f32| (weight_decay > 0.0).then(|| WeightDecayConfig::new(weight_decay));
        match self {
            Self::Adam { betas, epsilon, weight_decay } => {
                let config = AdamConfig::new()
                    .with_beta_1(betas.0)
                    .with_beta_2(betas.1)
                    .with_epsilon(epsilon)
                    .with_weight_decay(decay(weight_decay));
                Optimizer::Adam(config.build(), None)
            }
            Self::AdamW { betas, epsilon, weight_decay } => {
                let config = AdamWConfig::new()
                    .with_beta_1(betas.0)
                    .with_beta_2(betas.1)
                    .with_epsilon(epsilon)
                    .with_weight_decay(weight_decay);
                Optimizer::AdamW(config.build(), None)
            }
            Self::Sgd { momentum, weight_decay } => {
                let momentum = (momentum > 0.0)
                    .then(|| MomentumConfig::new().with_momentum(momentum).with_dampening(0.0));
                let config =
                    SgdConfig::new().with_momentum(momentum).with_weight_decay(decay(weight_decay));
                Optimizer::Sgd(config.build(), None)
            }
        }
    }
}

type State<O> = Option<<O as BurnOptimizer>::State<1>>;

/// An optimiser of burn-optim with its state. All of them act element by element, so one step on
/// the flat vector is a step on every tensor.
#[derive(Clone)]
pub(super) enum Optimizer {
    Adam(Adam, State<Adam>),
    AdamW(AdamW, State<AdamW>),
    Sgd(Sgd, State<Sgd>),
}

/// The state of an optimiser as named numbers, for checkpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OptimizerState {
    /// Vectors laid out like the trainable numbers, e.g. the moments of Adam.
    pub tensors: BTreeMap<String, Vec<f32>>,
    /// Counters.
    pub counters: BTreeMap<String, u64>,
}

impl Optimizer {
    /// Changes the values by one step.
    pub fn step(&mut self, rate: f64, values: &mut [f32], gradient: Vec<f32>, device: &Device) {
        fn step<O: BurnOptimizer>(
            optimizer: &O,
            state: &mut State<O>,
            rate: f64,
            values: &mut [f32],
            gradient: Vec<f32>,
            device: &Device,
        ) {
            let n = values.len();
            let tensor =
                |values: Vec<f32>| Tensor::<1>::from_data(TensorData::new(values, [n]), device);
            let (updated, next) =
                optimizer.step(rate, tensor(values.to_vec()), tensor(gradient), state.take());
            *state = next;
            let data = updated.into_data();
            values.copy_from_slice(data.as_slice::<f32>().expect("single precision"));
        }
        match self {
            Self::Adam(adam, state) => step(adam, state, rate, values, gradient, device),
            Self::AdamW(adamw, state) => step(adamw, state, rate, values, gradient, device),
            Self::Sgd(sgd, state) => step(sgd, state, rate, values, gradient, device),
        }
    }

    pub fn state(&self) -> OptimizerState {
        fn flatten(state: Option<&impl RecordState>) -> OptimizerState {
            let mut sink = StateSink::default();
            if let Some(state) = state {
                state.state_flatten("", &mut sink);
            }
            let tensors = sink.tensors.into_iter().map(|(name, data)| {
                let values = data.try_into_vec::<f32>().expect("single precision");
                (name, values)
            });
            let counters = sink.scalars.into_iter().map(|(name, scalar)| {
                let count = u64::try_from(scalar).expect("optimisers count steps in whole numbers");
                (name, count)
            });
            OptimizerState { tensors: tensors.collect(), counters: counters.collect() }
        }
        match self {
            Self::Adam(_, state) => flatten(state.as_ref()),
            Self::AdamW(_, state) => flatten(state.as_ref()),
            Self::Sgd(_, state) => flatten(state.as_ref()),
        }
    }

    pub fn restore(&mut self, saved: &OptimizerState, len: usize, device: &Device) -> Result<()> {
        fn unflatten<S: RecordState>(saved: &OptimizerState, device: &Device) -> Result<Option<S>> {
            if saved.tensors.is_empty() && saved.counters.is_empty() {
                return Ok(None);
            }
            let counters = saved.counters.iter().map(|(name, &n)| (name.clone(), n.into()));
            let mut source = StateSource::new(counters.collect());
            for (name, values) in &saved.tensors {
                let data = TensorData::new(values.clone(), [values.len()]);
                source.insert_tensor(name.clone(), data);
            }
            let state = S::state_unflatten("", &mut source, device).ok_or_else(|| {
                Error::Mismatch(
                    "the saved optimiser state belongs to another optimiser than the one chosen"
                        .to_owned(),
                )
            })?;
            Ok(Some(state))
        }
        if let Some((name, values)) = saved.tensors.iter().find(|(_, v)| v.len() != len) {
            return Err(Error::Mismatch(format!(
                "the saved optimiser state {name} has {} numbers, the posterior {len}; it belongs \
                 to another network or posterior",
                values.len()
            )));
        }
        match self {
            Self::Adam(_, state) => *state = unflatten(saved, device)?,
            Self::AdamW(_, state) => *state = unflatten(saved, device)?,
            Self::Sgd(_, state) => *state = unflatten(saved, device)?,
        }
        Ok(())
    }
}
