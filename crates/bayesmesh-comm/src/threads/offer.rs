//! What a rank hands in at a meeting, and whether those of all ranks agree.

use crate::call::Call;
use crate::error::CommError;
use crate::threads::exchange::Buffer;

/// What a rank brings to its call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload {
    Nothing,
    Values(Buffer),
    Colour(usize),
}

/// One rank's side of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub call: Call,
    pub payload: Payload,
}

impl Offer {
    /// The values brought; a call without values brings none.
    pub fn buffer(&self) -> Buffer {
        match self.payload {
            Payload::Values(buffer) => buffer,
            Payload::Nothing | Payload::Colour(_) => Buffer::empty(),
        }
    }

    /// The group a rank wants to be in after a split.
    pub fn colour(&self) -> Option<usize> {
        match self.payload {
            Payload::Colour(colour) => Some(colour),
            Payload::Nothing | Payload::Values(_) => None,
        }
    }
}

/// Whether the offers of all ranks, in rank order, make one valid call.
pub(super) fn judge(offers: &[Offer]) -> Result<(), CommError> {
    let call = offers[0].call;
    if let Some(other_rank) = offers.iter().position(|offer| offer.call != call) {
        return Err(CommError::CallMismatch {
            rank: 0,
            call: call.to_string(),
            other_rank,
            other_call: offers[other_rank].call.to_string(),
        });
    }
    let length = offers[0].buffer().len();
    let differs = |offer: &Offer| !call.is_ragged() && offer.buffer().len() != length;
    if let Some(other_rank) = offers.iter().position(differs) {
        return Err(CommError::LengthMismatch {
            call: call.to_string(),
            rank: 0,
            length,
            other_rank,
            other_length: offers[other_rank].buffer().len(),
        });
    }
    match call.root() {
        Some(root) if root >= offers.len() => {
            Err(CommError::RootOutOfRange { root, size: offers.len() })
        }
        _ => Ok(()),
    }
}
