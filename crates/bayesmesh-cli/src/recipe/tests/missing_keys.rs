//! What must be given.

use super::refusal;

#[test]
fn a_section() {
    assert_eq!(
        refusal(&[("[model]\nkind = \"mlp\"\ndropout = 0.1\n", "")], &[]),
        r#"trial.toml: the section `[model]` is missing
     The network. For example:
     [model]
     kind = "mlp"
     hidden = [128, 128]"#
    );
}

#[test]
fn a_key() {
    assert_eq!(
        refusal(&[("path = \"load.csv\"\n", "")], &[]),
        r#"trial.toml:3:1: the key `data.path` is missing
   3 | [data]
     | ^^^^^^
     The file of the series. `~/` is the home folder; a relative path starts at the working directory, not at the recipe.
     add for example `path = "data/load.csv"`"#
    );
}

#[test]
fn a_kind() {
    assert_eq!(
        refusal(&[("kind = \"load\"\n", "")], &[]),
        r#"trial.toml:3:1: the key `data.kind` is missing
   3 | [data]
     | ^^^^^^
     it is one of
     `load`: a series of electrical load from a CSV file: Open Power System Data, ENTSO-E, SMARD, Kaggle's `de.csv` or plain `timestamp,load`
     `load-synthetic`: a generated series that looks like the German load; needs no file
     `series`: one or several series of any period from a CSV or Parquet file, with what goes with them
     `cifar10`: photographs of 32×32 pixels in ten classes, 50,000 to learn from and 10,000 to test with
     `cifar10-synthetic`: generated images of the same form, stripes in ten colours; needs no file
     `era5`: weather on a grid of latitudes and longitudes, in the Zarr layout of WeatherBench2: ERA5, or any analysis in the same form
     `era5-synthetic`: generated weather with the habits of the real one, of which the best possible forecast is known; needs no file
     `images`: a folder of PNG and JPEG images of any size for each class
     `table`: rows of a CSV or Parquet file, or of a folder of the UCI benchmark; whether numbers or classes are predicted, `[loss]` says"#
    );
}

#[test]
fn a_key_of_a_chosen_kind() {
    assert_eq!(
        refusal(&[("samples = 4", "samples = 4\n[schedule]\nkind = \"warmup\"")], &[]),
        r#"trial.toml:19:1: the key `schedule.steps` is missing
  19 | [schedule]
     | ^^^^^^^^^^
     Steps of the rise.
     add for example `steps = 500`"#
    );
}

#[test]
fn the_name() {
    assert_eq!(
        refusal(&[("name = \"trial\"\n", "")], &[]),
        r#"trial.toml: the key `name` is missing
     What the run is called, in its folder and its report. Letters, digits, `-`, `_` and `.` only.
     add for example `name = "load-mlp"`"#
    );
}
