//! Which images there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bayesmesh_files::shown;

use super::error::ImagesError;

/// How the names of images end.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "jpe", "jfif"];

/// Names that folders of parts go by: of training, validation and test.
const PARTS: [&[&str]; 3] = [&["train", "training"], &["valid", "val", "validation"], &["test"]];

/// An image file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Where it is.
    pub path: PathBuf,
    /// The same from the folder on, with `/` between names.
    pub name: String,
    /// The number of its class, where that is known.
    pub label: Option<usize>,
}

/// What there is in a folder and the folders within it.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The images, in the order of their names.
    pub images: Vec<ImageFile>,
    /// Files whose names are not those of images.
    pub others: Vec<String>,
    /// Folders that were not read: links to what had been read before, or of no class.
    pub unread: Vec<String>,
}

impl Listing {
    /// Of a folder. The class of an image is the name of the nearest folder that it is in and that
    /// has the name of a class.
    pub fn of(folder: &Path, classes: &[String]) -> Result<Self, ImagesError> {
        let mut walk = Walk { listing: Self::default(), seen: BTreeSet::new() };
        walk.folder(&checked(folder)?, "")?;
        let mut listing = walk.listing;
        let label = |name: &str| {
            let mut folders = name.rsplit('/').skip(1);
            folders.find_map(|folder| classes.iter().position(|class| class == folder))
        };
        listing.images.iter_mut().for_each(|image| image.label = label(&image.name));
        match listing.images.is_empty() {
            false => Ok(listing),
            true => Err(ImagesError::folder(folder, NO_IMAGES)),
        }
    }
}

const NO_IMAGES: &str = "there is no image in it. Images are files whose names end in .png, .jpg \
                         or .jpeg";

/// The images of a folder by class and, where they are divided, by part.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    /// The folder.
    pub root: PathBuf,
    /// The classes, in the order of their names.
    pub classes: Vec<String>,
    /// Images of training, validation and test; nothing where there is no folder of the part. All
    /// images are those of training where the folder is not divided.
    pub parts: [Option<Vec<ImageFile>>; 3],
    /// Whether there are folders of parts.
    pub divided: bool,
    /// Files whose names are not those of images.
    pub others: Vec<String>,
    /// Folders that are not read: of no class or part, or links to what has been read.
    pub left_out: Vec<String>,
    /// Folders of classes without images.
    pub empty: Vec<String>,
}

impl ImageFolder {
    /// Finds the images of a folder: of all classes that have a folder, or of those that are named.
    pub fn open(root: impl AsRef<Path>, classes: Option<&[String]>) -> Result<Self, ImagesError> {
        let root = checked(root.as_ref())?;
        let inner = folders(&root)?;
        let part = |names: &[&str]| {
            let found = inner.iter().find(|name| names.contains(&name.to_lowercase().as_str()));
            found.map(|name| root.join(name))
        };
        // Vehicles have a class `train`, which holds images and no folders.
        let divided = match part(PARTS[0]) {
            Some(train) => !folders(&train)?.is_empty(),
            None => false,
        };
        let mut walk = Walk { listing: Listing::default(), seen: BTreeSet::new() };
        let mut found: [Option<BTreeMap<String, Vec<ImageFile>>>; 3] = [const { None }; 3];
        let mut left_out = Vec::new();
        match divided {
            false => found[0] = Some(walk.classes(&root, "", classes)?),
            true => {
                for (found, names) in found.iter_mut().zip(PARTS) {
                    if let Some(folder) = part(names) {
                        let prefix = folder.file_name().unwrap_or_default().to_string_lossy();
                        *found = Some(walk.classes(&folder, &format!("{prefix}/"), classes)?);
                    }
                }
                let of_part =
                    |name: &String| PARTS.concat().contains(&name.to_lowercase().as_str());
                left_out.extend(inner.iter().filter(|name| !of_part(name)).cloned());
            }
        }
        let train = found[0].as_ref().expect("both ways have it");
        let empty: Vec<String> = match classes {
            Some(_) => Vec::new(),
            None => {
                train.iter().filter(|(_, files)| files.is_empty()).map(|f| f.0.clone()).collect()
            }
        };
        let classes: Vec<String> = match classes {
            Some(classes) => classes.to_vec(),
            None => train.keys().filter(|class| !empty.contains(class)).cloned().collect(),
        };
        check_classes(&root, &classes, train, divided)?;
        let mut parts = [None, None, None];
        for (index, found) in found.into_iter().enumerate() {
            let Some(found) = found else { continue };
            let mut images = Vec::new();
            for (class, files) in found {
                match classes.iter().position(|known| *known == class) {
                    Some(label) => images.extend(
                        files.into_iter().map(|file| ImageFile { label: Some(label), ..file }),
                    ),
                    None if files.is_empty() => {}
                    None => {
                        let part = PARTS[index][0];
                        let class = shown(&class);
                        return Err(ImagesError::folder(
                            &root,
                            format!(
                                "{part}/{class} has images, but there are none of this class to \
                                 learn from in train/{class}. Put some there, or name the classes \
                                 that count in `data.classes`"
                            ),
                        ));
                    }
                }
            }
            parts[index] = Some(images);
        }
        left_out.extend(walk.listing.unread);
        let others = walk.listing.others;
        Ok(Self { root, classes, parts, divided, others, left_out, empty })
    }

