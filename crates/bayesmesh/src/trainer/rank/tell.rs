//! What a rank tells the callbacks.

use std::cell::Cell;

use super::Rank;
use super::exchange::anybody;
use super::step::Tools;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::posterior::Posterior;
use crate::trainer::{Callback, Flow};

impl<P: Posterior, L: Loss> Rank<P, L> {
    /// Calls every callback of this rank, with checkpoints if one of them `wants` any, and keeps
    /// what they answer. Collective where the state is on several ranks.
    pub(super) fn tell(
        &mut self,
        tools: &Tools<'_>,
        wants: impl Fn(&dyn Callback) -> bool,
        mut call: impl FnMut(&mut dyn Callback, &dyn Fn() -> Checkpoint) -> Result<Flow>,
    ) -> Result<()> {
        let wanted = self.callbacks.iter().any(|callback| wants(&**callback));
        let is_here =
            self.state.members.are_all_here() && !tools.parts.iter().any(|part| part.is_divided());
        let gathered = match is_here {
            true => None,
            false => self.gathered(tools, wanted)?,
        };
        let mut callbacks = std::mem::take(&mut self.callbacks);
        let unwanted = Cell::new(false);
        let checkpoint = || match &gathered {
            Some(gathered) => gathered.clone(),
            None => {
                unwanted.set(!is_here);
                self.state.checkpoint()
            }
        };
        let answers: Vec<Result<Flow>> =
            callbacks.iter_mut().map(|callback| call(&mut **callback, &checkpoint)).collect();
        let unwanted = unwanted.get();
        self.callbacks = callbacks;
        answers.into_iter().for_each(|answer| self.answers.add(answer));
        match unwanted {
            false => Ok(()),
            true => Err(Error::Setting(
                "a callback made a checkpoint after a step for which its `wants_checkpoint` said \
                 no; this run's state is on several ranks, and that checkpoint is not complete"
                    .to_owned(),
            )),
        }
    }

    /// The checkpoint of a state that is on several ranks, on those where it is `wanted`; nowhere
    /// if nobody wants it. Collective.
    fn gathered(&self, tools: &Tools<'_>, wanted: bool) -> Result<Option<Checkpoint>> {
        let mesh = tools.mesh;
        if !anybody(&*mesh.world, wanted)? {
            return Ok(None);
        }
        let divided = tools.parts.iter().any(|part| part.is_divided());
        if !divided {
            return self.state.gathered(&*mesh.samples, wanted);
        }
        // All ranks of a data axis keep what one of them needs to pass on.
        let apart = !self.state.members.are_all_here();
        let keep = wanted || apart;
        let mut whole = self.state.clone();
        let peers = tools.exchange.peers(mesh);
        for (part, member) in tools.parts.iter().zip(whole.members.iter_mut()) {
            let config = tools.work.settings.optimizer;
            member.optimizer = part.gathered(peers, member, config, keep)?;
        }
        match apart {
            true => whole.gathered(&*mesh.samples, wanted),
            false => Ok(wanted.then(|| whole.into_checkpoint())),
        }
    }
}
