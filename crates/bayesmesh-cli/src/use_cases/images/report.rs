//! The report of images in folders.

use bayesmesh_report::{Block, Report, Section, format_number};

use super::Images;
use crate::tasks::classification::{
    certain_mistakes, confusion, entropies, headline, reliability, scores, sets, training,
    uncertain,
};
use crate::tasks::page;
use crate::use_cases::Reported;
use crate::use_cases::picture::png;

/// The page of a run.
pub fn report(run: &Reported<'_, Images>) -> Report {
    let Reported { case, assessment, .. } = *run;
    let test = &case.test;
    let picture: &dyn Fn(usize) -> Option<Vec<u8>> =
        &|row| Some(png(&test.planes(row).ok()?, test.size()));
    let sections = vec![
        Section::new("What it is wrong about")
            .text("The mistakes that it is surest of: what is there, and what it takes it for.")
            .with(Block::Images(certain_mistakes(assessment, picture))),
        Section::new("What it is not sure of")
            .text("The images with the highest entropy: what is there, and its best guesses.")
            .with(Block::Images(uncertain(assessment, picture))),
        training(run.metrics),
        Section::new("Calibration")
            .text(
                "Of the images that an honest network is 80 % sure of, it is right about eight out \
                 of ten; and it is less sure where it is wrong.",
            )
            .with(Block::Plot(reliability(assessment)))
            .with(Block::Plot(entropies(&assessment.predictions)))
            .with_all(sets(assessment).map(Block::Table)),
        Section::new("Classes")
            .text("What the images of each class are taken for.")
            .with(Block::Table(confusion(assessment))),
        Section::new("Scores").with(Block::Table(scores(assessment))),
    ];
    let lead = format!(
        "A Bayesian network says what is on an image and how sure it is. Scores are those of {} \
         test images that it has not seen, from {} draws.",
        format_number(assessment.predictions.len() as f64, 0),
        assessment.draws
    );
    page(run, lead, headline(assessment), sections, None)
}
