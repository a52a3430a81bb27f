//! Images that a report shows, with what is said of them.

use bayesmesh_report::{Gallery, Image, format_number};

use super::{ClassificationAssessment, Predictions};

/// Images of a gallery: two rows of seven on a screen.
const SHOWN: usize = 14;

/// The PNG file of a test image; nothing where it cannot be had.
pub type Picture<'a> = &'a dyn Fn(usize) -> Option<Vec<u8>>;

/// A probability, which no line ends within.
pub fn percent(p: f32) -> String {
    format!("{:.0}\u{a0}%", 100.0 * p)
}

fn gallery(
    caption: String,
    rows: &[usize],
    picture: Picture<'_>,
    words: impl Fn(usize) -> String,
) -> Gallery {
    let image = |&row: &usize| Some(Image { png: picture(row)?, caption: words(row) });
    Gallery { caption, images: rows.iter().take(SHOWN).filter_map(image).collect() }
}

/// Wrong predictions, the surest first.
pub fn certain_mistakes(assessment: &ClassificationAssessment, picture: Picture<'_>) -> Gallery {
    let (predictions, classes) = (&assessment.predictions, &assessment.classes);
    let mut wrong: Vec<usize> =
        (0..predictions.len()).filter(|&image| !predictions.is_right(image)).collect();
    wrong.sort_by(|&a, &b| predictions.top(b).1.total_cmp(&predictions.top(a).1));
    let count = format_number(wrong.len() as f64, 0);
    let all = format_number(predictions.len() as f64, 0);
    let caption = match wrong.len() {
        0 => format!("None of {all} test images is mistaken."),
        1 => format!("One of {all} test images is mistaken."),
        _ => format!("{count} of {all} test images are mistaken."),
    };
    gallery(caption, &wrong, picture, |row| {
        let (top, p) = predictions.top(row);
        let truth = &classes[predictions.labels[row]];
        format!("{truth}, taken for {} with {}", classes[top], percent(p))
    })
}

/// All predictions, the least sure first.
pub fn uncertain(assessment: &ClassificationAssessment, picture: Picture<'_>) -> Gallery {
    let (predictions, classes) = (&assessment.predictions, &assessment.classes);
    let mut rows: Vec<usize> = (0..predictions.len()).collect();
    rows.sort_by(|&a, &b| predictions.entropy[b].total_cmp(&predictions.entropy[a]));
    let caption = format!(
        "The mean entropy is {:.2} nats; {} classes of equal probability have {:.2}.",
        predictions.entropy.iter().sum::<f64>() / predictions.len() as f64,
        in_words(classes.len()),
        (classes.len() as f64).ln()
    );
    gallery(caption, &rows, picture, |row| guesses(predictions, classes, row))
}

/// What is there, and the two best guesses.
fn guesses(predictions: &Predictions, classes: &[String], row: usize) -> String {
    let ranked = predictions.ranked(row);
    let best =
        ranked.iter().take(2).map(|&(class, p)| format!("{} {}", classes[class], percent(p)));
    let best: Vec<String> = best.collect();
    format!("{}: {}", classes[predictions.labels[row]], best.join(", "))
}

/// A small number as a word.
fn in_words(number: usize) -> String {
    const WORDS: [&str; 11] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).to_owned())
}
