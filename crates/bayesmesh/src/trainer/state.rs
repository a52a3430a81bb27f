//! What a run is at some step: what checkpoints keep.

use std::collections::BTreeMap;
use std::path::Path;

use bayesmesh_comm::Communicator;

use super::members::{Member, Members};
use super::optimizer::{OptimizerState, another_optimiser};
use super::{Optimizer, OptimizerConfig};
use crate::checkpoint::{Checkpoint, Group, NamedTensor, broadcast, digest_of_tensors};
use crate::error::{Error, Result};
use crate::posterior::Posterior;

/// What the metadata of a checkpoint call the name of the optimiser.
pub(super) const OPTIMIZER: &str = "bayesmesh.optimizer";

/// What the names of a posterior's own state begin with among those of the optimiser's.
const POSTERIOR: &str = "posterior.";

/// The state of a run, as far as it is in one place.
pub(crate) struct State<P> {
    pub members: Members<P>,
    /// Steps done.
    pub step: usize,
    pub seed: u64,
    /// What checkpoints say beside the state.
    pub notes: BTreeMap<String, String>,
    /// Whether a step has begun to change numbers and not ended: some may have changed and others
    /// not.
    pub torn: bool,
}

impl<P: Posterior> Clone for State<P> {
    fn clone(&self) -> Self {
        let (members, notes) = (self.members.clone(), self.notes.clone());
        Self { members, notes, ..*self }
    }
}

/// Where a member's tensors begin with its number, this is what they begin with.
fn prefix(per_draw: bool, index: usize) -> String {
    if per_draw { format!("member.{index}.") } else { String::new() }
}

impl<P: Posterior> State<P> {
    /// At step zero.
    pub fn new(members: Members<P>, seed: u64) -> Self {
        Self { members, step: 0, seed, notes: BTreeMap::new(), torn: false }
    }

    /// A copy of what is here. A checkpoint of all members if all are.
    pub fn checkpoint(&self) -> Checkpoint {
        self.checkpoint_with(self.members.iter().map(|member| member.optimizer.state()))
    }

    /// The same, with the optimisers' state moved to it.
    pub fn into_checkpoint(mut self) -> Checkpoint {
        let take = |member: &mut Member<P>| {
            std::mem::replace(&mut member.optimizer, Optimizer::Divided).into_state()
        };
        let states: Vec<OptimizerState> = self.members.iter_mut().map(take).collect();
        self.checkpoint_with(states)
    }

    /// A checkpoint with the optimisers' state given for each member here.
    fn checkpoint_with(&self, states: impl IntoIterator<Item = OptimizerState>) -> Checkpoint {
        let mut checkpoint = Checkpoint {
            step: self.step as u64,
            seed: self.seed,
            metadata: self.notes.clone(),
            ..Checkpoint::default()
        };
        let per_draw = self.members.are_per_draw();
        let members = self.members.here().zip(self.members.iter()).zip(states);
        for ((index, member), OptimizerState { tensors, counters }) in members {
            let prefix = prefix(per_draw, index);
            let own = |tensors: Vec<NamedTensor>| {
                let named =
                    |t: NamedTensor| NamedTensor { name: format!("{prefix}{}", t.name), ..t };
                tensors.into_iter().map(named).collect::<Vec<_>>()
            };
            let parameters = member.posterior.parameters();
            let state = member.posterior.state().into_iter();
            let state = state.map(|t| NamedTensor { name: format!("{POSTERIOR}{}", t.name), ..t });
            checkpoint.parameters.extend(own(parameters.named_values()));
            checkpoint.buffers.extend(own(parameters.named_buffers()));
            let flat = |(name, values): (String, Vec<f32>)| NamedTensor {
                name,
                shape: vec![values.len()],
                values,
            };
            checkpoint.optimizer.extend(own(tensors.into_iter().map(flat).chain(state).collect()));
            let counters = counters.into_iter().map(|(name, n)| (format!("{prefix}{name}"), n));
            checkpoint.counters.extend(counters);
        }
        checkpoint
    }

    /// The digest of the parameters that are here, without making a checkpoint.
    pub fn digest(&self) -> String {
        let per_draw = self.members.are_per_draw();
        let members = self.members.here().zip(self.members.iter());
        let parameters = members.flat_map(|(index, member)| {
            let prefix = prefix(per_draw, index);
            let tensors = member.posterior.parameters().tensors();
            tensors.map(move |(name, shape, values)| (format!("{prefix}{name}"), shape, values))
        });
        digest_of_tensors(parameters)
    }

    /// The checkpoint of all members on the ranks that `keep` it. Collective along the sample axis
    /// where members are on several ranks of it.
    pub fn gathered(&self, samples: &dyn Communicator, keep: bool) -> Result<Option<Checkpoint>> {
        if self.members.are_all_here() {
            return Ok(keep.then(|| self.checkpoint()));
        }
        let mut all: Option<Checkpoint> = None;
        for root in 0..samples.size() {
            let own = (root == samples.rank()).then(|| self.checkpoint());
            let part = broadcast(samples, own, root)?.expect("every rank brings its own");
            match &mut all {
                _ if !keep => {}
                None => all = Some(part),
                Some(all) => {
                    all.parameters.extend(part.parameters);
                    all.buffers.extend(part.buffers);
                    all.optimizer.extend(part.optimizer);
                    all.counters.extend(part.counters);
                }
            }
        }
        Ok(all)
    }