    /// How many images there are of each class in a part; nothing where there is no such part.
    pub fn counts(&self, part: usize) -> Option<Vec<usize>> {
        let mut counts = vec![0; self.classes.len()];
        for file in self.parts[part].as_ref()? {
            counts[file.label.expect("images of parts have a class")] += 1;
        }
        Some(counts)
    }
}

/// Refuses what no classification can be learned from.
fn check_classes(
    root: &Path,
    classes: &[String],
    train: &BTreeMap<String, Vec<ImageFile>>,
    divided: bool,
) -> Result<(), ImagesError> {
    let place = if divided { "train/" } else { "" };
    for class in classes {
        if train.get(class).is_none_or(Vec::is_empty) {
            return Err(ImagesError::folder(
                root,
                format!(
                    "there are no images of the class `{}` in {place}{}. Put some there, or leave \
                     it out of `data.classes`",
                    shown(class),
                    shown(class)
                ),
            ));
        }
    }
    let problem = match classes {
        [] if fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_none()) => {
            "the folder is empty".to_owned()
        }
        [] => "there is no folder with images in it".to_owned(),
        [only] => format!("`{}` is the only class", shown(only)),
        _ => return Ok(()),
    };
    let needs = "a classification needs a folder of images for each of two or more classes, for \
                 example cat/1.jpg and dog/1.jpg";
    Err(ImagesError::folder(root, format!("{problem}; {needs}")))
}

/// The path of a folder that is there.
fn checked(folder: &Path) -> Result<PathBuf, ImagesError> {
    match fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(folder.to_owned()),
        Ok(_) => Err(ImagesError::folder(
            folder,
            "this is a file. Name the folder that has a folder of images for each class",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ImagesError::NoFolder { folder: folder.into() })
        }
        Err(error) => Err(ImagesError::read(folder)(error)),
    }
}

/// The names in a folder that do not begin with a dot, in their order.
fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, ImagesError> {
    let entries = fs::read_dir(folder).map_err(ImagesError::read(folder))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(ImagesError::read(folder))?.file_name();
        if !name.to_string_lossy().starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The names of the folders in a folder.
fn folders(folder: &Path) -> Result<Vec<String>, ImagesError> {
    let names = names(folder)?.into_iter().filter(|name| folder.join(name).is_dir());
    Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// A way through folders that enters none twice.
struct Walk {
    listing: Listing,
    /// The folders that have been entered, as they are really called.
    seen: BTreeSet<PathBuf>,
}

impl Walk {
    /// The images of each folder in a folder: of all, or of those that are named.
    fn classes(
        &mut self,
        folder: &Path,
        prefix: &str,
        only: Option<&[String]>,
    ) -> Result<BTreeMap<String, Vec<ImageFile>>, ImagesError> {
        let mut classes = BTreeMap::new();
        self.seen.insert(fs::canonicalize(folder).map_err(ImagesError::read(folder))?);
        for name in names(folder)? {
            let class = name.to_string_lossy().into_owned();
            let path = folder.join(&name);
            if !path.is_dir() {
                self.listing.others.push(format!("{prefix}{class}"));
            } else if only.is_none_or(|only| only.contains(&class)) {
                self.folder(&path, &format!("{prefix}{class}/"))?;
                classes.insert(class, std::mem::take(&mut self.listing.images));
            } else {
                self.listing.unread.push(format!("{prefix}{class}"));
            }
        }
        Ok(classes)
    }

    /// Adds what is in a folder and within it.
    fn folder(&mut self, folder: &Path, prefix: &str) -> Result<(), ImagesError> {
        let real = fs::canonicalize(folder).map_err(ImagesError::read(folder))?;
        if !self.seen.insert(real) {
            self.listing.unread.push(prefix.trim_end_matches('/').to_owned());
            return Ok(());
        }
        for file_name in names(folder)? {
            let path = folder.join(&file_name);
            let name = format!("{prefix}{}", file_name.to_string_lossy());
            let ending = Path::new(&file_name).extension().map(|e| e.to_string_lossy());
            let ending = ending.unwrap_or_default().to_lowercase();
            if path.is_dir() {
                self.folder(&path, &format!("{name}/"))?;
            } else if ENDINGS.contains(&ending.as_str()) {
                // A link that leads nowhere is one too, and is told when it cannot be read.
                self.listing.images.push(ImageFile { path, name, label: None });
            } else {
                self.listing.others.push(name);
            }
        }
        Ok(())
    }
}
