//! Flaws of a JSON text that a parser that keeps texts does not find: duplicate names in an object, halves of surrogate
//! pairs, and nesting without end. One pass, without recursion.

use std::borrow::Cow;

/// A flaw and its place, such as `args[2].to`; the place of the root is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// It nests deeper than the limit.
    TooDeep,
    /// The object at this place has two members of this name.
    Twice {
        /// The object.
        place: String,
        /// The name.
        name: String,
    },
    /// The string at this place holds half of a surrogate pair, which no text has.
    HalfPair {
        /// The string.
        place: String,
    },
}

/// A container that is open.
enum Open<'t> {
    Object { first_name: usize, name: &'t str, wants_name: bool },
    Array { index: usize },
}

/// Returns the first flaw of a text, which is not checked for being JSON; nesting that is too deep ends the search.
#[must_use]
pub fn first_flaw(text: &str, max_depth: usize) -> Option<Flaw> {
    let bytes = text.as_bytes();
    let mut search = Search { open: Vec::new(), names: Vec::new(), found: None };
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' => {
                let first_name = search.names.len();
                search.open.push(Open::Object { first_name, name: "", wants_name: true });
            }
            b'[' => search.open.push(Open::Array { index: 0 }),
            b'}' | b']' => search.close(),
            b',' => search.next_member(),
            b'"' => {
                let end = string_end(bytes, at);
                search.string(&text[at..end.min(text.len())]);
                at = end + 1;
            }
            _ => {}
        }
        if search.open.len() > max_depth {
            return Some(Flaw::TooDeep);
        }
    }
    search.found
}

/// Returns the position of the quotation mark that ends the string, which begins at `from`. Without one it returns the
/// end of the text.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

struct Search<'t> {
    open: Vec<Open<'t>>,
    /// The names seen in each open object, one object after the other.
    names: Vec<Cow<'t, str>>,
    found: Option<Flaw>,
}

impl<'t> Search<'t> {
    fn string(&mut self, inside: &'t str) {
        let escaped = inside.contains('\\');
        if let Some(Open::Object { name, wants_name, .. }) = self.open.last_mut()
            && *wants_name
        {
            (*name, *wants_name) = (inside, false);
            self.names.push(if escaped { unescaped(inside) } else { Cow::Borrowed(inside) });
        }
        if escaped && self.found.is_none() && has_half_pair(inside) {
            self.found = Some(Flaw::HalfPair { place: self.place() });
        }
    }

    fn next_member(&mut self) {
        match self.open.last_mut() {
            Some(Open::Object { wants_name, .. }) => *wants_name = true,
            Some(Open::Array { index }) => *index += 1,
            None => {}
        }
    }

    fn close(&mut self) {
        let Some(Open::Object { first_name, .. }) = self.open.pop() else { return };
        let names = &mut self.names[first_name..];
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].to_string());
        self.names.truncate(first_name);
        if let (Some(name), None) = (twice, &self.found) {
            self.found = Some(Flaw::Twice { place: self.place(), name });
        }
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for open in &self.open {
            match open {
                Open::Object { name, .. } if place.is_empty() => place.push_str(&unescaped(name)),
                Open::Object { name, .. } => place.extend([".", &unescaped(name)]),
                Open::Array { index } => place.push_str(&format!("[{index}]")),
            }
        }
        place
    }
}

/// Returns an escaped string unescaped; the string itself when an escape cannot be read.
fn unescaped(inside: &str) -> Cow<'_, str> {
    match serde_json::from_str::<String>(&format!("\"{inside}\"")) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(inside),
    }
}

fn has_half_pair(inside: &str) -> bool {
    let mut rest = inside;
    let mut high = false;
    while let Some(at) = rest.find('\\') {
        let after = &rest[at + 1..];
        let unit = after.strip_prefix('u').and_then(|digits| u32::from_str_radix(digits.get(..4)?, 16).ok());
        let low = matches!(unit, Some(0xDC00..=0xDFFF));
        if high != (low && at == 0) || (low && !high) {
            return true;
        }
        high = matches!(unit, Some(0xD800..=0xDBFF));
        let length = if unit.is_some() { 5 } else { after.chars().next().map_or(0, char::len_utf8) };
        rest = &after[length..];
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice(place: &str, name: &str) -> Option<Flaw> {
        Some(Flaw::Twice { place: place.to_owned(), name: name.to_owned() })
    }

    fn half(place: &str) -> Option<Flaw> {
        Some(Flaw::HalfPair { place: place.to_owned() })
    }

    #[test]
    fn a_name_that_stands_twice_is_found_at_any_depth() {
        for (text, flaw) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}"#, None),
            (r#"{"a":1,"b":2,"a":3}"#, twice("", "a")),
            (r#"{"x":[0,{"y":{"k":1,"k":1}}]}"#, twice("x[1].y", "k")),
            (r#"{"a":1,"\u0061":2}"#, twice("", "a")),
            (r#"{"":1,"":2}"#, twice("", "")),
            (r#"{"a":"b","b":"a","c":["a","a"]}"#, None),
            (r#"{"a":{"b":1},"c":{"b":1},"a":0}"#, twice("", "a")),
            (r#"{"q":"\"a\":1,","a":1}"#, None),
        ] {
            assert_eq!(first_flaw(text, 100), flaw, "{text}");
        }
    }

    #[test]
    fn half_of_a_pair_is_found_in_names_and_values() {
        for (text, flaw) in [
            (r#"{"a":"\ud83e\udd80 \\ud83e \n"}"#, None),
            (r#"{"a":["ok","\ud83e"]}"#, half("a[1]")),
            (r#"{"a":"\ud83e\n"}"#, half("a")),
            (r#"{"a":"\udd80"}"#, half("a")),
            (r#"{"a":"\ud83ex\udd80"}"#, half("a")),
            (r#"{"a":"\ud83e\ud83e\udd80"}"#, half("a")),
            (r#"{"b":{"\uD800":1}}"#, half(r"b.\uD800")),
            (r#"{"a":"\u00e9\\"}"#, None),
        ] {
            assert_eq!(first_flaw(text, 100), flaw, "{text}");
        }
    }

    #[test]
    fn depth_is_counted_and_never_overflows_the_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(first_flaw(&nested(100), 100), None);
        assert_eq!(first_flaw(&nested(101), 100), Some(Flaw::TooDeep));
        assert_eq!(first_flaw(&"{\"a\":".repeat(200_000), 100), Some(Flaw::TooDeep));
        assert_eq!(first_flaw(&format!("\"{}\"", "[".repeat(500)), 100), None, "a string is not a list");
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for text in ["", "\"", "\"\\", "}", "]]", "{\"", "{\"a", ",,,", "\"\\u", "\"\\uD8", "é\"\\é", "{]}"]
        {
            let _ = first_flaw(text, 100);
        }
    }
}
