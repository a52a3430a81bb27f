//! The numbers that products are made of.

// Loops over arrays of a known size by their index are what becomes one vector instruction each.
#![allow(clippy::needless_range_loop)]

pub(crate) use half::bf16;

/// A number in a product.
pub(crate) trait Element: bytemuck::Pod + burn::tensor::Element {
    /// How many of them are a group of four bytes.
    const PER_GROUP: usize;

    /// The number that is nearest to another one.
    fn of<S: Element>(value: S) -> Self;

    /// In single precision.
    fn single(self) -> f32;

    /// Rounded to bf16.
    fn half(self) -> bf16;

    /// The products of the numbers of a group with those of others are added to sums.
    fn multiply_add<const FUSED: bool>(sums: &mut [f32; 16], group: u32, others: &[u32; 16]);

    /// Groups of two rows; of one row where a group is one number.
    fn interleave<S: Element>(first: &[S; 16], second: &[S; 16], groups: &mut [u32; 16]);

    /// One group of two neighbours.
    fn group(first: Self, second: Self) -> u32;

    /// The first sixteen groups of a row, zeros where it ends before.
    #[inline(always)]
    fn neighbours<S: Element>(row: &[S], groups: &mut [u32; 16]) {
        let number = |index: usize| row.get(index).map_or_else(Self::default, |&n| Self::of(n));
        match (Self::PER_GROUP, row.first_chunk::<16>(), row.first_chunk::<32>()) {
            (2, _, Some(row)) => {
                for i in 0..16 {
                    groups[i] = Self::group(Self::of(row[2 * i]), Self::of(row[2 * i + 1]));
                }
            }
            (1, Some(row), _) => {
                for i in 0..16 {
                    groups[i] = Self::group(Self::of(row[i]), Self::default());
                }
            }
            _ => {
                for i in 0..16 {
                    let first = i * Self::PER_GROUP;
                    groups[i] = Self::group(number(first), number(first + 1));
                }
            }
        }
    }
}

/// Rounds to the nearest; ties go to even, as everywhere; what is not a number stays none.
#[inline(always)]
fn rounded(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    // Infinity is the largest that is a number, without its sign.
    let bits = if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded };
    bf16::from_bits(bits as u16)
}

#[inline(always)]
fn fused<const FUSED: bool>(a: f32, b: f32, sum: f32) -> f32 {
    if FUSED { a.mul_add(b, sum) } else { sum + a * b }
}

impl Element for f32 {
    const PER_GROUP: usize = 1;

    #[inline(always)]
    fn of<S: Element>(value: S) -> f32 {
        value.single()
    }

    #[inline(always)]
    fn single(self) -> f32 {
        self
    }

    #[inline(always)]
    fn half(self) -> bf16 {
        rounded(self)
    }

    #[inline(always)]
    fn multiply_add<const FUSED: bool>(sums: &mut [f32; 16], group: u32, others: &[u32; 16]) {
        let value = f32::from_bits(group);
        for i in 0..16 {
            sums[i] = fused::<FUSED>(value, f32::from_bits(others[i]), sums[i]);
        }
    }

    #[inline(always)]
    fn interleave<S: Element>(first: &[S; 16], _second: &[S; 16], groups: &mut [u32; 16]) {
        for i in 0..16 {
            groups[i] = first[i].single().to_bits();
        }
    }

    #[inline(always)]
    fn group(first: f32, _second: f32) -> u32 {
        first.to_bits()
    }
}

impl Element for bf16 {
    const PER_GROUP: usize = 2;

    #[inline(always)]
    fn of<S: Element>(value: S) -> bf16 {
        value.half()
    }

    #[inline(always)]
    fn single(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn half(self) -> bf16 {
        self
    }

    #[inline(always)]
    fn multiply_add<const FUSED: bool>(sums: &mut [f32; 16], group: u32, others: &[u32; 16]) {
        let [first, second] = [group << 16, group & 0xffff_0000].map(f32::from_bits);
        for i in 0..16 {
            let [a, b] = [others[i] << 16, others[i] & 0xffff_0000].map(f32::from_bits);
            sums[i] = fused::<FUSED>(first, a, fused::<FUSED>(second, b, sums[i]));
        }
    }

    #[inline(always)]
    fn interleave<S: Element>(first: &[S; 16], second: &[S; 16], groups: &mut [u32; 16]) {
        for i in 0..16 {
            groups[i] = Self::group(first[i].half(), second[i].half());
        }
    }

    #[inline(always)]
    fn group(first: bf16, second: bf16) -> u32 {
        u32::from(first.to_bits()) | u32::from(second.to_bits()) << 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the crate of the type, over all exponents and both signs.
    #[test]
    fn rounding_is_to_the_nearest_even() {
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(high) << 16 | low);
                let (ours, theirs) = (rounded(value), bf16::from_f32(value));
                let same = ours.to_bits() == theirs.to_bits();
                assert!(same || (value.is_nan() && ours.is_nan()), "{value}: {ours} {theirs}");
            }
        }
    }
}
