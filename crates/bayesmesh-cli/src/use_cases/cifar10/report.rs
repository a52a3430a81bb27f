//! The report of CIFAR-10.

use bayesmesh_data::cifar10::{CLASSES, Corruption, Images, SIDE};
use bayesmesh_report::{
    Axis, Block, Cell, Color, Gallery, Image, KeyFigure, Layer, Plot, Report, Rule, Section, Shape,
    Table, format_number,
};

use super::Cifar10;
use super::corrupted::{Corrupted, Extras, SEVERITIES, corrupt};
use crate::tasks::classification::{
    ClassificationAssessment, Outcome, Predictions, certain_mistakes, confusion, entropies,
    headline, percent, reliability, scores, sets, training, uncertain,
};
use crate::tasks::{find, page};
use crate::use_cases::picture::png;
use crate::use_cases::{Reported, UseCase as _};

/// The page of a run.
pub fn report(run: &Reported<'_, Cifar10>) -> Report {
    let Reported { case: images, assessment, extras, .. } = *run;
    let shown: &dyn Fn(usize) -> Option<Vec<u8>> = &|row| Some(picture(&images.test, row));
    let mut sections = vec![
        Section::new("What it is wrong about")
            .text("The mistakes that it is surest of: what is there, and what it takes it for.")
            .with(Block::Images(certain_mistakes(assessment, shown))),
        Section::new("What it is not sure of")
            .text("The images with the highest entropy: what is there, and its best guesses.")
            .with(Block::Images(uncertain(assessment, shown))),
        training(run.metrics),
        Section::new("Calibration")
            .text(
                "Of the images that an honest network is 80 % sure of, it is right about eight out \
                 of ten; and it is less sure where it is wrong.",
            )
            .with(Block::Plot(reliability(assessment)))
            .with(Block::Plot(entropies(&assessment.predictions)))
            .with_all(sets(assessment).map(Block::Table)),
    ];
    let mut figures = headline(assessment);
    if !extras.corrupted.is_empty() {
        sections.push(unfamiliar(images, assessment, extras));
        let auroc = format!("{:.3}", ood_auroc(extras));
        figures.push(KeyFigure::new("AUROC, corrupted", auroc).note("by chance: 0.5"));
    }
    sections.push(
        Section::new("Classes")
            .text("What the images of each class are taken for.")
            .with(Block::Table(confusion(assessment))),
    );
    let mut table = scores(assessment);
    if !extras.corrupted.is_empty() {
        table.rows.push(vec![
            Cell::from("AUROC, corrupted"),
            Cell::number(ood_auroc(extras), 4),
            Cell::from("corrupted against clean images by entropy"),
        ]);
    }
    sections.push(Section::new("Scores").with(Block::Table(table)));
    let lead = format!(
        "A Bayesian vision transformer says what is on an image and how sure it is. Scores are \
         those of {} test images that it has not seen, from {} draws of its weights.",
        format_number(assessment.predictions.len() as f64, 0),
        assessment.draws
    );
    page(run, lead, figures, sections, None)
}

fn ood_auroc(extras: &Extras) -> f64 {
    find(&Cifar10::extra_scores(extras), "ood_auroc")
}

/// The PNG file of an image.
fn picture(images: &Images, row: usize) -> Vec<u8> {
    png(images.raw(row).0, SIDE)
}

