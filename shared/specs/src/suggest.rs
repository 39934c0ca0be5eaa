//! "Did you mean": the known word that is close to an unknown one.

/// Returns the known word that was probably meant, if any is close.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(word);
    let near = |candidate: &'a str| {
        let other = self::plain(candidate);
        let distance = if plain == other { 0 } else { distance(&plain, &other) };
        (distance <= 2 && distance * 3 <= other.len()).then_some((distance, candidate))
    };
    known.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Returns `; did you mean …?`, or an empty text.
pub(crate) fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest(word, known).map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

/// Returns the spelling without frequent confusions: case, dashes and underscores.
fn plain(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).take(64).flat_map(char::to_lowercase).collect()
}

/// Returns the number of edits from one word to the other: insert, remove, replace, or swap two neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn finds_what_was_meant_and_nothing_else() {
        let known = ["input_restriction", "output_restriction", "collect_results", "maxTokens", "name"];
        for (word, meant) in [
            ("input_restrictions", Some("input_restriction")),
            ("colect_results", Some("collect_results")),
            ("max_tokens", Some("maxTokens")),
            ("nmae", Some("name")),
            ("price", None),
            ("x", None),
        ] {
            assert_eq!(closest(word, known), meant, "{word}");
        }
    }
}
