//! As much of PNG as the pictures of the npm package need: 8-bit red, green and blue, not interlaced.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;

/// Bytes of a pixel.
const PIXEL: usize = 3;

/// Reads a picture row by row.
pub(super) struct Rows<R> {
    pixels: ZlibDecoder<Chunks<R>>,
    /// The row that was read last; black before the first, as the filters have it.
    row: Vec<u8>,
    next: Vec<u8>,
    height: usize,
}

impl<R: Read> Rows<R> {
    /// Reads the header; refuses what is not such a picture.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut signature = [0; 8];
        input.read_exact(&mut signature)?;
        if signature != *b"\x89PNG\r\n\x1a\n" {
            return Err(invalid("not a PNG file"));
        }
        // Length, name, width, height, depth, colour type, compression, filter, interlace; checksum.
        let mut header = [0; 4 + 4 + 13 + 4];
        input.read_exact(&mut header)?;
        let [.., 8, 2, 0, 0, 0, _, _, _, _] = header else {
            return Err(invalid("not 8-bit red, green and blue without interlacing"));
        };
        if header[..8] != *b"\0\0\0\x0dIHDR" {
            return Err(invalid("no header"));
        }
        let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four"));
        let (width, height) = (number(8) as usize, number(12) as usize);
        if !(1..=1 << 16).contains(&width) || height == 0 {
            return Err(invalid("a picture of an impossible size"));
        }
        let chunks = Chunks { input, left: 0, begun: false };
        Ok(Self {
            pixels: ZlibDecoder::new(chunks),
            row: vec![0; width * PIXEL],
            next: vec![0; width * PIXEL],
            height,
        })
    }

    /// Pixels of a row, and rows.
    pub fn size(&self) -> (usize, usize) {
        (self.row.len() / PIXEL, self.height)
    }

    /// The bytes of the next row.
    pub fn next_row(&mut self) -> io::Result<&[u8]> {
        let mut filter = [0];
        self.pixels.read_exact(&mut filter)?;
        self.pixels.read_exact(&mut self.next)?;
        unfilter(filter[0], &self.row, &mut self.next)?;
        std::mem::swap(&mut self.row, &mut self.next);
        Ok(&self.row)
    }
}

/// Adds to each byte what the filter predicts from the bytes to its left (`a`), above (`b`), and
/// above to the left (`c`).
fn unfilter(filter: u8, above: &[u8], row: &mut [u8]) -> io::Result<()> {
    let mut apply = |predict: fn(u8, u8, u8) -> u8| {
        for i in 0..row.len() {
            let (a, c) = if i < PIXEL { (0, 0) } else { (row[i - PIXEL], above[i - PIXEL]) };
            row[i] = row[i].wrapping_add(predict(a, above[i], c));
        }
    };
    match filter {
        0 => {}
        1 => apply(|a, _, _| a),
        2 => apply(|_, b, _| b),
        3 => apply(|a, b, _| a.midpoint(b)),
        4 => apply(paeth),
        _ => return Err(invalid("an unknown filter")),
    }
    Ok(())
}

/// Whichever of the three is nearest to `a + b − c`; the first of equals.
fn paeth(a: u8, b: u8, c: u8) -> u8 {
    let guess = i16::from(a) + i16::from(b) - i16::from(c);
    let distance = |value: u8| (guess - i16::from(value)).abs();
    if distance(a) <= distance(b) && distance(a) <= distance(c) {
        a
    } else if distance(b) <= distance(c) {
        b
    } else {
        c
    }
}

/// The content of the `IDAT` chunks, as one stream.
struct Chunks<R> {
    input: R,
    /// Bytes of this chunk that are still to come.
    left: u64,
    /// Whether there has been a chunk, whose checksum must be skipped. The sums of the files that
    /// come of this are checked.
    begun: bool,
}

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            if self.begun {
                self.skip(4)?;
            }
            self.begun = true;
            let mut head = [0; 8];
            self.input.read_exact(&mut head)?;
            let [a, b, c, d, name @ ..] = head;
            let length = u64::from(u32::from_be_bytes([a, b, c, d]));
            match &name {
                b"IDAT" => self.left = length,
                b"IEND" => return Ok(0),
                _ => self.skip(length)?,
            }
        }
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.input.read(&mut out[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

impl<R: Read> Chunks<R> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())? {
            skipped if skipped == bytes => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn chunk(name: &[u8; 4], content: &[u8], out: &mut Vec<u8>) {
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(name);
        out.extend(content);
        out.extend([0; 4]);
    }

    /// A picture whose row `y` has filter `y % 5`, in chunks of 50 bytes.
    fn encode(width: usize, rows: &[Vec<u8>]) -> Vec<u8> {
        let mut pixels = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut above = vec![0; width * PIXEL];
        for (y, row) in rows.iter().enumerate() {
            let filtered: Vec<u8> = (0..row.len())
                .map(|i| {
                    let (a, c) = if i < PIXEL { (0, 0) } else { (row[i - 3], above[i - 3]) };
                    let b = above[i];
                    row[i].wrapping_sub(match y % 5 {
                        0 => 0,
                        1 => a,
                        2 => b,
                        3 => ((u16::from(a) + u16::from(b)) / 2) as u8,
                        _ => paeth(a, b, c),
                    })
                })
                .collect();
            pixels.write_all(&[(y % 5) as u8]).unwrap();
            pixels.write_all(&filtered).unwrap();
            above.clone_from(row);
        }
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = Vec::new();
        header.extend((width as u32).to_be_bytes());
        header.extend((rows.len() as u32).to_be_bytes());
        header.extend([8, 2, 0, 0, 0]);
        chunk(b"IHDR", &header, &mut out);
        chunk(b"tEXt", b"to be skipped", &mut out);
        for content in pixels.finish().unwrap().chunks(50) {
            chunk(b"IDAT", content, &mut out);
        }
        chunk(b"IEND", b"", &mut out);
        out
    }

    #[test]
    fn rows_of_every_filter_are_read() {
        let row = |y: usize| (0..21).map(|i| (i * i * 7 + y * 37 + i * y * 11) as u8).collect();
        let rows: Vec<Vec<u8>> = (0..12).map(row).collect();
        let png = encode(7, &rows);
        let mut picture = Rows::new(&png[..]).unwrap();
        assert_eq!(picture.size(), (7, 12));
        for row in &rows {
            assert_eq!(picture.next_row().unwrap(), row);
        }
        assert!(picture.next_row().is_err());
        // Cut off anywhere it is never the end of the world, and in the pixels an error.
        for length in 0..png.len() {
            let read = Rows::new(&png[..length])
                .and_then(|mut picture| (0..12).try_for_each(|_| picture.next_row().map(|_| ())));
            assert!(read.is_err() || length > png.len() * 3 / 4, "{length}");
        }
        assert_eq!((paeth(10, 20, 15), paeth(3, 6, 5)), (15, 3));
        assert_eq!((paeth(1, 9, 2), paeth(9, 1, 2), paeth(5, 5, 5)), (9, 9, 5));
    }
}
