//! The valid name that a wrong one was probably meant to be.

use super::schema::{KIND, RECIPE, Section};

/// The most similar of some names, if it is similar at all.
pub(super) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = normalised(word);
    // A typo in three characters; swapped neighbours count as one.
    let most = word.chars().count().div_ceil(3);
    names
        .into_iter()
        .filter_map(|name| {
            let candidate = normalised(name);
            let begun = word.len() >= 3 && candidate.starts_with(&word);
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
/// the section, or one of the same or a similar name elsewhere.
pub(super) fn nearest_key(section: &Section, kind: Option<&str>, word: &str) -> Option<String> {
    let has_kinds = !section.kinds.is_empty();
    let own = || section.keys.iter().filter(|key| key.is_of(kind));
    let own_names = own()
        .map(|key| key.name)
        .chain(has_kinds.then_some(KIND));
    let is = |name: &&str| normalised(name) == normalised(word);
    let by_other_word = || own().find(|key| key.also.iter().any(|other| is(&other)));
    let elsewhere = || {
        let sections = RECIPE.all();
        let mut keys = sections
            .iter()
            .flat_map(|section| section.keys.iter().map(move |key| (section, key)));
        keys.clone()
            .find(|(_, key)| is(&key.name))
            .or_else(|| keys.find(|(_, key)| key.also.iter().any(|other| is(&other))))
            .map(|(section, key)| section.full_name(key.name))
    };
    let full_name = |name: &str| section.full_name(name);
    let exact = by_other_word().map(|key| full_name(key.name));
    exact
        .or_else(elsewhere)
        .or_else(|| nearest(word, own_names).map(full_name))
}

fn normalised(name: &str) -> String {
    name.to_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::schema::Values;

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
        let section = |name| {
            let all = RECIPE.all();
            all.into_iter().find(|s| s.name == name).unwrap()
        };
        let key = |name, kind, word| nearest_key(section(name), kind, word);
        assert_eq!(key("train", None, "smaples").unwrap(), "train.samples");
        assert_eq!(key("train", None, "draws").unwrap(), "train.samples");
        assert_eq!(key("train", None, "dropout").unwrap(), "model.dropout");
        assert_eq!(key("train", None, "lr").unwrap(), "optimizer.rate");
        assert_eq!(key("evaluate", None, "samples").unwrap(), "evaluate.draws");
        assert_eq!(key("loss", Some("crps"), "knd").unwrap(), "loss.kind");
        assert_eq!(key("", None, "epochs").unwrap(), "train.epochs");
        assert_eq!(key("", None, "optimiser").unwrap(), "optimizer");
        assert_eq!(key("train", None, "colour"), None);
    }

    /// Other words for a key are not keys of the same section, or they could never be meant.
    #[test]
    fn other_words_are_free() {
        for section in RECIPE.all() {
            for key in section.keys {
                for kind in section.kind_names() {
                    let taken = |word| section.rows(word).any(|key| key.is_of(Some(kind)));
                    let own = key.is_of(Some(kind)) && key.also.iter().any(|word| taken(word));
                    assert!(!own, "{}", section.full_name(key.name));
                }
                assert!(!matches!(key.values, Values::Section(_)) || key.name != KIND);
            }
        }
    }
}
