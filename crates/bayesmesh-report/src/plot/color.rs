//! Colours and strokes.

/// A colour of the palette, which has a light and a dark value each.
///
/// Every pair stays apart under the common colour-vision deficiencies (CIE76 distance of at least
/// 15 in simulation), and every colour has a contrast of at least 3 to the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// The first choice for what the model says.
    Blue,
    /// The first choice for what is compared with it.
    Orange,
    /// A third series.
    Green,
    /// A fourth series.
    Purple,
    /// A fifth series.
    Gold,
    /// The colour of text: observed truth.
    Ink,
    /// References and things of lesser weight.
    Grey,
}

impl Color {
    /// The class that sets the style's variable `--c` to this colour.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Blue => "c-blue",
            Self::Orange => "c-orange",
            Self::Green => "c-green",
            Self::Purple => "c-purple",
            Self::Gold => "c-gold",
            Self::Ink => "c-ink",
            Self::Grey => "c-grey",
        }
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stroke {
    /// Unbroken.
    #[default]
    Solid,
    /// Unbroken and light, e.g. raw values behind a smoothed line.
    Thin,
    /// Dashes.
    Dashed,
    /// Dots.
    Dotted,
}

impl Stroke {
    /// The classes of a line drawn so.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Solid => "line",
            Self::Thin => "line thin",
            Self::Dashed => "line dashed",
            Self::Dotted => "line dotted",
        }
    }
}
