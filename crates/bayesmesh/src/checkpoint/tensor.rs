//! Tensors of a checkpoint and comparisons of lists of them.

use std::collections::{HashMap, HashSet};
use std::fmt;

/// A tensor with a name, its values in row-major order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedTensor {
    /// The name, unique in its group.
    pub name: String,
    /// The extent of each dimension; empty for a single number.
    pub shape: Vec<usize>,
    /// As many values as the shape says.
    pub values: Vec<f32>,
}

/// The three kinds of tensors in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Trainable numbers.
    Parameters,
    /// Running statistics and frozen weights.
    Buffers,
    /// State of the optimiser.
    Optimizer,
}

impl Group {
    /// All groups in the order of the file.
    pub const ALL: [Self; 3] = [Self::Parameters, Self::Buffers, Self::Optimizer];

    /// The name of the group in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Buffers => "buffers",
            Self::Optimizer => "optimizer",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Hands over values as little-endian bytes, in pieces small enough for the cache.
pub(super) fn for_each_bytes<E>(
    values: &[f32],
    mut consume: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    const PIECE: usize = 4096;
    let mut bytes = [0; 4 * PIECE];
    for piece in values.chunks(PIECE) {
        for (target, value) in bytes.chunks_exact_mut(4).zip(piece) {
            target.copy_from_slice(&value.to_le_bytes());
        }
        consume(&bytes[..4 * piece.len()])?;
    }
    Ok(())
}

/// What keeps tensors from being saved, if anything.
pub(super) fn defect(tensors: &[NamedTensor]) -> Option<String> {
    let mut names = HashSet::new();
    tensors.iter().find_map(|tensor| {
        let NamedTensor { name, shape, values } = tensor;
        let size = shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
        if size != Some(values.len()) {
            let count = values.len();
            Some(format!("'{name}' has shape {shape:?}, but {count} values are given"))
        } else if !names.insert(name) {
            Some(format!("two tensors are called '{name}'"))
        } else {
            None
        }
    })
}

/// The first difference between tensors and what is expected of them, in words.
pub(super) fn difference(found: &[NamedTensor], expected: &[(&str, &[usize])]) -> Option<String> {
    let shapes: HashMap<&str, &[usize]> =
        found.iter().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice())).collect();
    for (name, shape) in expected {
        match shapes.get(name) {
            None => return Some(format!("'{name}' of shape {shape:?} is not in it")),
            Some(found) if found != shape => {
                return Some(format!("'{name}' has shape {found:?} in it, {shape:?} is expected"));
            }
            Some(_) => {}
        }
    }
    let names: HashSet<&str> = expected.iter().map(|(name, _)| *name).collect();
    if let Some(tensor) = found.iter().find(|t| !names.contains(t.name.as_str())) {
        let NamedTensor { name, shape, .. } = tensor;
        return Some(format!("it has '{name}' of shape {shape:?}, which is not expected"));
    }
    found.iter().zip(expected).position(|(tensor, (name, _))| tensor.name != *name).map(|index| {
        let (found, expected) = (&found[index].name, expected[index].0);
        format!("number {index} is '{found}' in it, '{expected}' is expected")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, shape: &[usize]) -> NamedTensor {
        NamedTensor {
            name: name.into(),
            shape: shape.into(),
            values: vec![0.0; shape.iter().product()],
        }
    }

    #[test]
    fn bytes_of_all_pieces_are_handed_over_in_order() {
        let values: Vec<f32> = (0..10_000u32).map(f32::from_bits).collect();
        let mut bytes = Vec::new();
        for_each_bytes(&values, |piece| {
            bytes.extend_from_slice(piece);
            Ok::<_, ()>(())
        })
        .unwrap();
        let expected: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn defects_are_found() {
        assert_eq!(defect(&[tensor("a", &[2, 3]), tensor("b", &[])]), None);
        let mut wrong = tensor("a", &[2, 3]);
        wrong.values.pop();
        let problem = defect(&[wrong]).unwrap();
        assert_eq!(problem, "'a' has shape [2, 3], but 5 values are given");
        let problem = defect(&[tensor("a", &[1]), tensor("a", &[2])]).unwrap();
        assert_eq!(problem, "two tensors are called 'a'");
        let mut huge = tensor("a", &[0]);
        huge.shape = vec![usize::MAX, 2];
        assert!(defect(&[huge]).is_some());
    }

    #[test]
    fn the_differing_tensor_is_named() {
        let found = [tensor("a", &[2, 3]), tensor("b", &[4])];
        let a: (&str, &[usize]) = ("a", &[2, 3]);
        let b: (&str, &[usize]) = ("b", &[4]);
        let problem = |expected: &[_]| difference(&found, expected).unwrap_or_default();
        assert_eq!(problem(&[a, b]), "");
        assert_eq!(problem(&[a, ("b", &[5])]), "'b' has shape [4] in it, [5] is expected");
        assert_eq!(problem(&[a, b, ("c", &[1])]), "'c' of shape [1] is not in it");
        assert_eq!(problem(&[a]), "it has 'b' of shape [4], which is not expected");
        assert_eq!(problem(&[b, a]), "number 0 is 'a' in it, 'b' is expected");
    }
}
