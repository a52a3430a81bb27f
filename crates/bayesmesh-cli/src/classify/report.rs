//! The report of a classification.

use bayesmesh_data::cifar10::{CLASSES, Corruption, Images};
use bayesmesh_report::{
    Axis, Block, Cell, Color, Gallery, Image, KeyFigure, Layer, Plot, Report, Rule, Section, Shape,
    Table, format_number,
};

use super::Classification;
use super::assess::{Assessment, Corrupted, SEVERITIES, corrupted};
use super::picture::png;
use super::predictions::Predictions;
use crate::curves;
use crate::recipe::Recipe;
use crate::run::MetricsTable;
use crate::use_case::RunFacts;

/// Images of a gallery: two rows of seven on a screen.
const SHOWN: usize = 14;

/// The page of a run.
pub fn report(
    recipe: &Recipe,
    images: &Classification,
    assessment: &Assessment,
    metrics: &MetricsTable,
    facts: &RunFacts,
) -> Report {
    let mut sections = vec![
        Section::new("What it is wrong about")
            .text("The mistakes that it is surest of: what is there, and what it takes it for.")
            .with(Block::Images(certain_mistakes(images, &assessment.predictions))),
        Section::new("What it is not sure of")
            .text("The images with the highest entropy: what is there, and its best guesses.")
            .with(Block::Images(uncertain(images, &assessment.predictions))),
        training(metrics),
        Section::new("Calibration")
            .text(
                "Of the images that an honest network is 80 % sure of, it is right about eight out \
                 of ten; and it is less sure where it is wrong.",
            )
            .with(Block::Plot(reliability(assessment)))
            .with(Block::Plot(entropies(&assessment.predictions))),
    ];
    if !assessment.corrupted.is_empty() {
        sections.push(unfamiliar(images, assessment));
    }
    sections.push(
        Section::new("Classes")
            .text("What the images of each class are taken for.")
            .with(Block::Table(confusion(assessment))),
    );
    sections.push(Section::new("Scores").with(Block::Table(scores(assessment))));
    sections.push(Section::new("What ran where").with(Block::Facts(facts.facts.clone())));
    Report {
        title: recipe.name.clone(),
        lead: format!(
            "A Bayesian vision transformer says what is on an image and how sure it is. Scores are \
             those of {} test images that it has not seen, from {} draws of its weights.",
            format_number(assessment.predictions.len() as f64, 0),
            assessment.draws
        ),
        headline: headline(recipe, assessment, facts),
        sections,
        footer: format!("Made by BayesMesh {}.", env!("CARGO_PKG_VERSION")),
    }
}

fn headline(recipe: &Recipe, assessment: &Assessment, facts: &RunFacts) -> Vec<KeyFigure> {
    let percent = |name: &str| format!("{:.1}", 100.0 * assessment.score(name));
    let mut headline = vec![
        KeyFigure::new("Accuracy", percent("accuracy")).unit("%").note("by chance: 10"),
        KeyFigure::new("NLL", format!("{:.3}", assessment.score("nll")))
            .unit("nats")
            .note(format!("by chance: {:.3}", (CLASSES.len() as f64).ln())),
        KeyFigure::new("Calibration error", percent("ece")).unit("%").note("expected, 15 bins"),
    ];
    if !assessment.corrupted.is_empty() {
        let auroc = format!("{:.3}", assessment.score("ood_auroc"));
        headline.push(KeyFigure::new("AUROC, corrupted", auroc).note("by chance: 0.5"));
    }
    if let Some(seconds) = facts.seconds {
        let (value, unit) = match seconds {
            s if s < 60.0 => (s, "s"),
            s if s < 3600.0 => (s / 60.0, "min"),
            s => (s / 3600.0, "h"),
        };
        let value = format!("{value:.1}");
        let note = format!("{} draws a step", recipe.train.samples);
        headline.push(KeyFigure::new("Training", value).unit(unit).note(note));
    }
    headline
}

/// A probability, which no line ends within.
fn percent(p: f32) -> String {
    format!("{:.0}\u{a0}%", 100.0 * p)
}

/// Wrong predictions, the surest first.
fn certain_mistakes(images: &Classification, predictions: &Predictions) -> Gallery {
    let mut wrong: Vec<usize> =
        (0..predictions.len()).filter(|&image| !predictions.is_right(image)).collect();
    wrong.sort_by(|&a, &b| predictions.top(b).1.total_cmp(&predictions.top(a).1));
    let image = |&row: &usize| {
        let (top, p) = predictions.top(row);
        let truth = CLASSES[predictions.labels[row]];
        let caption = format!("{truth}, taken for {} with {}", CLASSES[top], percent(p));
        Image { png: png(&images.test, row), caption }
    };
    let count = format_number(wrong.len() as f64, 0);
    let all = format_number(predictions.len() as f64, 0);
    Gallery {
        caption: format!("{count} of {all} test images are mistaken."),
        images: wrong.iter().take(SHOWN).map(image).collect(),
    }
}

