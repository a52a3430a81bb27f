//! Fetching a load series: a server that answers as real ones do, and disks that others use too.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use bayesmesh_data::Source;
use bayesmesh_data::load::{LoadError, LoadSeries, fetch};
use bayesmesh_files::testing::{Scratch, names};
use common::{assert_says, has_curl, hours};

/// How a server behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Sends what is asked for.
    Good,
    /// Knows only whole files.
    WithoutRanges,
    /// Sends the first 300 bytes and hangs up.
    HangsUp,
}

/// A server on this machine, which lives as long as the tests do.
struct Server {
    address: String,
    served: Arc<Mutex<(String, Manner)>>,
    /// The first bytes that were asked for.
    starts: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    fn new(text: &str, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/load.csv", listener.local_addr().unwrap());
        let served = Arc::new(Mutex::new((text.to_owned(), manner)));
        let starts = Arc::new(Mutex::new(Vec::new()));
        let server = Self { address, served: served.clone(), starts: starts.clone() };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut start = 0;
                for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                    let line = line.unwrap();
                    if let Some(range) = line.strip_prefix("Range: bytes=") {
                        start = range.trim_end_matches('-').parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                starts.lock().unwrap().push(start);
                let (text, manner) = served.lock().unwrap().clone();
                let begin = if manner == Manner::WithoutRanges { 0 } else { start };
                let (length, last) = (text.len(), text.len() - 1);
                let status = match begin {
                    0 => "200 OK".to_owned(),
                    _ => format!("206 Part\r\nContent-Range: bytes {begin}-{last}/{length}"),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    length - begin
                );
                let end = if manner == Manner::HangsUp { begin + 300 } else { length };
                // The other side may have hung up.
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&text.as_bytes()[begin..end]);
            }
        });
        server
    }

    fn serve(&self, text: &str, manner: Manner) {
        *self.served.lock().unwrap() = (text.to_owned(), manner);
    }

    fn fetch(&self, out: &Path) -> Result<LoadSeries, LoadError> {
        from_address(&self.address, out)
    }
}

fn from_address(address: &str, out: &Path) -> Result<LoadSeries, LoadError> {
    fetch(&Source::Address(address.to_owned()), out, &mut |_| {}).map(|(series, _)| series)
}

/// A folder in which 300 bytes of a series have arrived, the file that they are meant for, its text
/// and the server; nothing without curl.
fn interrupted() -> Option<(Scratch, PathBuf, String, Server)> {
    if !has_curl() {
        return None;
    }
    let scratch = Scratch::new();
    let out = scratch.path().join("load.csv");
    let text = hours(48);
    let server = Server::new(&text, Manner::HangsUp);
    let error = server.fetch(&out).unwrap_err();
    assert!(matches!(error, LoadError::Download(_)), "{error}");
    assert_says(error, &["curl could not get http://", "300 bytes have arrived", "--from FILE"]);
    assert_eq!(scratch.names(), [".load.csv.part"]);
    Some((scratch, out, text, server))
}

#[test]
fn an_interrupted_download_goes_on() {
    let Some((scratch, out, text, server)) = interrupted() else { return };
    server.serve(&text, Manner::Good);
    assert_eq!(server.fetch(&out).unwrap().len(), 48);
    assert_eq!(fs::read_to_string(&out).unwrap(), text);
    assert_eq!(*server.starts.lock().unwrap(), [0, 300]);
    assert_eq!(scratch.names(), ["load.csv"]);
}

#[test]
fn a_server_that_cannot_go_on_begins_anew() {
    let Some((scratch, out, text, server)) = interrupted() else { return };
    server.serve(&text, Manner::WithoutRanges);
    server.fetch(&out).unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), text);
    assert_eq!(scratch.names(), ["load.csv"]);
}

/// Where the seam is the end of a line, a series of both would look like a good one.
#[test]
fn the_beginning_of_another_address_is_not_gone_on_with() {
    let Some((_scratch, out, first, _)) = interrupted() else { return };
    let second = first.replace(",50", ",60");
    let other = Server::new(&second, Manner::Good);
    other.fetch(&out).unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), second);
    assert_eq!(*other.starts.lock().unwrap(), [0]);
}

#[test]
fn a_download_that_is_no_series_is_not_kept() {
    if !has_curl() {
        return;
    }
    let scratch = Scratch::new();
    let out = scratch.path().join("load.csv");
    fs::write(&out, "before").unwrap();
    let server = Server::new("<html>not here</html>", Manner::Good);
    let error = server.fetch(&out).unwrap_err();
    assert_says(error, &["/load.csv: unknown header", "what has arrived was removed"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "before");
    assert_eq!(scratch.names(), ["load.csv"]);
    server.serve(&hours(30), Manner::Good);
    assert_eq!(server.fetch(&out).unwrap().len(), 30);
}

#[test]
fn a_hidden_folder_of_somebody_else_is_left_alone() {
    let scratch = Scratch::new();
    let hidden = scratch.path().join(".load.csv.part");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("download.part"), "mine").unwrap();
    let address = "file:///nowhere/load.csv";
    let error = from_address(address, &scratch.path().join("load.csv")).unwrap_err();
    assert!(matches!(error, LoadError::Write(_)), "{error}");
    assert_says(error, &[".load.csv.part", "not made by bayesmesh"]);
    assert_eq!(names(&hidden), ["download.part"]);
}

#[test]
fn a_file_is_copied_as_it_was_read() {
    let scratch = Scratch::new();
    let [from, out] = ["from.csv", "deep/out.csv"].map(|name| scratch.path().join(name));
    fs::write(&from, hours(40)).unwrap();
    let get = |from: &Path, out: &Path| {
        let mut words = String::new();
        let read = fetch(&Source::Path(from.into()), out, &mut |line| words.push_str(line));
        read.map(|(series, report)| (series.len(), report.file, words))
    };
    assert_eq!(get(&from, &out).unwrap(), (40, out.clone(), String::new()));
    assert_eq!(fs::read_to_string(&out).unwrap(), hours(40));
    let (_, _, words) = get(&from, &scratch.path().join("deep/../from.csv")).unwrap();
    assert_says(words, &["here already"]);
    assert_eq!(fs::read_to_string(&from).unwrap(), hours(40));
    let error = get(&scratch.path().join("none.csv"), &out).unwrap_err();
    assert!(matches!(error, LoadError::Setting(_)), "{error}");
    assert_eq!(names(&scratch.path().join("deep")), ["out.csv"]);
    let error = get(&from, Path::new("..")).unwrap_err();
    assert_says(error, &["..", "folder"]);
}
