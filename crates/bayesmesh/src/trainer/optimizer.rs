//! The optimisers on the flat vector of trainable numbers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bayesmesh_kernels::adam::{Adam, Decay, Moments};
use bayesmesh_schema::Kinds;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    Optimizer as BurnOptimizer, RecordState, Sgd, SgdConfig, StateSink, StateSource,
};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

use crate::error::{Error, Result};

/// How a gradient changes the weights. The defaults are PyTorch's.
///
/// The learning rate is [`Settings::schedule`](super::Settings::schedule).
///
/// ```
/// use bayesmesh::trainer::OptimizerConfig;
///
/// let adam = OptimizerConfig::adam().weight_decay(1e-4).betas(0.9, 0.99)?;
/// let sgd = OptimizerConfig::sgd().momentum(0.9)?;
/// assert!(adam.momentum(0.9).is_err()); // Adam has betas instead
/// # Ok::<(), bayesmesh::Error>(())
/// ```
///
/// Weight decay acts on all trainable numbers, as in the reference work: on ρ of a Gaussian too,
/// which it draws towards zero (σ = 1 under `exp`). With a mean-field posterior the KL is the
/// regulariser; leave the decay at zero unless you reproduce that work.
#[derive(Clone, Copy, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[section(default = "adam", example = "kind = \"adam\"\nrate = 1e-3")]
pub enum OptimizerConfig {
    /// Adam; weight decay is added to the gradient
    Adam {
        /// Decay of the first and the second moment.
        #[key(default = [0.9, 0.999], at_least = 0, below = 1)]
        betas: (f32, f32),
        /// Added to the root of the second moment.
        #[key(default = 1e-8, above = 0, also("eps"))]
        epsilon: f32,
        /// Multiple of each weight that is added to its gradient.
        #[key(default = 0.0, at_least = 0, also("l2", "decay"))]
        weight_decay: f32,
    },
    /// Adam with decoupled weight decay
    AdamW {
        /// Decay of the first and the second moment.
        #[key(default = [0.9, 0.999], at_least = 0, below = 1)]
        betas: (f32, f32),
        /// Added to the root of the second moment.
        #[key(default = 1e-8, above = 0, also("eps"))]
        epsilon: f32,
        /// Share of each weight that a step removes, times the learning rate.
        #[key(default = 0.01, at_least = 0, also("l2", "decay"))]
        weight_decay: f32,
    },
    /// stochastic gradient descent, with or without momentum
    Sgd {
        /// The share of the last change that is kept; 0 for none.
        #[key(default = 0.0, at_least = 0, below = 1)]
        momentum: f64,
        /// Multiple of each weight that is added to its gradient.
        #[key(default = 0.0, at_least = 0, also("l2", "decay"))]
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

    /// With another weight decay: an L2 penalty with Adam and SGD, decoupled with AdamW.
    #[must_use]
    pub fn weight_decay(mut self, decay: f32) -> Self {
        let (Self::Adam { weight_decay, .. }
        | Self::AdamW { weight_decay, .. }
        | Self::Sgd { weight_decay, .. }) = &mut self;
        *weight_decay = decay;
        self
    }

    /// With another decay of the first and the second moment. Adam and AdamW only.
    pub fn betas(mut self, first: f32, second: f32) -> Result<Self> {
        match &mut self {
            Self::Adam { betas, .. } | Self::AdamW { betas, .. } => *betas = (first, second),
            Self::Sgd { .. } => return Err(not_a_constant_of("SGD", "betas", "momentum")),
        }
        self.check()?;
        Ok(self)
    }

    /// With another number added to the root of the second moment. Adam and AdamW only.
    pub fn epsilon(mut self, value: f32) -> Result<Self> {
        match &mut self {
            Self::Adam { epsilon, .. } | Self::AdamW { epsilon, .. } => *epsilon = value,
            Self::Sgd { .. } => return Err(not_a_constant_of("SGD", "epsilon", "momentum")),
        }
        self.check()?;
        Ok(self)
    }

    /// With momentum. SGD only.
    pub fn momentum(mut self, value: f64) -> Result<Self> {
        match &mut self {
            Self::Sgd { momentum, .. } => *momentum = value,
            Self::Adam { .. } => return Err(not_a_constant_of("Adam", "momentum", "betas")),
            Self::AdamW { .. } => return Err(not_a_constant_of("AdamW", "momentum", "betas")),
        }
        self.check()?;
        Ok(self)
    }

    /// Refuses constants with which a step is not defined.
    pub(super) fn check(self) -> Result<()> {
        let share = |value: f32| (0.0..1.0).contains(&value);
        let valid = match self {
            Self::Adam { betas, epsilon, weight_decay }
            | Self::AdamW { betas, epsilon, weight_decay } => {
                share(betas.0) && share(betas.1) && epsilon > 0.0 && weight_decay >= 0.0
            }
            Self::Sgd { momentum, weight_decay } => {
                (0.0..1.0).contains(&momentum) && weight_decay >= 0.0
            }
        };
        match valid {
            true => Ok(()),
            false => Err(Error::Setting(format!(
                "{self:?}: betas and momentum must be from 0 to below 1, epsilon positive and the \
                 weight decay not negative"
            ))),
        }
    }

    /// What checkpoints call it, so that its state is not taken for that of another.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Adam { .. } => "adam",
            Self::AdamW { .. } => "adamw",
            Self::Sgd { momentum: 0.0, .. } => "sgd",
            Self::Sgd { .. } => "sgd with momentum",
        }
    }

    pub(super) fn build(self) -> Optimizer {
        let adam =
            |betas, epsilon, decay| Optimizer::Adam(Adam { betas, epsilon, decay }, Arc::default());
        match self {
            Self::Adam { betas, epsilon, weight_decay } => {
                adam(betas, epsilon, Decay::Penalty(weight_decay))
            }
            Self::AdamW { betas, epsilon, weight_decay } => {
                adam(betas, epsilon, Decay::Decoupled(weight_decay))
            }
            Self::Sgd { momentum, weight_decay } => {
                let momentum = (momentum > 0.0)
                    .then(|| MomentumConfig::new().with_momentum(momentum).with_dampening(0.0));
                let decay = (weight_decay > 0.0).then(|| WeightDecayConfig::new(weight_decay));
                let config = SgdConfig::new().with_momentum(momentum).with_weight_decay(decay);
                Optimizer::Sgd(config.build(), None)
            }
        }
    }
}

