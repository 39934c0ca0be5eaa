//! Text that fits a terminal: on one line, cut to a width, or broken between words.

use std::borrow::Cow;
pub use turnstone_telemetry::terminal::{block, colored, json};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns a count in words: `1 turn`, `2 turns`.
#[must_use]
pub fn counted(count: i64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Returns a word as a POSIX shell reads it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// As [`block`], on one line: every run of white space becomes one space.
#[must_use]
pub fn line(text: &str) -> String {
    block(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns how many columns the text takes on a terminal.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns the text cut to at most `columns` columns; an ellipsis shows that something is missing.
#[must_use]
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut taken = 0;
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            taken += c.width().unwrap_or(0);
            taken < columns
        })
        .collect();
    if columns > 0 {
        cut.push('…');
    }
    Cow::Owned(cut)
}

/// Returns a time that people wait for, from minutes on: `12m`, `22h55m`, `3d4h`.
#[must_use]
pub fn span(ms: i64) -> String {
    let minutes = ms.max(0) / 60_000;
    let (days, hours, minutes) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m"),
        (0, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours}h"),
    }
}

/// Returns the text with its lines broken between words, so that none is wider than `columns`; a word that is stays
/// whole. Without a width nothing is broken.
#[must_use]
pub fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let mut lines: Vec<String> = Vec::new();
    for given in text.lines() {
        let mut line = String::new();
        for word in given.split(' ') {
            if !line.is_empty() && width(&line) + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(line("  a\n\n b\u{2028}c\t d "), "a b c d");
    }

    #[test]
    fn cutting_counts_columns_not_characters() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
        assert_eq!(fit("你好你好", 5), "你好…");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three\nfour", Some(8)), "one two\nthree\nfour");
        assert_eq!(wrapped("a unbreakable b", Some(4)), "a\nunbreakable\nb");
        assert_eq!(wrapped("one two three", None), "one two three");
    }

    #[test]
    fn a_span_is_read_at_a_glance() {
        assert_eq!([720_000, 82_544_600, 273_600_000].map(span), ["12m", "22h55m", "3d4h"]);
    }

    #[test]
    fn escaped_json_keeps_its_meaning() {
        let value = serde_json::json!({ "a": "x\u{9b}2J\u{202e}\u{e0041}é\n" });
        let text = value.to_string();
        let safe = json(&text);
        assert!(!safe.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
