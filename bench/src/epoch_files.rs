//! What whole epochs train on: files that the competition reads too, written where they are
//! missing.

use std::error::Error;
use std::fs;
use std::path::Path;

use bayesmesh_data::cifar10::{self, Cifar10, Images};
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::series::{Normaliser, SeriesWindows};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Images in each file. Four files of five are trained with, and the test images validate.
const IMAGES: usize = 256;
const TRAINING_IMAGES: usize = 4 * IMAGES;

/// Quarters of an hour that a forecast knows, and that it says.
const INPUTS: usize = 96;
const OUTPUTS: usize = 24;

/// Windows to train with, and to validate with.
const TRAINING_WINDOWS: usize = 64_000;
const VALIDATION_WINDOWS: usize = 4096;

/// Values of which so many windows are made.
const fn values(windows: usize) -> usize {
    windows + INPUTS + OUTPUTS - 1
}

/// Writes images in the layout of CIFAR-10 to a folder.
pub fn make_images(folder: &Path) -> Outcome<()> {
    if !folder.exists() {
        cifar10::write_synthetic(folder, IMAGES, 0)?;
    }
    Ok(())
}

/// The images to train with, augmented, and to validate with.
pub fn images(folder: &Path) -> Outcome<(Images, Images)> {
    let cifar = Cifar10::open(folder)?;
    Ok((cifar.train(Some(TRAINING_IMAGES))?.augmented(true), cifar.test(None)?))
}

/// Writes a load, normalised, to a file: numbers of 32 bits, the lowest byte first.
pub fn make_load(file: &Path) -> Outcome<()> {
    if file.exists() {
        return Ok(());
    }
    let count = values(TRAINING_WINDOWS) + values(VALIDATION_WINDOWS);
    let config = SynthConfig { days: count.div_ceil(96) as u32, ..SynthConfig::default() };
    let load = german_like(&config)?.values.into_iter().take(count).map(f64::from);
    let normaliser = Normaliser::fit(load.clone().take(values(TRAINING_WINDOWS)));
    let normaliser = normaliser.ok_or("the load does not vary")?;
    let bytes: Vec<u8> = load.flat_map(|value| normaliser.apply(value).to_le_bytes()).collect();
    // Under its name when it is complete.
    let part = file.with_extension("part");
    fs::write(&part, bytes)?;
    Ok(fs::rename(part, file)?)
}

/// The windows to train with, and to validate with.
pub fn load(file: &Path) -> Outcome<(SeriesWindows, SeriesWindows)> {
    let bytes = fs::read(file)?;
    let (numbers, _) = bytes.as_chunks();
    let load: Vec<f32> = numbers.iter().map(|&number| f32::from_le_bytes(number)).collect();
    let (first, all) = (values(TRAINING_WINDOWS), load.len());
    let windows = |steps| SeriesWindows::of_values(load.clone(), steps, INPUTS, OUTPUTS, 1);
    Ok((windows(0..first), windows(first..all)))
}
