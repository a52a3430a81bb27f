//! `bayesmesh data`: nothing of the user's is lost, nothing is left half-done, and what is wrong
//! with a file is said in few words.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Outcome, Scratch};

/// A folder with `a.csv` and `b.csv`, series of two days that differ in every value.
fn two_series() -> Scratch {
    let scratch = Scratch::new();
    for (out, seed) in [("a.csv", "1"), ("b.csv", "2")] {
        data(&scratch, &["synth", "load", "--days", "2", "--seed", seed, "--out", out]).success();
    }
    scratch
}

fn data(scratch: &Scratch, arguments: &[&str]) -> Outcome {
    scratch.run(&[&["data"], arguments, &["--json"]].concat())
}

/// The program with files that cannot grow beyond some KiB, as on a full disk.
#[cfg(unix)]
fn without_room(scratch: &Scratch, blocks: u32, arguments: &[&str]) -> Outcome {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_bayesmesh"), "data"]);
    shell.args(arguments).arg("--json").current_dir(scratch.path(""));
    Outcome::of(&mut shell)
}

/// The error of a program that ended with `code`.
#[track_caller]
fn refused(outcome: &Outcome, code: i32, words: &[&str]) -> String {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    let error = outcome.json()["error"].as_str().unwrap().to_owned();
    for word in words {
        assert!(error.contains(word), "no '{word}' in: {error}");
    }
    error
}

fn has_curl() -> bool {
    let found = Command::new("curl").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no curl");
    }
    found
}

#[test]
fn a_file_is_never_copied_onto_itself() {
    let scratch = two_series();
    let a = scratch.read("a.csv");
    scratch.write("mine.part", &a);
    data(&scratch, &["fetch", "load", "--from", "mine.part", "--out", "mine.csv"]).success();
    assert_eq!((scratch.read("mine.part"), scratch.read("mine.csv")), (a.clone(), a.clone()));

    scratch.write("b.part", "a letter");
    data(&scratch, &["fetch", "load", "--from", "a.csv", "--out", "b.csv"]).success();
    assert_eq!((scratch.read("b.part"), scratch.read("b.csv")), ("a letter".into(), a.clone()));

    let fetch = ["fetch", "load", "--from", "a.csv", "--out", "a.csv"];
    let outcome = data(&scratch, &fetch);
    assert_eq!(outcome.success()["file"], "a.csv");
    assert!(outcome.stderr.contains("here already"), "{}", outcome.stderr);
    assert_eq!(scratch.read("a.csv"), a);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.csv", scratch.path("link.csv")).unwrap();
        for [from, out] in [["a.csv", "link.csv"], ["link.csv", "a.csv"]] {
            data(&scratch, &["fetch", "load", "--from", from, "--out", out]).success();
        }
        assert!(fs::symlink_metadata(scratch.path("link.csv")).unwrap().is_symlink());
        assert_eq!(scratch.read("link.csv"), a);
    }
}

#[test]
fn a_series_is_replaced_only_by_a_good_one() {
    let scratch = two_series();
    let [a, b] = ["a.csv", "b.csv"].map(|name| scratch.read(name));
    scratch.write("bad.csv", a.replace("T01:00:00Z", "T01:00:00Zulu"));
    let fetch = ["fetch", "load", "--from", "bad.csv", "--out", "b.csv"];
    refused(&data(&scratch, &fetch), 3, &["bad.csv, line 6"]);
    assert_eq!(scratch.read("b.csv"), b);
    data(&scratch, &["fetch", "load", "--from", "a.csv", "--out", "b.csv"]).success();
    assert_eq!(scratch.read("b.csv"), a);
    fs::create_dir(scratch.path("folder")).unwrap();
    let fetch = ["fetch", "load", "--from", "a.csv", "--out", "folder"];
    refused(&data(&scratch, &fetch), 4, &["folder", "Name a file in it"]);
    assert_eq!(scratch.names(""), ["a.csv", "b.csv", "bad.csv", "folder"]);
}

