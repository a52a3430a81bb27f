//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
//! numbers: as easy as 1, 2, 3" (SC 2011).

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;
const LOW: u64 = 0xFFFF_FFFF;

/// The four random words of one counter under one key.
///
/// One round takes the counter `[a, b, c, d]` under the key `[k, l]` to
/// `[hi(N·c) ^ b ^ k, lo(N·c), hi(M·a) ^ d ^ l, lo(M·a)]`, `M` and `N` the two multipliers; between
/// rounds the key moves on by a constant.
#[inline(always)]
pub const fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    // The words live in the low halves of 64-bit numbers whose high halves are not kept clean: a
    // 32 x 32 -> 64 bit vector multiplication reads the low halves only, so a round is two
    // multiplications, two shifts and four exclusive ors, with no shuffling of lanes.
    let [mut a, mut b, mut c, mut d] =
        [counter[0] as u64, counter[1] as u64, counter[2] as u64, counter[3] as u64];
    let mut key = key;
    let mut round = 0;
    while round < ROUNDS {
        let first = (a & LOW) * MULTIPLIERS[0];
        let second = (c & LOW) * MULTIPLIERS[1];
        (a, b) = ((second >> 32) ^ (b ^ key[0] as u64), second);
        (c, d) = ((first >> 32) ^ (d ^ key[1] as u64), first);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        round += 1;
    }
    [a as u32, b as u32, c as u32, d as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers for `philox4x32 10` of the Random123 distribution.
    #[test]
    fn known_answers() {
        assert_eq!(
            philox4x32([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox4x32([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
