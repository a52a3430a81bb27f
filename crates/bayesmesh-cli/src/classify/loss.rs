//! Any loss for classes that a recipe can name.

use anyhow::Result;
use bayesmesh::Loss;
use bayesmesh::loss::{Categorical, Combine, Expected, Mixture, Reading};
use burn::tensor::{Int, Tensor};

use crate::recipe;

/// Any loss for classes that a recipe can name.
#[derive(Clone)]
pub enum ClassLoss {
    Expected(Expected<Categorical>),
    OfMean(Mixture<Categorical>),
}

macro_rules! for_loss {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            ClassLoss::Expected($inner) => $call,
            ClassLoss::OfMean($inner) => $call,
        }
    };
}

impl Loss for ClassLoss {
    type Target = Tensor<1, Int>;

    fn combine(&self) -> Combine {
        for_loss!(self, loss => loss.combine())
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<1, Int>) -> Tensor<2> {
        for_loss!(self, loss => loss.summary(output, target))
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<1, Int>) -> Tensor<1> {
        for_loss!(self, loss => loss.value(combined, draws, target))
    }

    fn reading(&self) -> Reading {
        Reading::Logits
    }

    fn check(&self, outputs: usize, target: &Tensor<1, Int>) -> bayesmesh::Result<()> {
        for_loss!(self, loss => loss.check(outputs, target))
    }
}

/// The loss that a recipe describes.
pub fn loss(loss: &recipe::Loss) -> Result<ClassLoss> {
    Ok(match *loss {
        recipe::Loss::ExpectedCrossEntropy => ClassLoss::Expected(Expected(Categorical)),
        recipe::Loss::CrossEntropyOfMean { floor } => {
            ClassLoss::OfMean(Mixture::new(Categorical).with_floor(floor as f32)?)
        }
        _ => unreachable!("a recipe with a loss of numbers for classes is refused when it is read"),
    })
}
