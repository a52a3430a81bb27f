//! Maps of the globe over time: what to draw ([`MapSeries`]) and how it becomes HTML.

mod bar;
mod coast;
mod contour;
mod grid;
mod html;
mod palette;
mod range;
mod raster;

pub use coast::Coast;
pub use grid::MapGrid;

/// Script of a page with maps of more than one time or variable.
pub(crate) const SCRIPT: &str = include_str!("maps.js");

/// Maps of one or more variables at one or more times, with a slider for the time and a selector
/// for the variable. Without script the first time of the first variable is shown, on paper what
/// is chosen: the first, unless the reader has chosen another.
#[derive(Debug, Clone)]
pub struct MapSeries {
    /// Shown above the maps.
    pub title: String,
    /// Shown below the maps; empty for none.
    pub caption: String,
    /// Where the values of every field lie.
    pub grid: MapGrid,
    /// The coastline over every map.
    pub coast: Coast,
    /// The times, in the order of the slider. Without any, the first field of each panel is shown.
    pub times: Vec<MapTime>,
    /// The variables, in the order of the selector.
    pub variables: Vec<MapVariable>,
}

/// A time of a [`MapSeries`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapTime {
    /// Hours since the forecast began.
    pub lead: f64,
    /// The time for which the forecast is, in seconds since 1970-01-01 00:00 UTC.
    pub valid: Option<f64>,
}

/// A variable of a [`MapSeries`]: maps that are shown together.
#[derive(Debug, Clone, Default)]
pub struct MapVariable {
    /// Its name.
    pub name: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// Its maps, two to a row where the page is wide enough.
    pub panels: Vec<MapPanel>,
}

/// One map of a [`MapVariable`], at every time.
#[derive(Debug, Clone)]
pub struct MapPanel {
    /// What it shows, e.g. "Truth".
    pub title: String,
    /// How values become colours.
    pub scale: MapScale,
    /// What it shows at each time.
    pub fields: Vec<MapField>,
}

/// What a [`MapPanel`] shows at one time.
#[derive(Debug, Clone, Default)]
pub struct MapField {
    /// Values `[latitudes, longitudes]`, from north to south, from 0° eastwards. Values that are
    /// not finite leave the map grey.
    pub values: Vec<f32>,
    /// Shown above the map, e.g. a score; empty for the range of the values.
    pub note: String,
}

/// How the values of a [`MapPanel`] become colours. Panels of one variable that have the same scale
/// share one range of colours over all times, so that they can be compared. The outermost 0.1 % of
/// the values have the colours of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapScale {
    /// From dark to bright, between the least and the greatest value.
    Value,
    /// From blue over white at zero to red: a value with a sign, e.g. a component of the wind.
    SignedValue,
    /// From white at zero to dark: an uncertainty.
    Spread,
    /// From blue over white at zero to red: forecast minus truth.
    Error,
}

impl MapSeries {
    /// A series without coast, times and variables.
    pub fn new(title: impl Into<String>, grid: MapGrid) -> Self {
        Self {
            title: title.into(),
            caption: String::new(),
            grid,
            coast: Coast::None,
            times: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Sets the caption.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Sets the coastline.
    pub fn coast(mut self, coast: Coast) -> Self {
        self.coast = coast;
        self
    }

    /// Sets the times.
    pub fn times(mut self, times: impl IntoIterator<Item = MapTime>) -> Self {
        self.times = times.into_iter().collect();
        self
    }

    /// Appends a variable.
    pub fn with(mut self, variable: MapVariable) -> Self {
        self.variables.push(variable);
        self
    }

    /// The block of a page; `key` tells it from the other blocks there.
    pub(crate) fn to_html(&self, key: &str) -> String {
        html::figure(self, key)
    }

    /// Whether there is something to choose from.
    pub(crate) fn needs_script(&self) -> bool {
        self.times.len() > 1 || self.variables.len() > 1
    }
}

impl MapTime {
    /// The time `lead` hours after the forecast began.
    pub fn new(lead: f64) -> Self {
        Self { lead, valid: None }
    }

    /// Sets the time for which the forecast is, in seconds since 1970-01-01 00:00 UTC.
    pub fn valid(mut self, seconds: f64) -> Self {
        self.valid = Some(seconds);
        self
    }
}

impl MapVariable {
    /// A variable without unit and maps.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the unit.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Appends a map.
    pub fn with(mut self, panel: MapPanel) -> Self {
        self.panels.push(panel);
        self
    }
}

impl MapPanel {
    /// A map without fields.
    pub fn new(title: impl Into<String>, scale: MapScale) -> Self {
        Self { title: title.into(), scale, fields: Vec::new() }
    }

    /// Appends the field of the next time, with a note to be shown above it.
    pub fn field(mut self, values: Vec<f32>, note: impl Into<String>) -> Self {
        self.fields.push(MapField { values, note: note.into() });
        self
    }

    /// Appends the fields of the next times.
    pub fn fields(mut self, fields: impl IntoIterator<Item = Vec<f32>>) -> Self {
        let field = |values| MapField { values, note: String::new() };
        self.fields.extend(fields.into_iter().map(field));
        self
    }
}
