//! What a trained posterior says, and how right it is.

use bayesmesh_comm::{Mesh, MeshComm};

use super::members::Members;
use super::{Place, Settings, Trainer};
use crate::data::{Checksum, Dataset, Rows as _};
use crate::error::Result;
use crate::loss::Loss;
use crate::metrics::Score;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{self, Predictive, predict_on};

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// Predicts with `draws` draws, spread over the ranks.
    pub fn predict(
        &self,
        input: &<P::Network as Network>::Input,
        draws: usize,
    ) -> Result<Predictive> {
        self.agree_on("inputs", || {
            let mut words = Vec::new();
            input.pack(&mut words);
            Checksum::default().floats(&words).text()
        })?;
        let (reading, seed) = (self.loss.reading(), self.settings.seed);
        // Members stay on their sample ranks; other draws can be made anywhere.
        let mesh = match (self.state.members.are_per_draw(), &self.place) {
            (true, _) => self.settings.mesh,
            (false, Place::Job(world)) => Mesh::samples(world.size())?,
            (false, Place::Threads) => Mesh::samples(self.settings.mesh.size().min(draws).max(1))?,
        };
        self.on_ranks(
            mesh,
            || input.clone(),
            |mesh, members, input| predict_on(&*mesh.samples, members, reading, input, draws, seed),
        )
    }

    /// Scores predictions with `draws` draws on labelled data, on the ranks of [`fit`](Self::fit).
    pub fn evaluate<D>(&self, data: &D, draws: usize) -> Result<Vec<Score>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.agree_on("examples", || data.checksum().unwrap_or_default())?;
        let (settings, loss) = (&self.settings, || self.loss.clone());
        self.on_ranks(settings.mesh, loss, |mesh, members, loss| {
            evaluate_on(mesh, members, loss, settings, data, draws)
        })
    }

    #[allow(missing_docs)]
    pub fn on_mesh<T: Send>(
        &self,
        body: impl Fn(&MeshComm, &Self) -> Result<T> + Sync,
    ) -> Result<T> {
        let mesh = self.settings.mesh;
        let mut ranks: Vec<Self> = self
            .place
            .ranks(mesh)
            .map(|_| {
                Self::build(
                    Place::Threads,
                    self.posterior().clone(),
                    self.loss.clone(),
                    self.settings.clone(),
                )
            })
            .collect();
        let threads = self.settings.threads_per_rank();
        self.place.run(mesh, threads, &mut ranks, |mesh, rank| body(mesh, rank))
    }

    /// Refuses ranks of a job with other parameters or data. Collective.
    fn agree_on(&self, what: &str, checksum: impl FnOnce() -> String) -> Result<()> {
        self.place.agree(|| {
            // Members are not the same everywhere.
            let per_draw = self.state.members.are_per_draw();
            let digest = if per_draw { String::new() } else { self.digest() };
            vec![
                ("digest of the parameters".to_owned(), digest),
                (format!("checksum of the {what}"), checksum()),
            ]
        })
    }

    /// Runs `body` on all ranks of the mesh, each with the members that it has and a copy of
    /// something else. Collective in a job.
    fn on_ranks<S: Send, T: Send>(
        &self,
        mesh: Mesh,
        own: impl Fn() -> S,
        body: impl Fn(&MeshComm, &Members<P>, &S) -> Result<T> + Sync,
    ) -> Result<T> {
        let members = &self.state.members;
        let ranks = self.place.ranks(mesh);
        let mut ranks: Vec<(Members<P>, S)> =
            ranks.map(|rank| (members.of_rank(mesh, rank), own())).collect();
        let threads = self.settings.threads_per_rank();
        self.place.run(mesh, threads, &mut ranks, |mesh, (members, own)| body(mesh, members, own))
    }
}

/// [`Trainer::evaluate`] on one rank. Collective.
pub(super) fn evaluate_on<P, L, D>(
    mesh: &MeshComm,
    members: &Members<P>,
    loss: &L,
    settings: &Settings,
    data: &D,
    draws: usize,
) -> Result<Vec<Score>>
where
    P: Posterior,
    L: Loss,
    D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
{
    let (reading, seed, chunk) = (loss.reading(), settings.seed, settings.batch);
    predict::evaluate_on(mesh, members, reading, data, draws, seed, chunk)
}
