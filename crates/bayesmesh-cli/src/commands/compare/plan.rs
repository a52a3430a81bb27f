//! Which runs a comparison has.

use anyhow::Result;

use crate::exit::Usage;

/// More are a mistake.
const MOST_SEEDS: u64 = 10_000;

/// All variants and all seeds.
#[derive(Debug)]
pub struct Plan {
    /// Every combination of the values of the keys, the last key changing fastest.
    pub variants: Vec<Variant>,
    /// What each is trained with, again and again.
    pub repeats: Vec<Repeat>,
}

/// One of the times that a variant is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The seed.
    pub seed: u64,
    /// The division of the data, where there are several.
    pub split: Option<u64>,
}

impl Repeat {
    /// For people.
    pub fn words(&self) -> String {
        match self.split {
            Some(split) => format!("split {split}, seed {}", self.seed),
            None => format!("seed {}", self.seed),
        }
    }

    /// The name of its folder.
    pub fn folder(&self) -> String {
        match self.split {
            Some(split) => format!("split-{split},seed-{}", self.seed),
            None => format!("seed-{}", self.seed),
        }
    }

    /// The keys that make it.
    pub fn settings(&self) -> Vec<String> {
        let split = self.split.map(|split| format!("data.split_index={split}"));
        std::iter::once(format!("train.seed={}", self.seed)).chain(split).collect()
    }
}

/// Keys and values, different from those of the other variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What it is called.
    pub name: String,
    /// Full names of keys, and their values.
    pub settings: Vec<(String, String)>,
}

impl Plan {
    /// From texts such as `train.augment=per-draw,shared`, `count` seeds from `seed` on, and so
    /// many divisions of the data. Without texts there is one variant, called `name`.
    pub fn new(
        name: &str,
        vary: &[String],
        seed: u64,
        count: u64,
        splits: Option<u64>,
    ) -> Result<Self> {
        if count == 0 {
            return Err(Usage("--seeds 0: a comparison needs at least one seed".into()).into());
        }
        if count > MOST_SEEDS {
            let message = format!(
                "--seeds {count} is more than anybody waits for; use at most \
                                   {MOST_SEEDS}"
            );
            return Err(Usage(message).into());
        }
        let keys = vary.iter().map(|text| parse(text)).collect::<Result<Vec<_>>>()?;
        if keys.iter().any(|(key, _)| key == "train.seed") {
            let message = "train.seed is not a variant; use --seeds N for several seeds";
            return Err(Usage(message.to_owned()).into());
        }
        if splits.is_some() && keys.iter().any(|(key, _)| key == "data.split_index") {
            let message = "data.split_index is not a variant; --splits goes through them";
            return Err(Usage(message.to_owned()).into());
        }
        let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (key, values) in &keys {
            combinations = combinations
                .iter()
                .flat_map(|before| {
                    values.iter().map(|value| {
                        let mut settings = before.clone();
                        settings.push((key.clone(), value.clone()));
                        settings
                    })
                })
                .collect();
        }
        let mut variants: Vec<Variant> = combinations.into_iter().map(Variant::new).collect();
        if let ([only], true) = (variants.as_mut_slice(), keys.is_empty()) {
            name.clone_into(&mut only.name);
        }
        for (index, variant) in variants.iter().enumerate() {
            if variants[..index].iter().any(|other| other.folder() == variant.folder()) {
                return Err(Usage(format!("the variant {} is there twice", variant.name)).into());
            }
        }
        let splits: Vec<Option<u64>> = match splits {
            Some(splits) => (0..splits).map(Some).collect(),
            None => vec![None],
        };
        let seeds = seed..seed.saturating_add(count);
        let repeats =
            splits.iter().flat_map(|&split| seeds.clone().map(move |seed| Repeat { seed, split }));
        Ok(Self { variants, repeats: repeats.collect() })
    }

    /// The seeds that each is trained with.
    pub fn seeds(&self) -> Vec<u64> {
        let first = self.repeats.first().and_then(|repeat| repeat.split);
        let of_first = self.repeats.iter().filter(|repeat| repeat.split == first);
        of_first.map(|repeat| repeat.seed).collect()
    }

