//! The mesh and its communicators.

mod common;

use std::sync::Arc;

use bayesmesh_comm::{
    Communicator, Coordinates, Mesh, MeshComm, MeshError, Operation, Reduce, RunError, threads,
};
use common::watched;

#[test]
fn names_and_text() {
    let cases = [
        (Mesh::serial(), "1x1", "serial"),
        (Mesh::samples(4).unwrap(), "4x1", "sampling"),
        (Mesh::data(3).unwrap(), "1x3", "data"),
        (Mesh::hybrid(4, 2).unwrap(), "4x2", "hybrid"),
    ];
    for (mesh, text, strategy) in cases {
        assert_eq!(mesh.to_string(), text);
        assert_eq!(text.parse(), Ok(mesh));
        assert_eq!(mesh.strategy(), strategy);
        assert_eq!(mesh.size(), mesh.samples_size() * mesh.data_size());
    }
}

#[test]
fn bad_meshes_are_explained() {
    assert_eq!(Mesh::new(0, 2), Err(MeshError::EmptyAxis { samples: 0, data: 2 }));
    assert!(Mesh::samples(0).is_err() && Mesh::data(0).is_err() && Mesh::hybrid(3, 0).is_err());
    assert_eq!("0x3".parse::<Mesh>(), Err(MeshError::EmptyAxis { samples: 0, data: 3 }));
    assert!(matches!(Mesh::new(usize::MAX, 2), Err(MeshError::TooLarge { .. })));
    for text in ["", "4", "x", "4x", "x2", "4x2x1", "-1x2", "fourxtwo"] {
        let error = text.parse::<Mesh>().unwrap_err();
        assert_eq!(error, MeshError::Parse { text: text.to_owned() });
        assert!(error.to_string().contains("4x2"), "{error}");
    }
}

#[test]
fn validate_names_the_numbers() {
    let mesh = Mesh::new(4, 2).unwrap();
    assert_eq!(mesh.validate(8, 4, 2), Ok(()));
    let message = |world, draws, batch| mesh.validate(world, draws, batch).unwrap_err().to_string();
    for (message, parts) in [
        (message(6, 4, 2), ["4x2", "8 ranks", "has 6"]),
        (message(8, 3, 2), ["4 sample ranks", "only 3 draws", "at least 4"]),
        (message(8, 4, 1), ["2 data ranks", "only 1 rows", "at least 2"]),
    ] {
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn sample_neighbours_are_neighbours() {
    let mesh = Mesh::new(3, 2).unwrap();
    let places: Vec<_> = (0..6).map(|rank| mesh.coordinates(rank)).collect();
    let place = |sample, data| Coordinates { sample, data };
    assert_eq!(
        places,
        [place(0, 0), place(1, 0), place(2, 0), place(0, 1), place(1, 1), place(2, 1)]
    );
}

#[test]
fn axes_sum_what_they_should() {
    for (samples, data) in [(1, 1), (2, 1), (1, 3), (2, 2), (4, 2), (3, 2)] {
        let mesh = Mesh::new(samples, data).unwrap();
        watched(move || {
            threads::run(mesh.size(), |world| -> Result<(), MeshError> {
                let comm = MeshComm::new(mesh, Arc::new(world.clone()))?;
                let Coordinates { sample, data } = comm.coordinates;
                assert_eq!(comm.coordinates, mesh.coordinates(world.rank()));
                assert_eq!((comm.samples.rank(), comm.data.rank()), (sample, data));
                assert_eq!(comm.samples.size(), mesh.samples_size());
                assert_eq!(comm.data.size(), mesh.data_size());

                let value = (10 * data + sample) as f32;
                let gather = |comm: &dyn Communicator| {
                    comm.all_gather(&[value]).map(|values| values.concat())
                };
                let along_samples: Vec<_> =
                    (0..mesh.samples_size()).map(|s| (10 * data + s) as f32).collect();
                let along_data: Vec<_> =
                    (0..mesh.data_size()).map(|d| (10 * d + sample) as f32).collect();
                assert_eq!(gather(&*comm.samples)?, along_samples);
                assert_eq!(gather(&*comm.data)?, along_data);
                assert_eq!(gather(&*comm.world)?.len(), mesh.size());

                // Along one axis and then the other is the sum over the world.
                let (mut twice, mut once) = ([value], [value]);
                comm.samples.all_reduce(&mut twice, Operation::Sum, Reduce::Fast)?;
                comm.data.all_reduce(&mut twice, Operation::Sum, Reduce::Fast)?;
                comm.world.all_reduce(&mut once, Operation::Sum, Reduce::Fast)?;
                assert_eq!(twice, once);
                Ok(())
            })
            .unwrap();
        });
    }
}

#[test]
fn a_mesh_that_does_not_fit_is_an_error_on_every_rank() {
    let build = |meshes: [&'static str; 4]| {
        let errors = watched(move || {
            threads::run(4, |world| -> Result<MeshError, String> {
                let mesh = meshes[world.rank()].parse().unwrap();
                Ok(MeshComm::new(mesh, Arc::new(world.clone())).unwrap_err())
            })
        });
        let errors = errors.unwrap_or_else(|error: RunError<String>| panic!("{error}"));
        assert!(errors.iter().all(|error| *error == errors[0]));
        errors[0].clone()
    };
    assert_eq!(
        build(["3x1"; 4]),
        MeshError::WorldSize { mesh: Mesh::new(3, 1).unwrap(), world: 4 }
    );
    let (first, other) = ("2x2".to_owned(), "4x1".to_owned());
    assert_eq!(
        build(["2x2", "2x2", "4x1", "2x2"]),
        MeshError::Disagreement { first, rank: 2, other }
    );
}
