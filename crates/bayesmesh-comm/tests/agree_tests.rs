//! Ranks started with different things are refused, and told what differs.

mod common;

use bayesmesh_comm::{CommError, agree};
use common::ranks;

type Values = Vec<(&'static str, String)>;

/// What all ranks are told if rank r passes `values[r]`.
fn outcome(values: Vec<Values>) -> Result<(), CommError> {
    let size = values.len();
    let outcomes = ranks(size, move |comm| {
        use bayesmesh_comm::Communicator;
        Ok(agree(comm, &values[comm.rank()]))
    });
    let outcomes = outcomes.unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
    outcomes[0].clone()
}

fn run(seed: &str, recipe: &str) -> Values {
    vec![("recipe", recipe.to_owned()), ("seed", seed.to_owned())]
}

#[test]
fn equal_values_agree() {
    for size in [1, 2, 5] {
        assert_eq!(outcome(vec![run("7", "Läufe\0\n"); size]), Ok(()));
        assert_eq!(outcome(vec![Vec::new(); size]), Ok(()));
    }
}

#[test]
fn the_first_rank_and_key_that_differ_are_named() {
    let values = vec![run("7", "a"), run("7", "a"), run("8", "a"), run("9", "b")];
    let error = outcome(values).unwrap_err();
    let expected = CommError::Disagreement {
        key: "seed".to_owned(),
        first: "`7`".to_owned(),
        rank: 2,
        other: "`8`".to_owned(),
    };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("same program, recipe and data"), "{error}");

    let both = outcome(vec![run("7", "a"), run("8", "b")]).unwrap_err();
    assert!(matches!(both, CommError::Disagreement { key, .. } if key == "recipe"));
}

#[test]
fn a_key_that_only_some_have_differs_too() {
    let mut more = run("7", "a");
    more.push(("sharded", "true".to_owned()));
    for (values, first, other) in [
        (vec![run("7", "a"), more.clone()], "nothing", "`true`"),
        (vec![more.clone(), run("7", "a")], "`true`", "nothing"),
    ] {
        let (first, other) = (first.to_owned(), other.to_owned());
        let key = "sharded".to_owned();
        let expected = CommError::Disagreement { key, first, rank: 1, other };
        assert_eq!(outcome(values), Err(expected));
    }
}
