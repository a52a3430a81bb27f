//! The valid name that a wrong one was probably meant to be.

use bayesmesh_schema::{KIND, Key, Section};

/// The most similar of some names, if it is similar at all: a typo in three characters, or the
/// beginning of the name.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(word, names, word.chars().count().div_ceil(3))
}

fn nearest_within<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Option<&'a str> {
    let word = normalised(word);
    names
        .into_iter()
        .filter_map(|name| {
            let candidate = normalised(name);
            let begun = word.len() >= 3 && candidate.starts_with(&word);
            // Swapped neighbours count as one.
            match strsim::osa_distance(&word, &candidate) {
                distance if distance <= most => Some((distance, name)),
                _ if begun => Some((most, name)),
                _ => None,
            }
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The full name of the key that `word` in a section of that kind was probably meant to be: one of
/// the section, or one that has that name elsewhere.
pub(super) fn nearest_key(
    schema: &Section,
    section: &Section,
    kind: Option<&str>,
    word: &str,
) -> Option<String> {
    let is_meant = |name: &str| normalised(name) == normalised(word);
    let also_meant = |key: &&Key| key.also.iter().any(|name| is_meant(name));
    let own = || section.keys(kind);
    let kind_name = section.has_kinds().then_some(KIND);
    let own_names = || own().map(|key| key.name).chain(kind_name);
    let own_key =
        own().find(also_meant).map(|key| key.name).or_else(|| nearest_within(word, own_names(), 1));
    if let Some(name) = own_key {
        return Some(section.full_name(name));
    }
    let all = schema.all();
    let find = |wanted: &dyn Fn(&&Key) -> bool| {
        all.iter().find_map(|section| {
            let key = section.keys(None).find(wanted)?;
            Some(section.full_name(key.name))
        })
    };
    find(&|key| is_meant(key.name))
        .or_else(|| find(&also_meant))
        .or_else(|| nearest(word, own_names()).map(|name| section.full_name(name)))
}

fn normalised(name: &str) -> String {
    name.to_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::super::Catalogue;
    use super::*;

    #[test]
    fn similar_names() {
        let losses = ["crps", "gaussian-mixture", "gaussian-of-draws"];
        assert_eq!(nearest("Gaussian_Mixture", losses), Some("gaussian-mixture"));
        assert_eq!(nearest("gauss", losses), Some("gaussian-mixture"));
        assert_eq!(nearest("cprs", losses), Some("crps"));
        assert_eq!(nearest("hinge", losses), None);
        assert_eq!(nearest("", losses), None);
    }

    #[test]
    fn keys_of_the_section_and_elsewhere() {
        let catalogue = Catalogue::builtin();
        let all = catalogue.schema().all();
        let key = |name: &str, kind, word| {
            let section = all.iter().find(|section| section.name == name).unwrap();
            nearest_key(catalogue.schema(), section, kind, word)
        };
        assert_eq!(key("train", None, "smaples").unwrap(), "train.samples");
        assert_eq!(key("train", None, "draws").unwrap(), "train.samples");
        assert_eq!(key("train", None, "dropout").unwrap(), "model.dropout");
        assert_eq!(key("train", None, "lr").unwrap(), "optimizer.rate");
        assert_eq!(key("evaluate", None, "samples").unwrap(), "evaluate.draws");
        assert_eq!(key("loss", Some("crps"), "knd").unwrap(), "loss.kind");
        assert_eq!(key("", None, "epochs").unwrap(), "train.epochs");
        assert_eq!(key("", None, "optimiser").unwrap(), "optimizer");
        assert_eq!(key("train", None, "step").unwrap(), "train.steps");
        assert_eq!(key("train", None, "flavour"), None);
    }

    /// A word for another key of the same kind would never be suggested.
    #[test]
    fn other_words_are_not_keys() {
        for section in Catalogue::builtin().schema().all() {
            for kind in &section.kinds {
                let taken = |word: &&&str| kind.keys.iter().any(|key| key.name == **word);
                for key in &kind.keys {
                    let name = section.full_name(key.name);
                    assert_eq!(key.also.iter().find(taken), None, "{name}");
                }
            }
        }
    }
}
