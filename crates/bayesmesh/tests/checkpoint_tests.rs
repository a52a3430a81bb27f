//! Checkpoints come back as they were, or with an error that says what to do.

use std::fs;
use std::path::Path;

use bayesmesh::checkpoint::{Checkpoint, CheckpointError, Group, NamedTensor, Store};
use bayesmesh_files::testing::{self, Scratch};
use bayesmesh_files::{AtomicFile, FileError};

fn tensor(name: &str, shape: &[usize], values: &[f32]) -> NamedTensor {
    NamedTensor { name: name.into(), shape: shape.into(), values: values.into() }
}

/// Names out of alphabetical order and beyond ASCII, no and one element, all kinds of floats.
fn example() -> Checkpoint {
    Checkpoint {
        step: 1200,
        seed: u64::MAX,
        parameters: vec![
            tensor("linear.weight", &[2, 3], &[0.5, -1.0, 2.0, 0.0, -0.0, 1e-30]),
            tensor("größe", &[], &[3.25]),
        ],
        buffers: vec![
            tensor("z", &[0], &[]),
            tensor("a", &[2, 0], &[]),
            tensor("m", &[2], &[f32::INFINITY, f32::MIN_POSITIVE / 2.0]),
        ],
        optimizer: vec![tensor("linear.weight/moment 1", &[6], &[1.0; 6])],
        counters: [("adam".into(), 1200)].into(),
        metadata: [
            ("recipe".into(), "[train]\nseed = 1 # \"ü\"\n".into()),
            ("version".into(), String::new()),
        ]
        .into(),
    }
}

fn at_step(step: u64) -> Checkpoint {
    Checkpoint { step, ..example() }
}

#[test]
fn what_is_saved_is_loaded_and_equal_checkpoints_are_equal_files() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
    example().save(&one).unwrap();
    let loaded = Checkpoint::load(&one).unwrap();
    assert_eq!(loaded, example());
    loaded.save(&two).unwrap();
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());

    let empty = Checkpoint::default();
    empty.save(&one).unwrap();
    assert_eq!(Checkpoint::load(&one).unwrap(), empty);
    assert_eq!(scratch.names(), ["one", "two"]);
}

/// NaN is unequal to itself, so its bits are compared.
#[test]
fn all_bits_survive() {
    let scratch = Scratch::new();
    let path = scratch.path().join("bits");
    let bits: Vec<u32> = (0..100_000u32).map(|i| i.wrapping_mul(42_949_673)).collect();
    let values: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
    let mut checkpoint = example();
    checkpoint.parameters = vec![tensor("bits", &[100, 1000], &values)];
    checkpoint.save(&path).unwrap();
    let loaded = Checkpoint::load(&path).unwrap();
    let loaded: Vec<u32> =
        loaded.parameters[0].values.iter().map(|value| value.to_bits()).collect();
    assert_eq!(loaded, bits);
}

/// The expected value is that of Python's `hashlib.sha256` over the documented bytes
/// (`struct.pack('<Q', …)` for lengths and dimensions, `'<f'` for values).
#[test]
fn the_digest_is_the_documented_one() {
    let expected = "be13edfdd8249af45c7c8d457de6979ab6d9a337728158dcb93d836ac5c2b414";
    assert_eq!(example().digest(), expected);
    assert_eq!(at_step(7).digest(), expected);
}

#[test]
fn every_truncation_is_found() {
    let scratch = Scratch::new();
    let path = scratch.path().join("cut.safetensors");
    example().save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = Checkpoint::load(&path).unwrap_err();
        assert!(
            matches!(error, CheckpointError::Truncated { expected, actual, .. }
                if actual == length as u64 && expected > actual),
            "{length}: {error}"
        );
    }
    let message = Checkpoint::load(&path).unwrap_err().to_string();
    assert!(message.contains("cut.safetensors: truncated"), "{message}");
    assert!(message.contains("earlier checkpoint"), "{message}");
}