/// All predictions, the least sure first.
fn uncertain(images: &Classification, predictions: &Predictions) -> Gallery {
    let mut rows: Vec<usize> = (0..predictions.len()).collect();
    rows.sort_by(|&a, &b| predictions.entropy[b].total_cmp(&predictions.entropy[a]));
    let image = |&row: &usize| {
        let guesses: Vec<String> = predictions.ranked(row)[..2]
            .iter()
            .map(|&(class, p)| format!("{} {}", CLASSES[class], percent(p)))
            .collect();
        let caption = format!("{}: {}", CLASSES[predictions.labels[row]], guesses.join(", "));
        Image { png: png(&images.test, row), caption }
    };
    Gallery {
        caption: format!(
            "The mean entropy is {:.2} nats; ten classes of equal probability have {:.2}.",
            predictions.entropy.iter().sum::<f64>() / predictions.len() as f64,
            (CLASSES.len() as f64).ln()
        ),
        images: rows.iter().take(SHOWN).map(image).collect(),
    }
}

fn training(metrics: &MetricsTable) -> Section {
    let score = |title: &str, axis: Axis, name: &str, unit: f64| {
        let points = curves::column(metrics, name).into_iter().map(|(x, y)| (x, unit * y));
        let points: Vec<(f64, f64)> = points.collect();
        Plot::new(title, Axis::linear("step"), axis)
            .shape(Shape::Half)
            .with(Layer::line("validation", points.clone(), Color::Orange))
            .with(Layer::points("validation", points, Color::Orange))
    };
    let nll = score("Validation NLL", Axis::linear("NLL").unit("nats"), "validation_nll", 1.0);
    let accuracy = score(
        "Validation accuracy",
        Axis::linear("accuracy").unit("%"),
        "validation_accuracy",
        100.0,
    );
    let section = Section::new("Training");
    match curves::column(metrics, "validation_nll").is_empty() {
        true => section.with(Block::Plot(curves::data_term(metrics).shape(Shape::Wide))),
        false => section
            .with(Block::Plot(curves::data_term(metrics)))
            .with(Block::Plot(nll))
            .with(Block::Plot(accuracy))
            .with(Block::Plot(curves::divergence(metrics))),
    }
}

fn reliability(assessment: &Assessment) -> Plot {
    let rows = &assessment.reliability;
    let mut edges: Vec<f64> = rows.iter().map(|row| row.lower).collect();
    edges.extend(rows.last().map(|row| row.upper));
    let accuracy: Vec<f64> = rows.iter().map(|row| row.accuracy).collect();
    let images = assessment.predictions.len() as f64;
    let shares = rows.iter().map(|row| (row.lower, row.count / images));
    let end = rows.last().map(|row| (row.upper, row.count / images));
    let share = |name: &str| Axis::linear(name).range(0.0, 1.0);
    Plot::new("Reliability", share("confidence"), share("accuracy"))
        .shape(Shape::Square)
        .caption(format!(
            "Expected calibration error {:.1} %, unweighted {:.1} %, largest {:.1} %, over classes \
             {:.1} %. Below the diagonal it is surer than it should be.",
            100.0 * assessment.score("ece"),
            100.0 * assessment.score("unweighted_calibration_error"),
            100.0 * assessment.score("maximum_calibration_error"),
            100.0 * assessment.score("classwise_calibration_error"),
        ))
        .with(Layer::histogram("accuracy", &edges, &accuracy, Color::Blue))
        .with(Layer::steps("share of images", shares.chain(end), Color::Orange))
        .with(Layer::rule("perfect", Rule::Diagonal))
}

fn entropies(predictions: &Predictions) -> Plot {
    const BINS: usize = 20;
    let top = (CLASSES.len() as f64).ln();
    let shares = |right: bool| -> Vec<f64> {
        let mut counts = [0.0; BINS];
        for image in (0..predictions.len()).filter(|&image| predictions.is_right(image) == right) {
            let bin = (predictions.entropy[image] / top * BINS as f64) as usize;
            counts[bin.min(BINS - 1)] += 1.0;
        }
        let all: f64 = counts.iter().sum();
        counts.iter().map(|count| 100.0 * count / all).collect()
    };
    let edges: Vec<f64> = (0..=BINS).map(|edge| edge as f64 / BINS as f64 * top).collect();
    let wrong = shares(false);
    let steps = edges.iter().copied().zip(wrong.iter().chain(wrong.last()).copied());
    Plot::new(
        "Entropy of predictions",
        Axis::linear("entropy").unit("nats").range(0.0, top),
        Axis::linear("share").unit("%"),
    )
    .shape(Shape::Square)
    .caption("Each group sums to 100 %. The further apart, the better mistakes can be foreseen.")
    .with(Layer::histogram("right", &edges, &shares(true), Color::Blue))
    .with(Layer::steps("wrong", steps, Color::Orange))
}

