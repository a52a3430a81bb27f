//! The published bits.

use std::borrow::Cow::{self, Borrowed};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::Cifar10Error;
use super::files::{FILES, RECORD_BYTES, locate};
use super::records;

/// What the six files must be, bit for bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edition {
    /// Images in each file.
    pub images_per_file: usize,
    /// SHA-256 of each of [`FILES`], in hexadecimal.
    pub sha256: [Cow<'static, str>; FILES.len()],
}

impl Edition {
    /// CIFAR-10 as published by Alex Krizhevsky.
    pub const CIFAR10: Self = Self {
        images_per_file: 10_000,
        sha256: [
            Borrowed("cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            Borrowed("a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            Borrowed("bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            Borrowed("014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            Borrowed("755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            Borrowed("8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        ],
    };

    /// What the files of a folder are.
    pub fn of(folder: impl AsRef<Path>) -> Result<Self, Cifar10Error> {
        let folder = locate(folder.as_ref())?;
        let mut images_per_file = 0;
        let mut sha256 = [const { Borrowed("") }; FILES.len()];
        for (name, sum) in FILES.iter().zip(&mut sha256) {
            let (found, length) = sha256_of(&folder.join(name))?;
            images_per_file = length as usize / RECORD_BYTES;
            *sum = found.into();
        }
        Ok(Self { images_per_file, sha256 })
    }

    /// Bytes of a file.
    pub(super) fn file_bytes(&self) -> u64 {
        (self.images_per_file * RECORD_BYTES) as u64
    }

    /// Refuses the files of a folder that are not of this edition.
    pub fn verify(&self, folder: impl AsRef<Path>) -> Result<(), Cifar10Error> {
        let folder = locate(folder.as_ref())?;
        // All sizes before any sum: that is quick, and says more.
        for name in FILES {
            let file = folder.join(name);
            let (_, found) = records::open(&file)?;
            if found != self.file_bytes() {
                return Err(Cifar10Error::Size { file, found, images: self.images_per_file });
            }
        }
        for (name, expected) in FILES.iter().zip(&self.sha256) {
            let file = folder.join(name);
            let (found, _) = sha256_of(&file)?;
            if found != *expected {
                return Err(Cifar10Error::Checksum { file, found, expected: expected.to_string() });
            }
        }
        Ok(())
    }
}

/// Refuses a folder whose files are not CIFAR-10 as published, bit for bit.
pub fn verify(folder: impl AsRef<Path>) -> Result<(), Cifar10Error> {
    Edition::CIFAR10.verify(folder)
}

/// The sum and the length of a file.
fn sha256_of(path: &Path) -> Result<(String, u64), Cifar10Error> {
    let (mut file, _) = records::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut length = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                hash.update(&buffer[..n]);
                length += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Cifar10Error::read(path)(error)),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        write!(text, "{byte:02x}").expect("a string can be written to");
    }
    Ok((text, length))
}
