//! A checkpoint on its way to other ranks.

use std::collections::BTreeMap;

use bayesmesh_comm::{CommError, Communicator};
use serde_json::{Value, json};

use super::{Checkpoint, NamedTensor};

/// The checkpoint that rank `root` brings, on every rank; nothing where it brings none. What other
/// ranks bring does not count. Collective.
///
/// First what it consists of, then its numbers, tensor by tensor: nobody needs memory for more than
/// the checkpoint itself.
pub(crate) fn broadcast(
    comm: &dyn Communicator,
    own: Option<Checkpoint>,
    root: usize,
) -> Result<Option<Checkpoint>, CommError> {
    let own = own.filter(|_| comm.rank() == root);
    let mut words =
        own.as_ref().map(|own| contents(own).to_string().into_bytes()).unwrap_or_default();
    comm.broadcast_bytes(&mut words, root)?;
    if words.is_empty() {
        return Ok(None);
    }
    let contents: Value = serde_json::from_slice(&words).expect("written by `contents`");
    let mut checkpoint = own.unwrap_or_else(|| empty(&contents));
    let Checkpoint { parameters, buffers, optimizer, .. } = &mut checkpoint;
    for tensor in [parameters, buffers, optimizer].into_iter().flatten() {
        comm.broadcast(&mut tensor.values, root)?;
    }
    Ok(Some(checkpoint))
}

/// Everything but the numbers.
fn contents(checkpoint: &Checkpoint) -> Value {
    let Checkpoint { step, seed, parameters, buffers, optimizer, counters, metadata } = checkpoint;
    let group = |tensors: &[NamedTensor]| -> Value {
        tensors.iter().map(|tensor| json!([tensor.name, tensor.shape])).collect()
    };
    json!({
        "step": step,
        "seed": seed,
        "groups": [group(parameters), group(buffers), group(optimizer)],
        "counters": counters,
        "metadata": metadata,
    })
}

/// A checkpoint of these contents, with zeros for its numbers.
fn empty(contents: &Value) -> Checkpoint {
    let tensor = |value: &Value| {
        let shape: Vec<usize> = list(&value[1]).map(|n| number(n) as usize).collect();
        let values = vec![0.0; shape.iter().product()];
        NamedTensor { name: text(&value[0]), shape, values }
    };
    let group = |index: usize| list(&contents["groups"][index]).map(tensor).collect();
    Checkpoint {
        step: number(&contents["step"]),
        seed: number(&contents["seed"]),
        parameters: group(0),
        buffers: group(1),
        optimizer: group(2),
        counters: map(&contents["counters"], number),
        metadata: map(&contents["metadata"], text),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn map<T>(value: &Value, of: impl Fn(&Value) -> T) -> BTreeMap<String, T> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), of(value))).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bayesmesh_comm::threads;

    #[test]
    fn every_rank_gets_all_of_it() {
        let tensor = |name: &str, shape: Vec<usize>| {
            let values = (0..shape.iter().product()).map(|i: usize| i as f32 * 0.3 - 1.0).collect();
            NamedTensor { name: name.to_owned(), shape, values }
        };
        let sent = Checkpoint {
            step: 7,
            seed: u64::MAX,
            parameters: vec![tensor("a \"b\"", vec![2, 3]), tensor("none", vec![0])],
            buffers: vec![tensor("c", vec![])],
            optimizer: vec![tensor("d", vec![5])],
            counters: [("time".to_owned(), u64::MAX - 1)].into(),
            metadata: [("data".to_owned(), "é\n".to_owned())].into(),
        };
        let received = threads::run(3, |comm| {
            // What the others bring is of no account.
            let own = Checkpoint { step: comm.rank() as u64, ..Checkpoint::default() };
            broadcast(comm, Some(if comm.rank() == 1 { sent.clone() } else { own }), 1)
        });
        assert!(received.unwrap().iter().all(|received| received.as_ref() == Some(&sent)));
        let nothing =
            threads::run(2, |comm| broadcast(comm, (comm.rank() == 1).then(|| sent.clone()), 0));
        assert_eq!(nothing.unwrap(), [None, None]);
    }
}
