//! The recipe for series that come without one.

use std::path::Path;

use crate::say::say;

/// The name and the text of the recipe that suits series in a file, to forecast so many steps.
pub fn default_recipe(path: &Path, targets: &[String], horizon: usize) -> (String, String) {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let targets: Vec<String> = targets.iter().map(|target| quoted(target)).collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let usable = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(usable).collect();
    let name = if name.trim_matches('.').is_empty() { "series".to_owned() } else { name };
    say!("no recipe: one is chosen for series, and written down in the run");
    let text = format!(
        "name = {}

[data]
kind = \"series\"
path = {}
target = [{}]
outputs = {horizon}

[model]
kind = \"mlp\"
hidden = [128, 128]
dropout = 0.1

[posterior]
kind = \"mc-dropout\"

[loss]
kind = \"gaussian-mixture\"

[train]
epochs = 60
patience = 12
samples = 8
batch = 128
clip_norm = 10.0
memory = \"retain\"

[optimizer]
kind = \"adam\"
rate = 2e-3

[schedule]
kind = \"cosine\"

[evaluate]
draws = 64
",
        quoted(&name),
        quoted(&path.to_string_lossy()),
        targets.join(", "),
    );
    (format!("chosen for {}", path.display()), text)
}
