//! A use case of one's own, in one file with one registration, gets all of the program.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, process};

use bayesmesh_cli::recipe::Catalogue;
use bayesmesh_cli::use_cases::BUILTIN;
use serde_json::Value;

const RECIPE: &str = r#"
name = "sine"
data.kind = "sine"
model = { kind = "mlp", hidden = [32], activation = "tanh" }
posterior.kind = "mean-field"
loss.kind = "expected-gaussian"
train = { epochs = 20, samples = 4, batch = 20 }
optimizer.rate = 0.01
evaluate.draws = 16
"#;

/// A fresh folder with the recipe in it, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("bayesmesh-sine-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("sine.toml"), RECIPE).unwrap();
        Self(path)
    }

    /// What the program with the use case says, and its exit code.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sine"));
        let output = command.current_dir(&self.0).args(arguments).arg("--json").output().unwrap();
        let [said, result] = [output.stderr, output.stdout].map(|b| String::from_utf8(b).unwrap());
        let last = result.lines().last().unwrap_or("null");
        (output.status.code(), said, serde_json::from_str(last).unwrap())
    }

    /// The result of what goes well.
    fn done(&self, arguments: &[&str]) -> Value {
        let (code, said, result) = self.run(arguments);
        assert_eq!(code, Some(0), "{said}");
        result
    }

    /// The words of what is refused.
    fn refused(&self, arguments: &[&str]) -> String {
        let (code, said, result) = self.run(arguments);
        assert_eq!(code, Some(2), "{said}");
        result["error"].as_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn it_is_trained_scored_and_reported() {
    let folder = Folder::new("train");
    let (code, said, result) = folder.run(&["train", "sine.toml", "--mesh", "2x1", "--out", "r"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("300 training, 100 validation, 100 test points"), "{said}");
    assert!(said.contains("90 % covers (%)"), "{said}");
    let rmse = result["test"]["rmse"].as_f64().unwrap();
    assert!(rmse < 0.5, "a curve of deviation 0.7 is not learned: {rmse}");

    let again = folder.done(&["evaluate", "r", "--draws", "64"]);
    assert_eq!(again["digest"], result["digest"]);
    assert!(folder.read("r/evaluation.json").contains("\"standard_errors\""));
    let page = folder.read("r/report.html");
    for part in ["PIT histogram", "Coverage of central intervals", "points of a sine curve"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(folder.read("r/recipe.toml").contains("[data]\nkind = \"sine\"\ncount = 500\n"));

    // On any mesh the same, as every use case.
    let more = ["--set", "train.reduce=reproducible", "--out"];
    let on = |mesh, out| {
        folder.done(&[&["train", "sine.toml", "--mesh", mesh][..], &more, &[out]].concat())
    };
    assert_eq!(on("1x1", "a")["digest"], on("2x1", "b")["digest"]);
}

#[test]
fn it_predicts_its_test_data_and_files() {
    let folder = Folder::new("predict");
    folder.done(&["train", "sine.toml", "--ranks", "1", "--out", "r"]);
    let result = folder.done(&["predict", "r", "--out", "p.csv"]);
    assert_eq!(result["examples"], 100);
    let text = folder.read("p.csv");
    assert!(text.starts_with("example,output,mean,std,q5,q25,q50,q75,q95,epistemic,aleatoric,band90_lower,band90_upper\n0,0,"), "{text}");
    assert_eq!(text.lines().count(), 101);
    assert_eq!(folder.done(&["predict", "r", "--out", "p.parquet"])["examples"], 100);
    let bytes = fs::read(folder.0.join("p.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));

    fs::write(folder.0.join("x.txt"), "-1.5\n0\n1.5\n").unwrap();
    folder.done(&["predict", "r", "x.txt", "--out", "p.csv", "--quantiles", "0.1,0.9"]);
    let text = folder.read("p.csv");
    let means = text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse().unwrap());
    let means: Vec<f64> = means.collect();
    assert!(means[0] < -0.5 && means[1].abs() < 0.4 && means[2] > 0.5, "{means:?}");

    let error = folder.refused(&["predict", "r", "--every", "3", "--out", "p.csv"]);
    assert!(error.contains("--every is for series"), "{error}");
    folder.done(&["checkpoint", "export", "r", "--out", "w.safetensors"]);
}

#[test]
fn it_is_compared() {
    let folder = Folder::new("compare");
    let vary = ["--vary", "data.noise=0.1,0.3", "--seeds", "2", "--set", "train.epochs=2"];
    let result = folder.done(&[&["compare", "sine.toml", "--out", "c"][..], &vary].concat());
    assert_eq!(result["variants"].as_array().unwrap().len(), 2);
    assert!(folder.read("c/report.html").contains("data.noise=0.3"));
}

#[test]
fn its_recipe_errors_suggest_what_was_meant() {
    let folder = Folder::new("errors");
    let set = |setting| folder.refused(&["train", "sine.toml", "--out", "r", "--set", setting]);
    let error = set("data.conut=30");
    assert!(error.contains("there is no key `data.conut`"), "{error}");
    assert!(error.contains("did you mean `data.count`?"), "{error}");
    assert!(set("data.points=30").contains("did you mean `data.count`?"));
    assert!(set("data.kind=sin").contains("did you mean `sine`?"));
    let error = set("data.count=3");
    assert!(error.contains("`data.count` must be a whole number of at least 20, not 3"), "{error}");
    let error = set("model.kind=vit");
    assert!(
        error.contains("a vision transformer takes images, but the data are points"),
        "{error}"
    );
    let error = set("loss.kind=expected-cross-entropy");
    assert!(error.contains("this loss is for classes"), "{error}");
    assert!(!folder.0.join("r").exists());
}

#[test]
fn it_has_its_place_in_the_reference() {
    let sine = include_str!("../src/bin/sine.rs");
    assert!(sine.lines().count() < 140, "one small file");
    // The list of the program alone does not know it, and the program with it knows both.
    let builtin = Catalogue::new(BUILTIN).reference();
    assert!(!builtin.contains("| `\"sine\"` |") && builtin.contains("| `\"load\"` |"));
    let folder = Folder::new("reference");
    let result = folder.done(&["recipe", "--keys"]);
    let keys = result["keys"].as_str().unwrap();
    assert!(keys.contains("| `\"sine\"` | noisy points of a sine curve |"), "{keys}");
    assert!(
        keys.contains("| `count` | `sine` | a whole number of at least 20 | `500` |"),
        "{keys}"
    );
    assert!(keys.contains("| `\"load\"` |"), "{keys}");
}
