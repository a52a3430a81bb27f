//! Where a store is.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use zarrs::filesystem::FilesystemStore;
use zarrs::storage::ReadableStorage;

use super::http::HttpStore;
use crate::era5::error::Era5Error;

/// A place that was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::era5) enum Place {
    /// A folder of this machine.
    Folder(PathBuf),
    /// An address under which keys are files.
    Web(String),
}

impl Place {
    /// Of a path, `file://`, `http://`, `https://` or, for public buckets, `gs://`.
    pub fn of(location: &str) -> Result<Self, Era5Error> {
        let Some((scheme, rest)) = location.split_once("://") else {
            return Ok(Self::Folder(location.into()));
        };
        let rest = rest.trim_end_matches('/');
        match scheme {
            "file" => Ok(Self::Folder(rest.strip_prefix("localhost").unwrap_or(rest).into())),
            "http" | "https" => Ok(Self::Web(format!("{scheme}://{rest}"))),
            "gs" => Ok(Self::Web(format!("https://storage.googleapis.com/{rest}"))),
            _ => Err(Era5Error::Scheme { store: location.to_owned(), scheme: scheme.to_owned() }),
        }
    }

    /// Opens the place, without asking for anything in it.
    pub fn storage(&self, location: &str) -> Result<ReadableStorage, Era5Error> {
        let refused = |problem: String| Era5Error::NoStore { store: location.to_owned(), problem };
        match self {
            Self::Web(base) => Ok(Arc::new(HttpStore::new(base))),
            Self::Folder(folder) if !folder.exists() => Err(refused("no such folder".to_owned())),
            Self::Folder(folder) if !folder.is_dir() => Err(refused("this is a file".to_owned())),
            Self::Folder(folder) => match FilesystemStore::new(folder) {
                Ok(store) => Ok(Arc::new(store)),
                Err(error) => Err(refused(error.to_string())),
            },
        }
    }

    /// The names of folders in it; `None` where a place cannot be listed.
    pub fn folders(&self) -> Option<Vec<String>> {
        let Self::Folder(folder) = self else {
            return None;
        };
        let entries = fs::read_dir(folder).ok()?.flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<String> =
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_recognised() {
        let web = |address: &str| Place::Web(address.to_owned());
        for (location, place) in [
            ("data/era5.zarr", Place::Folder("data/era5.zarr".into())),
            ("file:///data/era5.zarr/", Place::Folder("/data/era5.zarr".into())),
            ("http://127.0.0.1:8000/a.zarr/", web("http://127.0.0.1:8000/a.zarr")),
            (
                "gs://weatherbench2/a.zarr",
                web("https://storage.googleapis.com/weatherbench2/a.zarr"),
            ),
        ] {
            assert_eq!(Place::of(location).unwrap(), place);
        }
        let error = Place::of("s3://bucket/a.zarr").unwrap_err().to_string();
        assert!(error.contains("`s3://` is not supported"), "{error}");
    }
}
