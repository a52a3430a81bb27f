//! The checksum of TFRecord files: CRC-32C (Castagnoli, reflected polynomial `0x82F63B78`).

/// Entry `b` is the remainder of the byte `b`.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ (0x82F6_3B78 * (remainder & 1));
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |remainder: u32, &byte| {
        (remainder >> 8) ^ TABLE[usize::from(remainder as u8 ^ byte)]
    })
}

/// The checksum as TFRecord stores it: turned and shifted, because checksums of data that contain
/// checksums are weak.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 3720, B.4, and the check value of the CRC catalogue.
    #[test]
    fn known_checksums() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46DD_794E);
        assert_eq!(crc32c(b""), 0);
    }
}