/// What corruptions do.
fn unfamiliar(images: &Cifar10, assessment: &ClassificationAssessment, extras: &Extras) -> Section {
    let colors = [Color::Blue, Color::Orange, Color::Green];
    let curve =
        |plot: Plot, clean: f64, value: fn(&Corrupted) -> f64| {
            Corruption::ALL.into_iter().zip(colors).fold(plot, |plot, (corruption, color)| {
                let found = extras.corrupted.iter().filter(|c| c.corruption == corruption);
                let points: Vec<(f64, f64)> = std::iter::once((0.0, clean))
                    .chain(found.map(|c| (f64::from(c.severity), value(c))))
                    .collect();
                plot.with(Layer::line(corruption.name(), points.clone(), color))
                    .with(Layer::points(corruption.name(), points, color))
            })
        };
    let severity = || Axis::linear("severity").range(0.0, 5.0);
    let accuracy =
        Plot::new("Accuracy", severity(), Axis::linear("accuracy").unit("%")).shape(Shape::Half);
    let detection = Plot::new("Told apart by entropy", severity(), Axis::linear("AUROC"))
        .shape(Shape::Half)
        .caption("The probability that a corrupted image has a higher entropy than a clean one.");
    let accuracy = curve(accuracy, 100.0 * extras.clean.accuracy, |c| 100.0 * c.outcome.accuracy);
    let detection =
        curve(detection, 0.5, |c| c.auroc).with(Layer::rule("chance", Rule::Horizontal(0.5)));
    Section::new("Unfamiliar images")
        .text(format!(
            "The first {} test images with noise, blurred and with less contrast. A network that \
             knows its limits is less sure of them.",
            format_number(extras.clean.examples as f64, 0)
        ))
        .with(Block::Plot(accuracy))
        .with(Block::Plot(detection))
        .with(Block::Images(made_worse(images, assessment, extras)))
        .with(Block::Table(corruptions(extras)))
}

/// The image that the network is surest of and right about, and what becomes of it.
fn made_worse(images: &Cifar10, assessment: &ClassificationAssessment, extras: &Extras) -> Gallery {
    let clean = assessment.predictions.first(extras.clean.examples);
    let right = (0..clean.len()).filter(|&image| clean.is_right(image));
    let surest = right.max_by(|&a, &b| clean.top(a).1.total_cmp(&clean.top(b).1));
    let head = images.first_test_images(clean.len());
    let (Some(row), Ok(head)) = (surest, head) else {
        return Gallery::default();
    };
    let says = |predictions: &Predictions| {
        let (top, p) = predictions.top(row);
        format!("{} {}", CLASSES[top], percent(p))
    };
    let shown_as = |images: &Images, caption: String| Image { png: picture(images, row), caption };
    let mut shown = vec![shown_as(&head, format!("as it is: {}", says(&clean)))];
    for found in extras.corrupted.iter().filter(|c| c.severity > SEVERITIES[0]) {
        if let Ok(worse) = corrupt(&head, found.corruption, found.severity) {
            let name = format!("{} {}", found.corruption.name(), found.severity);
            shown.push(shown_as(&worse, format!("{name}: {}", says(&found.predictions))));
        }
    }
    Gallery {
        caption: "The image that it is surest of, and what it says of it when it is made worse."
            .into(),
        images: shown,
    }
}

fn corruptions(extras: &Extras) -> Table {
    let row = |name: String, outcome: &Outcome, auroc: f64| {
        vec![
            Cell::from(name),
            Cell::number(100.0 * outcome.accuracy, 1),
            Cell::number(outcome.nll, 3),
            Cell::number(100.0 * outcome.ece, 1),
            Cell::number(outcome.entropy, 3),
            Cell::number(outcome.mutual_information, 4),
            Cell::number(auroc, 3),
        ]
    };
    let mut rows = vec![row("as they are".to_owned(), &extras.clean, f64::NAN)];
    for found in &extras.corrupted {
        let name = format!("{}, severity {}", found.corruption.name(), found.severity);
        rows.push(row(name, &found.outcome, found.auroc));
    }
    Table {
        caption: "Entropy and the part of it that comes from draws that disagree, in nats; AUROC \
                  against the images as they are."
            .into(),
        header: ["Images", "Accuracy (%)", "NLL", "ECE (%)", "Entropy", "Disagreement", "AUROC"]
            .map(Into::into)
            .into(),
        rows,
        highlight: Some(0),
    }
}
