//! Charts: what to draw ([`Plot`], [`Axis`], [`Layer`]) and how it becomes SVG.

mod axis;
pub(crate) mod calendar;
mod chart;
mod color;
mod domain;
mod frame;
mod labels;
mod layer;
mod legend;
mod marks;
pub(crate) mod path;
mod scale;
mod thin;
pub(crate) mod ticks;
mod time_ticks;

pub use axis::{Axis, ScaleKind};
pub use color::{Color, Stroke};
pub use layer::{Bar, Interval, Layer, Rule};

/// A chart: layers over a pair of axes, the first layer at the bottom.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Shown above the chart.
    pub title: String,
    /// Shown below the chart; empty for none.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, from back to front.
    pub layers: Vec<Layer>,
    /// How much room it takes.
    pub shape: Shape,
}

/// The room a [`Plot`] takes on a page that is wide enough. On a phone every plot has the full
/// width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// The full width of the page.
    #[default]
    Wide,
    /// Half the width, somewhat wider than high.
    Half,
    /// Half the width with a square drawing area, for axes that share a scale.
    Square,
}

impl Shape {
    /// Whether two such plots stand side by side.
    pub(crate) fn is_narrow(self) -> bool {
        self != Self::Wide
    }
}

impl Plot {
    /// An empty wide plot.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            caption: String::new(),
            x,
            y,
            layers: Vec::new(),
            shape: Shape::Wide,
        }
    }

    /// Sets the caption.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Sets the shape.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Adds a layer in front of the others.
    pub fn with(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds nested interval bands, the widest at the back; see [`Interval`].
    pub fn with_fan(mut self, intervals: Vec<Interval>, color: Color) -> Self {
        self.layers.extend(layer::fan(intervals, color));
        self
    }

    /// The chart as an SVG file with its own style, for use outside a report.
    pub fn to_svg(&self) -> String {
        chart::standalone(self)
    }

    /// The chart as SVG elements for a page that holds the style: none without data, two for a
    /// wide plot, of which the page shows the one that suits its width.
    pub(crate) fn charts(&self) -> Vec<String> {
        chart::inline(self)
    }
}
