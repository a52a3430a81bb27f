//! What a report holds.

use crate::gallery::Gallery;
use crate::map::MapSeries;
use crate::page;
use crate::plot::Plot;
use crate::table::Table;

/// A run report. All texts are plain text; what stands between backticks is set as code.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Heading of the page and title of its browser tab.
    pub title: String,
    /// One or two sentences under the title.
    pub lead: String,
    /// Three to five numbers that a reader should see first.
    pub headline: Vec<KeyFigure>,
    /// The body, from top to bottom.
    pub sections: Vec<Section>,
    /// Small print at the end of the page; empty for none.
    pub footer: String,
}

impl Report {
    /// The page as one HTML document without external resources.
    pub fn to_html(&self) -> String {
        page::document(self)
    }
}

/// A number shown large, with what it means.
#[derive(Debug, Clone, Default)]
pub struct KeyFigure {
    /// What the number is, e.g. "test RMSE".
    pub label: String,
    /// The number as it should be read, e.g. "1,274"; see [`crate::format_number`].
    pub value: String,
    /// Its unit, set smaller; empty for none.
    pub unit: String,
    /// Something to compare it with; empty for none.
    pub note: String,
}

impl KeyFigure {
    /// A figure without unit and note.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into(), ..Self::default() }
    }

    /// Sets the unit.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Sets the note.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// A titled part of the report.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// A paragraph under the heading.
    pub text: Option<String>,
    /// Its contents. Neighbouring plots of a shape other than [`crate::Shape::Wide`] stand side by
    /// side where the page is wide enough.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section without contents.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the paragraph under the heading.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Appends a block.
    pub fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Appends blocks, if there are any.
    pub fn with_all(mut self, blocks: impl IntoIterator<Item = Block>) -> Self {
        self.blocks.extend(blocks);
        self
    }
}

/// One piece of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// A chart.
    Plot(Plot),
    /// A table.
    Table(Table),
    /// Names and values, e.g. the settings of a run.
    Facts(Vec<(String, String)>),
    /// A remark that stands out from the text.
    Note(String),
    /// Images with captions.
    Images(Gallery),
    /// Maps of the globe over time.
    Maps(MapSeries),
}
