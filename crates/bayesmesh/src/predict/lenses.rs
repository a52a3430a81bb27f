//! What each example of a data set is seen through.

use bayesmesh_comm::MeshComm;

use super::readout::Readout;
use super::table::Table;
use super::{Predictive, Scoring};
use crate::calibrate::{Calibration, Follower, Lens};
use crate::data::{Dataset, Target as _, Truth};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::posterior::Posterior;
use crate::trainer::members::Members;

/// Calibrates predictions of a data set, example by example in ascending order.
pub(super) struct Lenses<'a, D> {
    calibration: &'a Calibration,
    data: &'a D,
    following: Option<Following>,
}

/// A calibration that goes with time.
struct Following {
    follower: Follower,
    /// How far out every truth lies, `[examples, outputs]`: known here, and taken in only when the
    /// time has come.
    deviations: Vec<f64>,
    /// Examples that have been taken in.
    taken: usize,
}

impl<'a, D: Dataset> Lenses<'a, D> {
    /// The same for all examples.
    pub fn fixed(calibration: &'a Calibration, data: &'a D) -> Self {
        Self { calibration, data, following: None }
    }

    /// One that follows what has come true before each example.
    pub fn following(
        calibration: &'a Calibration,
        data: &'a D,
        follower: Follower,
        deviations: Vec<f64>,
    ) -> Self {
        let following = Some(Following { follower, deviations, taken: 0 });
        Self { calibration, data, following }
    }

    /// The calibrated prediction of some examples.
    pub fn calibrated(&mut self, rows: &[usize], prediction: &Predictive) -> Result<Predictive> {
        let Some(following) = &mut self.following else {
            return self.calibration.apply(prediction.clone());
        };
        let outputs = prediction.outputs();
        let lenses: Result<Vec<Lens>> =
            rows.iter().map(|&row| following.lens(self.data, row, outputs)).collect();
        let widened = self.calibration.widened(prediction.clone());
        Ok(match Lens::of_each_row(lenses?) {
            Some(lens) => widened.seen_through(lens),
            None => widened,
        })
    }
}

impl Following {
    fn lens<D: Dataset>(&mut self, data: &D, row: usize, outputs: usize) -> Result<Lens> {
        let lost = || Error::Data(format!("example {row} has no time, but others of its data do"));
        while self.taken < row {
            let moment = data.moment(self.taken).ok_or_else(lost)?;
            let deviations = self.deviations[self.taken * outputs..][..outputs].to_vec();
            self.follower.observe(moment, deviations);
            self.taken += 1;
        }
        Ok(self.follower.lens(data.moment(row).ok_or_else(lost)?))
    }
}

impl Readout {
    /// Hands every prediction, the same before calibration, and its truth to `visit`; each row on
    /// one of the ranks, in ascending order. Collective.
    pub fn visit_both<P, D>(
        &self,
        mesh: &MeshComm,
        members: &Members<P>,
        data: &D,
        scoring: &Scoring,
        mut visit: impl FnMut(&[usize], &Predictive, &Predictive, &Truth) -> Result<()>,
    ) -> Result<()>
    where
        P: Posterior,
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let mut lenses = self.lenses(mesh, members, data, scoring)?;
        self.visit(mesh, members, data, scoring, |rows, raw, truth| match &mut lenses {
            Some(lenses) => visit(rows, &lenses.calibrated(rows, raw)?, raw, truth),
            None => visit(rows, raw, raw, truth),
        })
    }

    /// How the predictions of a data set are calibrated; nothing where they are not. Collective.
    fn lenses<'a, P, D>(
        &'a self,
        mesh: &MeshComm,
        members: &Members<P>,
        data: &'a D,
        scoring: &Scoring,
    ) -> Result<Option<Lenses<'a, D>>>
    where
        P: Posterior,
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let Some(calibration) = &self.calibration else { return Ok(None) };
        let ordered = !data.is_empty() && data.moment(0).is_some();
        let device = members.any().parameters().device();
        let outputs = match ordered.then(|| data.batch(&[0], device)).transpose()? {
            Some((_, target)) => match target.truth() {
                Truth::Values(values) => values.len(),
                Truth::Labels(_) => 0,
            },
            None => 0,
        };
        let Some(follower) = calibration.follower(outputs).filter(|_| ordered) else {
            return Ok(Some(Lenses::fixed(calibration, data)));
        };
        let mut table = Table::new(data.len(), outputs);
        self.visit(mesh, members, data, scoring, |rows, prediction, truth| {
            let Truth::Values(truth) = truth else {
                return Err(Error::Setting("series have values, and not labels".to_owned()));
            };
            let prediction = calibration.widened(prediction.clone());
            let examples: Vec<u64> = rows.iter().map(|&row| row as u64).collect();
            table.fill(rows, prediction.deviations(truth, &examples)?)
        })?;
        let deviations = table.merged_on(mesh)?;
        Ok(Some(Lenses::following(calibration, data, follower, deviations)))
    }
}
