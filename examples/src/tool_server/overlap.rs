//! Ranking by the words that a question and a text share.

use std::collections::BTreeSet;

/// Words that say nothing about what a text is about.
const FILLER: [&str; 24] = [
    "a", "about", "and", "are", "by", "do", "does", "for", "how", "i", "in", "is", "it", "my", "of", "on",
    "or", "the", "to", "up", "what", "when", "with", "you",
];

/// How well a text answers a question: shared words of the title count twice.
pub(crate) fn score(question: &str, title: &str, text: &str) -> usize {
    let requested = words(question);
    2 * requested.intersection(&words(title)).count() + requested.intersection(&words(text)).count()
}

/// The best matches first, at most `limit`, none without a shared word.
pub(crate) fn best<'a, T>(
    question: &str,
    entries: &'a [T],
    parts: impl Fn(&T) -> (&str, &str),
    limit: usize,
) -> Vec<(usize, &'a T)> {
    let mut found: Vec<(usize, &T)> = entries
        .iter()
        .map(|entry| {
            let (title, text) = parts(entry);
            (score(question, title, text), entry)
        })
        .filter(|(score, _)| *score > 0)
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.truncate(limit);
    found
}

/// The words of a text in lower case, without a plural's `s`.
fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty() && !FILLER.contains(&word.as_str()))
        .map(|word| if word.len() > 3 { word.trim_end_matches('s').to_owned() } else { word })
        .collect()
}
