//! The program that downloads.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use bayesmesh_files::FileError;

use super::FetchError;

/// What `curl` ends with when it could not write.
const NOT_WRITTEN: i32 = 23;
/// When the server sends files only from their beginning.
const NO_RANGES: i32 = 33;
/// When there is less than has arrived already: the file is another one now.
const BEYOND_THE_END: i32 = 36;

/// Downloads to the file `part`, going on where it ends. `target` is what the user asked for.
pub(super) fn curl(address: &str, part: &Path, target: &Path) -> Result<(), FetchError> {
    let arrived = || fs::metadata(part).map_or(0, |part| part.len());
    let mut status = run(address, part)?;
    if matches!(status.code(), Some(NO_RANGES | BEYOND_THE_END)) && arrived() > 0 {
        fs::remove_file(part).map_err(|error| FileError::new(part, "remove", &error))?;
        status = run(address, part)?;
    }
    let kept = match arrived() {
        0 => String::new(),
        bytes => format!("; {bytes} bytes have arrived and are kept, the same command goes on"),
    };
    match status.code() {
        Some(0) => Ok(()),
        Some(NOT_WRITTEN) => Err(FetchError::Write(FileError::Other {
            path: target.into(),
            action: "write",
            reason: format!("curl could not; is the disk full?{kept}"),
        })),
        _ => Err(FetchError::Download(format!("curl could not get {address} ({status}{kept})"))),
    }
}

fn run(address: &str, part: &Path) -> Result<ExitStatus, FetchError> {
    Command::new("curl")
        .args(["--fail", "--location", "--progress-bar", "--connect-timeout", "20"])
        // A connection over which nothing comes for a minute is given up.
        .args(["--speed-limit", "1", "--speed-time", "60"])
        .args(["--continue-at", "-", "--globoff", "--output"])
        .arg(part)
        .args(["--url", address])
        .stdin(Stdio::null())
        .status()
        .map_err(|error| FetchError::Download(format!("curl cannot be run ({error})")))
}
