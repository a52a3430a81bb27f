//! Hashes of the content of a checkpoint.

use std::convert::Infallible;

use sha2::{Digest, Sha256};

use super::{Checkpoint, Group, NamedTensor, tensor};

/// The hash [`Checkpoint::digest`] documents.
pub(super) fn of_parameters(checkpoint: &Checkpoint) -> String {
    let tensors = checkpoint.parameters.iter();
    of_tensors(tensors.map(|NamedTensor { name, shape, values }| (name, &shape[..], &values[..])))
}

/// The same of parameters that are not in a checkpoint: names, shapes and values.
pub(crate) fn of_tensors<'a>(
    tensors: impl Iterator<Item = (impl AsRef<str>, &'a [usize], &'a [f32])>,
) -> String {
    let mut hash = Hash::default();
    tensors.for_each(|(name, shape, values)| hash.tensor(name.as_ref(), shape, values));
    hash.finish()
}

/// The hash of a whole checkpoint, given the digest of its parameters.
pub(super) fn of_content(checkpoint: &Checkpoint, digest: &str) -> String {
    let mut hash = Hash::default();
    hash.number(checkpoint.step);
    hash.number(checkpoint.seed);
    hash.text(digest);
    for group in [Group::Buffers, Group::Optimizer] {
        let tensors = checkpoint.group(group);
        hash.number(tensors.len() as u64);
        for NamedTensor { name, shape, values } in tensors {
            hash.tensor(name, shape, values);
        }
    }
    hash.number(checkpoint.counters.len() as u64);
    for (name, &value) in &checkpoint.counters {
        hash.text(name);
        hash.number(value);
    }
    hash.number(checkpoint.metadata.len() as u64);
    for (key, value) in &checkpoint.metadata {
        hash.text(key);
        hash.text(value);
    }
    hash.finish()
}

/// SHA-256 of items that carry their lengths, so that no two sequences of items look alike.
#[derive(Default)]
struct Hash(Sha256);

impl Hash {
    fn number(&mut self, value: u64) {
        self.0.update(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text);
    }

    fn tensor(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        self.text(name);
        self.number(shape.len() as u64);
        for &extent in shape {
            self.number(extent as u64);
        }
        let Ok(()) = tensor::for_each_bytes::<Infallible>(values, |bytes| {
            self.0.update(bytes);
            Ok(())
        });
    }

    fn finish(self) -> String {
        let digits = self.0.finalize();
        digits.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, shape: &[usize], values: &[f32]) -> NamedTensor {
        NamedTensor { name: name.into(), shape: shape.into(), values: values.into() }
    }

    /// Every change of the content changes its hash, and only changes of the parameters the digest.
    #[test]
    fn every_field_counts() {
        let base = Checkpoint {
            parameters: vec![tensor("p", &[2], &[0.0, 1.0])],
            ..Checkpoint::default()
        };
        let change = |edit: &dyn Fn(&mut Checkpoint)| {
            let mut changed = base.clone();
            edit(&mut changed);
            let digest = of_parameters(&changed);
            let content = of_content(&changed, &digest);
            (digest, content)
        };
        let (digest, content) = change(&|_| {});
        let of_weights: [&dyn Fn(&mut Checkpoint); 5] = [
            &|c| c.parameters[0].name.push('q'),
            &|c| c.parameters[0].shape = vec![1, 2],
            &|c| c.parameters[0].values[0] = -0.0,
            &|c| c.parameters.push(tensor("", &[0], &[])),
            &|c| c.parameters.clear(),
        ];
        for edit in of_weights {
            let changed = change(edit);
            assert_ne!(changed.0, digest);
            assert_ne!(changed.1, content);
        }
        let of_others: [&dyn Fn(&mut Checkpoint); 6] = [
            &|c| c.step += 1,
            &|c| c.seed += 1,
            &|c| c.buffers.push(tensor("b", &[1], &[1.0])),
            &|c| c.optimizer.push(tensor("b", &[1], &[1.0])),
            &|c| c.counters.extend([("k".into(), 1)]),
            &|c| c.metadata.extend([("k".into(), "v".into())]),
        ];
        let mut seen = vec![content];
        for edit in of_others {
            let changed = change(edit);
            assert_eq!(changed.0, digest);
            assert!(!seen.contains(&changed.1));
            seen.push(changed.1);
        }
    }
}
