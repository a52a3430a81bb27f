//! Forecasts that go on from themselves.

use std::sync::Mutex;

use super::{Predictive, Predictor};
use crate::data::{Checksum, Rows as _};
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::posterior::Posterior;

/// What a network takes.
type InputOf<P> = <<P as Posterior>::Network as Network>::Input;

impl<P: Posterior> Predictor<P> {
    /// Follows every draw for so many steps: what it predicts becomes what it sees next. **A draw
    /// is a trajectory**: draws are kept apart, each goes on from its own prediction, with its own
    /// weights; what is random in the forward pass is new in every step. Collective in a job.
    ///
    /// `next` makes the next input of a draw from the number of the step that it has just taken, 1
    /// at first, the input of that step and its outputs, `[rows, outputs]`. `visit` gets the
    /// prediction of all draws after each step, on the first rank of the mesh; so in a job only the
    /// first process does. The memory of a rank is that of its own draws and of one prediction.
    pub fn roll_out(
        &self,
        origin: &InputOf<P>,
        draws: usize,
        steps: usize,
        next: impl Fn(usize, &InputOf<P>, &[f32]) -> Result<InputOf<P>> + Sync,
        visit: impl FnMut(usize, &Predictive) -> Result<()> + Send,
    ) -> Result<()> {
        self.agree_on("inputs", || {
            let mut words = Vec::new();
            origin.pack(&mut words);
            Checksum::default().floats(&words).text()
        })?;
        self.check()?;
        let mesh = self.mesh_of_draws(draws)?;
        let ranks = self.place.ranks(mesh).map(|rank| self.members.of_rank(mesh, rank));
        let mut ranks: Vec<_> = ranks.map(|members| (members, origin.clone())).collect();
        let (readout, visit) = (&self.readout, Mutex::new(visit));
        self.place.run(mesh, self.threads, &mut ranks, |mesh, (members, origin)| {
            let samples = &*mesh.samples;
            let own = members.draws_of(draws, samples)?;
            let mut inputs = vec![origin.clone(); own.len()];
            for step in 1..=steps {
                let mut outputs = Vec::new();
                for (index, input) in own.clone().zip(&mut inputs) {
                    let draw = Draw::for_prediction(readout.seed, index as u32);
                    let draw = draw.at_lead(step - 1).with_rows(0..origin.rows());
                    let output = readout.output_of(members, draw, input.clone());
                    if step < steps {
                        *input = next(step, input, &output)?;
                    }
                    outputs.extend(output);
                }
                let all = samples.all_gather(&outputs)?.concat();
                if mesh.world.rank() == 0 {
                    let prediction = Predictive::of_values(draws, origin.rows(), all)?;
                    let mut visit = visit.lock().map_err(|_| {
                        Error::Rank("what looked at a forecast has panicked before".to_owned())
                    })?;
                    visit(step, &prediction)?;
                }
            }
            Ok(())
        })
    }
}
