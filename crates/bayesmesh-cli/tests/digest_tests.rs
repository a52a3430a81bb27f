//! Runs whose bits are known: a change of the code that is meant to keep the results keeps them.
//!
//! `digests.json` has the first digits of the digests of 34 short trainings with reproducible sums.
//! They were recorded when products became our own, and depend on their vector instructions, so
//! that they stand under the name of these. On a machine with others, and where there is `null`,
//! only what holds everywhere is tested: meshes that differ along the sample axis give the same
//! bits.

mod common;

use std::collections::BTreeMap;

use common::Scratch;
use serde_json::Value;

/// The vector instructions that decide the bits.
fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            return "avx512";
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return "avx2";
        }
    }
    "others"
}

#[test]
fn trainings_have_the_bits_they_had() {
    let cases: Value = serde_json::from_str(include_str!("digests.json")).unwrap();
    let (mut unknown, mut different) = (0, Vec::new());
    for case in cases.as_array().unwrap() {
        let recipe = case["recipe"].as_str().unwrap();
        let changes = case["set"].as_array().unwrap().iter().map(|set| set.as_str().unwrap());
        let set: Vec<&str> = ["train.reduce=reproducible"].into_iter().chain(changes).collect();
        let mut found: BTreeMap<&str, String> = BTreeMap::new();
        for (mesh, _) in case["avx512"].as_object().unwrap() {
            let run = Scratch::new().train(recipe, &set, &["--mesh", mesh]);
            found.insert(mesh, run.digest()[..12].to_owned());
        }
        match case[instructions()].as_object() {
            Some(expected) => {
                for (mesh, digest) in expected {
                    if found[&mesh[..]] != *digest {
                        different.push(format!("{recipe} {set:?}: {found:?}"));
                        break;
                    }
                }
            }
            None => unknown += 1,
        }
        let along_samples: Vec<&String> = found
            .iter()
            .filter(|(mesh, _)| mesh.ends_with("x1"))
            .map(|(_, digest)| digest)
            .collect();
        // Where each rank augments or sums for itself, the sample ranks matter by design.
        let by_rank = set.contains(&"train.augment=per-rank") || set.contains(&"train.exact=false");
        if !by_rank {
            assert!(along_samples.windows(2).all(|pair| pair[0] == pair[1]), "{recipe}: {found:?}");
        }
    }
    assert!(different.is_empty(), "other digests than recorded:\n{}", different.join("\n"));
    if unknown > 0 {
        eprintln!("no digests are recorded for {}: {unknown} cases only compared", instructions());
    }
}