#[test]
fn a_flipped_bit_in_any_byte_is_found() {
    let scratch = Scratch::new();
    let path = scratch.path().join("flipped");
    example().save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    for index in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 1 << (index % 8);
        fs::write(&path, &flipped).unwrap();
        let loaded = Checkpoint::load(&path);
        assert!(loaded.is_err(), "bit {} of byte {index}", index % 8);
    }
}

#[test]
fn damage_of_the_weights_is_called_by_its_name() {
    let scratch = Scratch::new();
    let path = scratch.path().join("weights");
    let mut checkpoint = example();
    (checkpoint.buffers, checkpoint.optimizer) = (vec![], vec![]);
    checkpoint.save(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let message = Checkpoint::load(&path).unwrap_err().to_string();
    assert!(message.contains("damaged, the parameters do not match their digest"), "{message}");
    *bytes.last_mut().unwrap() ^= 1;
    bytes.push(0);
    fs::write(&path, &bytes).unwrap();
    let message = Checkpoint::load(&path).unwrap_err().to_string();
    assert!(message.contains("1 bytes follow its end"), "{message}");
}

/// A safetensors file with the given JSON header and no data.
fn with_header(header: &str) -> Vec<u8> {
    let length = header.len() as u64;
    [&length.to_le_bytes(), header.as_bytes()].concat()
}

#[test]
fn other_files_are_told_apart() {
    let scratch = Scratch::new();
    let path = scratch.path().join("other");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Checkpoint::load(&path).unwrap_err()
    };
    let aliens: [&[u8]; 4] = [
        b"timestamp,load\n2020-01-01,1\n",
        b"\0\0\0\0\0\0\0\0{",
        b"\x01\0\0\0\0\0\0\0{",
        b"\x20\0\0\0\0\0\0\0[",
    ];
    for bytes in aliens {
        let error = error(bytes);
        let CheckpointError::NotSafetensors { .. } = error else {
            panic!("{error}");
        };
    }
    let alien = error(&with_header("{\"a\": }"));
    assert!(alien.to_string().contains("not a safetensors file"));

    let foreign = error(&with_header("{\"__metadata__\":{\"format\":\"pt\"}}"));
    assert!(matches!(foreign, CheckpointError::NotACheckpoint { .. }));
    let newer = error(&with_header("{\"__metadata__\":{\"bayesmesh_checkpoint\":\"2\"}}"));
    assert!(matches!(newer, CheckpointError::Newer { found: 2, .. }));
    assert!(newer.to_string().contains("Update the program"), "{newer}");
    let version = error(&with_header("{\"__metadata__\":{\"bayesmesh_checkpoint\":\"one\"}}"));
    assert!(matches!(version, CheckpointError::Damaged { .. }));
}

/// A checkpoint of one tensor `a` of so many numbers, whose metadata list these parameters.
fn listing(names: &[&str], numbers: usize) -> Vec<u8> {
    let names: Vec<String> = names.iter().map(|name| format!("\\\"{name}\\\"")).collect();
    let header = format!(
        "{{\"parameters/a\":{{\"dtype\":\"F32\",\"shape\":[{numbers}],\"data_offsets\":[0,{}]}},\
         \"__metadata__\":{{\"bayesmesh_checkpoint\":\"1\",\"parameters\":\"[{}]\",\
         \"buffers\":\"[]\",\"optimizer\":\"[]\"}}}}",
        4 * numbers,
        names.join(",")
    );
    [with_header(&header), vec![0; 4 * numbers]].concat()
}

/// Whoever reads every listed tensor before looking at the list needs any amount of memory.
#[test]
fn lists_that_are_not_those_of_the_tensors_are_refused_before_tensors_are_read() {
    let scratch = Scratch::new();
    let path = scratch.path().join("listing");
    let message = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Checkpoint::load(&path).unwrap_err().to_string()
    };
    for (names, problem) in [
        (&["a", "a"] as &[&str], "parameters: 'a' is listed twice"),
        (&["a", "b"], "parameters: 'b' is listed, but absent"),
        (&[], "it holds tensors that its metadata does not list"),
        (&["a"; 3000], "parameters: 'a' is listed twice"),
    ] {
        let message = message(&listing(names, 1 << 18));
        assert!(message.contains(problem), "{message}");
        assert!(message.contains("Copy it again or use an earlier checkpoint"), "{message}");
    }
}