fn not_a_constant_of(optimizer: &str, name: &str, instead: &str) -> Error {
    Error::Setting(format!(
        "{optimizer} has no {name}; set its {instead}, or choose another optimiser"
    ))
}

/// An optimiser with its state. Each acts element by element, so one step on the flat vector is a
/// step on every tensor.
#[derive(Clone)]
pub(crate) enum Optimizer {
    /// Adam and AdamW, as burn-optim has them, in one pass. Copies share the moments until one
    /// takes a step.
    Adam(Adam, Arc<Moments>),
    /// That of burn-optim.
    Sgd(Sgd, Option<Box<<Sgd as BurnOptimizer>::State<1>>>),
    /// None: each rank of a run has a part of the state, or had when the run failed.
    Divided,
}

/// The names under which burn-optim keeps the state of Adam.
const FIRST_MOMENT: &str = "momentum.moment_1";
const SECOND_MOMENT: &str = "momentum.moment_2";
const TIME: &str = "momentum.time";
/// Stands for a state that is divided among ranks.
const DIVIDED: &str = "divided";

/// The state of an optimiser as named numbers, for checkpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OptimizerState {
    /// Vectors laid out like the trainable numbers, e.g. the moments of Adam.
    pub tensors: BTreeMap<String, Vec<f32>>,
    /// Counters.
    pub counters: BTreeMap<String, u64>,
}

