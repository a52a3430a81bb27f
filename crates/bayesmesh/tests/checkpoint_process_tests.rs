//! Checkpoints of processes that are killed, run out of space or may not write.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bayesmesh::checkpoint::{Checkpoint, CheckpointError};
use bayesmesh::checkpoint::{NamedTensor, Store};
use bayesmesh_files::testing::{Scratch, names, rerun, role};
use bayesmesh_files::{AtomicFile, FileError};

/// A checkpoint of `4·count` bytes whose values depend on the step.
fn checkpoint(step: u64, count: usize) -> Checkpoint {
    Checkpoint {
        step,
        parameters: vec![NamedTensor {
            name: "weight".into(),
            shape: vec![count],
            values: (0..count).map(|i| (step + i as u64) as f32).collect(),
        }],
        ..Checkpoint::default()
    }
}

/// SIGKILL at sixty random moments: whatever has its final name is complete, and the run is never
/// thrown back behind what it had saved.
#[test]
fn a_kill_never_leaves_an_unreadable_checkpoint() {
    const TEST: &str = "a_kill_never_leaves_an_unreadable_checkpoint";
    const COUNT: usize = 100_000;
    if let Some(folder) = role() {
        let store = Store::create(folder, 2).unwrap();
        let latest = store.latest().unwrap();
        assert!(latest.skipped.is_empty(), "{:?}", latest.skipped);
        let start = latest.found.map_or(0, |(_, checkpoint)| checkpoint.step);
        for step in start + 1.. {
            store.save(&checkpoint(step, COUNT)).unwrap();
            store.save_best(&checkpoint(step, COUNT)).unwrap();
        }
    }
    let scratch = Scratch::new();
    let (mut random, mut before, mut unfinished) = (1u64, 0, 0);
    for _ in 0..60 {
        let mut child = rerun(&[], TEST, scratch.path()).stdout(Stdio::null()).spawn().unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_micros(10_000 + (random >> 32) % 60_000));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "it ended before it was killed");

        for name in scratch.names() {
            if AtomicFile::is_temporary(&name) {
                unfinished += 1;
                continue;
            }
            let loaded = Checkpoint::load(scratch.path().join(&name)).unwrap();
            assert_eq!(loaded, checkpoint(loaded.step, COUNT), "{name}");
        }
        let store = Store::open(scratch.path()).unwrap();
        let latest = store.latest().unwrap().found;
        let step = latest.map_or(0, |(_, checkpoint)| checkpoint.step);
        assert!(step >= before, "{step} after {before}");
        before = step;
    }
    println!("{before} steps saved, {unfinished} kills in the middle of a file");
    assert!(before > 0, "no process lived long enough to save anything");
}

/// Runs a test again by each launcher in turn until one is able to start it. Says so and does
/// nothing if none is.
fn rerun_by(launchers: &[&[&str]], test: &str, folder: &Path) {
    for launcher in launchers {
        let Ok(output) = rerun(launcher, test, folder).output() else {
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        // A failed test exits with 101; anything else comes from the launcher.
        match output.status.code() {
            Some(0) => return assert!(text.contains("1 passed"), "{text}"),
            Some(101) => panic!("{text}{}", String::from_utf8_lossy(&output.stderr)),
            _ => continue,
        }
    }
    println!("skipped {test}: {launchers:?} are not possible here");
}

/// In a folder with room for a small checkpoint, but not for a large one.
fn too_large_a_save_changes_nothing(folder: &Path) {
    let (small, large) = (checkpoint(1, 1_000), checkpoint(2, 1_000_000));
    let store = Store::create(folder, 1).unwrap();
    let path = store.save(&small).unwrap();
    let files = names(folder);
    for error in [
        store.save(&large).unwrap_err(),
        store.save_best(&large).unwrap_err(),
        large.save(&path).unwrap_err(),
    ] {
        assert!(matches!(error, CheckpointError::File(FileError::Full { .. })), "{error}");
        assert!(error.to_string().contains("Free some space"), "{error}");
        assert_eq!(names(folder), files);
        assert_eq!(Checkpoint::load(&path).unwrap(), small);
    }
    // There is still room for another small one.
    store.save(&checkpoint(3, 1_000)).unwrap();
}

/// Mounts a small file system on the test's folder, visible to the test only.
const MOUNT: &str =
    "mount -t tmpfs -o \"$0\" tmpfs \"$BAYESMESH_TEST_FOLDER\" || exit 1; exec \"$@\"";

#[test]
fn a_full_disk_costs_nothing_but_the_save() {
    match role() {
        Some(folder) => too_large_a_save_changes_nothing(&folder),
        None => rerun_by(
            &[
                &["unshare", "-m", "sh", "-c", MOUNT, "size=64k"],
                &["unshare", "-rm", "sh", "-c", MOUNT, "size=64k"],
            ],
            "a_full_disk_costs_nothing_but_the_save",
            Scratch::new().path(),
        ),
    }
}

#[test]
fn a_limit_on_the_file_size_costs_nothing_but_the_save() {
    const LIMIT: &str = "trap '' XFSZ; ulimit -f 256 || exit 1; exec \"$0\" \"$@\"";
    match role() {
        Some(folder) => too_large_a_save_changes_nothing(&folder),
        None => rerun_by(
            &[&["sh", "-c", LIMIT]],
            "a_limit_on_the_file_size_costs_nothing_but_the_save",
            Scratch::new().path(),
        ),
    }
}

#[test]
fn a_read_only_file_system_is_told() {
    match role() {
        Some(folder) => {
            let error = checkpoint(1, 1).save(folder.join("file")).unwrap_err();
            assert!(matches!(error, CheckpointError::File(FileError::ReadOnly { .. })), "{error}");
        }
        None => rerun_by(
            &[
                &["unshare", "-m", "sh", "-c", MOUNT, "ro"],
                &["unshare", "-rm", "sh", "-c", MOUNT, "ro"],
            ],
            "a_read_only_file_system_is_told",
            Scratch::new().path(),
        ),
    }
}

/// The administrator may write anywhere, so that the test is run again as somebody else.
#[test]
fn missing_permission_is_told() {
    const TEST: &str = "missing_permission_is_told";
    const NOBODY: u32 = 65534;
    let check = |folder: &Path| match checkpoint(1, 1).save(folder.join("file")) {
        Ok(()) => false,
        Err(CheckpointError::File(FileError::Permission { .. })) => true,
        Err(error) => panic!("{error}"),
    };
    if let Some(folder) = role() {
        assert!(check(&folder));
        return;
    }
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if check(scratch.path()) {
        return;
    }
    let mut command: Command = rerun(&[], TEST, scratch.path());
    match command.uid(NOBODY).gid(NOBODY).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
        }
        Err(error) => println!("skipped {TEST}: another user cannot run it: {error}"),
    }
}
