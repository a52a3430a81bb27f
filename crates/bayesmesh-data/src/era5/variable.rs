//! Names of variables, and what is known about those of ERA5.

use std::fmt;
use std::str::FromStr;

use super::error::Era5Error;

/// The pressure levels of Pangu-Weather in hPa, in the order of [`pangu69`].
pub const PANGU_LEVELS: [u32; 13] =
    [1000, 925, 850, 700, 600, 500, 400, 300, 250, 200, 150, 100, 50];

/// A field of a store: a variable, at a pressure level where it has several.
///
/// ```
/// use bayesmesh_data::era5::Variable;
///
/// let variable: Variable = "geopotential.500".parse().unwrap();
/// assert_eq!(variable, Variable::at("geopotential", 500));
/// assert_eq!(Variable::surface("2m_temperature").to_string(), "2m_temperature");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable {
    /// The name of its array.
    pub name: String,
    /// The pressure level in hPa, if the array has levels.
    pub level: Option<u32>,
}

impl Variable {
    /// One without levels.
    pub fn surface(name: impl Into<String>) -> Self {
        Self { name: name.into(), level: None }
    }

    /// One at a level, in hPa.
    pub fn at(name: impl Into<String>, level: u32) -> Self {
        Self { name: name.into(), level: Some(level) }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            None => f.write_str(&self.name),
            Some(level) => write!(f, "{}.{level}", self.name),
        }
    }
}

impl FromStr for Variable {
    type Err = Era5Error;

    fn from_str(text: &str) -> Result<Self, Era5Error> {
        let refused = || {
            Era5Error::Setting(format!(
                "`{text}` is no variable; write a name such as `2m_temperature`, or a name and a \
                 level in hPa such as `geopotential.500`"
            ))
        };
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        let (name, level) = match text.split_once('.') {
            None => (text, None),
            Some((name, level)) => (name, Some(level.parse().map_err(|_| refused())?)),
        };
        match is_name(name) {
            true => Ok(Self { name: name.to_owned(), level }),
            false => Err(refused()),
        }
    }
}

/// The 69 variables of Pangu-Weather in our order: `mean_sea_level_pressure`,
/// `10m_u_component_of_wind`, `10m_v_component_of_wind`, `2m_temperature`, then `geopotential`,
/// `specific_humidity`, `temperature`, `u_component_of_wind` and `v_component_of_wind`, each at
/// [`PANGU_LEVELS`].
pub fn pangu69() -> Vec<Variable> {
    let surface = [
        "mean_sea_level_pressure",
        "10m_u_component_of_wind",
        "10m_v_component_of_wind",
        "2m_temperature",
    ];
    let upper = [
        "geopotential",
        "specific_humidity",
        "temperature",
        "u_component_of_wind",
        "v_component_of_wind",
    ];
    let surface = surface.into_iter().map(Variable::surface);
    let upper = upper
        .into_iter()
        .flat_map(|name| PANGU_LEVELS.into_iter().map(move |level| Variable::at(name, level)));
    surface.chain(upper).collect()
}

/// What is known of a variable of ERA5.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub name: &'static str,
    /// As ECMWF writes it.
    pub units: &'static str,
    /// Of the CF conventions, where they have one.
    pub standard_name: Option<&'static str>,
    pub long_name: &'static str,
}

const fn known(
    name: &'static str,
    units: &'static str,
    standard_name: &'static str,
    long_name: &'static str,
) -> Known {
    let standard_name = if standard_name.is_empty() { None } else { Some(standard_name) };
    Known { name, units, standard_name, long_name }
}

const KNOWN: [Known; 17] = [
    known(
        "mean_sea_level_pressure",
        "Pa",
        "air_pressure_at_mean_sea_level",
        "Mean sea level pressure",
    ),
    known("surface_pressure", "Pa", "surface_air_pressure", "Surface pressure"),
    known("10m_u_component_of_wind", "m s**-1", "eastward_wind", "10 metre U wind component"),
    known("10m_v_component_of_wind", "m s**-1", "northward_wind", "10 metre V wind component"),
    known("2m_temperature", "K", "air_temperature", "2 metre temperature"),
    known("2m_dewpoint_temperature", "K", "dew_point_temperature", "2 metre dewpoint temperature"),
    known("sea_surface_temperature", "K", "sea_surface_temperature", "Sea surface temperature"),
    known("total_precipitation_6hr", "m", "", "Total precipitation in 6 hours"),
    known("total_precipitation_1hr", "m", "", "Total precipitation in an hour"),
    known("geopotential", "m**2 s**-2", "geopotential", "Geopotential"),
    known("specific_humidity", "kg kg**-1", "specific_humidity", "Specific humidity"),
    known("temperature", "K", "air_temperature", "Temperature"),
    known("u_component_of_wind", "m s**-1", "eastward_wind", "U component of wind"),
    known("v_component_of_wind", "m s**-1", "northward_wind", "V component of wind"),
    known(
        "vertical_velocity",
        "Pa s**-1",
        "lagrangian_tendency_of_air_pressure",
        "Vertical velocity",
    ),
    known("geopotential_at_surface", "m**2 s**-2", "surface_geopotential", "Surface geopotential"),
    known("land_sea_mask", "(0 - 1)", "land_binary_mask", "Land-sea mask"),
];

