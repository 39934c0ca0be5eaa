//! Text of others, made safe for a terminal: escape sequences, control characters, and characters that reorder or hide text
//! are removed, or escaped where the text is JSON.
//!
//! Every text that a process prints for people passes one of these functions: log lines here, all else in the command line's
//! output.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// The codes of the colours that our own output has.
const COLORS: [&str; 8] = ["0", "1", "2", "4", "31", "32", "33", "36"];

/// Returns the text without anything that a terminal would obey; line breaks and tabs stay.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    cleaned(text, false)
}

/// As [`block`], for a text of our own with colours: `ESC [ code m` stays, for the few codes that our output has.
#[must_use]
pub fn colored(text: &str) -> Cow<'_, str> {
    cleaned(text, true)
}

fn cleaned(text: &str, keeps_colors: bool) -> Cow<'_, str> {
    if text.chars().all(|c| is_harmless(c) || matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match color(chars.clone()).filter(|_| keeps_colors) {
                Some(code) => {
                    clean.extend(["\u{1b}[", code, "m"]);
                    chars.nth(code.len() + 1);
                }
                None => skip_escape(&mut chars),
            },
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\u{2028}' | '\u{2029}' => clean.push('\n'),
            '\n' | '\t' => clean.push(c),
            c if is_harmless(c) => clean.push(c),
            _ => {}
        }
    }
    Cow::Owned(clean)
}

/// Returns the code of one of our colours that follows an escape character.
fn color(rest: Peekable<Chars<'_>>) -> Option<&'static str> {
    let sequence: String = rest.take(4).collect();
    let (code, _) = sequence.strip_prefix('[')?.split_once('m')?;
    COLORS.into_iter().find(|color| *color == code)
}

/// Returns JSON text in which characters that a terminal would obey are written as `\uXXXX`. Its value stays the same, because
/// such characters occur only inside of strings. White space between its parts stays, except carriage returns.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    let is_kept = |c| is_harmless(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars().filter(|c| *c != '\r') {
        if is_kept(c) {
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

/// Returns true for a character that a terminal prints at its place, and a reader sees.
#[must_use]
pub fn is_harmless(c: char) -> bool {
    !c.is_control() && !is_invisible(c)
}

/// Returns true for characters that reorder text, break lines, or take no room: bidirectional controls, separators, fillers,
/// format controls, and tags. The joiners U+200C and U+200D and the variation selectors stay: scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'
        | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
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
    fn only_our_own_colours_stay() {
        let text = "\u{1b}[31mred\u{1b}[0m \u{1b}[2J\u{1b}[8mhidden\u{1b}[31;5mx\u{1b}[33";
        assert_eq!(colored(text), "\u{1b}[31mred\u{1b}[0m hiddenx");
        assert_eq!(block(text), "red hiddenx");
    }

    #[test]
    fn json_keeps_its_white_space() {
        assert_eq!(json("{\r\n\t\"a\": \"x\u{9b}\u{e0041}\"}"), "{\n\t\"a\": \"x\\u009b\\udb40\\udc41\"}");
    }
}
