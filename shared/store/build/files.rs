//! Makes the statements of the files in `sql`: one each, or several that begin alike.
//!
//! `{columns of job}` is replaced by the part of this name in `sql/parts.txt`. `{each: jobs.seq, job_errors.job_seq}` makes
//! one statement for each table, with `{table}` and its `{key}`.

use std::collections::BTreeMap;

/// Returns the statements of a file by name. One without sections is a statement that is named like the file. A section
/// begins with `--- name` and comments; the text before the first one begins all of them.
///
/// # Errors
/// Says which section has no text.
pub fn sections(file: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let mut parts = text.split("\n--- ");
    let head = parts.next().unwrap_or_default();
    let mut statements = Vec::new();
    for part in parts {
        let (name, body) = part.split_once('\n').ok_or_else(|| format!("`--- {part}` has no text"))?;
        let is_comment = |line: &&str| line.starts_with("--");
        let comments: String = body.lines().take_while(is_comment).map(|line| format!("{line}\n")).collect();
        let body = body[comments.len()..].trim_end();
        statements.push((name.to_owned(), format!("{comments}{head}\n{body}\n")));
    }
    if statements.is_empty() {
        statements.push((file.to_owned(), text.to_owned()));
    }
    Ok(statements)
}

/// Returns parts of statements by name, such as lists of columns: each begins with `-- name: its names or parameters`.
///
/// # Errors
/// Says which line begins no part.
pub fn parts_of_statements(text: &str) -> Result<BTreeMap<String, String>, String> {
    let part = |part: &str| {
        let (title, body) = part.split_once('\n').ok_or_else(|| format!("`-- {part}` has no text"))?;
        let (name, _) = title.split_once(": ").ok_or_else(|| format!("`-- {title}` has no name"))?;
        Ok((name.to_owned(), body.trim().to_owned()))
    };
    text.trim_start_matches("-- ").split("\n-- ").map(part).collect()
}

/// Puts parts in the place of their names: `{columns of job}`.
pub fn filled(text: String, parts: &BTreeMap<String, String>) -> String {
    parts.iter().fold(text, |text, (name, part)| text.replace(&format!("{{{name}}}"), part))
}

/// Returns the statements that a file expands to, with their placeholders: one, or one for each `table.key` in
/// `{each: table.key, …}`.
///
/// # Errors
/// Names the entry of the list that is not a table with a key.
pub fn texts(text: &str) -> Result<Vec<String>, String> {
    let Some((before, after)) = text.split_once("{each:") else { return Ok(vec![text.to_owned()]) };
    let (list, after) = after.split_once("}\n").ok_or("`{each:` is not closed")?;
    let text_of = |one: &str| {
        let (table, key) =
            one.trim().split_once('.').ok_or_else(|| format!("`{one}` is no table with a key"))?;
        Ok(format!("{before}{}", after.replace("{table}", table).replace("{key}", key)))
    };
    list.split(',').map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use super::{filled, parts_of_statements, sections, texts};

    #[test]
    fn a_file_may_stand_for_many_tables() {
        let both = texts(
            "-- Deletes.\n{each: jobs.seq, job_errors.job_seq}\nDELETE FROM {table} WHERE {key} {in: seqs}\n",
        );
        let two = ["jobs WHERE seq", "job_errors WHERE job_seq"];
        assert_eq!(both.unwrap(), two.map(|of| format!("-- Deletes.\nDELETE FROM {of} {{in: seqs}}\n")));
        assert!(texts("{each: jobs}\nDELETE FROM {table}").is_err());
    }

    #[test]
    fn sections_share_the_beginning_of_their_file() {
        let file = "SELECT {columns of t}\n--- select_one\n-- One.\nWHERE a = $1\n--- select_all\n-- All.\nORDER BY a\n";
        let columns = parts_of_statements("-- columns of t: of a table\na,\nb\n").unwrap();
        let named = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let read = sections("select_one", file).unwrap().into_iter();
        let read: Vec<_> = read.map(|(name, text)| (name, filled(text, &columns))).collect();
        let one = named("select_one", "-- One.\nSELECT a,\nb\nWHERE a = $1\n");
        assert_eq!(read, [one, named("select_all", "-- All.\nSELECT a,\nb\nORDER BY a\n")]);
        assert_eq!(sections("select_one", "SELECT 1\n").unwrap(), [named("select_one", "SELECT 1\n")]);
    }
}
