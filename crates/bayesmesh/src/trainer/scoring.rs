//! Scores of what a trainer predicts, on its whole mesh.

use bayesmesh_comm::{MeshComm, Operation, Reduce};

use super::Trainer;
use crate::data::{Dataset, Truth};
use crate::error::{Error, Result};
use crate::loss::{Loss, Reading};
use crate::metrics::{Evaluation, Metric, MetricSet, Score};
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Predictive, Scorer, Scoring, evaluate_on, merge_set, visit_on};

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// Scores predictions with `draws` draws on labelled data, on the ranks of [`fit`](Self::fit),
    /// each score with its standard errors. Collective in a job.
    pub fn evaluate<D>(&self, data: &D, draws: usize) -> Result<Evaluation>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.evaluate_as(data, &Scoring::new(draws))
    }

    /// [`evaluate`](Self::evaluate) with noise that is added, intervals of other levels, and so on.
    pub fn evaluate_as<D>(&self, data: &D, scoring: &Scoring) -> Result<Evaluation>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.agree_on_examples(data)?;
        self.on_mesh(|mesh, rank| {
            let (chunk, seed) = (rank.chunk(scoring), rank.settings.seed);
            evaluate_on(mesh, &rank.posterior, rank.loss.reading(), data, scoring, seed, chunk)
        })
    }

    /// [`evaluate_as`](Self::evaluate_as) and [`tabulate`](Self::tabulate) in one pass over the data.
    pub fn evaluate_and_tabulate<D>(
        &self,
        data: &D,
        scoring: &Scoring,
        columns: usize,
        row: impl Fn(&Predictive) -> Result<Vec<f64>> + Sync,
    ) -> Result<(Evaluation, Vec<f64>)>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.agree_on_examples(data)?;
        self.on_mesh(|mesh, rank| {
            let mut scorer = Scorer::new(scoring, rank.loss.reading() == Reading::Logits);
            let mut table = Table::new(data.len(), columns);
            rank.visit(mesh, data, scoring, |rows, prediction, truth| {
                scorer.add(prediction, truth)?;
                table.fill(rows, row(prediction)?)
            })?;
            scorer.merge_on(&*mesh.world)?;
            Ok((scorer.evaluation()?, table.merged_on(mesh)?))
        })
    }

    /// Gathers `columns` numbers of each example, made from its prediction with `draws` draws, as
    /// `[examples, columns]` on all ranks. Collective in a job.
    ///
    /// `row` gets predictions of a few examples at a time and gives `[rows, columns]`, row-major; it
    /// runs on the rank that has them.
    pub fn tabulate<D>(
        &self,
        data: &D,
        draws: usize,
        columns: usize,
        row: impl Fn(&Predictive) -> Result<Vec<f64>> + Sync,
    ) -> Result<Vec<f64>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.agree_on_examples(data)?;
        self.on_mesh(|mesh, rank| {
            let mut table = Table::new(data.len(), columns);
            rank.visit(mesh, data, &Scoring::new(draws), |rows, prediction, _| {
                table.fill(rows, row(prediction)?)
            })?;
            table.merged_on(mesh)
        })
    }

    /// Predicts a data set with `draws` draws and hands every prediction with its truth to `add`,
    /// which puts it into a set of your own metrics; the sets of all ranks are then merged.
    /// Collective in a job.
    ///
    /// Each example is added once, on one of the ranks, each of which begins with a copy of `set`.
    pub fn score_with<D, M>(
        &self,
        data: &D,
        draws: usize,
        set: M,
        add: impl Fn(&mut M, &Predictive, &Truth) -> Result<()> + Sync,
    ) -> Result<M>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
        M: MetricSet + Clone + Send + Sync,
    {
        self.agree_on_examples(data)?;
        self.on_mesh(|mesh, rank| {
            let mut own = set.clone();
            own.reset();
            rank.visit(mesh, data, &Scoring::new(draws), |_, prediction, truth| {
                add(&mut own, prediction, truth)
            })?;
            merge_set(&mut own, &*mesh.world)?;
            Ok(own)
        })
    }

    /// The noise that the loss leaves open, as a deviation for each output: what the mean squared
    /// error on validation data has beyond the mean variance of the predictions,
    /// `√max(0, mean (ȳ − y)² − mean Var)`.
    ///
    /// A squared error says nothing of the noise in the data, so that the spread of the draws alone is
    /// too narrow. Give this to [`Predictive::with_noise`] or to [`Scoring::noise`].
    pub fn calibrate_noise<D>(&self, valid: &D, draws: usize) -> Result<Vec<f64>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        if valid.is_empty() {
            return Err(Error::Data("noise cannot be estimated without examples".to_owned()));
        }
        let device = self.posterior.parameters().device().clone();
        let outputs = match crate::data::Target::truth(&valid.batch(&[0], &device)?.1) {
            Truth::Values(values) => values.len(),
            Truth::Labels(_) => {
                let message = "noise is that of values; this network predicts classes";
                return Err(Error::Setting(message.to_owned()));
            }
        };
        let excess = ExcessError { statistics: vec![0.0; 1 + outputs] };
        let excess = self.score_with(valid, draws, excess, ExcessError::add)?;
        let (rows, sums) = excess.statistics.split_first().expect("rows and outputs");
        Ok(sums.iter().map(|sum| (sum / rows).max(0.0).sqrt()).collect())
    }

    /// Scores after an epoch, without standard errors over draws, as one rank of a mesh.
    pub fn evaluate_on<D>(&self, mesh: &MeshComm, data: &D, draws: usize) -> Result<Vec<Score>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let scoring = Scoring::new(draws).quick();
        let (reading, seed) = (self.loss.reading(), self.settings.seed);
        let chunk = self.chunk(&scoring);
        let evaluation = evaluate_on(mesh, &self.posterior, reading, data, &scoring, seed, chunk)?;
        Ok(evaluation.into_iter().collect())
    }

    /// Predicts the examples that this rank answers for.
    fn visit<D>(
        &self,
        mesh: &MeshComm,
        data: &D,
        scoring: &Scoring,
        visit: impl FnMut(&[usize], &Predictive, &Truth) -> Result<()>,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let (reading, seed) = (self.loss.reading(), self.settings.seed);
        let (draws, chunk) = (scoring.draws, self.chunk(scoring));
        visit_on(mesh, &self.posterior, reading, data, draws, seed, chunk, visit)
    }

    fn chunk(&self, scoring: &Scoring) -> usize {
        scoring.chunk.unwrap_or(self.settings.batch)
    }

    /// The ranks of a job must be about to score the same.
    fn agree_on_examples<D: Dataset>(&self, data: &D) -> Result<()> {
        match &self.world {
            Some(world) => self.agree_on(&**world, "examples", data.checksum().unwrap_or_default()),
            None => Ok(()),
        }
    }
}

