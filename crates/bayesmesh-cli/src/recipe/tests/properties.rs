//! Any recipe that is accepted reads back as it was; any text is refused or accepted in bounded
//! time and memory.

use bayesmesh_schema::{KIND, Section, Values};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::{TRIAL, parse};
use crate::recipe::{Catalogue, RecipeError};

/// Takes decisions one after the other from a list of numbers.
struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, u32>>);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        *self.0.next().expect("a cycle of at least one") as usize % count
    }
}

/// A value in TOML that the schema takes, as a rule.
fn value(values: &Values, choices: &mut Choices<'_>) -> String {
    match values {
        Values::Text => ["a", "ü b", "\"\\", "a\tb"][choices.below(4)].to_owned(),
        Values::Flag => ["true", "false"][choices.below(2)].to_owned(),
        Values::Count(least, most) => {
            let more = [0, 1, 7, 100][choices.below(4)];
            least.saturating_add(more).min(*most).to_string()
        }
        Values::Number(range) => {
            let numbers = ["0", "1", "0.5", "1e-9", "0.1", "3.25", "7"];
            let fits = |text: &&&str| range.contains(text.parse().unwrap());
            let fitting: Vec<&&str> = numbers.iter().filter(fits).collect();
            (*fitting[choices.below(fitting.len())]).to_owned()
        }
        Values::Choice(names) => format!("{:?}", names[choices.below(names.len())]),
        Values::List(item, least, most) => {
            let count = (least + choices.below(3)).min(*most);
            let items: Vec<String> = (0..count).map(|_| value(item, choices)).collect();
            format!("[{}]", items.join(", "))
        }
        Values::Section(_) => unreachable!("sections are chosen key by key"),
    }
}

/// Overrides that choose a kind and some values for a section and those within it.
fn overrides(section: &Section, choices: &mut Choices<'_>, to: &mut Vec<String>) {
    let names = section.kind_names();
    let kind = (!names.is_empty()).then(|| names[choices.below(names.len())]);
    to.extend(kind.map(|kind| format!("{}={kind}", section.full_name(KIND))));
    for key in section.keys(kind) {
        match &key.values {
            Values::Section(inner) => overrides(inner, choices, to),
            values if choices.below(3) == 0 => {
                to.push(format!("{}={}", section.full_name(key.name), value(values, choices)));
            }
            _ => {}
        }
    }
}

#[test]
fn what_is_accepted_reads_back() {
    let (mut accepted, mut refused) = (0, 0);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let numbers = prop::collection::vec(any::<u32>(), 60..200);
    for _ in 0..12_000 {
        let numbers = numbers.new_tree(&mut runner).unwrap().current();
        let mut set = Vec::new();
        let catalogue = Catalogue::builtin();
        overrides(catalogue.schema(), &mut Choices(numbers.iter().cycle()), &mut set);
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        match parse(TRIAL, &set) {
            Ok(recipe) => {
                accepted += 1;
                let text = recipe.to_toml();
                let again = parse(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(recipe, again, "{text}");
                assert_eq!(text, again.to_toml());
                assert_eq!(recipe.keys(), again.keys());
            }
            // Keys that do not go together.
            Err(RecipeError::Invalid { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(accepted >= 50, "{accepted} accepted, {refused} refused: nothing is tested");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Lines of anything, and lines that look like keys.
    #[test]
    fn any_text_is_refused_in_few_words(
        lines in prop::collection::vec("(\\[[a-z.]{0,9}\\]|[a-z_]{0,9} ?= ?.{0,12}|.{0,20})", 0..30)
    ) {
        let text = lines.join("\n");
        if let Err(error) = parse(&text, &[]) {
            prop_assert!(error.to_string().len() < 20_000);
        }
    }
}

/// Sixty thousand wrong numbers, and twenty thousand unknown keys, are told like twenty.
#[test]
fn very_many_problems_are_few_words() {
    let list = format!("hidden = [{}]", "-1,".repeat(60_000));
    let text = TRIAL.replace("dropout = 0.1", &format!("dropout = 0.1\n{list}"));
    let error = parse(&text, &[]).unwrap_err();
    let RecipeError::Invalid { problems, count, .. } = &error else { panic!("{error}") };
    assert_eq!((problems.len(), *count), (20, 60_000));
    assert!(error.to_string().len() < 10_000);

    let keys: String = (0..20_000).map(|key| format!("smaples{key} = 1\n")).collect();
    let error = parse(&format!("{TRIAL}{keys}"), &[]).unwrap_err();
    assert!(error.to_string().contains("for 20000 reasons"), "{error}");
    assert!(error.to_string().contains("… and 19980 more"));
}
