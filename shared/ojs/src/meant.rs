//! Suggestions for misspelt words.

/// The least likeness at which one name is taken for a slip of the other.
const ALIKE: f64 = 0.85;

/// Returns the known word that is most like this one, if any is alike enough.
#[must_use]
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter().map(|known| (strsim::jaro_winkler(word, known), known));
    let best = known.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, known)| known)
}

/// `; did you mean …?`, or nothing.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    meant(word, known).map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["state", "queue", "per_page"];
        assert_eq!(meant("statee", known), Some("state"));
        assert_eq!(meant("perpage", known), Some("per_page"));
        assert_eq!(meant("colour", known), None);
        assert_eq!(did_you_mean("quue", known), "; did you mean `queue`?");
        assert_eq!(did_you_mean("", []), "");
    }
}
