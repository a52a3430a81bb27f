//! Any loss for numbers that a recipe can name.

use anyhow::Result;
use bayesmesh::Loss;
use bayesmesh::loss::{
    Combine, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, GaussianOfDraws, Mixture,
    Quantile, Reading, SquaredErrorOfMean, StudentT,
};
use burn::tensor::Tensor;

use crate::recipe;

/// Any loss for numbers that a recipe can name.
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

    fn check(&self, outputs: usize, target: &Tensor<2>) -> bayesmesh::Result<()> {
        for_loss!(self, loss => loss.check(outputs, target))
    }
}

impl ForecastLoss {
    /// Whether the loss says nothing of the noise in the data, so that it has to be estimated
    /// afterwards.
    pub fn leaves_noise_open(&self) -> bool {
        matches!(self, Self::SquaredErrorOfMean(_) | Self::ExpectedSquaredError(_))
    }
}

/// The loss that a recipe describes.
pub fn loss(loss: &recipe::Loss) -> Result<ForecastLoss> {
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
