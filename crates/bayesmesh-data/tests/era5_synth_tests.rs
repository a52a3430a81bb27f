//! Made-up weather: what it says of its best forecast is so.

mod common;

use std::f64::consts::PI;

use bayesmesh_data::era5::{Best, Store, SynthConfig, Synthetic, Variable, silent};
use bayesmesh_files::testing::Scratch;
use common::assert_says;

fn small() -> SynthConfig {
    SynthConfig { latitudes: 12, longitudes: 24, steps: 600, ..SynthConfig::default() }
}

#[test]
fn the_best_forecast_errs_by_the_stated_deviation_and_nothing_else_is_left() {
    let synthetic = Synthetic::new(small()).unwrap();
    let store = synthetic.store(&mut silent).unwrap();
    for variable in &small().variables {
        let best = synthetic.best(variable).unwrap();
        assert_eq!(Best::of(&store, variable), Some(best));
        let fields: Vec<Vec<f32>> = (0..600).map(|t| store.read(variable, t).unwrap()).collect();
        for steps in [1, 4] {
            let (mut square, mut mean, mut count) = (0.0, 0.0, 0.0);
            let (mut lagged, mut rows) = (0.0, vec![0.0; 12]);
            let mut before: Option<Vec<f64>> = None;
            for t in 0..600 - steps {
                let forecast =
                    synthetic.best_mean(variable, &fields[t], store.times()[t], steps).unwrap();
                let errors: Vec<f64> =
                    fields[t + steps].iter().zip(forecast).map(|(x, f)| f64::from(x - f)).collect();
                for (i, error) in errors.iter().enumerate() {
                    square += error * error;
                    mean += error;
                    count += 1.0;
                    rows[i / 24] += error * error / (24.0 * (600 - steps) as f64);
                }
                if let Some(before) = &before {
                    lagged += errors.iter().zip(before).map(|(a, b)| a * b).sum::<f64>();
                }
                before = Some(errors);
            }
            let std = best.std(steps);
            let found = (square / count).sqrt();
            // Some 30 independent patches in each of 600 fields: the deviation is known to 1 %.
            assert!((found / std - 1.0).abs() < 0.03, "{variable} {steps}: {found} and {std}");
            assert!((mean / count).abs() < 0.1 * std, "{variable}: {}", mean / count);
            for row in rows {
                assert!(
                    (row.sqrt() / std - 1.0).abs() < 0.15,
                    "{variable}: {} and {std}",
                    row.sqrt()
                );
            }
            if steps == 1 {
                // Errors one step ahead are new each time.
                assert!((lagged / square).abs() < 0.03, "{variable}: {}", lagged / square);
            }
        }
        assert!((best.crps(1) - best.std(1) / PI.sqrt()).abs() < 1e-12);
    }
}

#[test]
fn anomalies_stay_as_large_as_they_are() {
    let synthetic = Synthetic::new(small()).unwrap();
    let store = synthetic.store(&mut silent).unwrap();
    let variable = Variable::surface("10m_u_component_of_wind");
    let best = synthetic.best(&variable).unwrap();
    let past = 100 * 6 * 3600;
    for range in [0..200, 400..600] {
        let mut square = 0.0;
        for t in range {
            let field = store.read(&variable, t).unwrap();
            // Far ahead nothing is left of an anomaly: that forecast is the climate.
            let climate = synthetic.best_mean(&variable, &field, store.times()[t] - past, 100);
            let square_of = |(x, c): (f32, f32)| f64::from(x - c).powi(2);
            let of_field: f64 = field.into_iter().zip(climate.unwrap()).map(square_of).sum();
            square += of_field / (200.0 * 288.0);
        }
        assert!((square.sqrt() / best.deviation - 1.0).abs() < 0.1, "{}", square.sqrt());
    }
}

#[test]
fn a_folder_has_what_memory_has_and_appears_when_complete() {
    let scratch = Scratch::new();
    let path = scratch.path().join("some/synth.zarr");
    let config = SynthConfig { steps: 21, ..small() };
    let synthetic = Synthetic::new(config.clone()).unwrap();
    synthetic.write(&path, false, &mut silent).unwrap();
    let (memory, folder) =
        (synthetic.store(&mut silent).unwrap(), Store::open(path.to_str().unwrap()).unwrap());
    assert_eq!(memory.grid(), folder.grid());
    assert_eq!(memory.times(), folder.times());
    assert_eq!(folder.step().unwrap(), 6 * 3600);
    for variable in memory.all_variables() {
        folder.check(&variable).unwrap();
        for t in [0, 7, 8, 20] {
            assert_eq!(memory.read(&variable, t).unwrap(), folder.read(&variable, t).unwrap());
        }
    }
    for name in ["land_sea_mask", "soil_type", "geopotential_at_surface"] {
        assert_eq!(memory.constant(name).unwrap(), folder.constant(name).unwrap());
    }
    let land = folder.constant("land_sea_mask").unwrap();
    let share = land.iter().sum::<f32>() / land.len() as f32;
    assert!((0.1..0.7).contains(&share), "{share}");
    assert_eq!(bayesmesh_files::testing::names(path.parent().unwrap()), ["synth.zarr"]);
    assert_says(synthetic.write(&path, false, &mut silent).unwrap_err(), &["exists already"]);
    // Another seed in its place.
    let other = Synthetic::new(SynthConfig { seed: 1, ..config }).unwrap();
    other.write(&path, true, &mut silent).unwrap();
    let replaced = Store::open(path.to_str().unwrap()).unwrap();
    let variable = &memory.all_variables()[0];
    assert_ne!(memory.read(variable, 0).unwrap(), replaced.read(variable, 0).unwrap());
    // What is not a store is never replaced.
    let letters = scratch.path().join("letters");
    std::fs::create_dir(&letters).unwrap();
    std::fs::write(letters.join("a.txt"), "dear").unwrap();
    assert_says(other.write(&letters, true, &mut silent).unwrap_err(), &["not made by bayesmesh"]);
    assert!(letters.join("a.txt").exists());
}

#[test]
fn it_can_have_all_variables_at_any_grid() {
    let config = SynthConfig {
        latitudes: 13,
        longitudes: 24,
        steps: 3,
        variables: bayesmesh_data::era5::pangu69(),
        ..SynthConfig::default()
    };
    let store = Synthetic::new(config).unwrap().store(&mut silent).unwrap();
    assert_eq!(store.grid().latitudes()[0], 90.0);
    for variable in bayesmesh_data::era5::pangu69() {
        store.check(&variable).unwrap();
        assert!(store.read(&variable, 2).unwrap().iter().all(|value| value.is_finite()));
        assert!(Best::of(&store, &variable).is_some(), "{variable}");
    }
    let geopotential = |level| {
        let field = store.read(&Variable::at("geopotential", level), 0).unwrap();
        f64::from(field.iter().sum::<f32>()) / field.len() as f64
    };
    assert!((50_000.0..60_000.0).contains(&geopotential(500)), "{}", geopotential(500));
    assert!(geopotential(50) > 180_000.0 && geopotential(1000) < 5000.0);
    for config in [
        SynthConfig { latitudes: 1, ..SynthConfig::default() },
        SynthConfig { steps: 0, ..SynthConfig::default() },
        SynthConfig { variables: vec![], ..SynthConfig::default() },
    ] {
        assert_says(Synthetic::new(config).unwrap_err(), &["a synthetic store has"]);
    }
}
