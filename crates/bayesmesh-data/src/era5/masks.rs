//! Constant fields: land, soil type, topography.

use super::error::Era5Error;
use super::statistics::Sum;
use super::store::Store;

/// The arrays that have them, as WeatherBench2 calls them.
pub(super) const NAMES: [&str; 3] = ["land_sea_mask", "soil_type", "geopotential_at_surface"];

/// How many of them there are.
pub const MASKS: usize = NAMES.len();

/// The constant fields of a store.
#[derive(Debug)]
pub(super) struct Masks {
    /// Land as it is.
    pub land: Option<Vec<f32>>,
    /// The channels: land as it is, soil type and topography with mean 0 and deviation 1; or none.
    pub channels: Vec<f32>,
}

impl Masks {
    pub fn read(store: &Store, wanted: bool) -> Result<Self, Era5Error> {
        let has_land = store.constants().iter().any(|name| name == NAMES[0]);
        if !wanted {
            let land = has_land.then(|| read(store, NAMES[0])).transpose()?;
            return Ok(Self { land, channels: Vec::new() });
        }
        let mut channels = Vec::new();
        let mut land = None;
        for (number, name) in NAMES.into_iter().enumerate() {
            let mut values = read(store, name)?;
            if number == 0 {
                land = Some(values.clone());
            } else {
                let mut sum = Sum::default();
                sum.add(&values);
                let moments = sum.moments();
                let scaled = |value: f32| ((f64::from(value) - moments.mean) / moments.std) as f32;
                values.iter_mut().for_each(|value| *value = scaled(*value));
            }
            channels.extend_from_slice(&values);
        }
        Ok(Self { land, channels })
    }
}

fn read(store: &Store, name: &str) -> Result<Vec<f32>, Era5Error> {
    let values = store.constant(name)?;
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(values),
        false => Err(Era5Error::ConstantNotFinite {
            store: store.location().to_owned(),
            name: name.to_owned(),
        }),
    }
}
