//! Reading stores: real ones, those that Python writes, and those that are damaged.
//!
//! Values and stores of Python's zarr are made by scripts/golden_zarr.py.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use bayesmesh_data::era5::{Era5Error, Missing, Store, Survey, Variable, parse_date, silent};
use bayesmesh_data::era5::{Fields, FieldsConfig, Split};
use bayesmesh_files::testing::Scratch;
use common::{assert_says, real};
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/era5").join(name)
}

fn open(path: &Path) -> Store {
    Store::open(path.to_str().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

fn time_of(store: &Store, date: &str) -> usize {
    let time = parse_date(date).unwrap();
    store.times().iter().position(|&known| known == time).unwrap_or_else(|| panic!("no {date}"))
}

/// The value of a field at a place.
fn at(store: &Store, field: &[f32], latitude: f64, longitude: f64) -> f32 {
    let find = |values: &[f64], wanted: f64| {
        values.iter().position(|value| (value - wanted).abs() < 1e-9).unwrap()
    };
    let row = find(store.grid().latitudes(), latitude);
    let column = find(store.grid().longitudes(), longitude);
    field[row * store.grid().longitudes().len() + column]
}

#[test]
fn every_way_to_store_it_is_the_same_weather() {
    for name in ["v2_lonlat", "v2_plain", "v2_packed", "v3_sharded", "v3_lonlat"] {
        let store = open(&fixture(&format!("{name}.zarr")));
        assert_eq!(store.grid().latitudes(), [60.0, 20.0, -20.0, -60.0], "{name}");
        assert_eq!(store.grid().longitudes(), [0.0, 60.0, 120.0, 180.0, 240.0, 300.0], "{name}");
        let first = parse_date("2020-02-28T18").unwrap();
        let times: Vec<i64> = (0..5).map(|t| first + t * 6 * 3600).collect();
        assert_eq!(store.times(), times, "{name}");
        assert_eq!(store.step().unwrap(), 6 * 3600, "{name}");
        let stored: Vec<_> =
            store.variables().iter().map(|v| (v.name.as_str(), &v.levels[..])).collect();
        assert_eq!(stored, [("2m_temperature", &[][..]), ("geopotential", &[500, 850])], "{name}");
        assert_eq!(store.variables()[1].units.as_deref(), Some("m**2 s**-2"));
        // Packed numbers are rounded to a step of 0.0005.
        let tolerance = if name == "v2_packed" { 0.0003 } else { 2e-5 };
        for t in 0..5 {
            let surface = store.read(&Variable::surface("2m_temperature"), t).unwrap();
            let upper =
                [500, 850].map(|p| store.read(&Variable::at("geopotential", p), t).unwrap());
            for (i, y) in store.grid().latitudes().iter().enumerate() {
                for (j, x) in store.grid().longitudes().iter().enumerate() {
                    let expected = 250.0 + t as f64 + y / 100.0 + x / 10_000.0;
                    let found = f64::from(surface[i * 6 + j]);
                    assert!((found - expected).abs() < tolerance, "{name} {t} {y} {x}: {found}");
                    for (p, field) in [500.0, 850.0].into_iter().zip(&upper) {
                        let expected = 40_000.0 + 1000.0 * t as f64 + p + y / 10.0 + x / 1000.0;
                        let found = f64::from(field[i * 6 + j]);
                        assert!((found - expected).abs() < 0.004, "{name} {t} {p}: {found}");
                    }
                }
            }
        }
        assert_eq!(store.constants(), ["land_sea_mask"], "{name}");
        let land = store.constant("land_sea_mask").unwrap();
        assert_eq!(land[..12], [1.0; 12], "{name}");
        assert_eq!(land[12..], [0.0; 12], "{name}");
    }
}

#[test]
fn real_stores_have_the_values_that_pythons_zarr_reads() {
    type Spot = (&'static str, &'static str, usize, f64, f64, f32);
    const GFS: &str = "weather/gfs_6h_240x121_2026-03-24_2026-05-06.zarr";
    const AT_850: &str = "weather/gfs_6h_240x121_with_850hPa_2026-04-19_2026-05-05.zarr";
    const ERA5: &str = "weather/era5_240x121_7to8h_2026-03-25_2026-03-31.zarr";
    const MONTHLY: &str = "weather/reanalysis_monthly_144x73_1981-12_2022-09.zarr";
    // As printed by scripts/golden_zarr.py: array[index], at these coordinates.
    let spots: [Spot; 7] = [
        (GFS, "10m_u_component_of_wind", 0, 0.0, 0.0, 0.652_343_75),
        (GFS, "10m_v_component_of_wind", 174, -85.5, 358.5, -3.167_968_8),
        (AT_850, "u_component_of_wind.850", 3, 48.0, 300.0, 9.171_875),
        (ERA5, "mean_sea_level_pressure", 23, 48.0, 12.0, 102_713.25),
        (MONTHLY, "geopotential.500", 489, -77.5, 42.5, 47_366.0),
        (
            "era5/era5_19590102T00_64x32_tl31_wb2layout.zarr",
            "specific_humidity.1000",
            0,
            24.919_928_629_948_62,
            56.25,
            0.007_931_255,
        ),
        (
            "era5/eraint_monthly_240x121_wb2layout.zarr",
            "geopotential.500",
            1,
            -40.5,
            115.5,
            54_049.945,
        ),
    ];
    for (path, variable, time, latitude, longitude, value) in spots {
        let Some(path) = real(path) else { continue };
        let store = open(&path);
        let field = store.read(&variable.parse().unwrap(), time).unwrap();
        assert_eq!(at(&store, &field, latitude, longitude), value, "{}", path.display());
    }
}

#[test]
fn real_stores_have_the_values_of_their_description() {
    // The table in ../shared/data/weather/README.md, rounded to 4 digits there.
    let spots = [
        (
            "gfs_6h_240x121_2026-03-24_2026-05-06",
            "10m_v_component_of_wind",
            "2026-04-20T06",
            45.0,
            180.0,
            12.9961,
        ),
        (
            "gfs_6h_240x121_2026-03-24_2026-05-06",
            "10m_u_component_of_wind",
            "2026-05-06T12",
            -51.0,
            330.0,
            12.8711,
        ),
        (
            "gfs_6h_240x121_with_850hPa_2026-04-19_2026-05-05",
            "u_component_of_wind.850",
            "2026-04-19T18",
            48.0,
            300.0,
            5.9414,
        ),
        (
            "era5_240x121_7to8h_2026-03-25_2026-03-31",
            "2m_temperature",
            "2026-03-25T00",
            48.0,
            12.0,
            275.4766,
        ),
        (
            "era5_240x121_7to8h_2026-03-25_2026-03-31",
            "10m_u_component_of_wind",
            "2026-03-26T12",
            45.0,
            180.0,
            -5.1914,
        ),
        (
            "reanalysis_monthly_144x73_1981-12_2022-09",
            "v_component_of_wind_200",
            "1997-01-01",
            35.0,
            140.0,
            5.8125,
        ),
        (
            "reanalysis_monthly_144x73_1981-12_2022-09",
            "temperature_sigma995",
            "2000-07-01",
            50.0,
            10.0,
            287.5,
        ),
    ];
    for (name, variable, date, latitude, longitude, value) in spots {
        let Some(path) = real(&format!("weather/{name}.zarr")) else { return };
        let store = open(&path);
        let field = store.read(&variable.parse().unwrap(), time_of(&store, date)).unwrap();
        let found = at(&store, &field, latitude, longitude);
        assert!((found - value).abs() < 6e-5, "{name} {variable} {date}: {found}");
    }
}

#[test]
fn irregular_and_unknown_times_are_refused_for_a_fixed_lead() {
    let refused = |path: &str, words: &[&str]| {
        let Some(path) = real(path) else { return };
        assert_says(open(&path).step().unwrap_err(), words);
    };
    refused(
        "weather/era5_240x121_7to8h_2026-03-25_2026-03-31.zarr",
        &["not equally spaced", "(8 h) where it is mostly 7 h", "2026-03-25T21:00:00Z"],
    );
    refused(
        "weather/reanalysis_monthly_144x73_1981-12_2022-09.zarr",
        &["not equally spaced", "1982-0"],
    );
    refused("era5/eraint_monthly_240x121_wb2layout.zarr", &["`time`", "no attribute `units`"]);
    refused("era5/era5_19590102T00_64x32_tl31_wb2layout.zarr", &["`time`", "a single time"]);
}

/// A copy of a store that can be spoilt.
struct Copy {
    _scratch: Scratch,
    path: PathBuf,
}

impl Copy {
    fn of(name: &str) -> Self {
        fn copy(from: &Path, to: &Path) {
            fs::create_dir(to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                let into = to.join(entry.file_name());
                match entry.path().is_dir() {
                    true => copy(&entry.path(), &into),
                    false => drop(fs::copy(entry.path(), into).unwrap()),
                }
            }
        }
        let scratch = Scratch::new();
        let path = scratch.path().join("store.zarr");
        copy(&fixture(name), &path);
        Self { _scratch: scratch, path }
    }

    /// Changes a file of JSON.
    fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.path.join(file);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(&path, value.to_string()).unwrap();
    }

    fn store(&self) -> Store {
        open(&self.path)
    }

    fn error(&self) -> Era5Error {
        Store::open(self.path.to_str().unwrap()).unwrap_err()
    }
}

fn temperature() -> Variable {
    Variable::surface("2m_temperature")
}

/// Examples of the temperature of a store.
fn examples(store: &Store, missing: Missing) -> Result<Fields, Era5Error> {
    let config = FieldsConfig { missing, ..FieldsConfig::new(vec![temperature()]) };
    let split =
        Split::Until { from: None, train: store.times()[3], valid: store.times()[3], test: None };
    match Fields::split(store, &config, &split, None, &mut silent) {
        Ok(parts) => Ok(parts.train),
        Err(error) => Err(error),
    }
}

#[test]
fn a_missing_chunk_is_named_with_variable_and_time() {
    let copy = Copy::of("v2_lonlat.zarr");
    fs::remove_file(copy.path.join("2m_temperature/1.1.1")).unwrap();
    let store = copy.store();
    assert!(store.read(&temperature(), 1).is_ok());
    let parts = [
        "store.zarr",
        "`2m_temperature` at 2020-02-29T06:00:00Z",
        "2m_temperature/1.1.1",
        "missing",
    ];
    assert_says(store.read(&temperature(), 2).unwrap_err(), &parts);
    for missing in [Missing::Refuse, Missing::LeaveOut] {
        assert_says(examples(&store, missing).unwrap_err(), &parts);
    }
    // A level of it names the level.
    fs::remove_file(copy.path.join("geopotential/0.1.0.0")).unwrap();
    let error = copy.store().read(&Variable::at("geopotential", 850), 0).unwrap_err();
    assert_says(error, &["`geopotential.850` at 2020-02-28T18:00:00Z", "geopotential/0.1.0.0"]);
    // Of a coordinate too.
    fs::remove_file(copy.path.join("time/0")).unwrap();
    assert_says(copy.error(), &["`time`", "missing"]);
}

#[test]
fn a_missing_shard_is_named_too() {
    for name in ["v3_sharded.zarr", "v3_lonlat.zarr"] {
        let copy = Copy::of(name);
        fs::remove_file(copy.path.join("2m_temperature/c/1/0/0")).unwrap();
        let store = copy.store();
        assert!(store.read(&temperature(), 3).is_ok());
        let error = store.read(&temperature(), 4).unwrap_err();
        assert_says(
            error,
            &["`2m_temperature` at 2020-02-29T18:00:00Z", "2m_temperature/c/1/0/0", "missing"],
        );
    }
}

#[test]
fn a_damaged_chunk_is_an_error() {
    for (name, file) in [("v2_lonlat.zarr", "0.0.0"), ("v3_sharded.zarr", "c/0/0/0")] {
        let copy = Copy::of(name);
        let path = copy.path.join("2m_temperature").join(file);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = copy.store().read(&temperature(), 0).unwrap_err();
        assert_says(
            error,
            &["`2m_temperature` at 2020-02-28T18:00:00Z", "cannot be decoded", file],
        );
    }
}

#[test]
fn a_gap_in_time_is_an_error() {
    let copy = Copy::of("v2_plain.zarr");
    // Five times as floats, days since 1970: the last one a day later.
    let days = |k: f64| 18_320.75 + 0.25 * k;
    let write = |times: [f64; 5]| {
        let bytes: Vec<u8> = times.into_iter().flat_map(f64::to_le_bytes).collect();
        fs::write(copy.path.join("time/0"), bytes).unwrap();
        copy.edit("time/.zarray", |meta| {
            meta["compressor"] = Value::Null;
            meta["filters"] = Value::Null;
        });
    };
    write([0.0, 1.0, 2.0, 3.0, 7.0].map(days));
    let words = ["a gap in time", "2020-02-29T12:00:00Z", "2020-03-01T12:00:00Z", "6 h apart"];
    assert_says(copy.store().step().unwrap_err(), &words);
    for missing in [Missing::Refuse, Missing::LeaveOut] {
        assert_says(examples(&copy.store(), missing).unwrap_err(), &words);
    }
    write([0.0, 1.0, 2.5, 3.0, 4.0].map(days));
    assert_says(copy.store().step().unwrap_err(), &["not equally spaced", "(9 h)"]);
    write([0.0, 2.0, 1.0, 3.0, 4.0].map(days));
    assert_says(copy.error(), &["times must ascend", "2020-02-29T00:00:00Z stands after"]);
}

#[test]
fn a_value_that_is_no_number_is_an_error_or_left_out() {
    let copy = Copy::of("v2_packed.zarr");
    // −32768 means missing; this is the offset of a value of time 2 that is far from it.
    copy.edit(".zmetadata", |all| {
        let fill = 250.0 + 2.0 + 0.6 + 0.012;
        let packed = ((fill - 252.0_f64) / 0.0005).round();
        all["metadata"]["2m_temperature/.zattrs"]["_FillValue"] = json!(packed);
    });
    let store = copy.store();
    let field = store.read(&temperature(), 2).unwrap();
    assert_eq!(field.iter().filter(|value| value.is_nan()).count(), 1);
    let error = examples(&store, Missing::Refuse).unwrap_err();
    assert_says(
        error,
        &["store.zarr", "`2m_temperature` at 2020-02-29T06:00:00Z", "1 of 24 values", "leave-out"],
    );
    // Of five times the third is missing: in the training part 0 → 1 is left, in the others
    // nothing.
    let error = examples(&store, Missing::LeaveOut).unwrap_err();
    assert_says(error, &["no example in the validation part"]);
}

#[test]
fn a_wrong_shape_is_an_error() {
    let copy = Copy::of("v2_plain.zarr");
    copy.edit("2m_temperature/.zarray", |meta| meta["shape"] = json!([5, 4, 7]));
    let error = copy.store().read(&temperature(), 0).unwrap_err();
    assert_says(
        error,
        &["`2m_temperature` with the dimensions", "has the shape [5, 4, 7]", "[5, 4, 6] values"],
    );
    let copy = Copy::of("v2_plain.zarr");
    copy.edit("2m_temperature/.zattrs", |meta| {
        meta["_ARRAY_DIMENSIONS"] = json!(["time", "latitude", "longitude", "level"]);
    });
    assert_says(copy.store().read(&temperature(), 0).unwrap_err(), &["has the shape [5, 4, 6]"]);
    let copy = Copy::of("v2_plain.zarr");
    copy.edit("longitude/.zarray", |meta| meta["shape"] = json!([5]));
    assert_says(copy.error(), &["`longitude`", "5 values that do not go around the globe"]);
}

#[test]
fn a_wrong_unit_is_an_error() {
    for (variable, units, words) in [
        ("2m_temperature", "degC", ["`K`", "add 273.15"]),
        ("geopotential.500", "m", ["`m**2 s**-2`", "multiply by 9.80665"]),
    ] {
        let copy = Copy::of("v3_sharded.zarr");
        let variable: Variable = variable.parse().unwrap();
        copy.edit(&format!("{}/zarr.json", variable.name), |meta| {
            meta["attributes"]["units"] = json!(units);
        });
        let store = copy.store();
        let error = store.check(&variable).unwrap_err();
        assert_says(&error, &words);
        assert_says(&error, &[&format!("is in `{units}`")]);
        let config = FieldsConfig::new(vec![variable]);
        let split = Split::Shares([0.4, 0.4, 0.2]);
        let error = Fields::split(&store, &config, &split, None, &mut silent).unwrap_err();
        assert_says(&error, &words);
    }
}

#[test]
fn what_is_not_there_is_named_with_what_is_like_it() {
    let store = open(&fixture("v2_lonlat.zarr"));
    let refused = |variable: &str, words: &[&str]| {
        assert_says(store.check(&variable.parse().unwrap()).unwrap_err(), words);
    };
    refused(
        "2m_temprature",
        &["did you mean `2m_temperature`?", "has 2m_temperature, geopotential"],
    );
    refused("geopotential.700", &["no level 700", "[500, 850]"]);
    refused("geopotential", &["has levels; name one, such as `geopotential.500`"]);
    refused("2m_temperature.500", &["has no levels; write `2m_temperature`"]);
    refused("land_sea_mask", &["no variable `land_sea_mask`"]);
    assert_says(
        store.constant("soil_type").unwrap_err(),
        &["no constant field `soil_type`", "it has land_sea_mask", "masks = false"],
    );
    let scratch = Scratch::new();
    let open = |path: &str| Store::open(path).unwrap_err();
    assert_says(
        open(scratch.path().to_str().unwrap()),
        &["no Zarr store here", "neither `.zmetadata`"],
    );
    assert_says(
        open("no/such/store.zarr"),
        &["no/such/store.zarr: no Zarr store", "no such folder"],
    );
    assert_says(open("s3://bucket/store.zarr"), &["`s3://` is not supported"]);
    assert_says(
        open(fixture("v3_sharded.zarr/time").to_str().unwrap()),
        &["is that of a single array"],
    );
}

#[test]
fn a_survey_says_what_is_there_and_what_is_wrong() {
    let copy = Copy::of("v2_lonlat.zarr");
    let survey = Survey::of(&copy.store(), None, &mut silent);
    assert!(survey.is_good(), "{survey}");
    assert_says(
        &survey,
        &[
            "grid: 6×4",
            "times: 5 from 2020-02-28T18:00:00Z to 2020-02-29T18:00:00Z, every 6 h",
            "geopotential: m**2 s**-2, levels [500, 850], 40494 to 44856.3 in 10 fields",
            "constant fields: land_sea_mask",
        ],
    );
    fs::remove_file(copy.path.join("2m_temperature/1.1.1")).unwrap();
    let survey = Survey::of(&copy.store(), Some(3), &mut silent);
    assert!(!survey.is_good());
    assert_says(&survey, &["2m_temperature: K", "chunk `2m_temperature/1.1.1` is missing"]);
    let Some(path) = real("weather/gfs_6h_240x121_2026-03-24_2026-05-06.zarr") else { return };
    let survey = Survey::of(&open(&path), None, &mut silent);
    let wind = &survey.variables[0];
    assert_eq!((wind.fields, wind.missing), (175, 1));
    assert_eq!(wind.first_missing, Some(parse_date("2026-04-08").unwrap()));
    assert_says(
        &survey,
        &["every 6 h", "1 with missing values, the first at 2026-04-08T00:00:00Z"],
    );
}
