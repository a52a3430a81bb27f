//! Images as a data set: what is served, and what is refused.

mod common;

use std::collections::BTreeSet;
use std::fs;

use bayesmesh::Dataset;
use bayesmesh::data::{Target, Truth};
use bayesmesh_data::cifar10::{
    CLASSES, Cifar10, Cifar10Error, Corruption, IMAGE_BYTES, Images, Normalisation, RECORD_BYTES,
    verify,
};
use bayesmesh_files::testing::Scratch;
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{Device, Tensor};
use common::{assert_says, real, synthetic};

fn values(tensor: Tensor<4>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().unwrap()
}

fn inputs(images: &Images, rows: &[usize]) -> Tensor<4> {
    images.batch(rows, &Device::default()).unwrap().0
}

fn numbers(images: &Images) -> Vec<usize> {
    (0..images.len()).map(|row| images.number(row)).collect()
}

#[test]
fn a_stand_in_comes_back_from_its_files() {
    let scratch = Scratch::new();
    let folder = synthetic(scratch.path().join("data/cifar10"), 30);
    let (files, memory) = (Cifar10::open(&folder).unwrap(), Cifar10::synthetic(30, 7).unwrap());
    assert!(files.is_synthetic() && memory.is_synthetic());
    let (train, expected) = (files.train(None).unwrap(), memory.train(None).unwrap());
    assert_eq!((train.len(), files.test(None).unwrap().len()), (150, 30));
    assert!((0..150).all(|row| train.raw(row) == expected.raw(row)));
    assert_eq!(train.class_counts(), [15; 10]);
    let (test, expected) = (files.test(None).unwrap(), memory.test(None).unwrap());
    assert!((0..30).all(|row| test.raw(row) == expected.raw(row)));
    // Another seed, and the test images, are others.
    let other = Cifar10::synthetic(30, 8).unwrap().train(None).unwrap();
    assert!((0..30).all(|row| other.raw(row).0 != train.raw(row).0));
    assert!((0..30).all(|row| test.raw(row).0 != train.raw(row).0));

    // The canonical archive has its files in a folder.
    fs::create_dir(scratch.path().join("outer")).unwrap();
    fs::rename(&folder, scratch.path().join("outer/cifar-10-batches-bin")).unwrap();
    assert_eq!(
        Cifar10::open(scratch.path().join("outer")).unwrap().train(None).unwrap().len(),
        150
    );
    assert_says(
        verify(scratch.path().join("outer")).unwrap_err(),
        &["data_batch_1.bin", "30730000"],
    );
}

#[test]
fn a_stand_in_can_be_learned() {
    // By the mean of each channel alone, the nearest class is found more often than by chance
    // (10 %) and not always: the stripes are left to learn.
    let cifar = Cifar10::synthetic(400, 3).unwrap();
    let means = |images: &Images, row: usize| -> [f64; 3] {
        let (image, _) = images.raw(row);
        let mean = |c: usize| image[c * 1024..(c + 1) * 1024].iter().map(|&v| f64::from(v)).sum();
        std::array::from_fn(mean)
    };
    let (train, test) = (cifar.train(None).unwrap(), cifar.test(None).unwrap());
    let mut centres = [[0.0; 3]; 10];
    for row in 0..train.len() {
        let class = usize::from(train.raw(row).1);
        let found = means(&train, row);
        (0..3).for_each(|c| centres[class][c] += found[c] / (train.len() / 10) as f64);
    }
    let right = (0..test.len()).filter(|&row| {
        let found = means(&test, row);
        let distance =
            |class: usize| -> f64 { (0..3).map(|c| (found[c] - centres[class][c]).powi(2)).sum() };
        let nearest = (0..10).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap();
        nearest == usize::from(test.raw(row).1)
    });
    let share = right.count() as f64 / test.len() as f64;
    assert!((0.25..0.95).contains(&share), "{share}");
}

