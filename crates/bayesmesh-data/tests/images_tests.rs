//! Folders of images: what is found, how it is divided, what is read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bayesmesh::Dataset as _;
use bayesmesh_data::images::{
    Division, ImageFile, ImageFolder, ImageSet, ImagesError, Listing, Reading, SYNTHETIC_CLASSES,
    Shares, Survey, write_synthetic,
};

/// A folder that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = format!("bayesmesh-images-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Writes small images at these places.
    fn images(&self, names: &[&str]) -> &Self {
        for (index, name) in names.iter().enumerate() {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, png(index as u8)).unwrap();
        }
        self
    }

    fn open(&self) -> Result<ImageFolder, ImagesError> {
        ImageFolder::open(&self.0, None)
    }

    fn refused(&self) -> String {
        self.open().unwrap_err().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file of 3 × 2 pixels.
fn png(value: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 3, 2);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let pixels: Vec<u8> = (0..18).map(|i| value.wrapping_mul(31) ^ (7 * i)).collect();
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    bytes
}

fn read(files: Vec<ImageFile>, size: usize, keep: bool) -> (ImageSet, Vec<String>) {
    let (set, broken) = ImageSet::read(files, Reading { size, keep, progress: &|| {} }).unwrap();
    (set, broken.into_iter().map(|broken| broken.problem).collect())
}

fn names(files: &[ImageFile]) -> Vec<&str> {
    files.iter().map(|file| file.name.as_str()).collect()
}

const SHARES: Shares = Shares { validation: 0.2, test: 0.3, seed: 1 };

#[test]
fn classes_are_folders_in_the_order_of_their_names() {
    let scratch = Scratch::new("classes");
    scratch.images(&["dog/2.png", "cat/b.PNG", "cat/more/a.jpeg", "dog/1.jpg", "cat/.hidden.png"]);
    fs::write(scratch.0.join("cat/notes.txt"), "not an image").unwrap();
    fs::write(scratch.0.join("README.md"), "nor this").unwrap();
    fs::create_dir(scratch.0.join("empty")).unwrap();
    fs::create_dir_all(scratch.0.join(".git/objects")).unwrap();
    let folder = scratch.open().unwrap();
    assert_eq!(folder.classes, ["cat", "dog"]);
    let all = folder.parts[0].as_ref().unwrap();
    assert_eq!(names(all), ["cat/b.PNG", "cat/more/a.jpeg", "dog/1.jpg", "dog/2.png"]);
    assert_eq!(all.iter().map(|file| file.label.unwrap()).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(folder.others, ["README.md", "cat/notes.txt"]);
    assert_eq!((folder.empty, folder.divided), (vec!["empty".to_owned()], false));
    let only = ImageFolder::open(&scratch.0, Some(&["dog".into(), "cat".into()])).unwrap();
    assert_eq!(only.classes, ["dog", "cat"], "in the order that is asked for");
}

#[cfg(unix)]
#[test]
fn links_are_followed_once() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new("links");
    let elsewhere = Scratch::new("elsewhere");
    elsewhere.images(&["photo.png", "x/other.png"]);
    scratch.images(&["cat/1.png", "dog/1.png"]);
    symlink(elsewhere.0.join("photo.png"), scratch.0.join("cat/link.png")).unwrap();
    symlink(elsewhere.0.join("x"), scratch.0.join("dog/x")).unwrap();
    // A way back up, and a link that leads nowhere.
    symlink(&scratch.0, scratch.0.join("dog/up")).unwrap();
    symlink(scratch.0.join("nowhere"), scratch.0.join("dog/gone.png")).unwrap();
    let folder = scratch.open().unwrap();
    let all = folder.parts[0].clone().unwrap();
    let expected = ["cat/1.png", "cat/link.png", "dog/1.png", "dog/gone.png", "dog/x/other.png"];
    assert_eq!(names(&all), expected);
    assert_eq!(folder.left_out, ["dog/up"]);
    let (set, broken) = read(all, 4, true);
    assert_eq!(set.len(), 4);
    assert!(broken[0].contains("gone.png: no such file"), "{broken:?}");
}