/// What is known of a variable, if anything.
pub(super) fn known_of(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// How ECMWF's units are written elsewhere: without blanks, `**`, `^` and case.
fn plain(units: &str) -> String {
    let mut units = units.to_ascii_lowercase();
    for (from, to) in [("**", ""), ("^", ""), (" ", ""), ("·", ""), (".", ""), ("²", "2")] {
        units = units.replace(from, to);
    }
    match units.as_str() {
        "m/s" | "meters/second" | "metrespersecond" => "ms-1".to_owned(),
        "m2/s2" | "j/kg" | "jkg-1" => "m2s-2".to_owned(),
        "kg/kg" | "1" | "gg-1" | "dimensionless" => "kgkg-1".to_owned(),
        "pa/s" => "pas-1".to_owned(),
        "kelvin" | "degk" | "degreesk" => "k".to_owned(),
        "pascal" | "pascals" | "nm-2" => "pa".to_owned(),
        "meter" | "metre" | "meters" | "metres" => "m".to_owned(),
        _ => units,
    }
}

/// Whether a variable that ERA5 has is stated in another unit: the unit it should have, and how to
/// get there.
pub(super) fn wrong_units(name: &str, found: &str) -> Option<(&'static str, &'static str)> {
    let known = known_of(name)?;
    if known.units.starts_with('(') || plain(known.units) == plain(found) {
        return None;
    }
    let hint = match (plain(known.units).as_str(), plain(found).as_str()) {
        ("k", "c" | "degc" | "°c" | "celsius" | "degrees_celsius" | "degreescelsius") => {
            " (add 273.15)"
        }
        ("pa", "hpa" | "mbar" | "millibar" | "mb") => " (multiply by 100)",
        ("m2s-2", "m" | "gpm") => " (a height; multiply by 9.80665)",
        ("kgkg-1", "g/kg" | "gkg-1") => " (divide by 1000)",
        ("ms-1", "km/h" | "kmh-1") => " (divide by 3.6)",
        ("ms-1", "kt" | "kts" | "knot" | "knots") => " (multiply by 0.514444)",
        ("m", "mm") => " (divide by 1000)",
        _ => "",
    };
    Some((known.units, hint))
}

/// The name most like this one, if one is like it: at most a third of its letters differ, or one is
/// a part of the other.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let best = names.into_iter().map(|other| (distance(name, other), other)).min()?;
    let (distance, other) = best;
    let near = 3 * distance <= name.chars().count().max(other.chars().count());
    let part = name.len() > 3 && (other.contains(name) || name.contains(other));
    (near || part).then(|| other.to_owned())
}

/// How many letters must be inserted, removed or replaced to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["2m_temperature", "geopotential.500", "v_component_of_wind_200"] {
            assert_eq!(text.parse::<Variable>().unwrap().to_string(), text);
        }
        for text in
            ["", ".500", "geopotential.", "geopotential.x", "geopotential.500.1", "a/b", "../a"]
        {
            let error = text.parse::<Variable>().unwrap_err().to_string();
            assert!(error.contains("is no variable"), "{text}: {error}");
        }
    }

    #[test]
    fn pangu_has_69_variables_surface_first() {
        let all = pangu69();
        assert_eq!(all.len(), 69);
        assert_eq!(all[3], Variable::surface("2m_temperature"));
        assert_eq!(all[4], Variable::at("geopotential", 1000));
        assert_eq!(all[68], Variable::at("v_component_of_wind", 50));
        let unique: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), 69);
    }

    #[test]
    fn units_are_known_in_several_spellings() {
        for units in ["m s**-1", "m s-1", "m/s", "m s^-1", "m.s-1"] {
            assert!(wrong_units("u_component_of_wind", units).is_none(), "{units}");
        }
        assert!(wrong_units("geopotential", "m2 s-2").is_none());
        assert!(wrong_units("something", "furlongs").is_none());
        assert_eq!(wrong_units("2m_temperature", "degC"), Some(("K", " (add 273.15)")));
        assert_eq!(wrong_units("geopotential", "m").unwrap().0, "m**2 s**-2");
        assert_eq!(
            wrong_units("mean_sea_level_pressure", "hPa"),
            Some(("Pa", " (multiply by 100)"))
        );
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        let names = ["2m_temperature", "geopotential", "10m_u_component_of_wind"];
        assert_eq!(nearest("2m_temprature", names).as_deref(), Some("2m_temperature"));
        assert_eq!(nearest("temperature", names).as_deref(), Some("2m_temperature"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
