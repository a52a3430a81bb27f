//! Reading files.

use std::fs;
use std::path::{Path, PathBuf};

use super::TRIAL;
use crate::recipe::{Data, Recipe};

/// A folder of its own for a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("bayesmesh-recipe-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refusal(path: &Path) -> String {
    Recipe::load(path, &[]).unwrap_err().to_string()
}

#[test]
fn a_file_with_overrides() {
    let folder = Folder::new("good");
    let path = folder.file("trial.toml", TRIAL);
    let recipe = Recipe::load(&path, &["train.samples=8".to_owned()]).unwrap();
    assert_eq!((recipe.name.as_str(), recipe.train.samples), ("trial", 8));
}

#[test]
fn problems_name_the_file() {
    let folder = Folder::new("named");
    let path = folder.file("trial.toml", TRIAL.replace("samples", "smaples"));
    let shown = path.display();
    assert_eq!(
        refusal(&path),
        format!(
            "the recipe {shown} cannot be used:\n\n\
             {shown}:18:1: there is no key `train.smaples`\n  \
             18 | smaples = 4\n     \
                | ^^^^^^^\n     \
             did you mean `train.samples`?"
        )
    );
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows() {
    let folder = Folder::new("windows");
    let path = folder.file("trial.toml", format!("\u{feff}{}", TRIAL.replace('\n', "\r\n")));
    assert_eq!(Recipe::load(&path, &[]).unwrap().name, "trial");
}

#[test]
fn a_missing_file() {
    let folder = Folder::new("missing");
    let near = folder.file("load-mlp.toml", "");
    let path = folder.0.join("load-mpl.toml");
    assert_eq!(
        refusal(&path),
        format!(
            "cannot read the recipe {}: there is no such file; did you mean {}?",
            path.display(),
            near.display()
        )
    );
    let path = folder.0.join("nothing/like/it.toml");
    let expected = format!("cannot read the recipe {}: there is no such file", path.display());
    assert_eq!(refusal(&path), expected);
}

#[test]
fn a_folder() {
    let folder = Folder::new("folder");
    let expected = format!(
        "cannot read the recipe {}: it is a folder; name the file in it",
        folder.0.display()
    );
    assert_eq!(refusal(&folder.0), expected);
}

#[test]
fn text_that_is_not_utf8() {
    let folder = Folder::new("latin");
    let path = folder.file("latin.toml", b"name = \"a\"\n# f\xFCr\n");
    assert_eq!(
        refusal(&path),
        format!(
            "{}:2: not UTF-8 text: the byte 0xFC is no character; save the file as UTF-8",
            path.display()
        )
    );
    let path = folder.file("wide.toml", b"\xFF\xFEn\0a\0");
    assert_eq!(
        refusal(&path),
        format!(
            "{}:1: not UTF-8 text: it looks like UTF-16; save the file as UTF-8",
            path.display()
        )
    );
}

/// A file that is no recipe at all is refused in a few lines.
#[test]
fn data_instead_of_a_recipe() {
    let folder = Folder::new("data");
    let rows = "2015-01-01T00:00Z,41000.0\n".repeat(10_000);
    let path = folder.file("load.csv", format!("timestamp,load\n{rows}"));
    let text = refusal(&path);
    assert!(text.contains("load.csv:1:10: this is not TOML"), "{text}");
    assert!(text.lines().count() < 10, "{text}");
}

#[test]
fn paths_become_absolute() {
    let path_of = |path: &str| {
        let overrides = [format!("data.path={path}")];
        let recipe = Recipe::parse(TRIAL, "trial.toml", &overrides).unwrap();
        let file = recipe.data.file().unwrap();
        let Data::Load { path: located, .. } = recipe.clone().located().data else {
            panic!("the kind of the data stays")
        };
        assert_eq!(Path::new(&located), file);
        // The recipe itself keeps what was written.
        assert!(recipe.to_toml().contains(&format!("path = \"{path}\"")));
        file
    };
    let here = std::env::current_dir().unwrap();
    let home = std::env::home_dir().unwrap();
    assert_eq!(path_of("a/b.csv"), here.join("a/b.csv"));
    assert_eq!(path_of("/a/b.csv"), Path::new("/a/b.csv"));
    assert_eq!(path_of("~/b.csv"), home.join("b.csv"));
    assert_eq!(path_of("~b.csv"), here.join("~b.csv"));
}