    /// The divisions of the data; none where they are not varied.
    pub fn splits(&self) -> Vec<u64> {
        let mut splits: Vec<u64> = self.repeats.iter().filter_map(|repeat| repeat.split).collect();
        splits.dedup();
        splits
    }

    /// What is repeated, in a word: "seeds".
    pub fn repeated(&self) -> &'static str {
        match (self.splits().is_empty(), self.seeds().len()) {
            (true, _) => "seeds",
            (false, 1) => "splits",
            (false, _) => "splits and seeds",
        }
    }
}

impl Variant {
    fn new(settings: Vec<(String, String)>) -> Self {
        let shown: Vec<String> =
            settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self { name: shown.join(", "), settings }
    }

    /// The name of its folder: last parts of keys with their values.
    pub fn folder(&self) -> String {
        let part = |(key, value): &(String, String)| {
            let key = key.rsplit('.').next().unwrap_or(key);
            let usable = |c: char| c.is_alphanumeric() || ".-_".contains(c);
            let value: String = value.chars().map(|c| if usable(c) { c } else { '_' }).collect();
            format!("{key}={value}")
        };
        match self.settings.is_empty() {
            true => "runs".to_owned(),
            false => self.settings.iter().map(part).collect::<Vec<_>>().join(","),
        }
    }
}

/// A key and its values.
fn parse(text: &str) -> Result<(String, Vec<String>)> {
    let refuse = |problem: &str| {
        Usage(format!(
            "--vary {text}: {problem}; write a key and its values, for example \
             `--vary train.augment=per-draw,shared`"
        ))
    };
    let (key, values) = text.split_once('=').ok_or_else(|| refuse("there is no `=`"))?;
    let values = split(values);
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(refuse("a key or a value is empty").into());
    }
    Ok((key.trim().to_owned(), values))
}

/// Splits at commas that are not within brackets or quotes.
fn split(values: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quote) = (vec![String::new()], 0, None);
    for c in values.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            _ => {}
        }
        match c {
            ',' if depth == 0 && quote.is_none() => parts.push(String::new()),
            _ => parts.last_mut().expect("there is a first").push(c),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(vary: &[&str]) -> Result<Plan> {
        let vary: Vec<String> = vary.iter().map(|&text| text.to_owned()).collect();
        Plan::new("recipe", &vary, 7, 2, None)
    }

    #[test]
    fn every_combination_is_a_variant() {
        let plan = plan(&["train.augment=per-draw, shared", "model.hidden=[8,8],[16]"]).unwrap();
        let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "train.augment=per-draw, model.hidden=[8,8]",
                "train.augment=per-draw, model.hidden=[16]",
                "train.augment=shared, model.hidden=[8,8]",
                "train.augment=shared, model.hidden=[16]",
            ]
        );
        assert_eq!(plan.variants[0].folder(), "augment=per-draw,hidden=_8_8_");
        assert_eq!((plan.seeds(), plan.splits()), (vec![7, 8], vec![]));
    }

    #[test]
    fn divisions_are_repeats() {
        let plan = Plan::new("recipe", &[], 0, 1, Some(3)).unwrap();
        assert_eq!((plan.variants.len(), plan.variants[0].name.as_str()), (1, "recipe"));
        assert_eq!((plan.seeds(), plan.splits()), (vec![0], vec![0, 1, 2]));
        assert_eq!(plan.repeats[2].folder(), "split-2,seed-0");
        assert_eq!(plan.repeats[2].settings(), ["train.seed=0", "data.split_index=2"]);
        let vary = ["data.split_index=1,2".to_owned()];
        assert!(Plan::new("recipe", &vary, 0, 1, Some(3)).is_err());
    }

    #[test]
    fn quotes_hold_commas_together() {
        assert_eq!(split(r#""a,b",c"#), [r#""a,b""#, "c"]);
    }

    #[test]
    fn what_is_no_list_of_values_is_refused() {
        for text in ["train.augment", "=a,b", "train.augment=", "train.heat=1,,2"] {
            let error = plan(&[text]).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("for example"), "{error}");
        }
        assert!(plan(&["train.seed=1,2"]).unwrap_err().to_string().contains("--seeds"));
        assert!(plan(&["train.heat=1,1"]).unwrap_err().to_string().contains("twice"));
        assert!(Plan::new("recipe", &[], 0, 0, None).is_err());
    }
}