#[test]
fn what_is_not_a_file_is_told() {
    let scratch = Scratch::new();
    let error = |path: &Path| match Checkpoint::load(path).unwrap_err() {
        CheckpointError::File(error) => error,
        error => panic!("{error}"),
    };
    let missing = scratch.path().join("missing");
    assert!(matches!(error(&missing), FileError::Missing { path } if path == missing));
    let folder = scratch.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(error(&folder), FileError::IsAFolder { .. }));
    let saved = example().save(&folder).unwrap_err();
    assert!(matches!(saved, CheckpointError::File(FileError::IsAFolder { .. })));
    let saved = example().save(missing.join("file")).unwrap_err();
    assert!(matches!(saved, CheckpointError::File(FileError::Missing { .. })));
    assert_eq!(scratch.names(), ["folder"]);
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let scratch = Scratch::new();
    let path = scratch.path().join("kept");
    example().save(&path).unwrap();
    let mut wrong = example();
    wrong.optimizer[0].values.pop();
    let error = wrong.save(&path).unwrap_err().to_string();
    assert!(error.contains("optimizer: 'linear.weight/moment 1'"), "{error}");
    assert_eq!(Checkpoint::load(&path).unwrap(), example());
    assert_eq!(scratch.names(), ["kept"]);
}

#[test]
fn tensors_of_another_network_are_refused() {
    let path = Path::new("runs/a/best.safetensors");
    let expected: [(&str, &[usize]); 2] = [("linear.weight", &[2, 3]), ("größe", &[])];
    let checkpoint = example();
    checkpoint.expect(path, Group::Parameters, &expected).unwrap();
    let other: [(&str, &[usize]); 2] = [("linear.weight", &[2, 4]), ("größe", &[])];
    let error = checkpoint.expect(path, Group::Parameters, &other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "runs/a/best.safetensors: does not fit, parameters: 'linear.weight' has shape [2, 3] in \
         it, [2, 4] is expected. It belongs to another network or optimiser: use the recipe saved \
         with its run"
    );
    let error = checkpoint.expect(path, Group::Optimizer, &expected);
    assert!(error.unwrap_err().to_string().contains("optimizer"));
}

#[test]
fn the_store_keeps_the_last_and_the_best() {
    let scratch = Scratch::new();
    let folder = scratch.path().join("run/checkpoints");
    let store = Store::create(&folder, 2).unwrap();
    assert!(store.latest().unwrap().found.is_none());
    assert!(store.best().unwrap().found.is_none());
    for step in [5, 90, 100_000_000, 100_000_005] {
        let path = store.save(&at_step(step)).unwrap();
        assert_eq!(Checkpoint::load(path).unwrap().step, step);
        if step == 90 {
            store.save_best(&at_step(step)).unwrap();
        }
    }
    let expected = ["best.safetensors", "step-100000000.safetensors", "step-100000005.safetensors"];
    assert_eq!(testing::names(&folder), expected);
    let (path, latest) = store.latest().unwrap().found.unwrap();
    assert_eq!((path, latest.step), (folder.join(expected[2]), 100_000_005));
    assert_eq!(store.best().unwrap().found, Some((store.best_path(), at_step(90))));
    let steps: Vec<u64> = store.list().unwrap().iter().map(|item| item.0).collect();
    assert_eq!(steps, [100_000_000, 100_000_005]);
}