#[test]
fn what_cannot_be_learned_from_is_refused_in_words() {
    let scratch = Scratch::new("refused");
    let says = |words: &str| {
        let message = scratch.refused();
        assert!(message.contains(words), "no '{words}' in {message}");
    };
    says("the folder is empty");
    scratch.images(&["1.png"]);
    says("there is no folder with images in it");
    scratch.images(&["cat/1.png"]);
    says("`cat` is the only class");
    scratch.images(&["dog/1.png"]);
    let message = scratch.open().unwrap().divide(SHARES).unwrap_err().to_string();
    assert!(message.contains("no images to test with: of 2 images of 2 classes"), "{message}");
    let missing = ImageFolder::open(&scratch.0, Some(&["cat".into(), "cow".into()]));
    let message = missing.unwrap_err().to_string();
    assert!(message.contains("no images of the class `cow`"), "{message}");
    let message = ImageFolder::open(scratch.0.join("nothing"), None).unwrap_err().to_string();
    assert!(message.contains("no such folder"), "{message}");
    let message = ImageFolder::open(scratch.0.join("1.png"), None).unwrap_err().to_string();
    assert!(message.contains("this is a file"), "{message}");
}

#[test]
fn given_parts_are_used_and_missing_ones_are_drawn() {
    let scratch = Scratch::new("parts");
    let train = |class: &str| (0..10).map(|i| format!("train/{class}/{i}.png")).collect::<Vec<_>>();
    let train: Vec<String> = [train("cat"), train("dog")].concat();
    let mut all: Vec<&str> = train.iter().map(String::as_str).collect();
    all.extend(["test/cat/1.png", "notes/x.png"]);
    scratch.images(&all);
    let folder = scratch.open().unwrap();
    assert_eq!((folder.divided, &folder.left_out[..]), (true, &["notes".to_owned()][..]));
    let Division { train, valid, test } = folder.divide(SHARES).unwrap();
    assert_eq!((train.len(), valid.len()), (16, 4), "no test images are drawn");
    assert_eq!(names(&test), ["test/cat/1.png"]);
    scratch.images(&["val/dog/1.png"]);
    let division = scratch.open().unwrap().divide(SHARES).unwrap();
    assert_eq!((division.train.len(), names(&division.valid)), (20, vec!["val/dog/1.png"]));
    scratch.images(&["test/cow/1.png"]);
    assert!(scratch.refused().contains("test/cow has images"), "{}", scratch.refused());
}

#[test]
fn a_class_may_be_called_train() {
    let scratch = Scratch::new("vehicles");
    scratch.images(&["train/1.png", "car/1.png", "test/1.png"]);
    assert_eq!(scratch.open().unwrap().classes, ["car", "test", "train"]);
}