#[test]
fn a_batch_is_normalised_and_labelled() {
    let train = Cifar10::synthetic(10, 1).unwrap().train(Some(40)).unwrap();
    assert_eq!(train.len(), 40);
    let rows = [3, 39, 3, 0];
    for normalisation in [Normalisation::PIXELS, Normalisation::REFERENCE] {
        let train = train.clone().normalised(normalisation).unwrap();
        let (x, y) = train.batch(&rows, &Device::default()).unwrap();
        assert_eq!((x.dims(), y.dims()), ([4, 3, 32, 32], [4]));
        assert_eq!(y.truth(), Truth::Labels(vec![3, 9, 3, 0]));
        let x = values(x);
        for (i, row) in rows.into_iter().enumerate() {
            for (j, &byte) in train.raw(row).0.iter().enumerate() {
                let (mean, std) = (normalisation.mean[j / 1024], normalisation.std[j / 1024]);
                let expected = (f32::from(byte) / 255.0 - mean) / std;
                assert_eq!(x[i * IMAGE_BYTES + j], expected);
            }
        }
    }
    let bad = Normalisation { std: [0.2, 0.0, 0.2], ..Normalisation::PIXELS };
    assert_says(train.clone().normalised(bad).unwrap_err(), &["channel 1", "above 0"]);
    assert_says(train.batch(&[40], &Device::default()).unwrap_err(), &["image 40 of 40"]);
    let cifar = Cifar10::synthetic(10, 1).unwrap();
    assert_says(cifar.train(Some(51)).unwrap_err(), &["51 training images", "1 to 50"]);
    assert_says(cifar.test(Some(0)).unwrap_err(), &["0 test images", "1 to 10"]);
    assert_says(Cifar10::synthetic(0, 1).unwrap_err(), &["0 images"]);
}

#[test]
fn a_split_is_a_seeded_partition() {
    let all = Cifar10::synthetic(100, 1).unwrap().train(Some(300)).unwrap();
    let (train, valid) = all.clone().split(0.1, 90).unwrap();
    assert_eq!((train.len(), valid.len()), (270, 30));
    let both: BTreeSet<usize> = numbers(&train).into_iter().chain(numbers(&valid)).collect();
    assert_eq!(both, (0..300).collect());
    // In another order than that of the files, and with the images that the numbers say.
    assert!(!numbers(&train).is_sorted());
    assert!((0..270).all(|row| train.raw(row) == all.raw(train.number(row))));

    let again = all.clone().split(0.1, 90).unwrap();
    assert_eq!((numbers(&again.0), numbers(&again.1)), (numbers(&train), numbers(&valid)));
    assert_ne!(numbers(&all.clone().split(0.1, 91).unwrap().1), numbers(&valid));
    // Not the order that a training with this seed visits them in.
    let epoch = Stream::new(90, Purpose::Shuffle).permutation(300);
    assert_ne!(epoch[270..], numbers(&valid));

    assert_eq!(all.clone().split(0.0, 1).unwrap().1.len(), 0);
    for share in [1.0, -0.1, 0.999, f64::NAN] {
        assert_says(all.clone().split(share, 1).unwrap_err(), &["validation share"]);
    }
}

#[test]
fn an_example_is_augmented_alike_in_every_shard() {
    let train = Cifar10::synthetic(20, 1).unwrap().train(None).unwrap();
    let stream = Stream::new(4, Purpose::Augmentation).at_step(9).at_draw(2);
    let rows: Vec<usize> = (0..24).map(|i| (i * 37) % 100).collect();
    let x = inputs(&train, &rows);
    assert!(train.augment(&x, &rows, &stream).is_none());
    let train = train.augmented(true);
    let augment = |rows: &[usize], stream: &Stream| {
        values(train.augment(&inputs(&train, rows), rows, stream).unwrap())
    };
    let whole = augment(&rows, &stream);
    assert_ne!(whole, values(x));
    let shards: Vec<f32> = rows.chunks(7).flat_map(|rows| augment(rows, &stream)).collect();
    assert_eq!(whole, shards);
    // Another draw or step varies them in another way.
    assert_ne!(whole, augment(&rows, &stream.at_draw(3)));
    assert_ne!(whole, augment(&rows, &stream.at_step(10)));
}

