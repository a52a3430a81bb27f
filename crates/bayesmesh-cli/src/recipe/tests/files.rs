//! Reading files.

use std::fs;
use std::path::{Path, PathBuf};

use bayesmesh_files::testing::Scratch;

use super::{TRIAL, parse};
use crate::recipe::{Catalogue, Recipe, RecipeError};

/// Writes a file into a folder.
fn file(scratch: &Scratch, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = scratch.path().join(name);
    fs::write(&path, contents).unwrap();
    path
}

fn load(path: &Path, overrides: &[String]) -> Result<Recipe, RecipeError> {
    Recipe::load(&Catalogue::builtin(), path, overrides)
}

fn refusal(path: &Path) -> String {
    load(path, &[]).unwrap_err().to_string()
}

#[test]
fn a_file_with_overrides() {
    let scratch = Scratch::new();
    let path = file(&scratch, "trial.toml", TRIAL);
    let recipe = load(&path, &["train.samples=8".to_owned()]).unwrap();
    assert_eq!((recipe.name.as_str(), recipe.train.samples), ("trial", 8));
}

#[test]
fn problems_name_the_file() {
    let scratch = Scratch::new();
    let path = file(&scratch, "trial.toml", TRIAL.replace("samples", "smaples"));
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
    let scratch = Scratch::new();
    let path = file(&scratch, "trial.toml", format!("\u{feff}{}", TRIAL.replace('\n', "\r\n")));
    assert_eq!(load(&path, &[]).unwrap().name, "trial");
}

#[test]
fn a_missing_file() {
    let scratch = Scratch::new();
    let near = file(&scratch, "load-mlp.toml", "");
    let path = scratch.path().join("load-mpl.toml");
    assert_eq!(
        refusal(&path),
        format!(
            "cannot read the recipe {}: there is no such file; did you mean {}?",
            path.display(),
            near.display()
        )
    );
    let path = scratch.path().join("nothing/like/it.toml");
    let expected = format!("cannot read the recipe {}: there is no such file", path.display());
    assert_eq!(refusal(&path), expected);
}

#[test]
fn a_folder() {
    let scratch = Scratch::new();
    let expected = format!(
        "cannot read the recipe {}: it is a folder; name the file in it",
        scratch.path().display()
    );
    assert_eq!(refusal(scratch.path()), expected);
}

#[test]
fn text_that_is_not_utf8() {
    let scratch = Scratch::new();
    let path = file(&scratch, "latin.toml", b"name = \"a\"\n# f\xFCr\n");
    assert_eq!(
        refusal(&path),
        format!(
            "{}:2: not UTF-8 text: the byte 0xFC is no character; save the file as UTF-8",
            path.display()
        )
    );
    let path = file(&scratch, "wide.toml", b"\xFF\xFEn\0a\0");
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
    let scratch = Scratch::new();
    let rows = "2015-01-01T00:00Z,41000.0\n".repeat(10_000);
    let path = file(&scratch, "load.csv", format!("timestamp,load\n{rows}"));
    let text = refusal(&path);
    assert!(text.contains("load.csv:1:10: this is not TOML"), "{text}");
    assert!(text.lines().count() < 10, "{text}");
}

/// A file without end is refused at once.
#[cfg(unix)]
#[test]
fn more_than_any_recipe_has() {
    let text = refusal(Path::new("/dev/zero"));
    assert_eq!(
        text,
        "cannot read the recipe /dev/zero: it has more than 1 MiB, which no recipe needs"
    );
}

#[test]
fn paths_become_absolute() {
    let path_of = |path: &str| {
        let recipe = parse(TRIAL, &[&format!("data.path={path}")]).unwrap();
        let place = recipe.data_path().unwrap();
        let located = recipe.clone().located();
        assert!(located.to_toml().contains(&format!("path = \"{}\"", place.display())));
        // The recipe itself keeps what was written.
        assert!(recipe.to_toml().contains(&format!("path = \"{path}\"")));
        place
    };
    let here = std::env::current_dir().unwrap();
    let home = std::env::home_dir().unwrap();
    assert_eq!(path_of("a/b.csv"), here.join("a/b.csv"));
    assert_eq!(path_of("/a/b.csv"), Path::new("/a/b.csv"));
    assert_eq!(path_of("~/b.csv"), home.join("b.csv"));
    assert_eq!(path_of("~b.csv"), here.join("~b.csv"));
}
