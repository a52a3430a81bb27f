//! A recipe as the library's types.

use std::time::Duration;

use anyhow::Result;
use bayesmesh::loss::{
    Combine, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, GaussianOfDraws, Mixture,
    Quantile, Reading, SquaredErrorOfMean, StudentT,
};
use bayesmesh::posterior::{InitialStd, Kl, Parameters};
use bayesmesh::trainer::{Augment, Memory, OptimizerConfig, Schedule};
use bayesmesh::{
    Draw, Loss, McDropout, MeanField, Mesh, Point, Posterior, Prior, Reduce, Scale, Settings,
    Trainer,
};
use bayesmesh_models::{Activation, Mlp, MlpConfig};
use burn::tensor::{Device, Tensor};

use crate::recipe::{self, Recipe};

/// The trainer of a load forecast.
pub type ForecastTrainer = Trainer<ForecastPosterior, ForecastLoss>;

/// Any posterior that a recipe can name: one type, so that the trainer is compiled once.
#[derive(Clone)]
pub enum ForecastPosterior {
    MeanField(MeanField<Mlp>),
    McDropout(McDropout<Mlp>),
    Point(Point<Mlp>),
}

/// Any loss for values that a recipe can name.
#[derive(Clone)]
pub enum ForecastLoss {
    SquaredErrorOfMean(SquaredErrorOfMean),
    ExpectedSquaredError(ExpectedSquaredError),
    GaussianOfDraws(GaussianOfDraws),
    ExpectedGaussian(Expected<Gaussian>),
    GaussianMixture(Mixture<Gaussian>),
    StudentTMixture(Mixture<StudentT>),
    QuantileMixture(Mixture<Quantile>),
    Crps(EnsembleCrps),
}

macro_rules! for_posterior {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            ForecastPosterior::MeanField($inner) => $call,
            ForecastPosterior::McDropout($inner) => $call,
            ForecastPosterior::Point($inner) => $call,
        }
    };
}

macro_rules! for_loss {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            ForecastLoss::SquaredErrorOfMean($inner) => $call,
            ForecastLoss::ExpectedSquaredError($inner) => $call,
            ForecastLoss::GaussianOfDraws($inner) => $call,
            ForecastLoss::ExpectedGaussian($inner) => $call,
            ForecastLoss::GaussianMixture($inner) => $call,
            ForecastLoss::StudentTMixture($inner) => $call,
            ForecastLoss::QuantileMixture($inner) => $call,
            ForecastLoss::Crps($inner) => $call,
        }
    };
}

impl Posterior for ForecastPosterior {
    type Network = Mlp;

    fn parameters(&self) -> &Parameters<Mlp> {
        for_posterior!(self, posterior => posterior.parameters())
    }

    fn parameters_mut(&mut self) -> &mut Parameters<Mlp> {
        for_posterior!(self, posterior => posterior.parameters_mut())
    }

    fn adapt(&self, draw: Draw) -> Draw {
        for_posterior!(self, posterior => posterior.adapt(draw))
    }

    fn draws_share_weights(&self) -> bool {
        for_posterior!(self, posterior => posterior.draws_share_weights())
    }

    fn kl(&self, weight: f32, gradient: &mut [f32]) -> f64 {
        for_posterior!(self, posterior => posterior.kl(weight, gradient))
    }

    fn kl_of_draw(&self, draw: &Draw, weight: f32, gradient: &mut [f32]) -> f64 {
        for_posterior!(self, posterior => posterior.kl_of_draw(draw, weight, gradient))
    }
}

impl Loss for ForecastLoss {
    type Target = Tensor<2>;

    fn combine(&self) -> Combine {
        for_loss!(self, loss => loss.combine())
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        for_loss!(self, loss => loss.summary(output, target))
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        for_loss!(self, loss => loss.value(combined, draws, target))
    }

    fn reading(&self) -> Reading {
        for_loss!(self, loss => loss.reading())
    }

    fn least_draws(&self) -> usize {
        for_loss!(self, loss => loss.least_draws())
    }
}

impl ForecastLoss {
    /// Whether the loss says nothing of the noise in the data, so that it has to be estimated
    /// afterwards.
    pub fn leaves_noise_open(&self) -> bool {
        matches!(self, Self::SquaredErrorOfMean(_) | Self::ExpectedSquaredError(_))
    }
}

/// The trainer that a recipe describes, at step zero. `steps` is how long the run will be, which
/// some schedules need to know.
pub fn trainer(recipe: &Recipe, mesh: Mesh, steps: usize) -> Result<ForecastTrainer> {
    let loss = loss(&recipe.loss)?;
    let windows = recipe.data.windows();
    let recipe::Model::Mlp { hidden, activation, dropout } = &recipe.model;
    let outputs = match loss.reading() {
        Reading::MeanAndLogVariance => 2 * windows.outputs,
        Reading::Values | Reading::Logits => windows.outputs,
    };
    let network = MlpConfig {
        inputs: windows.inputs,
        hidden: hidden.clone(),
        outputs,
        activation: match activation {
            recipe::Activation::Relu => Activation::Relu,
            recipe::Activation::Tanh => Activation::Tanh,
            recipe::Activation::Gelu => Activation::Gelu,
        },
        dropout: *dropout,
    };
    let network = network.init(&Device::default());
    let posterior = posterior(&recipe.posterior, network)?.initialised(recipe.train.seed);
    Ok(Trainer::new(posterior, loss, settings(recipe, mesh, steps)))
}

