//! Untrusted text, made safe for a terminal: escape sequences, control characters and characters that reorder or hide
//! text are removed.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text without anything that a terminal would obey; line breaks and tabs stay.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_harmless(c) || matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{2028}' | '\u{2029}' => clean.push('\n'),
            '\n' | '\t' => clean.push(c),
            c if is_harmless(c) => clean.push(c),
            _ => {}
        }
    }
    Cow::Owned(clean)
}

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

/// JSON text in which characters that a terminal would obey are written as `\uXXXX`. Its meaning stays the same,
/// because such characters only occur inside of strings.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_harmless(c) || c == '\n') {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmless(c) || c == '\n' {
            escaped.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Cow::Owned(escaped)
}

fn is_harmless(c: char) -> bool {
    !c.is_control() && !is_invisible(c)
}

/// Marks that reorder text, break lines or hide letters. The joiners U+200C and U+200D stay: some scripts need them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

fn skip_csi(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// Titles, links, device control: up to their end mark, or the end of the line when it is missing.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if chars.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_go_as_a_whole() {
        assert_eq!(block("a\u{1b}[31;1mred\u{1b}[0m b"), "ared b");
        assert_eq!(block("\u{1b}]0;title\u{7}x\u{1b}]8;;http://e\u{1b}\\link\u{1b}]8;;\u{1b}\\"), "xlink");
        assert_eq!(block("\u{9b}2Jx\u{1b}cy\u{1b}(Bz"), "xyz");
        assert_eq!(block("\u{1b}[999999"), "");
        assert_eq!(block("\u{1b}]never closed\nnext line"), "\nnext line");
    }

    #[test]
    fn characters_that_control_or_hide_go() {
        assert_eq!(block("a\r\u{8}\u{7}\u{0}\u{7f}\u{85}b"), "ab");
        assert_eq!(block("pay\u{202e}lave\u{2066}x\u{200b}\u{feff}\u{e0041}"), "paylavex");
        assert_eq!(block("line\none\ttab"), "line\none\ttab");
        assert_eq!(block("مرحبا 你好 👩\u{200d}🔬 é"), "مرحبا 你好 👩\u{200d}🔬 é");
    }

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
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "a": "x\u{9b}2J\u{202e}\u{e0041}é\n" });
        let text = value.to_string();
        let safe = json(&text);
        assert!(!safe.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
