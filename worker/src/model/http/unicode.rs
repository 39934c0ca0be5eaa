//! Text that some providers send and that nothing can store: halves of surrogate pairs, and NUL.
//!
//! A server that cuts its stream between two UTF-16 units sends each half of a character as an escape of its own, which no JSON
//! reader accepts. Such a half is read as a mark. Two marks in a row are the character, and a lone one is U+FFFD.

use crate::model::Listener;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// The first mark. The marks are private characters of the last plane, one for each half.
const MARKS: u32 = 0x0010_F000;
/// The first half of a pair.
const HIGH: u32 = 0xD800;
/// The first half that comes second in a pair.
const LOW: u32 = 0xDC00;
/// The end of the halves.
const END: u32 = 0xE000;

/// Reads JSON; returns true beside it if it has marks.
///
/// # Errors
/// It is no JSON, whatever its halves.
pub fn read(text: &str) -> serde_json::Result<(Value, bool)> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, false)),
        Err(error) => error,
    };
    match marked(text) {
        Some(marked) => Ok((serde_json::from_str(&marked)?, true)),
        None => Err(error),
    }
}

/// Returns JSON with a mark in place of each escaped half; `None` without one.
fn marked(text: &str) -> Option<String> {
    let (mut out, mut rest, mut any) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match unit(rest) {
            Some(first @ HIGH..LOW) if matches!(unit(&rest[6..]), Some(LOW..END)) => {
                debug_assert!(first < LOW, "a pair stays as it is");
                12
            }
            Some(half @ HIGH..END) => {
                out.extend(char::from_u32(MARKS + half - HIGH));
                rest = &rest[6..];
                any = true;
                continue;
            }
            // Another escape: the character after it belongs to it.
            _ => rest.chars().take(2).map(char::len_utf8).sum(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    any.then_some(out)
}

/// Returns the unit that an escape at the beginning of a text has.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

/// Replaces marks: two in a row by their character, and lone ones by U+FFFD.
pub fn join(text: &mut String) {
    let half =
        |mark: char| u32::from(mark).checked_sub(MARKS).map(|half| HIGH + half).filter(|half| *half < END);
    if !text.chars().any(|mark| half(mark).is_some()) {
        return;
    }
    let mut joined = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        joined.push(match half(character) {
            None => character,
            Some(first) => {
                let second =
                    characters.peek().copied().and_then(half).filter(|second| first < LOW && *second >= LOW);
                if second.is_some() {
                    characters.next();
                }
                let pair = second
                    .and_then(|second| char::from_u32(0x1_0000 + ((first - HIGH) << 10) + (second - LOW)));
                pair.unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        });
    }
    *text = joined;
}

/// A text that is said without halves of characters: each is kept until its other half has come.
#[derive(Default)]
pub struct WholeText(Arc<Mutex<String>>);

impl WholeText {
    /// Returns a listener that keeps the text; ids pass to the other one.
    pub fn listener(&self, other: &Listener) -> Listener {
        let (kept, other) = (Arc::clone(&self.0), other.clone());
        let keep = move |text: &str| kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
        Listener::new(keep).with_id(move |id| other.note_id(id))
    }

    /// Says the text, unless it ends with the first half of a character.
    pub fn say(&self, listener: &Listener) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = |mark: char| (MARKS..MARKS + LOW - HIGH).contains(&u32::from(mark));
        if kept.is_empty() || kept.ends_with(is_first) {
            return;
        }
        join(&mut kept);
        listener.hear(&kept);
        kept.clear();
    }
}

/// Reads JSON inside of a text, in which no half is completed any more.
///
/// # Errors
/// It is no JSON.
pub fn read_whole(text: &str) -> serde_json::Result<Value> {
    let (mut value, has_marks) = read(text)?;
    if has_marks {
        each_text(&mut value, &mut join);
    }
    Ok(value)
}

/// Replaces NUL by U+FFFD.
pub fn without_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{FFFD}");
    }
}

/// Changes every text of a value, names of members included.
pub fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(members) => {
            let changed: Map<String, Value> = std::mem::take(members)
                .into_iter()
                .map(|(mut name, mut value)| {
                    change(&mut name);
                    each_text(&mut value, change);
                    (name, value)
                })
                .collect();
            *members = changed;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn halves_are_joined_over_chunks_and_lone_ones_replaced() {
        let said = |chunks: &[&str]| {
            let mut text = String::new();
            for chunk in chunks {
                text.push_str(read(chunk).unwrap().0.as_str().unwrap());
            }
            join(&mut text);
            text
        };
        assert_eq!(said(&[r#""a\ud83d""#, r#""\ude00b""#]), "a😀b");
        assert_eq!(said(&[r#""\ud83d\ude00\ud83d""#, r#""x""#]), "😀\u{FFFD}x");
        assert_eq!(said(&[r#""\ude00\ud83d""#]), "\u{FFFD}\u{FFFD}");
        assert_eq!(said(&[r#""\\ud83d and \n \u00e9""#]), "\\ud83d and \n é", "no escape of a half");
        assert!(read(r#""\ud83d"#).is_err(), "it has no end");
        assert!(!read(r#""\ud83d\ude00""#).unwrap().1);
    }

    #[test]
    fn a_text_is_said_once_its_halves_have_come() {
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&heard);
        let listener = Listener::new(move |text| noted.lock().unwrap().push(text.to_owned()));
        let whole = WholeText::default();
        for chunk in [r#""Low \ud83c""#, r#""\udf0a tide""#, r#"" is""#] {
            whole.listener(&listener).hear(read(chunk).unwrap().0.as_str().unwrap());
            whole.say(&listener);
        }
        assert_eq!(*heard.lock().unwrap(), ["Low 🌊 tide", " is"]);
    }

    #[test]
    fn arguments_with_a_lone_half_are_json() {
        assert_eq!(read_whole(r#"{"q\udc00": ["\ud83d"]}"#).unwrap(), json!({"q\u{FFFD}": ["\u{FFFD}"]}));
        assert!(read_whole("{").is_err());
    }

    #[test]
    fn nul_is_replaced_in_names_and_texts() {
        let mut value = json!({"a\u{0}": ["b\u{0}c", 1]});
        each_text(&mut value, &mut without_nul);
        assert_eq!(value, json!({"a\u{FFFD}": ["b\u{FFFD}c", 1]}));
    }
}