#[test]
fn damaged_checkpoints_are_skipped_and_reported() {
    let scratch = Scratch::new();
    let store = Store::create(scratch.path(), 3).unwrap();
    store.save_best(&at_step(50)).unwrap();
    let paths = [100, 200, 300].map(|step| store.save(&at_step(step)).unwrap());
    let spoil = |path: &Path| fs::write(path, &fs::read(path).unwrap()[..100]).unwrap();

    spoil(&paths[2]);
    let latest = store.latest().unwrap();
    assert_eq!(latest.found.unwrap().1.step, 200);
    assert_eq!(latest.skipped.len(), 1);
    assert!(latest.skipped[0].to_string().contains("step-00000300"));

    // The run goes on from 200: what is sound is not given up for what is damaged.
    store.save(&at_step(250)).unwrap();
    let keep_one = Store::create(scratch.path(), 1).unwrap();
    keep_one.save(&at_step(260)).unwrap();
    let steps: Vec<u64> = store.list().unwrap().iter().map(|item| item.0).collect();
    assert_eq!(steps, [260, 300]);

    spoil(&store.list().unwrap()[0].1);
    let latest = store.latest().unwrap();
    assert_eq!(latest.found.unwrap().0, store.best_path());
    assert_eq!(latest.skipped.len(), 2);

    spoil(&store.best_path());
    let latest = store.latest().unwrap();
    assert!(latest.found.is_none());
    assert_eq!(latest.skipped.len(), 3);

    // A damaged best one is no reason not to go on.
    let best = store.best().unwrap();
    assert!(best.found.is_none());
    assert!(best.skipped[0].to_string().contains("best.safetensors"), "{:?}", best.skipped);
}

#[test]
fn a_newer_format_is_not_skipped() {
    let scratch = Scratch::new();
    let store = Store::create(scratch.path(), 3).unwrap();
    store.save(&at_step(1)).unwrap();
    let header = "{\"__metadata__\":{\"bayesmesh_checkpoint\":\"2\"}}";
    let path = scratch.path().join("step-00000002.safetensors");
    fs::write(path, with_header(header)).unwrap();
    let error = store.latest().unwrap_err();
    assert!(matches!(error, CheckpointError::Newer { .. }), "{error}");
    fs::write(store.best_path(), with_header(header)).unwrap();
    let error = store.best().unwrap_err();
    assert!(matches!(error, CheckpointError::Newer { .. }), "{error}");
}

#[test]
fn only_a_writer_removes_leftovers() {
    let scratch = Scratch::new();
    let leftover = ".step-00000001.safetensors.77-0.bayesmesh-tmp";
    assert!(AtomicFile::is_temporary(leftover));
    fs::write(scratch.path().join(leftover), b"half").unwrap();
    fs::write(scratch.path().join("notes.tmp"), b"mine").unwrap();

    let reader = Store::open(scratch.path()).unwrap();
    assert!(reader.latest().unwrap().found.is_none());
    assert_eq!(scratch.names(), [leftover, "notes.tmp"]);

    Store::create(scratch.path(), 1).unwrap();
    assert_eq!(scratch.names(), ["notes.tmp"]);
}

#[test]
fn a_store_needs_a_folder() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    let missing = Store::open(&file).unwrap_err();
    assert!(matches!(missing, CheckpointError::File(FileError::Missing { .. })));
    fs::write(&file, b"").unwrap();
    for error in [
        Store::create(&file, 1).unwrap_err(),
        Store::create(file.join("below"), 1).unwrap_err(),
        Store::open(&file).unwrap_err(),
        example().save(file.join("below")).unwrap_err(),
    ] {
        assert!(matches!(error, CheckpointError::File(FileError::NotAFolder { .. })), "{error}");
    }
}

#[test]
fn an_abandoned_file_leaves_nothing() {
    use std::io::Write;
    let scratch = Scratch::new();
    let path = scratch.path().join("file");
    AtomicFile::write(&path, "old").unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    assert_eq!(scratch.names().len(), 2);
    drop(file);
    assert_eq!(scratch.names(), ["file"]);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    AtomicFile::write(&path, "new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}