fn posterior(posterior: &recipe::Posterior, network: Mlp) -> Result<ForecastPosterior> {
    Ok(match posterior {
        recipe::Posterior::McDropout => ForecastPosterior::McDropout(McDropout::new(network)),
        recipe::Posterior::Point => ForecastPosterior::Point(Point::new(network)),
        recipe::Posterior::MeanField(settings) => {
            let prior = match settings.prior {
                recipe::Prior::Normal { mean, std } => Prior::normal(mean as f32, std as f32),
                recipe::Prior::ScaleMixture { weight, std_wide, std_narrow } => {
                    Prior::ScaleMixture {
                        weight: weight as f32,
                        std_wide: std_wide as f32,
                        std_narrow: std_narrow as f32,
                    }
                }
            };
            let std = settings.initial_std as f32;
            let mean_field = MeanField::new(network, prior)?
                .with_scale(match settings.scale {
                    recipe::Scale::Exp => Scale::Exp,
                    recipe::Scale::Softplus => Scale::Softplus,
                })
                .with_initial_std(match settings.initial_std_per_fan_in {
                    true => InitialStd::PerFanIn(std),
                    false => InitialStd::Constant(std),
                })?
                .with_prior_per_fan_in(settings.prior_per_fan_in)
                .with_kl(match settings.kl {
                    recipe::Kl::Analytic => Kl::Analytic,
                    recipe::Kl::MonteCarlo => Kl::MonteCarlo,
                })?;
            ForecastPosterior::MeanField(mean_field)
        }
    })
}

fn loss(loss: &recipe::Loss) -> Result<ForecastLoss> {
    Ok(match *loss {
        recipe::Loss::SquaredErrorOfMean => ForecastLoss::SquaredErrorOfMean(SquaredErrorOfMean),
        recipe::Loss::ExpectedSquaredError => {
            ForecastLoss::ExpectedSquaredError(ExpectedSquaredError)
        }
        recipe::Loss::GaussianOfDraws { floor } => {
            ForecastLoss::GaussianOfDraws(GaussianOfDraws::with_floor(floor as f32)?)
        }
        recipe::Loss::ExpectedGaussian => ForecastLoss::ExpectedGaussian(Expected(Gaussian)),
        recipe::Loss::GaussianMixture => {
            ForecastLoss::GaussianMixture(Mixture::new(Gaussian).by_output())
        }
        recipe::Loss::StudentTMixture { freedom } => {
            ForecastLoss::StudentTMixture(Mixture::new(StudentT::new(freedom)?).by_output())
        }
        recipe::Loss::QuantileMixture { level } => {
            ForecastLoss::QuantileMixture(Mixture::new(Quantile::new(level)?).by_output())
        }
        recipe::Loss::Crps { fair: true } => ForecastLoss::Crps(EnsembleCrps::fair()),
        recipe::Loss::Crps { fair: false } => ForecastLoss::Crps(EnsembleCrps::default()),
        recipe::Loss::ExpectedCrossEntropy | recipe::Loss::CrossEntropyOfMean { .. } => {
            unreachable!("a recipe with a loss of classes for values is refused when it is read")
        }
    })
}

fn settings(recipe: &Recipe, mesh: Mesh, steps: usize) -> Settings {
    let train = &recipe.train;
    let rate = recipe.optimizer.rate;
    let pair = |betas: [f64; 2]| (betas[0] as f32, betas[1] as f32);
    Settings {
        samples: train.samples,
        batch: train.batch,
        seed: train.seed,
        mesh,
        exact: train.exact,
        reduce: match train.reduce {
            recipe::Reduce::Fast => Reduce::Fast,
            recipe::Reduce::Reproducible => Reduce::Reproducible,
        },
        memory: match train.memory {
            recipe::Memory::Retain => Memory::Retain,
            recipe::Memory::Recompute => Memory::Recompute,
        },
        augment: match train.augment {
            recipe::Augment::PerDraw => Augment::PerDraw,
            recipe::Augment::PerRank => Augment::PerRank,
            recipe::Augment::Shared => Augment::Shared,
        },
        heat: train.heat,
        kl_warmup: train.kl_warmup,
        clip_norm: train.clip_norm,
        schedule: match recipe.schedule {
            recipe::Schedule::Constant => Schedule::Constant { rate },
            recipe::Schedule::Warmup { steps } => Schedule::Warmup { rate, steps },
            recipe::Schedule::Cosine { warmup, floor } => {
                Schedule::Cosine { rate, warmup, total: steps, floor }
            }
        },
        optimizer: match recipe.optimizer.method {
            recipe::Method::Adam { betas, epsilon, weight_decay } => OptimizerConfig::Adam {
                betas: pair(betas),
                epsilon: epsilon as f32,
                weight_decay: weight_decay as f32,
            },
            recipe::Method::AdamW { betas, epsilon, weight_decay } => OptimizerConfig::AdamW {
                betas: pair(betas),
                epsilon: epsilon as f32,
                weight_decay: weight_decay as f32,
            },
            recipe::Method::Sgd { momentum, weight_decay } => {
                OptimizerConfig::Sgd { momentum, weight_decay: weight_decay as f32 }
            }
        },
        threads: train.threads,
        share_loading: train.share_loading,
        load_delay: Duration::try_from_secs_f64(train.load_delay_ms / 1e3).unwrap_or(Duration::MAX),
        validation_draws: recipe.evaluate.validation_draws,
        ..Settings::default()
    }
}
