//! Personal data, recognised by its form (RS-23).
//!
//! The forms are e-mail addresses, telephone numbers, social security numbers of the United States, numbers of payment
//! cards and IP addresses. A telephone number has a country code, brackets or at least ten digits in groups. The check
//! digit of a card's number has to be right. Data in words, split over several texts or inside of base64 is not found;
//! a version number of four parts counts as an address. Names and postal addresses have no form and are not searched
//! for.

use crate::agent::safety::PersonalKind;
use crate::message::{ContentPart, Message, part};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

/// The order of the search: a kind does not search the findings of the kinds before it.
static FORMS: LazyLock<Vec<(PersonalKind, Option<Regex>)>> = LazyLock::new(|| {
    use PersonalKind::{CreditCard, Email, IpAddress, Phone, Ssn};
    [
        (Email, r"(?i-u)[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}"),
        (CreditCard, r"(?-u)[2-6][0-9](?:[ -]?[0-9]){11,17}"),
        (Ssn, r"(?-u)[0-9]{3}-[0-9]{2}-[0-9]{4}"),
        (IpAddress, r"(?-u)[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"),
        (Phone, r"(?-u)(?:\+[0-9]{1,3}[ ./-]?)?(?:\([0-9]{1,5}\)|[0-9]{1,14})(?:[ ./-]{1,2}[0-9]{2,9}){0,5}"),
    ]
    .map(|(kind, form)| (kind, Regex::new(form).ok()))
    .into()
});

/// Returns the kinds and places of the findings, in the order of the text.
#[must_use]
pub fn found(kinds: &[PersonalKind], text: &str) -> Vec<(PersonalKind, Range<usize>)> {
    // By where they begin; they do not overlap.
    let mut found: BTreeMap<usize, (usize, PersonalKind)> = BTreeMap::new();
    // Everything with a form has a digit, a colon or an `@`.
    if !text.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@' || byte == b':') {
        return Vec::new();
    }
    for (kind, form) in FORMS.iter() {
        let Some(form) = form else { continue };
        for hit in form.find_iter(text) {
            let range = trimmed(text, hit.range());
            let before = found.range(..range.end).next_back();
            let taken = before.is_some_and(|(_, (end, _))| *end > range.start);
            if !taken && stands_alone(text, &range) && is_one(*kind, &text[range.clone()]) {
                found.insert(range.start, (range.end, *kind));
            }
        }
    }
    // A kind that was not requested still keeps its text from matching another kind.
    let found = found.into_iter().map(|(start, (end, kind))| (kind, start..end));
    found.filter(|(kind, _)| kinds.contains(kind)).collect()
}

/// Returns the text with every finding replaced by the name of its kind; `None` without a finding.
#[must_use]
pub fn redacted(kinds: &[PersonalKind], text: &str) -> Option<String> {
    let found = found(kinds, text);
    if found.is_empty() {
        return None;
    }
    let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
    for (kind, range) in found {
        clean.push_str(&text[at..range.start]);
        clean.push_str("[redacted ");
        clean.push_str(kind.as_str());
        clean.push(']');
        at = range.end;
    }
    clean.push_str(&text[at..]);
    Some(clean)
}

/// Returns the kinds of the findings anywhere in a value, each once.
#[must_use]
pub fn kinds_in(kinds: &[PersonalKind], value: &Value) -> Vec<PersonalKind> {
    let mut seen = Vec::new();
    each_text(value, &mut |text| seen.extend(found(kinds, text).into_iter().map(|(kind, _)| kind)));
    seen.sort_unstable();
    seen.dedup();
    seen
}

/// Redacts every text and number in a value; keys of objects, too. Returns whether anything was found.
pub fn redact(kinds: &[PersonalKind], value: &mut Value) -> bool {
    match value {
        Value::String(text) => replace(kinds, text),
        Value::Number(number) => match redacted(kinds, &number.to_string()) {
            Some(clean) => {
                *value = Value::String(clean);
                true
            }
            None => false,
        },
        Value::Array(items) => redact_all(kinds, items.iter_mut()),
        Value::Object(fields) => {
            let mut any = false;
            if fields.keys().any(|key| !found(kinds, key).is_empty()) {
                any = true;
                let renamed = std::mem::take(fields).into_iter();
                *fields = renamed.map(|(key, item)| (redacted(kinds, &key).unwrap_or(key), item)).collect();
            }
            redact_all(kinds, fields.values_mut()) || any
        }
        Value::Null | Value::Bool(_) => false,
    }
}

