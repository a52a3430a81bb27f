//! What one example shows before a run begins.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use bayesmesh_comm::threads::panic_message;

use super::Trainer;
use crate::data::Dataset;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::{Posterior, Tape, foreign_randomness};

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// Sends the first example through the network: refuses data that it cannot take, outputs that
    /// do not fit the targets, and randomness that does not come from the draw. How many outputs
    /// there are.
    pub(super) fn probe<D>(&self, train: &D) -> Result<usize>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let posterior = self.posterior();
        let parameters = posterior.parameters();
        let (input, target) = train.batch(&[0], parameters.device())?;
        let draw = posterior.adapt(Draw::new(self.settings.seed, 0, 0).with_rows(0..1));
        let network = parameters.snapshot().draw(&draw, Tape::Off).network;
        let output = quietly(|| network.forward(input, &draw)).map_err(|panic| {
            Error::Data(format!(
                "the network cannot take the first example: {panic}. Are its features as many as \
                 the first layer takes?"
            ))
        })?;
        let [rows, outputs] = output.dims();
        if rows != 1 {
            return Err(Error::Data(format!(
                "the network makes {rows} rows of outputs of one example; it must give one row for \
                 each, `[rows, outputs]`"
            )));
        }
        self.loss.check(outputs, &target)?;
        let foreign = foreign_randomness(parameters.network());
        let remedy = "use `draw.dropout` in the forward pass instead, whose masks are the same on \
                      any number of ranks and stay on in prediction where they should";
        if let Some(layer) = foreign.first() {
            return Err(Error::Setting(format!(
                "the network has {layer}, whose random numbers are not those of the draw: two runs \
                 of one seed would differ, and draws would agree in prediction; {remedy}"
            )));
        }
        if posterior.relies_on_dropout() && !draw.was_asked() {
            return Err(Error::Setting(format!(
                "dropout is all that tells the draws of this posterior apart, but the network asks \
                 its draw for none: all would agree; {remedy}"
            )));
        }
        if posterior.relies_on_latent() && !draw.was_asked_for_latent() {
            return Err(Error::Setting(
                "latent numbers are what tells the draws of this posterior apart, but the network \
                 asks its draw for none: all would agree; use `draw.latent` in the forward pass \
                 (of the SWIN: give `noise` a size, e.g. 32)"
                    .to_owned(),
            ));
        }
        Ok(outputs)
    }
}

/// What `body` gives, or the text of its panic in one line, which is then not printed.
fn quietly<T>(body: impl FnOnce() -> T) -> std::result::Result<T, String> {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    QUIET.set(false);
    outcome.map_err(|payload| {
        let text = panic_message(&*payload);
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ")
    })
}
