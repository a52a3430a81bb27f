//! Keeps the best state of a run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::watched::Watched;
use super::{Callback, EpochReport, Flow, StepReport};
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// Keeps the checkpoint of the epoch with the best validation score. A score that does not exist is
/// an error after the first epoch.
///
/// ```
/// use bayesmesh::trainer::{BestCheckpoint, Length};
/// # use bayesmesh::{Draw, Network, Point, Settings, TensorDataset, Trainer};
/// # use bayesmesh::loss::ExpectedSquaredError;
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// # let device = Device::default();
/// # let x = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 3.0], &device).unsqueeze_dim::<2>(1);
/// # let train = TensorDataset::new(x.clone(), x.clone() * 2.0)?;
/// # let valid = TensorDataset::new(x.clone() + 0.5, x * 2.0 + 1.0)?;
/// # let posterior = Point::new(Line { linear: LinearConfig::new(1, 1).init(&device) });
/// # let settings = Settings { batch: 4, schedule: 0.5.into(), ..Settings::default() };
/// # let trainer = Trainer::new(posterior, ExpectedSquaredError, settings);
///
/// let best = BestCheckpoint::on("rmse");
/// let kept = best.kept();
/// let mut trainer = trainer.with_callback(best);
/// trainer.fit(&train, Some(&valid), Length::Epochs(50))?;
///
/// let best = kept.get().expect("an epoch has ended");
/// trainer.restore(&best.checkpoint, "the best checkpoint")?;
/// # let scores = trainer.evaluate(&valid, 1)?;
/// # assert!(scores.iter().any(|score| score.name == "rmse" && score.value == best.score));
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Debug)]
pub struct BestCheckpoint {
    watched: Watched,
    path: Option<PathBuf>,
    kept: Kept,
}

/// The best state of a run so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The score.
    pub score: f64,
    /// The epoch, counted from zero.
    pub epoch: usize,
    /// The state after it.
    pub checkpoint: Checkpoint,
}

/// Where a [`BestCheckpoint`] keeps what it has, for whoever started the run.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Option<Arc<Best>>>>);

impl Kept {
    /// The best so far; nothing before the end of the first epoch.
    pub fn get(&self) -> Option<Arc<Best>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, best: Best) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(best));
    }
}

impl BestCheckpoint {
    /// By a score of which less is better.
    pub fn on(score: impl Into<String>) -> Self {
        Self { watched: Watched::new(score), path: None, kept: Kept::default() }
    }

    /// For a score of which more is better, like `accuracy`.
    #[must_use]
    pub fn higher_is_better(mut self) -> Self {
        self.watched = self.watched.higher_is_better();
        self
    }

    /// Also saves it to a file, whose folder must exist, with the score and the epoch in its
    /// metadata. The first epoch of a run replaces what another run has left there.
    #[must_use]
    pub fn save(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Where the best will be found, also after the callback has been given away.
    pub fn kept(&self) -> Kept {
        self.kept.clone()
    }
}

impl Callback for BestCheckpoint {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn on_epoch(
        &mut self,
        report: &EpochReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> Result<Flow> {
        let score = self.watched.of(report)?;
        if self.watched.improves(score, self.kept.get().map(|best| best.score)) {
            let mut checkpoint = checkpoint();
            checkpoint.metadata.insert("score".to_owned(), score.to_string());
            checkpoint.metadata.insert("epoch".to_owned(), report.epoch.to_string());
            if let Some(path) = &self.path {
                checkpoint.save(path)?;
            }
            self.kept.set(Best { score, epoch: report.epoch, checkpoint });
        }
        Ok(Flow::Continue)
    }
}
