//! What a trained posterior says, and how right it is.

use std::path::Path;

use super::{Place, Trainer};
use crate::calibrate::{CalibrateConfig, Calibration};
use crate::data::Dataset;
use crate::error::Result;
use crate::loss::Loss;
use crate::metrics::{Evaluation, FieldLayout};
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

    /// Scores predictions as fields, also those of validation data during training: weighted, and
    /// each field in its units ([`Evaluation::fields`]). Checkpoints do not have it.
    #[must_use]
    pub fn with_fields(mut self, layout: FieldLayout) -> Self {
        self.readout.fields = Some(layout);
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
        let noise = self.predictor().estimate_noise(valid, draws)?;
        self.readout.noise.clone_from(&noise);
        self.readout.write(&mut self.state.notes);
        Ok(noise)
    }

    /// Learns from validation data how predictions with `draws` draws are to be calibrated, and
    /// calibrates all predictions from now on; noise that the loss leaves open is estimated first.
    /// It travels with checkpoints, and is forgotten when training goes on. Collective in a job.
    ///
    /// ```
    /// # use bayesmesh::{CalibrateConfig, Draw, MeanField, Network, Prior, Settings};
    /// # use bayesmesh::{Length, TensorDataset, Trainer};
    /// # use bayesmesh::loss::{Expected, Gaussian};
    /// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
    /// # #[derive(Module, Debug)]
    /// # struct Line { linear: Linear }
    /// # impl Network for Line {
    /// #     type Input = Tensor<2>;
    /// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
    /// # }
    /// # let device = Device::default();
    /// # let network = Line { linear: LinearConfig::new(1, 1).init(&device) };
    /// # let column = |n: i64| {
    /// #     Tensor::<1, burn::tensor::Int>::arange(0..n, &device).float().unsqueeze_dim::<2>(1)
    /// # };
    /// # let (x, valid_x) = (column(32) / 32.0, column(40) / 40.0);
    /// # let train = TensorDataset::new(x.clone(), x.clone() * 2.0)?;
    /// # let valid = TensorDataset::new(valid_x.clone(), valid_x * 2.0 + 0.3)?;
    /// # let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?;
    /// # let settings = Settings { batch: 4, ..Settings::default() };
    /// # let mut trainer = Trainer::new(posterior, Expected(Gaussian::fixed(0.1)?), settings);
    /// # trainer.fit(&train, None, Length::Steps(3))?;
    /// trainer.calibrate(&valid, CalibrateConfig::Auto, 16)?;
    /// let prediction = trainer.predict(&x, 16)?;
    /// let ends = prediction.quantiles(&[0.05, 0.95])?; // they hold 90 % of the truth
    /// # assert_eq!(ends.len(), 2);
    /// let evaluation = trainer.evaluate(&valid, 16)?;
    /// let raw = evaluation.raw().unwrap(); // as it was before
    /// # assert!(raw.score("coverage_90").is_ok());
    /// # Ok::<(), bayesmesh::Error>(())
    /// ```
    pub fn calibrate<D>(&mut self, valid: &D, config: CalibrateConfig, draws: usize) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.readout.calibration = None;
        if self.loss.leaves_noise_open() {
            self.calibrate_noise(valid, draws)?;
        }
        self.readout.calibration = self.predictor().fit_calibration(valid, config, draws)?;
        self.readout.write(&mut self.state.notes);
        Ok(())
    }

    /// Takes noise and calibration from another trainer, which has learned from fewer examples: so
    /// those that it was calibrated on need not be lost to the training of this one.
    pub fn calibrate_like(&mut self, other: &Self) {
        self.readout.noise.clone_from(&other.readout.noise);
        self.readout.calibration.clone_from(&other.readout.calibration);
        self.readout.write(&mut self.state.notes);
    }

    /// Makes predictions as the network does from now on.
    pub fn forget_calibration(&mut self) {
        self.readout.calibration = None;
        self.readout.write(&mut self.state.notes);
    }

    /// Deviations of the noise that is added to predictions, one for each output; none where it is
    /// empty.
    pub fn noise(&self) -> &[f64] {
        &self.readout.noise
    }

    /// How predictions are calibrated, if they are.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.readout.calibration.as_ref()
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