    /// Continues from a checkpoint of all members, with the state of this optimiser or without any.
    /// On an error nothing is changed.
    pub fn restore(
        &mut self,
        checkpoint: Checkpoint,
        path: &Path,
        config: Option<OptimizerConfig>,
    ) -> Result<()> {
        if checkpoint.seed != self.seed {
            return Err(Error::Setting(format!(
                "{} is of a run with seed {}, this one has {}; a run continues with its own seed",
                path.display(),
                checkpoint.seed,
                self.seed
            )));
        }
        let saved = checkpoint.metadata.get(OPTIMIZER);
        if let (Some(config), Some(saved)) = (config, saved)
            && saved != config.name()
        {
            return Err(another_optimiser());
        }
        let structure = self.members.any().parameters();
        let values = structure.tensors().map(|(name, shape, _)| (name, shape.to_vec()));
        self.expect(&checkpoint, path, Group::Parameters, values.collect())?;
        let buffers = structure.named_buffers().into_iter().map(|t| (t.name, t.shape));
        self.expect(&checkpoint, path, Group::Buffers, buffers.collect())?;
        self.expect_finite(&checkpoint, path, config.is_some())?;

        let step = checkpoint.step as usize;
        let mut members =
            self.members.with_new_optimizers(config.unwrap_or(OptimizerConfig::sgd()));
        let mut saved = Saved::new(checkpoint, members.total());
        let per_draw = members.are_per_draw();
        for (index, member) in members.here().zip(members.iter_mut()) {
            let part = saved.take(per_draw, index);
            let parameters = member.posterior.parameters_mut();
            parameters.restore_tensors(part.parameters.into_iter(), part.buffers.into_iter())?;
            let (len, device) = (parameters.values().len(), parameters.device().clone());
            if config.is_some() {
                member.optimizer.restore(part.optimizer, len, &device)?;
            }
            member.posterior.restore_state(part.posterior)?;
        }
        self.members = members;
        self.step = step;
        self.torn = false;
        Ok(())
    }

    /// Refuses a checkpoint whose group is not `own`, names and shapes, for each member.
    fn expect(
        &self,
        checkpoint: &Checkpoint,
        path: &Path,
        group: Group,
        own: Vec<(String, Vec<usize>)>,
    ) -> Result<()> {
        let per_draw = self.members.are_per_draw();
        let of_member = |index| {
            let prefix = prefix(per_draw, index);
            own.iter().map(move |(name, shape)| (format!("{prefix}{name}"), shape.clone()))
        };
        let expected: Vec<_> = (0..self.members.total()).flat_map(of_member).collect();
        Ok(checkpoint.expect(path, group, &expected)?)
    }

    /// Refuses numbers that are not finite where they would become a network or, where that is
    /// restored, the state of an optimiser.
    fn expect_finite(&self, checkpoint: &Checkpoint, path: &Path, optimizer: bool) -> Result<()> {
        checkpoint.expect_finite(path, Group::Parameters, |_| false)?;
        // A frozen tensor may be made of infinities, e.g. a mask. It is the same in the network.
        let own = self.members.any().parameters().named_buffers();
        checkpoint.expect_finite(path, Group::Buffers, |saved| {
            let same = |own: &NamedTensor| {
                let bits =
                    |t: &NamedTensor| t.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                saved.name.ends_with(&own.name) && bits(own) == bits(saved)
            };
            own.iter().any(same)
        })?;
        if optimizer {
            // What a posterior keeps for itself, it judges itself.
            let of_posterior = |name: &str| {
                let member = name.strip_prefix("member.").and_then(|rest| rest.split_once('.'));
                member.map_or(name, |(_, own)| own).starts_with(POSTERIOR)
            };
            let may = |saved: &NamedTensor| of_posterior(&saved.name);
            checkpoint.expect_finite(path, Group::Optimizer, may)?;
        }
        Ok(())
    }
}

/// A checkpoint, taken apart member by member.
struct Saved {
    parameters: Vec<NamedTensor>,
    buffers: Vec<NamedTensor>,
    optimizer: Vec<NamedTensor>,
    counters: BTreeMap<String, u64>,
    members: usize,
}

/// What a checkpoint has of one member.
struct SavedMember {
    parameters: Vec<NamedTensor>,
    buffers: Vec<NamedTensor>,
    optimizer: OptimizerState,
    posterior: Vec<NamedTensor>,
}

impl Saved {
    fn new(checkpoint: Checkpoint, members: usize) -> Self {
        Self {
            parameters: checkpoint.parameters,
            buffers: checkpoint.buffers,
            optimizer: checkpoint.optimizer,
            counters: checkpoint.counters,
            members,
        }
    }

    fn take(&mut self, per_draw: bool, index: usize) -> SavedMember {
        // Nobody else needs them: they are moved.
        let part = |tensors: &mut [NamedTensor]| {
            let len = tensors.len() / self.members.max(1);
            tensors[index * len..][..len].iter_mut().map(std::mem::take).collect()
        };
        let prefix = prefix(per_draw, index);
        let own = |name: &str| name.strip_prefix(&prefix).map(str::to_owned);
        let mut optimizer = OptimizerState::default();
        let mut posterior = Vec::new();
        for tensor in &mut self.optimizer {
            let Some(name) = own(&tensor.name) else { continue };
            let values = std::mem::take(&mut tensor.values);
            match name.strip_prefix(POSTERIOR) {
                Some(name) => {
                    let shape = tensor.shape.clone();
                    posterior.push(NamedTensor { name: name.to_owned(), shape, values });
                }
                None => _ = optimizer.tensors.insert(name, values),
            }
        }
        optimizer.counters =
            self.counters.iter().filter_map(|(name, n)| Some((own(name)?, *n))).collect();
        SavedMember {
            parameters: part(&mut self.parameters),
            buffers: part(&mut self.buffers),
            optimizer,
            posterior,
        }
    }
}
