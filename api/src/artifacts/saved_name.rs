//! The name under which a file of an agent is saved.

use turnstone_telemetry::terminal::is_harmless;

/// The name of a file whose own name has nothing that can be used.
const NAMELESS: &str = "artifact";
/// The most bytes of a name on common file systems.
const NAME_BYTES: usize = 255;
/// The most bytes of an extension that a name keeps when it is cut.
const EXTENSION_BYTES: usize = 16;
/// The devices that Windows opens for these names, with any extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Returns a name under which any system saves a file of this name in the current directory, where it hides nothing and runs
/// nothing:
///
/// - the part after the last slash or backslash, without leading dots, dashes and tildes, and without dots at its end
/// - without control characters, and without characters that reorder or hide text
/// - with `_` for the characters that Windows refuses, and before the names of its devices
/// - at most 255 bytes; a short extension stays
#[must_use]
pub fn saved_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = name.chars().filter(|one| is_harmless(*one));
    let plain: String = kept
        .map(|one| if matches!(one, '<' | '>' | ':' | '"' | '|' | '?' | '*') { '_' } else { one })
        .collect();
    let is_blank = |one: char| one == '.' || one.is_whitespace();
    let plain =
        plain.trim_start_matches(|one| is_blank(one) || matches!(one, '-' | '~')).trim_end_matches(is_blank);
    let named = if plain.is_empty() { NAMELESS } else { plain };
    let named = if is_device(named) { format!("_{named}") } else { named.to_owned() };
    cut(&named)
}

/// Returns true for the name of a device of Windows, such as `con.txt` or `COM1`.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_uppercase();
    let numbered = ["COM", "LPT"].iter().find_map(|port| stem.strip_prefix(port));
    let is_digit = |one: char| one.is_ascii_digit() || matches!(one, '¹' | '²' | '³');
    DEVICES.contains(&stem.as_str())
        || numbered.is_some_and(|number| number.chars().count() == 1 && number.chars().all(is_digit))
}

/// Returns the name with at most [`NAME_BYTES`] bytes.
fn cut(name: &str) -> String {
    if name.len() <= NAME_BYTES {
        return name.to_owned();
    }
    let extension = name.rfind('.').map(|at| &name[at..]).filter(|end| end.len() <= EXTENSION_BYTES);
    let extension = extension.unwrap_or_default();
    let room = NAME_BYTES - extension.len();
    let end = (0..=room).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
    format!("{}{extension}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_agent_is_safe_to_save() {
        for (name, saved) in [
            ("report 2025.pdf", "report 2025.pdf"),
            ("Übersicht.csv", "Übersicht.csv"),
            (".bashrc", "bashrc"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("..\\..\\run.bat", "run.bat"),
            ("-rf", "rf"),
            ("~", "artifact"),
            ("...", "artifact"),
            ("", "artifact"),
            ("/", "artifact"),
            ("a\u{202e}fdp.exe", "afdp.exe"),
            ("a\u{1b}[2J\u{9b}\u{0}.txt", "a[2J.txt"),
            ("\u{feff}.profile", "profile"),
            ("name. . ", "name"),
            ("nul", "_nul"),
            ("Con.tar.gz", "_Con.tar.gz"),
            ("COM¹", "_COM¹"),
            ("lpt9 .txt", "_lpt9 .txt"),
            ("COM10", "COM10"),
            ("console", "console"),
            ("a.txt:stream", "a.txt_stream"),
            ("\" onload=\"", "_ onload=_"),
        ] {
            assert_eq!(saved_name(name), saved, "{name:?}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_extension() {
        let saved = saved_name(&format!("{}.tar", "ü".repeat(200)));
        assert!(saved.len() <= NAME_BYTES && saved.len() > NAME_BYTES - 2, "{}", saved.len());
        assert!(saved.ends_with("ü.tar"), "{saved}");
        assert_eq!(saved_name(&"x".repeat(300)), "x".repeat(NAME_BYTES));
    }
}
