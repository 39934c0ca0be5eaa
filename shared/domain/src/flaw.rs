//! Flaws of a JSON text that a parser that keeps texts does not find: duplicate names in an object, halves of surrogate
//! pairs, and nesting without end. Also U+0000, which no text of PostgreSQL holds. One pass, without recursion.

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
    let mut search = Search::default();
    if search.walk(text, max_depth) { search.found } else { Some(Flaw::TooDeep) }
}

/// Returns the place of the first string with the character U+0000, the name of a member or a value. The text is not checked
/// for being JSON.
#[must_use]
pub fn first_nul(text: &str) -> Option<String> {
    if !text.contains(NUL) {
        return None;
    }
    let mut search = Search { ends_at_nul: true, ..Search::default() };
    search.walk(text, MOST_NESTED);
    search.nul
}

/// The deepest nesting in which U+0000 is looked for: no parser reads a deeper text.
const MOST_NESTED: usize = 128;
/// The character U+0000 as JSON escapes it.
const NUL: &str = "\\u0000";

/// Returns JSON text with `\ufffd` in place of each escaped half of a surrogate pair that stands alone.
#[must_use]
pub fn without_half_pairs(text: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, length)) = half_pair(rest) {
        out.push_str(&rest[..before]);
        out.push_str("\\ufffd");
        rest = &rest[before + length..];
    }
    if out.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(out + rest) }
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

#[derive(Default)]
struct Search<'t> {
    open: Vec<Open<'t>>,
    /// The names seen in each open object, one object after the other.
    names: Vec<Cow<'t, str>>,
    found: Option<Flaw>,
    /// The place of the first string with U+0000.
    nul: Option<String>,
    /// True if nothing else is searched for.
    ends_at_nul: bool,
}

impl<'t> Search<'t> {
    /// Searches a text; returns false when nesting that is too deep ends the search.
    fn walk(&mut self, text: &'t str, max_depth: usize) -> bool {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' => {
                    let first_name = self.names.len();
                    self.open.push(Open::Object { first_name, name: "", wants_name: true });
                }
                b'[' => self.open.push(Open::Array { index: 0 }),
                b'}' | b']' => self.close(),
                b',' => self.next_member(),
                b'"' => {
                    let end = string_end(bytes, at);
                    self.string(&text[at..end.min(text.len())]);
                    at = end + 1;
                }
                _ => {}
            }
            if self.open.len() > max_depth {
                return false;
            }
            if self.ends_at_nul && self.nul.is_some() {
                return true;
            }
        }
        true
    }

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
        if escaped && self.nul.is_none() && unescaped(inside).contains('\0') {
            self.nul = Some(self.place().replace('\0', "\u{FFFD}"));
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
    half_pair(inside).is_some()
}

/// Returns the position and the length of the first escape of half of a surrogate pair that stands alone.
fn half_pair(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        let length = match unit(&text[at..]) {
            Some(0xD800..=0xDBFF) if matches!(unit(&text[at + ESCAPE..]), Some(0xDC00..=0xDFFF)) => {
                2 * ESCAPE
            }
            Some(0xD800..=0xDFFF) => return Some((at, ESCAPE)),
            Some(_) => ESCAPE,
            // Another escape: the character after it belongs to it.
            None => text[at..].chars().take(2).map(char::len_utf8).sum(),
        };
        at += length;
    }
    None
}

/// The length of an escape with four digits.
const ESCAPE: usize = 6;

/// Returns the UTF-16 unit of the escape with which a text begins.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
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
    fn a_half_pair_is_replaced_and_nothing_else() {
        for (text, whole) in [
            (r#"{"a":"\ud83e\udd80 \\ud83e \n"}"#, r#"{"a":"\ud83e\udd80 \\ud83e \n"}"#),
            (r#"["\ud83e","\uDD80","\ud83e\ud83e\udd80"]"#, r#"["\ufffd","\ufffd","\ufffd\ud83e\udd80"]"#),
            (r#"{"\ud83ex":"é\ud83e"}"#, r#"{"\ufffdx":"é\ufffd"}"#),
        ] {
            assert_eq!(without_half_pairs(text), whole);
        }
    }

    #[test]
    fn the_first_nul_is_found_with_its_place() {
        for (text, place) in [
            (r#"{"a":"\\u0000","b":"\\\u0000"}"#, Some("b")),
            (r#"{"a":"\\u0000"}"#, None),
            (r#"{"a":["x",{"k":"x\u0000y"}]}"#, Some("a[1].k")),
            (r#"{"m":{"a\u0000b":1}}"#, Some("m.a\u{FFFD}b")),
            (r#""\u0000""#, Some("")),
            ("{\"a\":1}\n{\"b\":\"\\u0000\"}", Some("b")),
        ] {
            assert_eq!(first_nul(text).as_deref(), place, "{text}");
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