/// Redacts every one of them, also after the first in which anything was found.
fn redact_all<'a>(kinds: &[PersonalKind], values: impl Iterator<Item = &'a mut Value>) -> bool {
    let mut any = false;
    for value in values {
        any |= redact(kinds, value);
    }
    any
}

/// Redacts a text in its place. Returns whether anything was found.
pub fn replace(kinds: &[PersonalKind], text: &mut String) -> bool {
    match redacted(kinds, text) {
        Some(clean) => {
            *text = clean;
            true
        }
        None => false,
    }
}

/// Redacts a message in its place.
pub fn redact_message(kinds: &[PersonalKind], message: &mut Message) {
    if let Some(attached) = &mut message.attached {
        attached.each_members(&mut |members| {
            redact_all(kinds, members.values_mut());
        });
    }
    if message.parts.is_empty() {
        // JSON input stays JSON.
        redact_text(kinds, &mut message.content);
        return;
    }
    for part in &mut message.parts {
        match part {
            ContentPart::Text { text } => drop(replace(kinds, text)),
            ContentPart::File { name, content, .. } => {
                replace(kinds, name);
                replace(kinds, content);
            }
            ContentPart::Image { .. } => {}
        }
    }
    message.content = part::as_text(&message.parts);
}

/// Redacts a text; one that is JSON stays JSON.
pub fn redact_text(kinds: &[PersonalKind], text: &mut String) {
    let json = text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str::<Value>(text).ok());
    match json.flatten() {
        Some(mut value) => {
            if redact(kinds, &mut value) {
                *text = value.to_string();
            }
        }
        None => drop(replace(kinds, text)),
    }
}

fn each_text(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Number(number) => look(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, look)),
        Value::Object(fields) => {
            for (key, item) in fields {
                look(key);
                each_text(item, look);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Without punctuation that belongs to the sentence.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let end = text[range.clone()].trim_end_matches([' ', '.', '-', '/']).len();
    range.start..range.start + end
}

/// Returns true if it is not part of something longer, such as an id.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let before = text[..range.start].chars().next_back();
    let mut after = text[range.end..].chars();
    let glued = match after.next() {
        Some('.' | ':') => after.next().is_some_and(char::is_alphanumeric),
        Some(next) => part(next),
        None => false,
    };
    !glued && !before.is_some_and(|c| part(c) || matches!(c, '.' | ':' | '+' | '@'))
}

fn is_one(kind: PersonalKind, text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    match kind {
        PersonalKind::Email => true,
        PersonalKind::CreditCard => (13..=19).contains(&digits.len()) && luhn(&digits),
        PersonalKind::Ssn => {
            let parts: Vec<&str> = text.split('-').collect();
            !matches!(parts[0], "000" | "666") && digits[0] != 9 && parts[1] != "00" && parts[2] != "0000"
        }
        PersonalKind::IpAddress if text.contains('.') => text.parse::<Ipv4Addr>().is_ok(),
        PersonalKind::IpAddress => text.len() > 2 && text.parse::<Ipv6Addr>().is_ok(),
        PersonalKind::Phone => {
            let named = text.starts_with(['+', '(']);
            let grouped =
                text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).count() > 2;
            let least = if named { 8 } else { 10 };
            (least..=15).contains(&digits.len()) && (named || grouped) && !is_date(text)
        }
    }
}

/// `2026-11-21`, with or without a time behind it.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', '/', '.', ' ']).collect();
    let lengths: Vec<usize> = parts.iter().take(3).map(|part| part.len()).collect();
    lengths == [4, 2, 2] || lengths == [2, 2, 4]
}

