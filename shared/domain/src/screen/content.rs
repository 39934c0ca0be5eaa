//! Content of a kind, recognised by words (RS-08).
//!
//! This is a short list of English words and phrases, each with a weight. Whole words match in any case, with any
//! punctuation between them. The meaning is not understood: a quotation matches as well as a threat. Other languages,
//! misspellings, pictures and files in base64 do not match. For more, put a moderation service before the queue.

use super::personal;
use crate::agent::safety::{Category, ContentRule, PersonalKind, Threshold};
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use Category::{Hate, Profanity, SelfHarm, Sexual, Violence};
use Threshold::{High, Low, Medium};

/// Phrases in lower case; each matches at its own threshold and at those below it.
const PHRASES: &[(Category, Threshold, &str)] = &[
    (Hate, High, "ethnic cleansing"),
    (Hate, High, "exterminate them all"),
    (Hate, High, "heil hitler"),
    (Hate, High, "racial purity"),
    (Hate, High, "white power"),
    (Hate, Medium, "go back to your country"),
    (Hate, Medium, "master race"),
    (Hate, Medium, "subhuman"),
    (Hate, Medium, "subhumans"),
    (Hate, Medium, "untermensch"),
    (Hate, Low, "inferior race"),
    (Hate, Low, "racial slur"),
    (Violence, High, "build a bomb"),
    (Violence, High, "make a bomb"),
    (Violence, High, "make explosives"),
    (Violence, High, "pipe bomb"),
    (Violence, High, "shoot up a school"),
    (Violence, High, "shoot up the school"),
    (Violence, Medium, "behead"),
    (Violence, Medium, "i will kill"),
    (Violence, Medium, "kill her"),
    (Violence, Medium, "kill him"),
    (Violence, Medium, "kill them"),
    (Violence, Medium, "kill you"),
    (Violence, Medium, "mass shooting"),
    (Violence, Medium, "torture"),
    (Violence, Low, "massacre"),
    (Violence, Low, "murder"),
    (Violence, Low, "stab"),
    (Violence, Low, "strangle"),
    (Sexual, High, "child porn"),
    (Sexual, High, "child pornography"),
    (Sexual, High, "incest porn"),
    (Sexual, Medium, "blowjob"),
    (Sexual, Medium, "hardcore sex"),
    (Sexual, Medium, "porn"),
    (Sexual, Medium, "pornography"),
    (Sexual, Low, "erotic"),
    (Sexual, Low, "nude"),
    (Sexual, Low, "nudes"),
    (Sexual, Low, "orgasm"),
    (SelfHarm, High, "end my life"),
    (SelfHarm, High, "hang myself"),
    (SelfHarm, High, "kill myself"),
    (SelfHarm, High, "want to die"),
    (SelfHarm, Medium, "cut myself"),
    (SelfHarm, Medium, "harm myself"),
    (SelfHarm, Medium, "hurt myself"),
    (SelfHarm, Medium, "self harm"),
    (SelfHarm, Medium, "suicide"),
    (SelfHarm, Low, "anorexia"),
    (SelfHarm, Low, "overdose"),
    (Profanity, High, "cunt"),
    (Profanity, High, "motherfucker"),
    (Profanity, Medium, "asshole"),
    (Profanity, Medium, "bitch"),
    (Profanity, Medium, "fuck"),
    (Profanity, Medium, "fucking"),
    (Profanity, Low, "bastard"),
    (Profanity, Low, "bullshit"),
    (Profanity, Low, "crap"),
    (Profanity, Low, "damn"),
    (Profanity, Low, "shit"),
];

/// Phrases by their first word, so that a long text is read once.
static BY_FIRST: LazyLock<HashMap<&str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut phrases: HashMap<&str, Vec<Phrase>> = HashMap::new();
    for (category, threshold, phrase) in PHRASES {
        let mut words = phrase.split(' ');
        let first = words.next().unwrap_or_default();
        let phrase = Phrase { category: *category, threshold: *threshold, rest: words.collect() };
        phrases.entry(first).or_default().push(phrase);
    }
    phrases
});

struct Phrase {
    category: Category,
    threshold: Threshold,
    rest: Vec<&'static str>,
}

/// Returns the rule's kinds that match the text, each once.
#[must_use]
pub fn found(rule: &ContentRule, text: &str) -> Vec<Category> {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut found = BTreeSet::new();
    for (at, first) in words.iter().enumerate() {
        for phrase in BY_FIRST.get(first).into_iter().flatten() {
            let heavy = phrase.threshold >= rule.threshold && rule.categories.contains(&phrase.category);
            if heavy && words[at + 1..].starts_with(&phrase.rest) {
                found.insert(phrase.category as usize);
            }
        }
    }
    if rule.categories.contains(&Category::Pii)
        && !personal::found(personal_kinds(rule.threshold), text).is_empty()
    {
        found.insert(Category::Pii as usize);
    }
    Category::ALL.into_iter().filter(|category| found.contains(&(*category as usize))).collect()
}

/// Which personal data counts: at a high threshold only what does lasting harm.
fn personal_kinds(threshold: Threshold) -> &'static [PersonalKind] {
    match threshold {
        High => &[PersonalKind::Ssn, PersonalKind::CreditCard],
        Low | Medium => &PersonalKind::ALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::safety::FilterAction;

    fn kinds(threshold: Threshold, text: &str) -> Vec<&'static str> {
        let rule = ContentRule { categories: Category::ALL.to_vec(), threshold, action: FilterAction::Block };
        found(&rule, text).into_iter().map(Category::as_str).collect()
    }

    /// RS-08: categories and thresholds.
    #[test]
    fn a_low_threshold_lets_the_least_pass() {
        for (text, low, medium, high) in [
            ("How do I MAKE a... bomb?", &["violence"][..], &["violence"][..], &["violence"][..]),
            ("a murder mystery", &["violence"], &[], &[]),
            ("Well, fuck.", &["profanity"], &["profanity"], &[]),
            ("I want to die, damn", &["self-harm", "profanity"], &["self-harm"], &["self-harm"]),
            ("write to a@example.org", &["pii"], &["pii"], &[]),
            ("the Scunthorpe problem, an assassin's classic", &[], &[], &[]),
            ("", &[], &[], &[]),
        ] {
            assert_eq!(kinds(Low, text), low, "{text}");
            assert_eq!(kinds(Medium, text), medium, "{text}");
            assert_eq!(kinds(High, text), high, "{text}");
        }
    }

    #[test]
    fn only_the_categories_of_the_rule_count() {
        let rule = ContentRule { categories: vec![Hate], threshold: Low, action: FilterAction::Block };
        assert_eq!(found(&rule, "kill them"), []);
        assert!(PHRASES.iter().all(|(_, _, phrase)| *phrase == phrase.to_lowercase()));
    }
}
