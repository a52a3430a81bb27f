//! Ends a run that no longer gets better.

use super::watched::Watched;
use super::{Callback, EpochReport, Flow, StepReport};
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// Stops a run when a validation score has not improved for some epochs. A score that does not
/// exist is an error after the first epoch.
///
/// ```
/// use bayesmesh::trainer::{EarlyStopping, Length};
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
/// let mut trainer = trainer.with_callback(EarlyStopping::on("rmse").patience(4));
/// trainer.fit(&train, Some(&valid), Length::Epochs(1000))?;
/// assert!(trainer.step() < 1000);
/// # Ok::<(), bayesmesh::Error>(())
/// ```
///
/// The trainer then stands where the run stopped; [`BestCheckpoint`](super::BestCheckpoint) has
/// what was best.
#[derive(Clone, Debug)]
pub struct EarlyStopping {
    watched: Watched,
    patience: usize,
    best: Option<f64>,
    /// Epochs since the best one.
    waited: usize,
}

impl EarlyStopping {
    /// On a score of which less is better, with a patience of 3 epochs.
    pub fn on(score: impl Into<String>) -> Self {
        Self { watched: Watched::new(score), patience: 3, best: None, waited: 0 }
    }

    /// Stops after so many epochs in a row without an improvement; at least one.
    #[must_use]
    pub fn patience(mut self, epochs: usize) -> Self {
        self.patience = epochs;
        self
    }

    /// Has seen these scores of earlier epochs already, in their order: for a run that goes on.
    /// Last of all, when it is known what counts as better.
    #[must_use]
    pub fn after(mut self, scores: impl IntoIterator<Item = f64>) -> Self {
        scores.into_iter().for_each(|score| self.see(score));
        self
    }

    fn see(&mut self, score: f64) {
        match self.watched.improves(score, self.best) {
            true => (self.best, self.waited) = (Some(score), 0),
            false => self.waited += 1,
        }
    }

    /// Counts only an improvement by at least so much.
    #[must_use]
    pub fn at_least(mut self, improvement: f64) -> Self {
        self.watched = self.watched.at_least(improvement);
        self
    }

    /// For a score of which more is better, like `accuracy`.
    #[must_use]
    pub fn higher_is_better(mut self) -> Self {
        self.watched = self.watched.higher_is_better();
        self
    }
}

impl Callback for EarlyStopping {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn wants_checkpoint_of_epoch(&self, _: &EpochReport) -> bool {
        false
    }

    fn on_epoch(&mut self, report: &EpochReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
        self.see(self.watched.of(report)?);
        if self.waited < self.patience.max(1) {
            return Ok(Flow::Continue);
        }
        // Whoever calls `fit` again has patience again.
        self.waited = 0;
        Ok(Flow::Stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Score;
    use crate::trainer::Time;

    /// The epoch, counted from zero, after which a run with these scores is stopped.
    fn stops_after(mut stopping: EarlyStopping, scores: &[f64]) -> Option<usize> {
        scores.iter().position(|&score| {
            let report = EpochReport {
                epoch: 0,
                step: 1,
                loss: 0.0,
                validation: vec![Score::new("score", score)],
                time: Time::default(),
            };
            let flow = stopping.on_epoch(&report, &|| unreachable!("not wanted"));
            flow.unwrap() == Flow::Stop
        })
    }

    #[test]
    fn it_stops_after_so_many_epochs_without_an_improvement() {
        let scores = [5.0, 4.0, 4.5, 3.0, 3.0, 3.2, 3.1, 2.0];
        let stopping = EarlyStopping::on("score");
        assert_eq!(stops_after(stopping.clone(), &scores), Some(6));
        assert_eq!(stops_after(stopping.clone().patience(0), &scores), Some(2));
        assert_eq!(stops_after(stopping.clone().patience(1), &scores), Some(2));
        assert_eq!(stops_after(stopping.clone().patience(2), &scores), Some(5));
        assert_eq!(stops_after(stopping.clone().patience(4), &scores), None);
        // 4 → 3 counts, 5 → 4 not.
        assert_eq!(stops_after(stopping.patience(2).at_least(1.5), &scores), Some(2));
    }

    #[test]
    fn a_run_that_goes_on_has_waited_before() {
        let scores = [5.0, 4.0, 4.5, 3.0, 3.0, 3.2, 3.1, 2.0];
        let stopping = EarlyStopping::on("score");
        for done in 0..6 {
            let (before, rest) = scores.split_at(done);
            let resumed = stopping.clone().after(before.iter().copied());
            assert_eq!(stops_after(resumed, rest), Some(6 - done), "{done}");
        }
    }

    #[test]
    fn more_can_be_better() {
        let stopping = EarlyStopping::on("score").patience(2);
        assert_eq!(stops_after(stopping.clone(), &[0.1, 0.2, 0.3]), Some(2));
        assert_eq!(stops_after(stopping.higher_is_better(), &[0.1, 0.2, 0.3]), None);
    }

    #[test]
    fn what_is_not_a_number_is_no_improvement() {
        let stopping = EarlyStopping::on("score").patience(2);
        assert_eq!(stops_after(stopping.clone(), &[f64::NAN, f64::NAN]), Some(1));
        assert_eq!(stops_after(stopping, &[f64::NAN, 1.0, f64::NAN, 0.5]), None);
    }
}