#[test]
fn lots_are_drawn_class_by_class_and_by_the_seed() {
    let scratch = Scratch::new("lots");
    let of = |class: &str, count: usize| {
        (0..count).map(|i| format!("{class}/{i:03}.png")).collect::<Vec<_>>()
    };
    let all = [of("many", 100), of("some", 10), of("few", 3), of("two", 2)].concat();
    scratch.images(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let folder = scratch.open().unwrap();
    assert_eq!(folder.classes, ["few", "many", "some", "two"]);
    let counts = |files: &[ImageFile]| {
        [0, 1, 2, 3].map(|class| files.iter().filter(|file| file.label == Some(class)).count())
    };
    let Division { train, valid, test } = folder.divide(SHARES).unwrap();
    assert_eq!(counts(&test), [1, 30, 3, 0]);
    assert_eq!(counts(&valid), [1, 20, 2, 0]);
    assert_eq!(counts(&train), [1, 50, 5, 2]);
    let mut together = [names(&train), names(&valid), names(&test)].concat();
    together.sort_unstable();
    let mut expected: Vec<&str> = all.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(together, expected, "every image is in one part");
    let again = folder.divide(SHARES).unwrap();
    assert_eq!(names(&again.test), names(&test));
    let other = folder.divide(Shares { seed: 2, ..SHARES }).unwrap();
    assert_ne!(names(&other.test), names(&test));
    assert!(folder.divide(Shares { test: 0.5, ..SHARES }).is_err());
}

#[test]
fn broken_images_are_left_out_and_named() {
    let scratch = Scratch::new("broken");
    scratch.images(&["a/1.png", "a/2.png", "b/1.png"]);
    fs::write(scratch.0.join("a/empty.png"), "").unwrap();
    fs::write(scratch.0.join("a/text.jpg"), "this is text").unwrap();
    fs::write(scratch.0.join("b/cut.png"), &png(1)[..40]).unwrap();
    fs::write(scratch.0.join("b/gif.png"), b"GIF89a\x01\x00\x01\x00\x00\x00\x00").unwrap();
    fs::create_dir(scratch.0.join("b/folder.png")).unwrap();
    let survey = Survey::of(&scratch.0, &|| {}).unwrap();
    assert_eq!((survey.readable, survey.broken.len()), (3, 4));
    assert_eq!(survey.sizes, Some([[3, 2]; 3]));
    assert_eq!(survey.parts[0].counts, [4, 3]);
    for (broken, words) in survey.broken.iter().zip([
        "empty.png: the file is empty",
        "text.jpg: this is neither a PNG nor a JPEG file",
        "cut.png: the file is damaged",
        "gif.png: this is a GIF file; convert it",
    ]) {
        assert!(broken.problem.contains(words), "no '{words}' in {}", broken.problem);
    }
}

#[test]
fn images_are_the_same_kept_and_decoded_again() {
    let scratch = Scratch::new("kept");
    write_synthetic(scratch.0.join("shapes"), 6, 1).unwrap();
    let folder = ImageFolder::open(scratch.0.join("shapes"), None).unwrap();
    assert_eq!(folder.classes, SYNTHETIC_CLASSES);
    let files = folder.parts[0].clone().unwrap();
    let [kept, again] = [true, false].map(|keep| read(files.clone(), 16, keep).0);
    assert!(kept.is_kept() && !again.is_kept());
    assert_eq!(kept.checksum(), again.checksum());
    let batch = |set: &ImageSet| {
        let set = set.clone().normalised(set.statistics()).unwrap();
        let (images, labels) = set.batch(&[5, 0, 23], &Default::default()).unwrap();
        (images.into_data(), labels.into_data())
    };
    assert_eq!(batch(&kept), batch(&again));
    // Normalised, all pixels together have mean 0 and deviation 1.
    let set = kept.clone().normalised(kept.statistics()).unwrap();
    let rows: Vec<usize> = (0..set.len()).collect();
    let (images, _) = set.batch(&rows, &Default::default()).unwrap();
    let mean = images.clone().mean().into_scalar::<f32>();
    let square = images.square().mean().into_scalar::<f32>();
    assert!(mean.abs() < 1e-2 && (square - 1.0).abs() < 1e-2, "{mean} {square}");
    assert!(write_synthetic(scratch.0.join("shapes"), 6, 1).is_err(), "it is there already");
    // Another image, or another class of one, is another data set.
    let mut other = files.clone();
    other[0].label = Some(1);
    assert_ne!(read(other, 16, true).0.checksum(), kept.checksum());
    assert_ne!(read(files[1..].to_vec(), 16, true).0.checksum(), kept.checksum());
}

#[test]
fn a_flat_folder_has_no_classes_and_others_the_nearest() {
    let scratch = Scratch::new("flat");
    scratch.images(&["new/1.png", "new/2.png", "new/cat/3.png", "new/cat/odd/4.png"]);
    let listing = Listing::of(&scratch.0.join("new"), &["cat".into(), "dog".into()]).unwrap();
    assert_eq!(names(&listing.images), ["1.png", "2.png", "cat/3.png", "cat/odd/4.png"]);
    let labels: Vec<_> = listing.images.iter().map(|file| file.label).collect();
    assert_eq!(labels, [None, None, Some(0), Some(0)]);
    fs::create_dir(scratch.0.join("none")).unwrap();
    let message = Listing::of(&scratch.0.join("none"), &[]).unwrap_err().to_string();
    assert!(message.contains("there is no image in it"), "{message}");
}

/// Every kind of file that Pillow writes has the colours that Pillow sees in it.
#[test]
fn files_of_another_program_have_its_colours() {
    let python = std::env::var("BAYESMESH_PYTHON").unwrap_or("python3".to_owned());
    let has = Command::new(&python).args(["-c", "import PIL"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        return println!("skipped: {python} has no PIL; BAYESMESH_PYTHON names another Python");
    }
    let scratch = Scratch::new("kinds");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/photos.py");
    let made = Command::new(python).arg(script).arg("--kinds").arg(&scratch.0).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let expected = fs::read_to_string(scratch.0.join("kinds.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let listing = Listing::of(&scratch.0, &[]).unwrap();
    assert_eq!(listing.images.len(), expected.as_object().unwrap().len());
    let (set, broken) = read(listing.images, 64, true);
    assert_eq!(broken, Vec::<String>::new());
    for (row, file) in set.files().iter().enumerate() {
        let planes = set.planes(row).unwrap();
        for (quarter, [left, top]) in [[0, 0], [32, 0], [0, 32], [32, 32]].into_iter().enumerate() {
            for channel in 0..3 {
                let pixel = |i: usize| {
                    let (y, x) = (top + 8 + i / 16, left + 8 + i % 16);
                    f64::from(planes[(channel * 64 + y) * 64 + x])
                };
                let found = (0..256).map(pixel).sum::<f64>() / 256.0;
                let wanted = expected[&file.name][quarter][channel].as_f64().unwrap();
                // Two decoders round differently.
                let name = &file.name;
                assert!(
                    (found - wanted).abs() < 3.0,
                    "{name} {quarter} {channel}: {found} {wanted}"
                );
            }
        }
    }
}
