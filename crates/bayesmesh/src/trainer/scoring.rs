//! What a trained posterior says, and how right it is.

use std::path::Path;

use super::{Place, Trainer};
use crate::data::Dataset;
use crate::error::Result;
use crate::loss::Loss;
use crate::metrics::Evaluation;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Predictive, Predictor, Standardize};

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// Gives predictions and scores in the units of the user: those to which `scale` brings what
    /// the network was trained on. It travels with checkpoints.
    #[must_use]
    pub fn with_target_scale(mut self, scale: Standardize) -> Self {
        self.readout.scale = Some(scale);
        self.readout.write(&mut self.state.notes);
        self
    }

    /// What predictions are made from, as trained so far, on the same ranks.
    pub fn predictor(&self) -> Predictor<P> {
        let threads = self.settings.threads_per_rank();
        // Moments are of no use to predictions, and large.
        let members = self.state.members.with_new_optimizers(self.settings.optimizer);
        Predictor::new(
            self.place.clone(),
            self.settings.mesh,
            threads,
            members,
            self.readout.clone(),
        )
    }

    /// Predicts with `draws` draws, spread over the ranks. Collective in a job.
    pub fn predict(
        &self,
        input: &<P::Network as Network>::Input,
        draws: usize,
    ) -> Result<Predictive> {
        self.predictor().predict(input, draws)
    }

    /// Scores predictions with `draws` draws on labelled data, on the ranks of [`fit`](Self::fit),
    /// each score with its standard errors. Collective in a job. [`Predictor`] has more of the
    /// kind.
    pub fn evaluate<D>(&self, data: &D, draws: usize) -> Result<Evaluation>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.predictor().evaluate(data, draws)
    }

    /// [Estimates](Predictor::estimate_noise) the noise that the loss leaves open on validation
    /// data and adds it to all predictions from now on. It travels with checkpoints.
    pub fn calibrate_noise<D>(&mut self, valid: &D, draws: usize) -> Result<Vec<f64>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let noise = self.predictor().without_noise().estimate_noise(valid, draws)?;
        self.readout.noise.clone_from(&noise);
        self.readout.write(&mut self.state.notes);
        Ok(noise)
    }

    /// Writes a checkpoint from which the run can go on and [`Predictor::load`] can predict; in a
    /// job the first rank writes it. Collective in a job.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let first = match &self.place {
            Place::Threads => true,
            Place::Job(world) => world.rank() == 0,
        };
        match self.checkpoint_on(first)? {
            Some(checkpoint) => Ok(checkpoint.save(path)?),
            None => Ok(()),
        }
    }
}
