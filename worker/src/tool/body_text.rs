//! The text of a body that a tool answered: its charset, and the numbers that JSON does not have.

use encoding_rs::{Encoding, WINDOWS_1252};
use std::borrow::Cow;

/// A body as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyText {
    /// The text.
    pub text: String,
    /// The part that could not be read as it was sent, in a sentence.
    pub note: Option<String>,
}

/// Returns the encoding that a `Content-Type` names; `None` if it names none, or an unknown one.
#[must_use]
pub fn declared(content_type: &str) -> Option<&'static Encoding> {
    let label = label(content_type)?;
    // Some servers separate the parts of a name that has no separator, as in `latin-1`.
    let plain = || label.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    Encoding::for_label_no_replacement(label.as_bytes())
        .or_else(|| Encoding::for_label_no_replacement(plain().as_bytes()))
}

fn label(content_type: &str) -> Option<&str> {
    let named = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    });
    named.map(|value| value.trim().trim_matches(['"', '\''])).filter(|label| !label.is_empty())
}

/// Returns the text of a body. A byte order mark decides first, then the charset of the `Content-Type`. A body without either
/// is UTF-8, or else windows-1252, of which ISO-8859-1 is a part.
#[must_use]
pub fn decode(content_type: &str, body: Vec<u8>) -> BodyText {
    let Some(encoding) = declared(content_type) else {
        return undeclared(label(content_type), body);
    };
    let (text, used, has_errors) = encoding.decode(&body);
    let note =
        has_errors.then(|| format!("its body has bytes that are not {}; they are replaced", used.name()));
    BodyText { text: text.into_owned(), note }
}

fn undeclared(unknown: Option<&str>, body: Vec<u8>) -> BodyText {
    if let Some((encoding, _)) = Encoding::for_bom(&body) {
        return BodyText { text: encoding.decode(&body).0.into_owned(), note: None };
    }
    let bytes = match String::from_utf8(body) {
        Ok(text) => return BodyText { text, note: None },
        Err(error) => error.into_bytes(),
    };
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes);
    let why = match unknown {
        Some(label) => format!("names the unknown charset {label:?}"),
        None => "names no charset".to_owned(),
    };
    let note = format!("its body {why} and is not UTF-8; it is read as windows-1252");
    BodyText { text: text.into_owned(), note: Some(note) }
}

/// Returns true if a body without a charset is no text: it has bytes of zero, and is neither UTF-8 nor marked.
#[must_use]
pub fn is_binary(content_type: &str, body: &[u8]) -> bool {
    declared(content_type).is_none()
        && Encoding::for_bom(body).is_none()
        && body.contains(&0)
        && std::str::from_utf8(body).is_err()
}

/// The numbers that some servers write, and JSON does not have.
const NUMBERS: [&str; 4] = ["-Infinity", "Infinity", "-NaN", "NaN"];

/// Says of a body that it has such numbers.
pub const HAS_NO_NUMBERS: &str = "its JSON has NaN or Infinity, which are no numbers of JSON";

/// Returns a JSON text in which the numbers that JSON does not have are texts, such as `"NaN"`. A text without them is
/// returned as it is.
#[must_use]
pub fn with_numbers_as_texts(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut read = String::with_capacity(text.len() + 16);
    let (mut copied, mut in_text, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii()) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'-' | b'I' | b'N' if !in_text && at >= copied => {
                let found = NUMBERS.iter().find(|number| text[at..].starts_with(**number));
                let Some(number) = found else { continue };
                read.extend([&text[copied..at], "\"", number, "\""]);
                copied = at + number.len();
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    read.push_str(&text[copied..]);
    Cow::Owned(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_in_its_charset() {
        for (content_type, body, text) in [
            ("text/plain; charset=iso-8859-1", &b"caf\xe9"[..], "café"),
            ("application/json;charset=\"Latin-1\"", b"caf\xe9", "café"),
            ("text/plain; format=flowed; Charset=Shift_JIS", b"\x93\xfa\x96{", "日本"),
            ("text/plain; charset=euc-jp", b"\xc6\xfc\xcb\xdc", "日本"),
            ("text/plain; charset=utf-16le", b"a\0b\0", "ab"),
            ("text/plain; charset=utf-8", b"\xef\xbb\xbfa", "a"),
            ("", b"\xff\xfea\0", "a"),
            ("text/plain", "日本".as_bytes(), "日本"),
        ] {
            let read = decode(content_type, body.to_vec());
            assert_eq!(read, BodyText { text: text.to_owned(), note: None }, "{content_type}");
        }
    }

    #[test]
    fn a_body_in_an_unknown_charset_is_read_with_a_note() {
        for (content_type, body, text, word) in [
            ("text/plain", &b"caf\xe9"[..], "café", "windows-1252"),
            ("text/plain; charset=martian", b"caf\xe9", "café", "martian"),
            ("text/plain; charset=utf-8", b"caf\xe9", "caf\u{fffd}", "replaced"),
        ] {
            let read = decode(content_type, body.to_vec());
            assert_eq!(read.text, text, "{content_type}");
            assert!(read.note.as_ref().is_some_and(|note| note.contains(word)), "{read:?}");
        }
        assert!(is_binary("", b"\x89P\0\xff") && !is_binary("", b"a\0") && !is_binary("", b"\xff\xfea\0"));
    }

    #[test]
    fn numbers_that_json_lacks_become_texts_outside_of_texts() {
        for (sent, read) in [
            (
                r#"{"a":NaN,"b":[-Infinity, Infinity],"c":1}"#,
                r#"{"a":"NaN","b":["-Infinity", "Infinity"],"c":1}"#,
            ),
            (r#"{"a":"NaN \" NaN","NaN":"é","b":NaN}"#, r#"{"a":"NaN \" NaN","NaN":"é","b":"NaN"}"#),
            ("NaN", "\"NaN\""),
            (r#"{"a":"é Infinity"}"#, r#"{"a":"é Infinity"}"#),
        ] {
            assert_eq!(with_numbers_as_texts(sent), read);
        }
    }
}