/// Returns true if the check digit of a payment card is right.
fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { *digit } else { digit * 2 % 10 + digit * 2 / 10 })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;
    use serde_json::json;

    fn clean(text: &str) -> String {
        redacted(&PersonalKind::ALL, text).unwrap_or_else(|| text.to_owned())
    }

    /// RS-23: each kind by its form.
    #[test]
    fn what_has_the_form_of_personal_data_is_found() {
        assert!(FORMS.iter().all(|(_, form)| form.is_some()));
        for (text, redacted) in [
            ("Mail ada.l+x@mail.example.org.", "Mail [redacted email]."),
            ("card 4111 1111 1111 1111!", "card [redacted credit_card]!"),
            ("5500-0000-0000-0004", "[redacted credit_card]"),
            ("SSN 123-45-6789", "SSN [redacted ssn]"),
            ("from 192.168.1.10, port 80", "from [redacted ip_address], port 80"),
            ("at 2001:db8::1", "at [redacted ip_address]"),
            ("call +49 30 901820 now", "call [redacted phone] now"),
            ("call (555) 010-9999.", "call [redacted phone]."),
            ("555-010-9999", "[redacted phone]"),
            ("a@b.io and c@d.io", "[redacted email] and [redacted email]"),
        ] {
            assert_eq!(clean(text), redacted);
        }
    }

    #[test]
    fn what_only_looks_like_it_is_left_alone() {
        for text in [
            "2026-11-21 10:30:00",
            "21.11.2026",
            "4111 1111 1111 1112",
            "01890000-0000-7000-8000-000000000000",
            "order 12345678",
            "at 10:30:15",
            "999.1.1.1 and 666-12-3456",
            "std::fmt::Debug",
            "user@host",
            "pi is 3.14159265358979",
            "1795275723601",
            "ünïcode 😀 ::",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn values_are_redacted_in_texts_numbers_and_keys() {
        let mut value = json!({"a@b.io": [1, "x 123-45-6789"], "card": 4_111_111_111_111_111_i64, "n": null});
        assert_eq!(
            kinds_in(&PersonalKind::ALL, &value),
            [PersonalKind::Email, PersonalKind::Ssn, PersonalKind::CreditCard]
        );
        assert!(redact(&PersonalKind::ALL, &mut value));
        let shown =
            json!({"[redacted email]": [1, "x [redacted ssn]"], "card": "[redacted credit_card]", "n": null});
        assert_eq!(value, shown);
        assert!(!redact(&PersonalKind::ALL, &mut value), "once is enough");
        assert!(!redact(&[PersonalKind::Phone], &mut json!("a@b.io")));
    }

    #[test]
    fn a_long_text_is_read_in_one_go() {
        let text = "1.2.3.4.5.6.7.8.9 +1 (1) ".repeat(20_000);
        let _ = clean(&text);
        assert!(clean(&"1 ".repeat(200_000)).len() >= 100_000);
    }

    /// RS-23: JSON stays JSON, and so do its numbers.
    #[test]
    fn json_stays_json() {
        let mut text = "{\"card\": 4111111111111111, \"mail\": \"a@b.io\"}".to_owned();
        redact_text(&PersonalKind::ALL, &mut text);
        assert_eq!(text, "{\"card\":\"[redacted credit_card]\",\"mail\":\"[redacted email]\"}");
        let mut untouched = "{ \"n\": 1 }".to_owned();
        redact_text(&PersonalKind::ALL, &mut untouched);
        assert_eq!(untouched, "{ \"n\": 1 }", "what has nothing to redact is not written anew");
        let mut text = "[see a@b.io".to_owned();
        redact_text(&PersonalKind::ALL, &mut text);
        assert_eq!(text, "[see [redacted email]");
    }

    #[test]
    fn parts_are_redacted_in_their_order() {
        let parts = vec![
            ContentPart::Text { text: "mail a@b.io".into() },
            ContentPart::File {
                name: "a.csv".into(),
                content: "123-45-6789".into(),
                media_type: "text/csv".into(),
            },
        ];
        let mut message = Message::of_parts(Role::User, parts);
        redact_message(&PersonalKind::ALL, &mut message);
        assert_eq!(message.content, "mail [redacted email]\n\n[file a.csv, text/csv]\n[redacted ssn]");
        assert_eq!(message.parts[0], ContentPart::Text { text: "mail [redacted email]".into() });
    }
}
