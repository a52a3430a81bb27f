//! Predictions that the ranks of a mesh make together.

use std::ops::Range;

use bayesmesh_comm::{Communicator, MeshComm, Operation, Reduce, share};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use super::{Predictive, Scorer, Scoring};
use crate::data::{Dataset, Rows, Target, Truth};
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Reading;
use crate::metrics::Evaluation;
use crate::network::Network;
use crate::posterior::{Posterior, Snapshot, Tape, to_vec};

/// The outputs of one draw as they enter a prediction: probabilities, or raw values.
fn read_output<N: Network>(
    snapshot: &Snapshot<'_, N>,
    reading: Reading,
    draw: &Draw,
    input: N::Input,
) -> Tensor<2> {
    let output = snapshot.draw(draw, Tape::Off).network.forward(input, draw);
    match reading {
        Reading::Logits => softmax(output, 1),
        Reading::Values | Reading::ValuesWithNoise { .. } | Reading::MeanAndLogVariance => output,
    }
}

/// Predicts with `draws` draws spread over the ranks of `comm`; collective, the same result on all.
pub fn predict_on<P: Posterior>(
    comm: &dyn Communicator,
    posterior: &P,
    reading: Reading,
    input: &<P::Network as Network>::Input,
    draws: usize,
    seed: u64,
) -> Result<Predictive> {
    predict_rows(comm, posterior, reading, input, 0, draws, seed)
}

fn predict_rows<P: Posterior>(
    comm: &dyn Communicator,
    posterior: &P,
    reading: Reading,
    input: &<P::Network as Network>::Input,
    first_row: usize,
    draws: usize,
    seed: u64,
) -> Result<Predictive> {
    if draws == 0 {
        return Err(Error::Setting("a prediction needs at least one draw".to_owned()));
    }
    let snapshot = posterior.parameters().snapshot();
    let mut local = Vec::new();
    let mut shape = [0; 2];
    for index in share(draws, comm.size(), comm.rank()) {
        let draw =
            Draw::for_prediction(seed, index as u32).with_rows(first_row..first_row + input.rows());
        let output = read_output(&snapshot, reading, &posterior.adapt(draw), input.clone());
        shape = output.dims();
        local.extend(to_vec(output));
    }
    // A rank without draws learns the shape from the others.
    let mut dims = shape.map(|n| n as f64);
    comm.all_reduce_f64(&mut dims, Operation::Max, Reduce::Fast)?;
    let [rows, columns] = dims.map(|n| n as usize);
    let raw = comm.all_gather(&local)?.concat();
    Ok(Predictive::new(reading, draws, rows, columns, raw))
}

/// Predicts a data set chunk by chunk and hands each prediction with its truth to `visit`. Rows are
/// spread over the data axis and draws over the sample axis; a prediction then has all its draws,
/// and the ranks that made it together divide its rows. So **each row is visited once, by one
/// rank**, and whatever adds over rows is summed over the whole world. Collective. `chunk` rows are
/// predicted at a time.
#[allow(clippy::too_many_arguments)] // a collective call, said in full
pub fn visit_on<P, D>(
    mesh: &MeshComm,
    posterior: &P,
    reading: Reading,
    data: &D,
    draws: usize,
    seed: u64,
    chunk: usize,
    mut visit: impl FnMut(&[usize], &Predictive, &Truth) -> Result<()>,
) -> Result<()>
where
    P: Posterior,
    D: Dataset<Input = <P::Network as Network>::Input>,
{
    let device = posterior.parameters().device().clone();
    let rows = share(data.len(), mesh.mesh.data_size(), mesh.coordinates.data);
    let rows: Vec<usize> = rows.collect();
    for rows in rows.chunks(chunk.max(1)) {
        let (input, target) = data.batch(rows, &device)?;
        let samples = &*mesh.samples;
        let prediction = predict_rows(samples, posterior, reading, &input, rows[0], draws, seed)?;
        let own = share(rows.len(), samples.size(), samples.rank());
        if !own.is_empty() {
            let truth = truth_of(target.truth(), rows.len(), own.clone());
            visit(&rows[own.clone()], &prediction.of_rows(own), &truth)?;
        }
    }
    Ok(())
}

/// Some rows of the targets of so many.
fn truth_of(truth: Truth, rows: usize, own: Range<usize>) -> Truth {
    match truth {
        Truth::Labels(labels) => Truth::Labels(labels[own].to_vec()),
        Truth::Values(values) => {
            let outputs = values.len() / rows;
            Truth::Values(values[own.start * outputs..own.end * outputs].to_vec())
        }
    }
}

/// Scores predictions on labelled data, averaged over **all** draws before they are scored.
/// Collective, the same result on all ranks; see [`visit_on`].
pub fn evaluate_on<P, D>(
    mesh: &MeshComm,
    posterior: &P,
    reading: Reading,
    data: &D,
    scoring: &Scoring,
    seed: u64,
    chunk: usize,
) -> Result<Evaluation>
where
    P: Posterior,
    D: Dataset<Input = <P::Network as Network>::Input>,
{
    let mut scorer = Scorer::new(scoring, reading == Reading::Logits);
    let draws = scoring.draws;
    visit_on(mesh, posterior, reading, data, draws, seed, chunk, |_, prediction, truth| {
        scorer.add(prediction, truth)
    })?;
    scorer.merge_on(&*mesh.world)?;
    scorer.evaluation()
}
