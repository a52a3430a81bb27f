//! Images that can be learned from without a download.
//!
//! Image `n` is of class `n mod 10`. A class has a colour and the direction of its stripes, of
//! which there are five: two classes share each. Phase, distance and contrast of the stripes, the
//! brightness and noise on every pixel are random. The brightness hides most of the colour, and a
//! random phase leaves nothing in the mean image: a network must look at shapes, which even a small
//! one learns in a minute. Only additions, multiplications, divisions and [`Stream`]s are used: a
//! seed gives the same bytes on every machine.

use std::ops::Range;
use std::path::{Path, PathBuf};

use bayesmesh_files::{AtomicFile, read_text};
use bayesmesh_kernels::stream::{Purpose, Stream};

use super::edition::Edition;
use super::error::Cifar10Error;
use super::files::{CLASSES, FILES, IMAGE_BYTES, RECORD_BYTES, SIDE};
use super::install::stage;

/// The file that says that a folder holds a stand-in, and how many images a file of it has.
const MARKER: &str = "synthetic.txt";
/// It has a few lines only.
const LONGEST_MARKER: u64 = 1 << 16;

/// Directions of the stripes: cosine and sine of 0°, 36°, 72°, 108°, 144°.
const DIRECTIONS: [[f32; 2]; 5] = [
    [1.0, 0.0],
    [0.809_017, 0.587_785_3],
    [0.309_017, 0.951_056_5],
    [-0.309_017, 0.951_056_5],
    [-0.809_017, 0.587_785_3],
];

/// How much red, green and blue of each class differ from grey.
const COLOURS: [[f32; 3]; CLASSES.len()] = [
    [24.0, -6.0, -18.0],
    [-18.0, 24.0, -6.0],
    [-6.0, -18.0, 24.0],
    [18.0, 12.0, -30.0],
    [-30.0, 18.0, 12.0],
    [12.0, -30.0, 18.0],
    [8.0, 8.0, -16.0],
    [-16.0, 8.0, 8.0],
    [8.0, -16.0, 8.0],
    [0.0, 0.0, 0.0],
];

/// The records of the images with these numbers, one after the other.
pub(super) fn records(numbers: Range<usize>, seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(numbers.len() * RECORD_BYTES);
    let stream = Stream::new(seed, Purpose::Synthesis);
    for number in numbers {
        let class = number % CLASSES.len();
        let stream = stream.at_step(number as u32);
        let mut noise = [0.0; IMAGE_BYTES];
        stream.at_tensor(1).fill_normal(0, &mut noise);
        let phase = stream.uniform(0);
        let period = 5.0 + 4.0 * stream.uniform(1);
        let height = 20.0 + 30.0 * stream.uniform(2);
        let grey = 128.0 + 60.0 * (stream.uniform(3) - 0.5);
        let [across, along] = DIRECTIONS[class % DIRECTIONS.len()].map(|part| part / period);
        out.push(class as u8);
        for (colour, noise) in COLOURS[class].iter().zip(noise.chunks_exact(SIDE * SIDE)) {
            for (i, noise) in noise.iter().enumerate() {
                let (y, x) = ((i / SIDE) as f32, (i % SIDE) as f32);
                let turns = phase + across * x + along * y;
                // From −1 to 1 and back, once a turn.
                let wave = 4.0 * (turns - turns.floor() - 0.5).abs() - 1.0;
                out.push((grey + colour + height * wave + 20.0 * noise).round() as u8);
            }
        }
    }
    out
}

/// Writes a stand-in for CIFAR-10: six files of `images_per_file` images in the canonical layout,
/// and a file that says that they are not the photographs. The folder must be new or empty, and
/// appears complete or not at all.
pub fn write_synthetic(
    folder: impl AsRef<Path>,
    images_per_file: usize,
    seed: u64,
) -> Result<(), Cifar10Error> {
    check(images_per_file)?;
    let folder = folder.as_ref();
    let staging = stage(folder)?;
    let batches = staging.contents()?;
    let write = |name: &str, bytes: &[u8]| {
        // An error names the file that will be, not the hidden one that it is until then.
        let written = AtomicFile::write(batches.join(name), bytes);
        written.map_err(Cifar10Error::write(folder.join(name)))
    };
    for (i, name) in FILES.iter().enumerate() {
        write(name, &records(i * images_per_file..(i + 1) * images_per_file, seed))?;
    }
    let marker = format!(
        "Made by `bayesmesh data synth cifar10`: stripes, not photographs.\n\
         images_per_file = {images_per_file}\nseed = {seed}\n"
    );
    write(MARKER, marker.as_bytes())?;
    Ok(staging.commit_contents()?)
}

/// Refuses a number of images that the files cannot have.
pub(super) fn check(images_per_file: usize) -> Result<(), Cifar10Error> {
    let most = Edition::CIFAR10.images_per_file;
    if (1..=most).contains(&images_per_file) {
        return Ok(());
    }
    Err(Cifar10Error::Setting(format!("{images_per_file} images a file: choose 1 to {most}")))
}

/// How many images each file of a folder has that holds a stand-in; `None` for any other folder.
pub(super) fn images_per_file(folder: &Path) -> Result<Option<usize>, Cifar10Error> {
    let file: PathBuf = folder.join(MARKER);
    if !file.exists() {
        return Ok(None);
    }
    let text = read_text(&file, LONGEST_MARKER, &mut |_| {}).map_err(Cifar10Error::Read)?;
    let count = text.lines().find_map(|line| line.strip_prefix("images_per_file = "));
    match count.and_then(|count| count.parse().ok()) {
        Some(count) if check(count).is_ok() => Ok(Some(count)),
        _ => Err(Cifar10Error::Archive {
            file,
            problem: "no line `images_per_file = N`. Make the stand-in again with `bayesmesh data \
                      synth cifar10`"
                .into(),
        }),
    }
}