#[test]
fn crops_flips_and_padding_are_those_of_the_recipe() {
    // An image by which every crop and flip can be told: found in the padded image and its mirror.
    let train = Cifar10::synthetic(1, 1).unwrap().train(Some(1)).unwrap().augmented(true);
    let x = inputs(&train, &[0]);
    let image = values(x.clone());
    let black = |c: usize| -Normalisation::PIXELS.mean[c] / Normalisation::PIXELS.std[c];
    let pixel = |c: usize, y: i32, x: i32| match (0..32).contains(&y) && (0..32).contains(&x) {
        true => image[c * 1024 + y as usize * 32 + x as usize],
        false => black(c),
    };
    let crop = |dy: i32, dx: i32, flip: bool| -> Vec<f32> {
        let at = |i: i32| (i / 1024, i / 32 % 32, i % 32);
        let one = |(c, y, x): (i32, i32, i32)| {
            pixel(c as usize, y + dy, if flip { 31 - x } else { x } + dx)
        };
        (0..IMAGE_BYTES as i32).map(|i| one(at(i))).collect()
    };
    let all: Vec<Vec<f32>> =
        (0..162).map(|i| crop(i / 18 - 4, i / 2 % 9 - 4, i % 2 == 1)).collect();
    let draws = 2000;
    let (mut flips, mut found) = (0, BTreeSet::new());
    for draw in 0..draws {
        let stream = Stream::new(1, Purpose::Augmentation).at_draw(draw);
        let out = values(train.augment(&x, &[0], &stream).unwrap());
        let which = all.iter().position(|crop| *crop == out).expect("one of the crops");
        flips += which % 2;
        found.insert(which);
    }
    // 2,000 throws of a coin: 1,000 ± 22; each of the 162 is missed with probability 4e-6.
    assert!((900..1100).contains(&flips), "{flips}");
    assert_eq!(found.len(), 162);
}

#[test]
fn corruptions_are_seeded_and_grow() {
    let test = Cifar10::synthetic(50, 2).unwrap().test(None).unwrap();
    let difference = |a: &Images, b: &Images| -> f64 {
        let bytes = |images: &Images, row| images.raw(row).0.map(f64::from);
        let rows = 0..a.len();
        rows.flat_map(|row| bytes(a, row).into_iter().zip(bytes(b, row)))
            .map(|(a, b)| (a - b).abs())
            .sum()
    };
    for corruption in Corruption::ALL {
        let mut last = 0.0;
        for severity in 1..=5 {
            let corrupted = test.corrupted(corruption, severity, 11).unwrap();
            assert_eq!(corrupted.class_counts(), test.class_counts());
            let far = difference(&corrupted, &test);
            assert!(far > last, "{corruption:?} {severity}: {far} after {last}");
            last = far;
        }
        // The same for an image whatever else is selected.
        let whole = test.corrupted(corruption, 3, 11).unwrap();
        let (some, _) = test.clone().split(0.5, 5).unwrap();
        let part = some.corrupted(corruption, 3, 11).unwrap();
        assert!((0..part.len()).all(|row| part.raw(row) == whole.raw(some.number(row))));
        for severity in [0, 6] {
            let error = test.corrupted(corruption, severity, 1).unwrap_err();
            assert_says(error, &[&format!("severity {severity}"), corruption.name(), "1 to 5"]);
        }
    }
    let noise = |seed| test.corrupted(Corruption::GaussianNoise, 5, seed).unwrap();
    assert_eq!(difference(&noise(1), &noise(1)), 0.0);
    assert!(difference(&noise(1), &noise(2)) > 0.0);
    // |N(0, 25.5²)| is 25.5 √(2/π) = 20.3 on average, and a little less with the range cut off.
    let mean = difference(&noise(1), &test) / (50 * IMAGE_BYTES) as f64;
    assert!((19.5..20.5).contains(&mean), "{mean}");
}

