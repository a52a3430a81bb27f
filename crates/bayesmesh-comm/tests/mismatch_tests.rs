//! What thread ranks that do not make the same call are told. That they are, whatever they call, is
//! part of the conformance suite.

mod common;

use bayesmesh_comm::{CommError, Communicator, Operation, Reduce};
use common::ranks;

/// The errors all ranks get if rank r makes `call(comm, r)`; they go on together afterwards.
fn errors(
    size: usize,
    call: impl Fn(&dyn Communicator, usize) -> Result<(), CommError> + Send + Sync + 'static,
) -> CommError {
    let errors = ranks(size, move |comm| {
        let error = call(comm, comm.rank()).unwrap_err();
        // A mismatch breaks nothing: the ranks may still agree on what to do next.
        let mut one = [1.0];
        comm.all_reduce(&mut one, Operation::Sum, Reduce::Fast)?;
        assert_eq!(one, [size as f32]);
        Ok(error)
    })
    .unwrap();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors[0].clone()
}

#[test]
fn lengths() {
    type Call = fn(&dyn Communicator, usize) -> Result<(), CommError>;
    let calls: [(&str, Call); 7] = [
        ("all_reduce(f32, sum, fast)", |comm, length| {
            comm.all_reduce(&mut vec![0.0; length], Operation::Sum, Reduce::Fast)
        }),
        ("all_reduce(f64, max, reproducible)", |comm, length| {
            comm.all_reduce_f64(&mut vec![0.0; length], Operation::Max, Reduce::Reproducible)
        }),
        ("all_reduce_u64(max)", |comm, length| {
            comm.all_reduce_u64(&mut vec![0; length], Operation::Max)
        }),
        ("reduce_scatter(fast)", |comm, length| {
            comm.reduce_scatter(&mut vec![0.0; length], Reduce::Fast).map(drop)
        }),
        ("all_gather_into", |comm, length| comm.all_gather_into(&mut vec![0.0; length])),
        ("tree_reduce", |comm, length| comm.tree_reduce(&mut vec![0.0; length], &|_, _| ())),
        ("broadcast(root 1)", |comm, length| comm.broadcast(&mut vec![0.0; length], 1)),
    ];
    for (name, call) in calls {
        let error = errors(3, move |comm, rank| call(comm, if rank == 1 { 70 } else { 50 }));
        let expected = CommError::LengthMismatch {
            call: name.to_owned(),
            rank: 0,
            length: 50,
            other_rank: 1,
            other_length: 70,
        };
        assert_eq!(error, expected);
        let text = error.to_string();
        assert!(text.contains("50") && text.contains("70"), "{text}");
    }
}

#[test]
fn different_calls() {
    let error = errors(4, |comm, rank| match rank {
        3 => comm.all_reduce(&mut [1.0], Operation::Sum, Reduce::Fast),
        _ => comm.barrier(),
    });
    let expected = CommError::CallMismatch {
        rank: 0,
        call: "barrier".to_owned(),
        other_rank: 3,
        other_call: "all_reduce(f32, sum, fast)".to_owned(),
    };
    assert_eq!(error, expected);

    let error = errors(2, |comm, rank| match rank {
        0 => comm.broadcast_bytes(&mut Vec::new(), 1),
        _ => comm.all_gather_bytes(&[1]).map(drop),
    });
    let expected = CommError::CallMismatch {
        rank: 0,
        call: "broadcast_bytes(root 1)".to_owned(),
        other_rank: 1,
        other_call: "all_gather_bytes".to_owned(),
    };
    assert_eq!(error, expected);
}