impl Optimizer {
    /// Whether this has the state of all trainable numbers.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Self::Divided)
    }

    /// Changes the values by one step.
    pub fn step(&mut self, rate: f64, values: &mut [f32], gradient: Vec<f32>, device: &Device) {
        match self {
            Self::Adam(adam, moments) => {
                adam.step(rate, values, &gradient, Arc::make_mut(moments));
            }
            Self::Sgd(sgd, state) => {
                let n = values.len();
                let tensor =
                    |values: Vec<f32>| Tensor::<1>::from_data(TensorData::new(values, [n]), device);
                let before = state.take().map(|state| *state);
                let (updated, next) =
                    sgd.step(rate, tensor(values.to_vec()), tensor(gradient), before);
                *state = next.map(Box::new);
                let data = updated.into_data();
                values.copy_from_slice(data.as_slice::<f32>().expect("single precision"));
            }
            Self::Divided => unreachable!("a run starts with a whole state"),
        }
    }

    /// Copies what this shares with others.
    pub fn unshare(&mut self) {
        if let Self::Adam(_, moments) = self {
            Arc::make_mut(moments);
        }
    }

    /// A copy of the state.
    pub fn state(&self) -> OptimizerState {
        self.clone().into_state()
    }

    /// A copy of the state of a range of the trainable numbers.
    pub fn part(&self, range: Range<usize>) -> OptimizerState {
        let of_range = |values: &[f32]| values[range.clone()].to_vec();
        match self {
            Self::Adam(_, moments) if moments.time > 0 => adam_state(Moments {
                time: moments.time,
                first: of_range(&moments.first),
                second: of_range(&moments.second),
            }),
            _ => {
                let OptimizerState { tensors, counters } = self.state();
                let tensors = tensors.into_iter();
                let tensors = tensors.map(|(name, values)| (name, of_range(&values)));
                OptimizerState { tensors: tensors.collect(), counters }
            }
        }
    }

    /// The state.
    pub fn into_state(self) -> OptimizerState {
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
            Self::Adam(_, moments) if moments.time == 0 => OptimizerState::default(),
            Self::Adam(_, moments) => adam_state(Arc::unwrap_or_clone(moments)),
            Self::Sgd(_, state) => flatten(state.as_deref()),
            Self::Divided => OptimizerState {
                tensors: BTreeMap::new(),
                counters: [(DIVIDED.to_owned(), 1)].into(),
            },
        }
    }

    /// What the vectors of the state are called.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Adam(_, moments) if moments.time == 0 => Vec::new(),
            Self::Adam(..) => vec![FIRST_MOMENT.to_owned(), SECOND_MOMENT.to_owned()],
            Self::Sgd(..) | Self::Divided => self.state().tensors.into_keys().collect(),
        }
    }

    /// Takes back a state; refuses that of another optimiser.
    pub fn restore(&mut self, saved: OptimizerState, len: usize, device: &Device) -> Result<()> {
        fn unflatten<S: RecordState>(saved: OptimizerState, device: &Device) -> Result<Option<S>> {
            if saved.tensors.is_empty() && saved.counters.is_empty() {
                return Ok(None);
            }
            let counters = saved.counters.into_iter().map(|(name, n)| (name, n.into()));
            let mut source = StateSource::new(counters.collect());
            for (name, values) in saved.tensors {
                let length = values.len();
                source.insert_tensor(name, TensorData::new(values, [length]));
            }
            S::state_unflatten("", &mut source, device).map(Some).ok_or_else(another_optimiser)
        }
        if saved.counters.contains_key(DIVIDED) {
            return Err(Error::Mismatch(
                "the checkpoint has no optimiser state: it was made in or after a run with \
                 `shard_optimizer` whose ranks did not bring it together; continue from another one"
                    .to_owned(),
            ));
        }
        if let Some((name, values)) = saved.tensors.iter().find(|(_, v)| v.len() != len) {
            return Err(Error::Mismatch(format!(
                "the saved optimiser state {name} has {} numbers, the posterior {len}; it belongs \
                 to another network or posterior",
                values.len()
            )));
        }
        let names: Vec<String> = saved.tensors.keys().cloned().collect();
        match self {
            Self::Adam(_, moments) => *moments = Arc::new(moments_of(saved)?),
            Self::Sgd(_, state) => *state = unflatten(saved, device)?.map(Box::new),
            Self::Divided => unreachable!("only a new optimiser is given a state"),
        }
        // Burn passes over what it does not know.
        match self.names() == names {
            true => Ok(()),
            false => Err(another_optimiser()),
        }
    }
}

/// The state of Adam after a step.
fn adam_state(moments: Moments) -> OptimizerState {
    OptimizerState {
        tensors: [(FIRST_MOMENT, moments.first), (SECOND_MOMENT, moments.second)]
            .map(|(name, values)| (name.to_owned(), values))
            .into(),
        counters: [(TIME.to_owned(), moments.time as u64)].into(),
    }
}