/// Numbers of every example, which each rank fills in for its own and leaves zero for the others.
struct Table {
    columns: usize,
    cells: Vec<f64>,
}

impl Table {
    fn new(rows: usize, columns: usize) -> Self {
        Self { columns, cells: vec![0.0; rows * columns] }
    }

    fn fill(&mut self, rows: &[usize], values: Vec<f64>) -> Result<()> {
        let columns = self.columns;
        if values.len() != rows.len() * columns {
            return Err(Error::Mismatch(format!(
                "{} numbers for {} examples; a row of the table has {columns}",
                values.len(),
                rows.len()
            )));
        }
        for (i, row) in rows.iter().enumerate() {
            let values = &values[i * columns..][..columns];
            self.cells[row * columns..][..columns].copy_from_slice(values);
        }
        Ok(())
    }

    fn merged_on(mut self, mesh: &MeshComm) -> Result<Vec<f64>> {
        mesh.world.all_reduce_f64(&mut self.cells, Operation::Sum, Reduce::Reproducible)?;
        Ok(self.cells)
    }
}

/// Squared errors beyond the predicted variance.
#[derive(Clone)]
struct ExcessError {
    /// Rows, then for each output Σ (e² − Var).
    statistics: Vec<f64>,
}

impl ExcessError {
    fn add(&mut self, prediction: &Predictive, truth: &Truth) -> Result<()> {
        let Truth::Values(truth) = truth else { unreachable!("labels have been refused") };
        // Counts the values.
        prediction.mixtures(truth)?;
        let (mean, variance) = prediction.mean_and_variance();
        self.statistics[0] += prediction.rows() as f64;
        for (cell, truth) in truth.iter().enumerate() {
            let excess = (mean[cell] - f64::from(*truth)).powi(2) - variance[cell];
            self.statistics[1 + cell % prediction.outputs()] += excess;
        }
        Ok(())
    }
}

impl Metric for ExcessError {
    fn statistics(&self) -> &[f64] {
        &self.statistics
    }

    fn statistics_mut(&mut self) -> &mut [f64] {
        &mut self.statistics
    }

    fn scores(&self) -> Vec<Score> {
        Vec::new()
    }
}

impl MetricSet for ExcessError {
    fn metrics(&self) -> Vec<&dyn Metric> {
        vec![self]
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        vec![self]
    }
}