/// What corruptions do.
fn unfamiliar(images: &Classification, assessment: &Assessment) -> Section {
    let colors = [Color::Blue, Color::Orange, Color::Green];
    let curve =
        |plot: Plot, clean: f64, value: fn(&Corrupted) -> f64| {
            Corruption::ALL.into_iter().zip(colors).fold(plot, |plot, (corruption, color)| {
                let found = assessment.corrupted.iter().filter(|c| c.corruption == corruption);
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
    let accuracy =
        curve(accuracy, 100.0 * assessment.clean.accuracy, |c| 100.0 * c.outcome.accuracy);
    let detection =
        curve(detection, 0.5, |c| c.auroc).with(Layer::rule("chance", Rule::Horizontal(0.5)));
    Section::new("Unfamiliar images")
        .text(format!(
            "The first {} test images with noise, blurred and with less contrast. A network that \
             knows its limits is less sure of them.",
            format_number(assessment.clean.images as f64, 0)
        ))
        .with(Block::Plot(accuracy))
        .with(Block::Plot(detection))
        .with(Block::Images(made_worse(images, assessment)))
        .with(Block::Table(corruptions(assessment)))
}

/// The image that the network is surest of and right about, and what becomes of it.
fn made_worse(images: &Classification, assessment: &Assessment) -> Gallery {
    let clean = assessment.predictions.first(assessment.clean.images);
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
    let picture = |images: &Images, caption: String| Image { png: png(images, row), caption };
    let mut shown = vec![picture(&head, format!("as it is: {}", says(&clean)))];
    for found in assessment.corrupted.iter().filter(|c| c.severity > SEVERITIES[0]) {
        if let Ok(worse) = corrupted(&head, found.corruption, found.severity) {
            let name = format!("{} {}", found.corruption.name(), found.severity);
            shown.push(picture(&worse, format!("{name}: {}", says(&found.predictions))));
        }
    }
    Gallery {
        caption: "The image that it is surest of, and what it says of it when it is made worse."
            .into(),
        images: shown,
    }
}

fn corruptions(assessment: &Assessment) -> Table {
    let row = |name: String, outcome: &super::assess::Outcome, auroc: f64| {
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
    let mut rows = vec![row("as they are".to_owned(), &assessment.clean, f64::NAN)];
    for found in &assessment.corrupted {
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

fn confusion(assessment: &Assessment) -> Table {
    let row = |class: usize| {
        let counts = &assessment.confusion[class];
        let all: usize = counts.iter().sum();
        let cells = counts.iter().enumerate().map(|(taken, &count)| {
            let share = count as f64 / all as f64;
            // Mistakes are rarer than hits, and what is looked for.
            let shade = if taken == class { 0.6 * share } else { (2.0 * share).min(0.6) };
            Cell::shaded(100.0 * share, 0, shade)
        });
        std::iter::once(Cell::from(CLASSES[class])).chain(cells).collect()
    };
    Table {
        caption: "Rows are what is there, columns what it is taken for, in percent of the row."
            .into(),
        header: std::iter::once("").chain(CLASSES).map(Into::into).collect(),
        rows: (0..CLASSES.len()).map(row).collect(),
        highlight: None,
    }
}

fn scores(assessment: &Assessment) -> Table {
    let rows = [
        ("accuracy", "Accuracy (%)", "share of right predictions", 100.0, 2),
        ("nll", "NLL (nats)", "negative log-likelihood of the mean probabilities", 1.0, 4),
        ("brier", "Brier score", "squared error of the probabilities, 0 to 2", 1.0, 4),
        ("ece", "ECE (%)", "calibration error of the confidence, weighted by images", 100.0, 2),
        ("unweighted_calibration_error", "MACE (%)", "the same, every bin counting once", 100.0, 2),
        ("maximum_calibration_error", "MCE (%)", "the same, the worst bin", 100.0, 2),
        ("classwise_calibration_error", "Classwise ECE (%)", "mean over classes", 100.0, 2),
        ("entropy_right", "Entropy, right (nats)", "mean over right predictions", 1.0, 4),
        ("entropy_wrong", "Entropy, wrong (nats)", "mean over wrong predictions", 1.0, 4),
        (
            "mutual_information",
            "Disagreement (nats)",
            "mutual information of class and weights",
            1.0,
            4,
        ),
        ("error_auroc", "AUROC, mistakes", "wrong against right predictions by entropy", 1.0, 4),
        ("ood_auroc", "AUROC, corrupted", "corrupted against clean images by entropy", 1.0, 4),
    ];
    let known = rows.iter().filter(|row| assessment.scores.iter().any(|s| s.name == row.0));
    Table {
        caption: "Scores on the test images.".into(),
        header: ["Score", "Value", "What it is"].map(Into::into).into(),
        rows: known
            .map(|&(name, label, meaning, unit, decimals)| {
                let value = Cell::number(unit * assessment.score(name), decimals);
                vec![Cell::from(label), value, Cell::from(meaning)]
            })
            .collect(),
        highlight: Some(0),
    }
}