#[test]
fn bad_files_are_refused_with_their_names() {
    let scratch = Scratch::new();
    let folder = synthetic(scratch.path().join("data"), 20);
    let error = |folder: &std::path::Path| Cifar10::open(folder).unwrap_err();

    let none = error(&scratch.path().join("none"));
    assert_says(&none, &["none: no such folder", "bayesmesh data fetch cifar10"]);
    fs::write(scratch.path().join("file"), "").unwrap();
    assert_says(error(&scratch.path().join("file")), &["file", "needs a folder"]);
    fs::create_dir(scratch.path().join("empty")).unwrap();
    let empty = error(&scratch.path().join("empty"));
    assert_says(&empty, &["data_batch_1.bin: no such file", "bayesmesh data fetch cifar10"]);

    let file = folder.join("data_batch_3.bin");
    let good = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_says(error(&folder), &["data_batch_3.bin: no such file"]);
    for (length, words) in [(good.len() - 1, "cut off"), (good.len() - RECORD_BYTES, "cut off")] {
        fs::write(&file, &good[..length]).unwrap();
        let parts = ["data_batch_3.bin", &format!("{length} bytes"), "61460", words, "fetch"];
        assert_says(error(&folder), &parts);
    }
    fs::write(&file, [&good[..], &[0]].concat()).unwrap();
    assert_says(error(&folder), &["data_batch_3.bin", "too long"]);
    fs::write(&file, "").unwrap();
    assert_says(error(&folder), &["data_batch_3.bin", "0 bytes"]);
    let mut bad = good.clone();
    bad[17 * RECORD_BYTES] = 255;
    fs::write(&file, &bad).unwrap();
    assert_says(error(&folder), &["data_batch_3.bin, image 17: label 255", "fetch"]);
    bad[17 * RECORD_BYTES] = CLASSES.len() as u8;
    fs::write(&file, &bad).unwrap();
    assert!(matches!(error(&folder), Cifar10Error::Label { label: 10, image: 17, .. }));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_says(error(&folder), &["data_batch_3.bin", "folder"]);
    fs::remove_dir(&file).unwrap();
    fs::write(&file, &good).unwrap();
    Cifar10::open(&folder).unwrap();

    // Without its sign a stand-in is a CIFAR-10 that is cut off.
    fs::write(folder.join("synthetic.txt"), "images_per_file = many\n").unwrap();
    assert_says(error(&folder), &["synthetic.txt", "images_per_file"]);
    fs::remove_file(folder.join("synthetic.txt")).unwrap();
    assert_says(error(&folder), &["data_batch_1.bin", "30730000", "10000 images"]);
}

#[test]
fn the_photographs() {
    let Some(folder) = real("cifar10") else { return };
    verify(&folder).unwrap();
    let cifar = Cifar10::open(&folder).unwrap();
    assert!(!cifar.is_synthetic());
    let train = cifar.train(None).unwrap();
    assert_eq!(train.class_counts(), [5000; 10]);
    assert_eq!(cifar.test(None).unwrap().class_counts(), [1000; 10]);
    // The first training image is a frog, the first test image a cat.
    assert_eq!((train.raw(0).1, cifar.test(Some(1)).unwrap().raw(0).1), (6, 3));
    // Normalised by what they have: mean 0 and deviation 1 in every channel.
    let rows: Vec<usize> = (0..50_000).step_by(5).collect();
    let x = values(inputs(&train, &rows));
    for c in 0..3 {
        let plane = || x.chunks(1024).skip(c).step_by(3).flatten().map(|&v| f64::from(v));
        let n = (rows.len() * 1024) as f64;
        let mean = plane().sum::<f64>() / n;
        let std = (plane().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!(mean.abs() < 0.01 && (std - 1.0).abs() < 0.01, "{c}: {mean} {std}");
    }
    let (train, valid) = train.split(0.1, 90).unwrap();
    assert_eq!((train.len(), valid.len()), (45_000, 5_000));
}
