//! Classifications as a file.

use anyhow::Result;
use bayesmesh::Dataset as _;
use bayesmesh_data::cifar10::CLASSES;
use serde_json::{Value, json};

use super::Classification;
use super::predictions::Predictions;
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::recipe::{Data, Recipe};
use crate::say::say;
use crate::table_file::{self, TableFile, npy};

/// Classifies test images with a trained run.
pub fn predict(run: &TrainedRun<'_, Classification>, arguments: &args::Predict) -> Result<Value> {
    let out = &arguments.out;
    let format = TableFile::of(out)?;
    if arguments.every.is_some() || !arguments.quantiles.is_empty() {
        let message = "--every and --quantiles are for forecasts; images have --limit N";
        return Err(Usage(message.to_owned()).into());
    }
    let case = Classification::new(&recipe_of(run, arguments)?)?;
    let images = match arguments.limit {
        Some(limit) => case.first_test_images(limit)?,
        None => case.test,
    };
    run.job.agree_on_examples(&images)?;
    let draws = arguments.draws.unwrap_or(run.recipe.evaluate.draws);
    let predictions = Predictions::of(&run.trainer, &images, draws)?;
    let bytes = match format {
        TableFile::Csv => csv(&predictions),
        TableFile::Npy => numbers(&predictions),
    };
    if run.job.leads() {
        table_file::write(out, &bytes)?;
    }
    say!("{} images: {}", images.len(), out.display());
    Ok(json!({ "out": out, "images": images.len(), "draws": draws, "columns": columns() }))
}

/// The recipe of the run with the images that were asked for.
fn recipe_of(run: &TrainedRun<'_, Classification>, arguments: &args::Predict) -> Result<Recipe> {
    let mut recipe = run.recipe.clone();
    if let Some(folder) = &arguments.input {
        let Some(folder) = folder.to_str() else {
            let name = folder.display();
            return Err(Usage(format!("{name}: the name of the folder is not UTF-8")).into());
        };
        let images = recipe.data.images().expect("images are classified").clone();
        let path = folder.to_owned();
        recipe.data = Data::Cifar10 { path, limit: None, test_limit: None, images };
    }
    Ok(recipe)
}

fn columns() -> Vec<String> {
    let first = ["image", "label", "predicted", "entropy", "mutual_information"];
    let first = first.into_iter().map(str::to_owned);
    first.chain(CLASSES.iter().map(|class| format!("p_{class}"))).collect()
}

/// One line an image: its number in the file, classes by name, entropies in nats, probabilities.
fn csv(predictions: &Predictions) -> Vec<u8> {
    let mut text = columns().join(",") + "\n";
    for image in 0..predictions.len() {
        let [label, top] = [predictions.labels[image], predictions.top(image).0];
        let [entropy, mutual] = [predictions.entropy[image], predictions.mutual_information[image]];
        text += &format!("{image},{},{},{entropy:.6},{mutual:.6}", CLASSES[label], CLASSES[top]);
        for p in predictions.row(image) {
            text += &format!(",{p:.6}");
        }
        text.push('\n');
    }
    text.into_bytes()
}

/// The same as numbers, classes from 0 to 9: `[images, columns]`.
fn numbers(predictions: &Predictions) -> Vec<u8> {
    let mut values = Vec::new();
    for image in 0..predictions.len() {
        let [label, top] = [predictions.labels[image], predictions.top(image).0];
        values.extend([image as f32, label as f32, top as f32]);
        values.extend(
            [predictions.entropy[image], predictions.mutual_information[image]].map(|h| h as f32),
        );
        values.extend(predictions.row(image));
    }
    npy(&[predictions.len(), columns().len()], &values)
}