#[test]
fn a_download_that_was_no_series_is_in_nobodys_way() {
    if !has_curl() {
        return;
    }
    let scratch = two_series();
    scratch.write("page.html", "<html>not here</html>\n");
    let address = |name: &str| format!("file://{}", scratch.path(name).display());
    let fetch = |from: &str| data(&scratch, &["fetch", "load", "--from", from, "--out", "o.csv"]);
    let error = refused(&fetch(&address("page.html")), 3, &["page.html", "unknown header"]);
    assert!(error.contains("what has arrived was removed"), "{error}");
    fetch(&address("a.csv")).success();
    assert_eq!(scratch.read("o.csv"), scratch.read("a.csv"));
    // The beginning of another series.
    let a = scratch.read("a.csv");
    let line = a.find("T06:00").unwrap();
    scratch.write("o.part", &a[..line]);
    fetch(&address("b.csv")).success();
    assert_eq!(scratch.read("o.csv"), scratch.read("b.csv"));
    fs::remove_file(scratch.path("o.part")).unwrap();
    refused(&fetch(&address("none.csv")), 3, &["curl could not get", "none.csv"]);
    assert_eq!(scratch.names(""), ["a.csv", "b.csv", "o.csv", "page.html"]);
}

#[test]
fn a_hidden_folder_of_somebody_else_is_refused() {
    let scratch = two_series();
    fs::create_dir_all(scratch.path(".made.part/batches")).unwrap();
    scratch.write(".made.part/batches/diary.txt", "mine");
    let synth = ["synth", "cifar10", "--count", "2", "--out", "made"];
    refused(&data(&scratch, &synth), 4, &[".made.part", "not made by bayesmesh", "Move it"]);
    assert_eq!(scratch.read(".made.part/batches/diary.txt"), "mine");
    assert!(!scratch.path("made").exists());
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let scratch = two_series();
    let synth = ["synth", "load", "--days", "700", "--out", "full.csv"];
    refused(&without_room(&scratch, 64, &synth), 4, &["full.csv", "no space left"]);
    let synth = ["synth", "cifar10", "--count", "100", "--out", "full"];
    refused(&without_room(&scratch, 64, &synth), 4, &["data_batch_1.bin", "no space left"]);
    data(&scratch, &["synth", "load", "--days", "700", "--out", "long.csv"]).success();
    let fetch = ["fetch", "load", "--from", "long.csv", "--out", "full.csv"];
    refused(&without_room(&scratch, 64, &fetch), 4, &["full.csv", "no space left"]);
    assert_eq!(scratch.names(""), ["a.csv", "b.csv", "long.csv"]);
    if !has_curl() {
        return;
    }
    // What has arrived can be gone on with.
    let address = format!("file://{}", scratch.path("long.csv").display());
    let fetch = ["fetch", "load", "--from", &address, "--out", "full.csv"];
    refused(&without_room(&scratch, 64, &fetch), 4, &["full.csv", "disk full"]);
    data(&scratch, &fetch).success();
    assert_eq!(scratch.read("full.csv"), scratch.read("long.csv"));
    assert_eq!(scratch.names(""), ["a.csv", "b.csv", "full.csv", "long.csv"]);
}

#[test]
fn loads_beyond_any_number_are_refused() {
    let scratch = two_series();
    let text = scratch.read("a.csv");
    let cut = text.find("T01:00:00Z,").unwrap() + "T01:00:00Z,".len();
    for value in ["4e38", "-1e39", "1e999"] {
        let rest = &text[cut..];
        let rest = &rest[rest.find('\n').unwrap()..];
        scratch.write("large.csv", format!("{}{value}{rest}", &text[..cut]));
        let check = data(&scratch, &["check", "load", "large.csv"]);
        refused(&check, 3, &["large.csv, line 6", &format!("`{value}`"), "3.4e38", "empty"]);
    }
}

