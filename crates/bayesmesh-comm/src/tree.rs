//! The fixed binary tree by which reproducible reductions combine their items.
//!
//! The tree over items `[lo, hi)` of n > 1 leaves splits at the largest power of two below n:
//!
//! ```text
//! tree[lo, hi) = tree[lo, lo + m) ∘ tree[lo + m, hi),   m = max { 2^k : 2^k < hi - lo }
//!
//! n = 4: (0∘1)∘(2∘3)        n = 7: ((0∘1)∘(2∘3)) ∘ ((4∘5)∘6)
//! ```
//!
//! It depends on n alone. For a power of two it is recursive doubling. Equivalently, at stride
//! 1, 2, 4, … item i (a multiple of twice the stride) takes in item i + stride if there is one.
//!
//! **It nests.** Cut n items into contiguous blocks of 2^k (the last may be shorter): the tree over
//! the results of the blocks' own trees is the tree over all n items. So when every rank folds
//! 2^k draws with a [`TreeFold`] and the ranks are combined by
//! [`Reduce::Reproducible`](crate::Reduce::Reproducible), the bits do not depend on how many ranks
//! share the draws.

/// Combines a sequence pushed in order by the fixed tree of this [module](self), holding at most
/// ⌊log2(n)⌋ + 1 partial results at a time.
///
/// The partials are the digits of a binary counter: after n pushes there is one of 2^k items for
/// every bit k set in n.
///
/// ```
/// use bayesmesh_comm::TreeFold;
///
/// let mut fold = TreeFold::new();
/// let join = |left: String, right: String| format!("({left}{right})");
/// for item in ["a", "b", "c", "d", "e"] {
///     fold.push(item.to_owned(), join);
/// }
/// assert_eq!(fold.finish(join).as_deref(), Some("(((ab)(cd))e)"));
/// ```
#[derive(Debug, Clone)]
pub struct TreeFold<T> {
    /// Results of complete blocks, the largest (leftmost) first.
    partials: Vec<T>,
    pushed: usize,
}

impl<T> TreeFold<T> {
    /// A fold of no items.
    pub fn new() -> Self {
        TreeFold { partials: Vec::new(), pushed: 0 }
    }

    /// Takes in the next item; `combine(left, right)` joins two neighbouring results.
    pub fn push(&mut self, item: T, mut combine: impl FnMut(T, T) -> T) {
        self.pushed += 1;
        let mut result = item;
        // Adding one to the counter carries once for every zero the sum ends in.
        for left in
            self.partials.drain(self.partials.len() - self.pushed.trailing_zeros() as usize..).rev()
        {
            result = combine(left, result);
        }
        self.partials.push(result);
    }

    /// The result over all items, `None` if there were none.
    pub fn finish(self, mut combine: impl FnMut(T, T) -> T) -> Option<T> {
        self.partials.into_iter().rev().reduce(|right, left| combine(left, right))
    }

    /// The partial results held now, from left to right. With one more item, the last, the result
    /// over all is `p₀ ∘ (p₁ ∘ (… ∘ item))`: where items are combined element by element, that can
    /// be done piece by piece, while the item is still being computed.
    pub fn into_partials(self) -> Vec<T> {
        self.partials
    }

    /// How many partial results are held now.
    pub fn partials(&self) -> usize {
        self.partials.len()
    }
}

impl<T> Default for TreeFold<T> {
    fn default() -> Self {
        TreeFold::new()
    }
}

/// The strides of the tree over `size` items: 1, 2, 4, … below `size`.
pub(crate) fn strides(size: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |stride: &usize| stride.checked_mul(2))
        .take_while(move |&stride| stride < size)
}

/// The item that item `left` takes in at `stride`, if any.
pub(crate) fn partner(left: usize, stride: usize, size: usize) -> Option<usize> {
    let right = left + stride;
    (left.is_multiple_of(2 * stride) && right < size).then_some(right)
}

/// All `(left, right)` of the tree over `size` items, in an order that respects it.
pub(crate) fn pairs(size: usize) -> impl Iterator<Item = (usize, usize)> {
    strides(size).flat_map(move |stride| {
        (0..size).filter_map(move |left| Some((left, partner(left, stride, size)?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition in the module documentation, word for word.
    fn defined(lo: usize, hi: usize) -> String {
        let count = hi - lo;
        if count == 1 {
            return lo.to_string();
        }
        let middle = lo + count.next_power_of_two() / 2;
        format!("({} {})", defined(lo, middle), defined(middle, hi))
    }

    #[test]
    fn fold_and_pairs_follow_the_definition() {
        let join = |left: String, right: String| format!("({left} {right})");
        for n in 1..70usize {
            let mut fold = TreeFold::new();
            for item in 0..n {
                fold.push(item.to_string(), join);
                assert_eq!(fold.partials(), (item + 1).count_ones() as usize);
                let before = fold.clone().into_partials().into_iter();
                let last = (item + 1).to_string();
                let all = before.rev().fold(last, |right, left| join(left, right));
                assert_eq!(all, defined(0, item + 2));
            }
            assert_eq!(fold.finish(join), Some(defined(0, n)));

            let mut items: Vec<String> = (0..n).map(|item| item.to_string()).collect();
            for (left, right) in pairs(n) {
                items[left] = join(items[left].clone(), items[right].clone());
            }
            assert_eq!(items[0], defined(0, n));
        }
    }

    #[test]
    fn nothing_folds_to_nothing() {
        assert_eq!(TreeFold::<f32>::new().finish(|left, right| left + right), None);
    }
}
