//! The promises of the random streams about their bits: the right generator, the right counter, and
//! the same numbers however and wherever they are computed.

use bayesmesh_kernels::simd::Level;
use bayesmesh_kernels::stream::philox::philox4x32;
use bayesmesh_kernels::stream::{Purpose, Stream};

const PURPOSES: [Purpose; 6] = [
    Purpose::Weights,
    Purpose::Dropout,
    Purpose::Augmentation,
    Purpose::Shuffle,
    Purpose::Initialisation,
    Purpose::Synthesis,
];

fn bits(stream: &Stream, start: u64, length: usize) -> Vec<u32> {
    let mut out = vec![0; length];
    stream.fill_bits(start, &mut out);
    out
}

/// Philox4x32-10 as the paper writes it, one word at a time.
fn reference_block(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| {
        let product = u64::from(a) * u64::from(b);
        ((product >> 32) as u32, product as u32)
    };
    for _ in 0..10 {
        let (high0, low0) = product(0xD251_1F53, counter[0]);
        let (high1, low1) = product(0xCD9E_8D57, counter[2]);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

#[test]
fn the_generator_gives_the_known_answers_of_random123() {
    let answers = [
        ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([!0; 4], [!0; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];
    for (counter, key, answer) in answers {
        assert_eq!(reference_block(counter, key), answer);
        assert_eq!(philox4x32(counter, key), answer);
    }
    // The first of them is also the beginning of the plainest stream.
    assert_eq!(bits(&Stream::new(0, Purpose::Weights), 0, 4), answers[0].2);
}

#[test]
fn every_part_of_the_name_is_where_the_format_says() {
    let (seed, step, draw, tensor) = (0x0123_4567_89AB_CDEF, 0xDEAD_BEEF, 0x8000_0001, 0xFF_FFFE);
    for (number, purpose) in PURPOSES.into_iter().enumerate() {
        let stream = Stream::new(seed, purpose).at_tensor(3).at_step(step).at_draw(draw);
        let stream = stream.at_tensor(tensor);
        let last = tensor | (number as u32) << 24;
        for start in [0, 5, Stream::ELEMENTS - 600] {
            for (element, word) in (start..).zip(bits(&stream, start, 600)) {
                let counter = [(element / 4) as u32, step, draw, last];
                let block = reference_block(counter, [0x89AB_CDEF, 0x0123_4567]);
                assert_eq!(word, block[(element % 4) as usize], "element {element}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "2^24")]
fn a_tensor_number_beyond_the_format_is_refused() {
    let _ = Stream::new(0, Purpose::Weights).at_tensor(1 << 24);
}

#[test]
#[should_panic(expected = "2^34")]
fn a_range_beyond_the_last_element_is_refused() {
    bits(&Stream::new(0, Purpose::Weights), Stream::ELEMENTS - 3, 4);
}

/// The values of every kind of filling, as bits.
fn fillings(stream: &Stream, start: u64, length: usize) -> [Vec<u32>; 4] {
    let mut floats = vec![0.0; length];
    let mut as_bits = |fill: &dyn Fn(&mut [f32])| {
        fill(&mut floats);
        floats.iter().map(|value| value.to_bits()).collect()
    };
    [
        bits(stream, start, length),
        as_bits(&|out| stream.fill_uniform(start, out)),
        as_bits(&|out| stream.fill_normal(start, out)),
        as_bits(&|out| stream.fill_bernoulli(start, 0.3, out)),
    ]
}

#[test]
fn any_piece_is_the_slice_of_the_whole() {
    let stream = Stream::new(11, Purpose::Dropout).at_step(2).at_draw(3).at_tensor(4);
    let whole = fillings(&stream, 0, 1500);
    for start in (0..300).chain([511, 512, 513, 1023]) {
        for length in [0, 1, 2, 3, 4, 5, 7, 8, 31, 64, 127, 128, 129, 255, 257, 400] {
            for (whole, piece) in whole.iter().zip(fillings(&stream, start as u64, length)) {
                assert_eq!(whole[start..start + length], piece, "{start}, {length}");
            }
        }
    }
    for (element, &value) in whole[1].iter().enumerate() {
        assert_eq!(stream.uniform(element as u64).to_bits(), value);
    }
}

#[test]
fn all_levels_give_the_same_bits() {
    let stream = Stream::new(12, Purpose::Weights).at_step(9);
    let baseline = Level::Baseline.force(|| fillings(&stream, 3, 100_003));
    for level in Level::available() {
        assert!(baseline == level.force(|| fillings(&stream, 3, 100_003)), "{level:?}");
    }
    assert!(baseline == fillings(&stream, 3, 100_003));
}

/// A hash of all bits, written down once: it must come out on every machine and in every release.
#[test]
fn the_bits_are_those_of_every_other_machine() {
    let stream = Stream::new(2026, Purpose::Weights).at_step(1).at_draw(2).at_tensor(3);
    let hashes = fillings(&stream, 0, 1 << 20).map(|words| {
        words.into_iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, word| {
            (hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01B3)
        })
    });
    let expected = [
        0x6619_941C_2C23_A047, // bits
        0x9431_2199_93F3_9173, // uniform
        0xDF2A_AF5F_BE2F_C6AC, // normal
        0x204C_1EF5_F262_2325, // bernoulli
    ];
    assert_eq!(hashes, expected);
}

#[test]
fn a_permutation_is_one() {
    for n in [0, 1, 2, 3, 63, 64, 65, 128, 1000, 50_000] {
        let order = Stream::new(6, Purpose::Shuffle).permutation(n);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..n), "{n}");
        assert!(n < 63 || order.into_iter().enumerate().filter(|(i, p)| i == p).count() < 8);
    }
}