#[test]
fn errors_are_short_and_harmless() {
    let scratch = two_series();
    let text = scratch.read("a.csv");
    let open = text.replacen("\n2015-01-01T01", "\n\"\u{1b}[31m2015-01-01T01", 1);
    scratch.write("open.csv", &open);
    let error = refused(&data(&scratch, &["check", "load", "open.csv"]), 3, &["open.csv, line 6"]);
    assert!(error.len() < 2000 && !error.contains(['\u{1b}', '\n']), "{error}");
    assert!(error.contains("\\u{1b}[31m2015"), "{error}");

    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for start in [&b"\xff\xfe"[..], b""] {
        scratch.write("wide.csv", [start, &wide].concat());
        let check = data(&scratch, &["check", "load", "wide.csv"]);
        refused(&check, 3, &["wide.csv", "UTF-16", "iconv -f UTF-16"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn endless_files_and_pipes_are_said() {
    let scratch = two_series();
    let begin = Instant::now();
    let check = data(&scratch, &["check", "load", "/dev/zero"]);
    refused(&check, 3, &["/dev/zero", "line 1", "is this a CSV file?"]);
    assert!(begin.elapsed() < Duration::from_secs(5));

    let pipe = scratch.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = scratch.read("a.csv");
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            std::thread::sleep(Duration::from_millis(2500));
            fs::write(pipe, text)
        }
    });
    let outcome = data(&scratch, &["check", "load", "pipe"]);
    writer.join().unwrap().unwrap();
    outcome.success();
    assert!(outcome.stderr.contains("waiting for"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("pipe"), "{}", outcome.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn names_may_have_any_bytes_and_any_length() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    let scratch = two_series();
    let run = |arguments: &[&OsStr]| {
        let mut command = scratch.command(&["data"]);
        Outcome::of(command.args(arguments).arg("--json"))
    };
    let odd = OsString::from_vec(b"odd\xff.csv".to_vec());
    let long = OsString::from("ä".repeat(125) + ".long");
    let [synth, check, load, cifar10, out, days, two] =
        ["synth", "check", "load", "cifar10", "--out", "--days", "2"].map(OsStr::new);
    for name in [&odd, &long] {
        run(&[synth, load, days, two, out, name]).success();
        run(&[check, load, name]).success();
        fs::remove_file(scratch.path("").join(name)).unwrap();
        let (fetch, from, a) = (OsStr::new("fetch"), OsStr::new("--from"), OsStr::new("a.csv"));
        run(&[fetch, load, from, a, out, name]).success();
        fs::remove_file(scratch.path("").join(name)).unwrap();
        run(&[synth, cifar10, OsStr::new("--count"), two, out, name]).success();
        run(&[check, cifar10, name]).success();
        fs::remove_dir_all(scratch.path("").join(name)).unwrap();
    }
    assert_eq!(OsStr::from_bytes(long.as_bytes()).len(), 255);
    assert_eq!(scratch.names(""), ["a.csv", "b.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn predict_refuses_the_same_series() {
    let scratch = two_series();
    scratch.train("demo", &[], &["--out", "run"]).success();
    let text = scratch.read("a.csv");
    let row = text.lines().nth(5).unwrap();
    let (time, load) = row.split_once(',').unwrap();
    let with = |new: &str| text.replacen(row, new, 1);
    scratch.write("large.csv", with(&format!("{time},1e39")));
    scratch.write("open.csv", with(&format!("\"\u{1b}[2J{time},{load}")));
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    scratch.write("wide.csv", wide);
    let cases: [(&str, &[&str]); 4] = [
        ("large.csv", &["large.csv, line 6", "`1e39`"]),
        ("open.csv", &["open.csv, line 6", "\\u{1b}[2J"]),
        ("wide.csv", &["wide.csv", "UTF-16"]),
        ("/dev/zero", &["/dev/zero", "is this a CSV file?"]),
    ];
    for (file, words) in cases {
        let predict = scratch.run(&["predict", "run", file, "--out", "out.csv", "--json"]);
        let error = refused(&predict, 3, words);
        assert!(error.len() < 2000 && !error.contains('\u{1b}'), "{error}");
    }
    assert!(!scratch.path("out.csv").exists());
}
