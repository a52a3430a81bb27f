//! Checks that a posterior, a loss or a network of your own keeps the library's promises.

use bayesmesh_comm::{Mesh, Reduce};

use crate::checkpoint::{Checkpoint, NamedTensor};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::trainer::{Length, Settings, Trainer};

/// The largest difference that the order of sums may make, relative to the largest number of a
/// tensor.
const TOLERANCE: f64 = 1e-5;

const STEPS: usize = 4;

/// Trains for a few steps on one rank and on meshes of up to four and compares: the parallel run is
/// the serial run.
///
/// - On every mesh that has enough draws and rows, each tensor is that of one rank within
///   1e-5 of its largest number, with the optimiser divided among ranks too.
/// - With reproducible sums and 1, 2 or 4 sample ranks that have as many draws each, the digest is
///   the same.
/// - A run that is stopped and goes on on another number of ranks ends with the same digest.
///
/// `settings` say everything but the mesh and the order of sums; they need at least two draws and a
/// batch of two. An error names the mesh and the
/// tensor.
///
/// ```
/// # use bayesmesh::{Draw, MeanField, Network, Prior, Settings, TensorDataset};
/// # use bayesmesh::loss::SquaredErrorOfMean;
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// # let device = Device::default();
/// # let x = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 3.0], &device).unsqueeze_dim::<2>(1);
/// # let data = TensorDataset::new(x.clone(), x * 2.0 + 1.0)?;
/// # let network = Line { linear: LinearConfig::new(1, 1).init(&device) };
/// let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?;
/// let settings = Settings { samples: 4, batch: 4, ..Settings::default() };
/// bayesmesh::testing::check_meshes(&posterior, &SquaredErrorOfMean, &data, &settings)?;
/// # Ok::<(), bayesmesh::Error>(())
/// ```
pub fn check_meshes<P, L, D>(posterior: &P, loss: &L, data: &D, settings: &Settings) -> Result<()>
where
    P: Posterior + Clone,
    L: Loss + Clone,
    D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
{
    let check = Check { posterior, loss, data, settings };
    let start = check.trainer(Mesh::serial(), false, Reduce::Fast).checkpoint();
    let serial = check.train(Mesh::serial(), false, Reduce::Fast)?;
    let numbers = |checkpoint: &Checkpoint| -> Vec<f32> {
        checkpoint.parameters.iter().flat_map(|tensor| tensor.values.clone()).collect()
    };
    let (from, to) = (numbers(&start), numbers(&serial));
    let moved = from.iter().zip(&to).fold(0.0f32, |most, (from, to)| most.max((from - to).abs()));
    if moved < 1e-5 {
        return Err(Error::Mismatch(format!(
            "{STEPS} steps changed the parameters by {moved:e} only: nothing is compared; raise \
             the learning rate"
        )));
    }
    if settings.samples < 2 || settings.batch < 2 {
        return Err(Error::Setting(format!(
            "{} draws and a batch of {} cannot be divided: nothing is compared; use at least two \
             of each",
            settings.samples, settings.batch
        )));
    }
    for mesh in ["2x1", "1x2", "3x1", "1x3", "2x2", "4x1", "1x4"] {
        let mesh: Mesh = mesh.parse()?;
        if mesh.samples_size() > settings.samples || mesh.data_size() > settings.batch {
            continue;
        }
        for divided in [false, true] {
            let parallel = check.train(mesh, divided, Reduce::Fast)?;
            for (one, other) in
                [(&serial.parameters, &parallel.parameters), (&serial.buffers, &parallel.buffers)]
            {
                let (difference, name) = largest_difference(one, other)?;
                if difference > TOLERANCE {
                    let how = if divided { " with the optimiser divided" } else { "" };
                    return Err(Error::Mismatch(format!(
                        "on a mesh of {mesh}{how}, {name} is off by {difference:e} from that of \
                         one rank"
                    )));
                }
            }
        }
    }
    check.bits()
}

struct Check<'a, P, L, D> {
    posterior: &'a P,
    loss: &'a L,
    data: &'a D,
    settings: &'a Settings,
}

impl<P, L, D> Check<'_, P, L, D>
where
    P: Posterior + Clone,
    L: Loss + Clone,
    D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
{
    fn trainer(&self, mesh: Mesh, shard_optimizer: bool, reduce: Reduce) -> Trainer<P, L> {
        let settings = Settings { mesh, shard_optimizer, reduce, ..self.settings.clone() };
        Trainer::new(self.posterior.clone(), self.loss.clone(), settings)
    }

    fn train(&self, mesh: Mesh, shard_optimizer: bool, reduce: Reduce) -> Result<Checkpoint> {
        let mut trainer = self.trainer(mesh, shard_optimizer, reduce);
        trainer.fit(self.data, None, Length::Steps(STEPS))?;
        Ok(trainer.checkpoint())
    }

    /// The same bits along the sample axis, and after a stop.
    fn bits(&self) -> Result<()> {
        let samples = self.settings.samples;
        let sizes = [2, 4].into_iter().filter(|ranks| samples.is_multiple_of(*ranks));
        let serial = self.train(Mesh::serial(), false, Reduce::Reproducible)?;
        let mut before = Mesh::serial();
        for ranks in sizes {
            let mesh = Mesh::samples(ranks)?;
            if self.train(mesh, false, Reduce::Reproducible)? != serial {
                return Err(Error::Mismatch(format!(
                    "reproducible sums on {ranks} sample ranks have other bits than on one"
                )));
            }
            let mut first = self.trainer(before, false, Reduce::Reproducible);
            first.fit(self.data, None, Length::Steps(STEPS / 2))?;
            let mut second = self.trainer(mesh, true, Reduce::Reproducible);
            second.restore(&first.checkpoint(), "the first half")?;
            second.fit(self.data, None, Length::Steps(STEPS))?;
            if second.checkpoint() != serial {
                return Err(Error::Mismatch(format!(
                    "a run that was stopped on {before} and went on on {mesh} has other bits"
                )));
            }
            before = mesh;
        }
        Ok(())
    }
}

/// The largest difference between tensors of the same names, relative to the largest number of the
/// tensor, and which one it is.
fn largest_difference(one: &[NamedTensor], other: &[NamedTensor]) -> Result<(f64, String)> {
    let names = |tensors: &[NamedTensor]| -> Vec<(String, Vec<usize>)> {
        tensors.iter().map(|t| (t.name.clone(), t.shape.clone())).collect()
    };
    if names(one) != names(other) {
        return Err(Error::Mismatch("two runs have other tensors".to_owned()));
    }
    let mut worst = (0.0, String::new());
    for (one, other) in one.iter().zip(other) {
        let largest = one.values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
        for (a, b) in one.values.iter().zip(&other.values) {
            let difference = (f64::from(*a) - f64::from(*b)).abs() / largest.max(f64::MIN_POSITIVE);
            // What is not a number differs from everything.
            if difference > worst.0 || difference.is_nan() {
                worst = (difference, one.name.clone());
            }
        }
    }
    Ok(worst)
}
