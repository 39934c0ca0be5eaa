//! Capability names with dashes and dots, as OpenAgentSpec writes them, in a form that CEL can read.

/// Words that CEL does not take as a field name.
const RESERVED: [&str; 19] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
];

/// Rewrites `recent.search-faqs.inputs` to `recent["search-faqs"].inputs` and `.[0]` to `[0]`.
///
/// Only after a bare `recent` or `history`, only for a name in `names` (the longest that fits), and never inside a
/// string or a comment. Names that CEL reads as they are stay as they are, so that `has(recent.search)` works.
pub(super) fn addressable(source: &str, names: &[&str]) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source;
    // The last character that is not a space: an identifier after `.` is a field, not a variable.
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let token = token(rest);
        let (text, tail) = rest.split_at(token);
        rest = tail;
        if text == "." && rest.starts_with('[') {
            continue;
        }
        out.push_str(text);
        if matches!(text, "recent" | "history")
            && before != '.'
            && let Some(name) = longest_name(rest, names)
        {
            rest = &rest[1 + name.len()..];
            if is_plain(name) {
                out.push('.');
                out.push_str(name);
            } else {
                out.push_str(&format!("[\"{name}\"]"));
            }
        }
        if !first.is_whitespace() {
            before = text.chars().next_back().unwrap_or(first);
        }
    }
    out
}

/// Returns the name after the dot at the start of `rest`.
fn longest_name<'a>(rest: &str, names: &[&'a str]) -> Option<&'a str> {
    let after = rest.strip_prefix('.')?;
    let fits = |name: &&&str| {
        !name.is_empty()
            && after.strip_prefix(**name).is_some_and(|tail| !tail.starts_with(|c| is_word(c) || c == '-'))
    };
    names.iter().filter(fits).max_by_key(|name| name.len()).copied()
}

fn is_plain(name: &str) -> bool {
    name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !RESERVED.contains(&name)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the length of the token at the start of `rest`: an identifier, a string, a comment, or one character.
fn token(rest: &str) -> usize {
    let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let tail = &rest[word..];
    let is_prefix = matches!(rest[..word].to_ascii_lowercase().as_str(), "" | "r" | "b" | "rb" | "br");
    if tail.starts_with(['"', '\'']) && is_prefix {
        let raw = rest[..word].contains(['r', 'R']);
        return word + string(tail, raw);
    }
    if word > 0 {
        return word;
    }
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    rest.chars().next().map_or(0, char::len_utf8)
}

/// Returns the length of the string literal at the start of `rest`; an unfinished one goes to the end.
fn string(rest: &str, raw: bool) -> usize {
    let quote =
        ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote)).unwrap_or("\"");
    let mut at = quote.len();
    while at < rest.len() {
        if rest[at..].starts_with(quote) {
            return at + quote.len();
        }
        let mut chars = rest[at..].chars();
        let first = chars.next().map_or(1, char::len_utf8);
        let escaped =
            if rest[at..].starts_with('\\') && !raw { chars.next().map_or(0, char::len_utf8) } else { 0 };
        at += first + escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::addressable;

    #[test]
    fn dotted_names_become_index_forms() {
        let names = ["a", "a.b", "search", "search-faqs", "in", "9tool", "create-ticket"];
        for (from, to) in [
            ("recent.search-faqs.inputs['p']", "recent[\"search-faqs\"].inputs['p']"),
            ("recent.search.inputs", "recent.search.inputs"),
            ("has(recent.search)", "has(recent.search)"),
            ("recent.a.b.inputs.k", "recent[\"a.b\"].inputs.k"),
            ("recent.a.inputs", "recent.a.inputs"),
            ("recent.in.inputs == recent.9tool.inputs", "recent[\"in\"].inputs == recent[\"9tool\"].inputs"),
            ("history.search-faqs.[0].inputs", "history[\"search-faqs\"][0].inputs"),
            ("history.[0]", "history[0]"),
            ("history._total - 1 < 3", "history._total - 1 < 3"),
            ("recent.search-1", "recent.search-1"),
            ("recent.search - 1", "recent.search - 1"),
            ("recent.create-tickets.inputs", "recent.create-tickets.inputs"),
            ("recent[\"search-faqs\"].inputs", "recent[\"search-faqs\"].inputs"),
            ("user.recent.search-faqs", "user.recent.search-faqs"),
            ("myrecent.search-faqs", "myrecent.search-faqs"),
            ("'recent.search-faqs' == x", "'recent.search-faqs' == x"),
            ("\"a\\\"recent.search-faqs\"", "\"a\\\"recent.search-faqs\""),
            ("r'\\' + recent.a.b", "r'\\' + recent[\"a.b\"]"),
            ("'''it's recent.a.b''' == recent.a.b", "'''it's recent.a.b''' == recent[\"a.b\"]"),
            ("true // recent.a.b\n&& recent.a.b", "true // recent.a.b\n&& recent[\"a.b\"]"),
            ("recent.search-faqs == 'ü' && recent.a.b", "recent[\"search-faqs\"] == 'ü' && recent[\"a.b\"]"),
            ("'unfinished recent.a.b", "'unfinished recent.a.b"),
        ] {
            assert_eq!(addressable(from, &names), to, "{from}");
        }
    }
}
