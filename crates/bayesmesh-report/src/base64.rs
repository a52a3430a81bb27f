//! Base64 with padding (RFC 4648), for images inside the page.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `bytes` in Base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        // Up to three bytes as 24 bits, read as four digits of six bits from the top.
        let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(*chunk.get(i).unwrap_or(&0)));
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            let padding = digit > chunk.len();
            text.push(if padding { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn vectors_of_the_rfc() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in pairs {
            assert_eq!(encode(plain.as_bytes()), coded);
        }
        assert_eq!(encode(&[0xff, 0xfe, 0xfd]), "//79");
    }
}