/// The moments of Adam in a saved state; an empty one is that before the first step.
fn moments_of(mut saved: OptimizerState) -> Result<Moments> {
    if saved.tensors.is_empty() && saved.counters.is_empty() {
        return Ok(Moments::default());
    }
    let mut moment = |name| saved.tensors.remove(name).ok_or_else(another_optimiser);
    let time = saved.counters.get(TIME).ok_or_else(another_optimiser)?;
    Ok(Moments {
        time: *time as usize,
        first: moment(FIRST_MOMENT)?,
        second: moment(SECOND_MOMENT)?,
    })
}

pub(super) fn another_optimiser() -> Error {
    Error::Mismatch(
        "the saved optimiser state belongs to another optimiser than the one chosen".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::optim::AdamConfig;

    #[test]
    fn constants_are_those_of_the_optimiser() {
        let adamw = OptimizerConfig::adamw().weight_decay(0.1);
        let adamw = adamw.betas(0.8, 0.9).unwrap().epsilon(1e-6).unwrap();
        let expected =
            OptimizerConfig::AdamW { betas: (0.8, 0.9), epsilon: 1e-6, weight_decay: 0.1 };
        assert_eq!(adamw, expected);
        let adam = OptimizerConfig::adam().weight_decay(1e-4);
        let expected =
            OptimizerConfig::Adam { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 1e-4 };
        assert_eq!(adam, expected);
        let sgd = OptimizerConfig::sgd().momentum(0.9).unwrap().weight_decay(0.2);
        assert_eq!(sgd, OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.2 });
    }

    #[test]
    fn constants_of_another_optimiser_or_out_of_range_are_refused() {
        let told = |outcome: Result<OptimizerConfig>, words: &str| {
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains(words), "{words:?} not in: {message}");
        };
        let (adam, sgd) = (OptimizerConfig::adam(), OptimizerConfig::sgd());
        told(adam.momentum(0.9), "Adam has no momentum; set its betas");
        told(OptimizerConfig::adamw().momentum(0.9), "AdamW has no momentum; set its betas");
        told(sgd.betas(0.9, 0.999), "SGD has no betas; set its momentum");
        told(sgd.epsilon(1e-8), "SGD has no epsilon");
        told(adam.betas(0.9, 1.0), "betas and momentum must be from 0 to below 1");
        told(adam.epsilon(0.0), "epsilon positive");
        told(sgd.momentum(-0.1), "betas and momentum must be");
        told(adam.weight_decay(-1.0).check().map(|()| adam), "weight decay not negative");
    }

    #[test]
    fn the_state_of_adam_has_the_names_and_numbers_of_burn_optim() {
        let (values, gradient) = (vec![0.5, -2.0], vec![0.25, 3.0]);
        let mut ours = OptimizerConfig::adam().build();
        assert_eq!(ours.state(), OptimizerState::default());
        ours.step(0.1, &mut values.clone(), gradient.clone(), &Device::default());

        let tensor = |values: Vec<f32>| Tensor::<1>::from_data(&values[..], &Device::default());
        let burns = AdamConfig::new().build();
        let (_, state) = burns.step(0.1, tensor(values), tensor(gradient), None);
        let mut sink = StateSink::default();
        state.unwrap().state_flatten("", &mut sink);
        let tensors = sink.tensors.into_iter().map(|(name, data)| (name, data.try_into_vec()));
        let expected: BTreeMap<_, Vec<f32>> = tensors.map(|(name, v)| (name, v.unwrap())).collect();

        assert_eq!(ours.state().tensors, expected);
        assert_eq!(ours.state().counters.into_keys().collect::<Vec<_>>(), [TIME]);
        assert!(sink.scalars.into_iter().any(|(name, _)| name == TIME));

        let mut resumed = OptimizerConfig::adam().build();
        resumed.restore(ours.state(), 2, &Device::default()).unwrap();
        assert_eq!(resumed.state(), ours.state());
        let sgd = OptimizerState { counters: BTreeMap::new(), ..ours.state() };
        assert!(resumed.restore(sgd, 2, &Device::default()).is_err());
    }
}
