//! Expands the placeholders of a statement for one database.
//!
//! | placeholder | PostgreSQL | SQLite, any number of rows | SQLite, one row |
//! |---|---|---|---|
//! | `{rows: a, b}`, a table `r` | `unnest($1, $2) AS r (a, b)` | `(SELECT … FROM json_each(?1)) AS r` | `(SELECT ?1 AS a, ?2 AS b) AS r` |
//! | `{values: a, b}` of an insert | `(a, b) SELECT * FROM unnest($1, $2) AS r` | `(a, b) SELECT … FROM json_each(?1)` | `(a, b) VALUES (?1, ?2)` |
//! | `{in: ids}`, rows of one column | `= ANY($1)` | `IN (SELECT … FROM json_each(?1))` | `= ?1` |
//! | `{lock}` | `FOR UPDATE` | nothing: one connection writes | nothing |
//!
//! Where nothing but a condition follows `FROM {rows: …}` in an update, the text for one row has no `FROM`: it names the
//! parameters in place of the columns of `r`.
//!
//! A lock may name its strength, its tables, and that it skips locked rows: `{lock key share of j skip}`.
//! Single values follow the rows from `$2` on, whatever the number of columns.

use std::fmt::Write as _;

/// The databases for which a statement is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    /// For SQLite, with the values of one row as parameters of their own.
    SqliteRow,
    Postgres,
}

/// Returns the text of a statement for a database. The comment at its beginning stays as it is. The text for one row is empty
/// where a statement receives no rows, or groups them.
///
/// # Errors
/// Says which placeholder is unknown or does not fit the others.
pub fn expand(text: &str, dialect: Dialect) -> Result<String, String> {
    let columns = columns(text)?;
    let of_one_row = dialect == Dialect::SqliteRow;
    if of_one_row && (columns.is_empty() || text.contains("GROUP BY")) {
        return Ok(String::new());
    }
    let without_from = of_one_row.then(|| without_from(text, &columns)).flatten();
    let mut out = String::with_capacity(text.len());
    for part in parts(without_from.as_deref().unwrap_or(text))? {
        match part {
            StatementPart::Comment(comment) => out.push_str(comment),
            StatementPart::Text(plain) => parameters(&mut out, plain, columns.len(), dialect)?,
            StatementPart::Placeholder(inner) => placeholder(&mut out, inner, dialect)?,
        }
    }
    Ok(out)
}

/// An update with nothing but a condition behind `FROM {rows: …}`, its `r.column`s as parameters.
fn without_from(text: &str, columns: &[&str]) -> Option<String> {
    let comment = text.lines().take_while(|line| line.starts_with("--")).map(|line| line.len() + 1).sum();
    let (comment, statement) = text.split_at(comment);
    let (before, after) = statement.split_once("FROM {rows:")?;
    let after = after.split_once('}')?.1.trim_start();
    let plain = before.starts_with("UPDATE ") && after.starts_with("WHERE ") && !after.contains('{');
    plain
        .then(|| [comment, before, after].map(str::to_owned))
        .map(|[comment, before, after]| comment + &named(&before, columns) + &named(&after, columns))
}

/// A text with the parameters of one row in place of its `r.column`s.
fn named(text: &str, columns: &[&str]) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("r.") {
        let (before, after) = rest.split_at(at);
        let end = after[2..].find(|c: char| !is_word(c)).map_or(after.len(), |end| end + 2);
        let column = columns.iter().position(|column| *column == &after[2..end]);
        out.push_str(before);
        match column.filter(|_| !before.ends_with(is_word)) {
            Some(column) => {
                let _ = write!(out, "?{}", column + 1);
            }
            None => out.push_str(&after[..end]),
        }
        rest = &after[end..];
    }
    out + rest
}

/// A piece of a statement.
enum StatementPart<'a> {
    Comment(&'a str),
    Text(&'a str),
    /// Without its braces.
    Placeholder(&'a str),
}

fn parts(text: &str) -> Result<Vec<StatementPart<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.starts_with("--") {
        let (comment, after) = rest.split_at(rest.find('\n').map_or(rest.len(), |end| end + 1));
        parts.push(StatementPart::Comment(comment));
        rest = after;
    }
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        let close = after.find('}').ok_or_else(|| format!("`{after}` is not closed"))?;
        parts.extend([StatementPart::Text(before), StatementPart::Placeholder(&after[1..close])]);
        rest = &after[close + 1..];
    }
    parts.push(StatementPart::Text(rest));
    Ok(parts)
}

/// The columns of the rows that a statement receives: none, or the same in all of its placeholders.
///
/// # Errors
/// Says which placeholders differ.
pub fn columns(text: &str) -> Result<Vec<&str>, String> {
    let mut found: Option<Vec<&str>> = None;
    for part in parts(text)? {
        let StatementPart::Placeholder(inner) = part else { continue };
        let Some((_, list)) = inner.split_once(':') else { continue };
        let columns: Vec<&str> = list.split(',').map(str::trim).collect();
        match &found {
            Some(first) if *first != columns => return Err(format!("{first:?} and {columns:?} differ")),
            _ => found = Some(columns),
        }
    }
    Ok(found.unwrap_or_default())
}

fn placeholder(out: &mut String, inner: &str, dialect: Dialect) -> Result<(), String> {
    let (kind, list) = inner.split_once(':').unwrap_or((inner, ""));
    let columns: Vec<&str> = list.split(',').map(str::trim).collect();
    let names = columns.join(", ");
    let numbered =
        |mark: char| (1..=columns.len()).map(|at| format!("{mark}{at}")).collect::<Vec<_>>().join(", ");
    let values = |named: bool| {
        let value = |(at, column): (usize, &&str)| match named {
            true => format!("value ->> {at} AS {column}"),
            false => format!("value ->> {at}"),
        };
        columns.iter().enumerate().map(value).collect::<Vec<_>>().join(", ")
    };
    match (kind, dialect) {
        ("rows", Dialect::Postgres) => write!(out, "unnest({}) AS r ({names})", numbered('$')),
        ("rows", Dialect::Sqlite) => write!(out, "(SELECT {} FROM json_each(?1)) AS r", values(true)),
        ("rows", Dialect::SqliteRow) => {
            let named = columns.iter().zip(1..).map(|(column, at)| format!("?{at} AS {column}"));
            write!(out, "(SELECT {}) AS r", named.collect::<Vec<_>>().join(", "))
        }
        ("values", Dialect::Postgres) => {
            write!(out, "({names})\nSELECT * FROM unnest({}) AS r", numbered('$'))
        }
        // Without a condition SQLite would take the ON of a conflict for that of a join.
        ("values", Dialect::Sqlite) => {
            write!(out, "({names})\nSELECT {} FROM json_each(?1) WHERE true", values(false))
        }
        ("values", Dialect::SqliteRow) => write!(out, "({names})\nVALUES ({})", numbered('?')),
        ("in", _) if columns.len() > 1 => return Err(format!("`{{{inner}}}` has more than one column")),
        ("in", Dialect::Postgres) => write!(out, "= ANY($1)"),
        ("in", Dialect::Sqlite) => write!(out, "IN (SELECT {} FROM json_each(?1))", values(false)),
        ("in", Dialect::SqliteRow) => write!(out, "= ?1"),
        (lock, _) if lock.split(' ').next() == Some("lock") => {
            let clause = locked(lock)?;
            match dialect {
                Dialect::Postgres => write!(out, "{clause}"),
                Dialect::Sqlite | Dialect::SqliteRow => Ok(()),
            }
        }
        _ => return Err(format!("`{{{inner}}}` is no placeholder")),
    }
    .map_err(|error| error.to_string())
}

/// The clause of `lock [share | key share | no key update] [of table, …] [skip]`.
fn locked(inner: &str) -> Result<String, String> {
    let rest = inner.trim_start_matches("lock").trim();
    let (rest, skip) = match rest.strip_suffix("skip") {
        Some(rest) => (rest.trim(), " SKIP LOCKED"),
        None => (rest, ""),
    };
    let (strength, tables) = match rest.split_once("of ") {
        Some((strength, tables)) => (strength.trim(), format!(" OF {tables}")),
        None => (rest, String::new()),
    };
    let strength = match strength {
        "" => "UPDATE",
        "share" => "SHARE",
        "key share" => "KEY SHARE",
        "no key update" => "NO KEY UPDATE",
        _ => return Err(format!("`{{{inner}}}` is no lock")),
    };
    Ok(format!("FOR {strength}{tables}{skip}"))
}

/// Appends a text, its parameters numbered on from those of the rows. SQLite gets all rows as one parameter. It numbers
/// `$2` by its place and `?2` by its number.
fn parameters(out: &mut String, text: &str, columns: usize, dialect: Dialect) -> Result<(), String> {
    let (mark, shift) = match dialect {
        Dialect::Sqlite => ('?', 0),
        Dialect::SqliteRow => ('?', columns.saturating_sub(1)),
        Dialect::Postgres => ('$', columns.saturating_sub(1)),
    };
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        let end = after[1..].find(|c: char| !c.is_ascii_digit()).map_or(after.len(), |end| end + 1);
        out.push_str(before);
        match after[1..end].parse::<usize>() {
            Ok(1) if columns > 0 => return Err("$1 is the rows, which a placeholder names".to_owned()),
            Ok(number) => {
                let _ = write!(out, "{mark}{}", number + shift);
            }
            Err(_) => out.push_str(&after[..end]),
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Dialect, expand};

    fn both(text: &str) -> (String, String) {
        (expand(text, Dialect::Sqlite).unwrap(), expand(text, Dialect::Postgres).unwrap())
    }

    #[test]
    fn rows_are_a_table() {
        let (sqlite, postgres) =
            both("-- Moves {it}: $1.\nUPDATE t SET x = r.x, y = $2 FROM {rows: a, x} WHERE t.a = r.a");
        assert_eq!(
            sqlite,
            "-- Moves {it}: $1.\nUPDATE t SET x = r.x, y = ?2 FROM (SELECT value ->> 0 AS a, value ->> 1 AS x FROM \
             json_each(?1)) AS r WHERE t.a = r.a"
        );
        assert_eq!(
            postgres,
            "-- Moves {it}: $1.\nUPDATE t SET x = r.x, y = $3 FROM unnest($1, $2) AS r (a, x) WHERE t.a = r.a"
        );
    }

    #[test]
    fn rows_are_inserted() {
        let (sqlite, postgres) = both("INSERT INTO t {values: a, b}\nON CONFLICT DO NOTHING");
        assert_eq!(
            sqlite,
            "INSERT INTO t (a, b)\nSELECT value ->> 0, value ->> 1 FROM json_each(?1) WHERE true\nON CONFLICT DO NOTHING"
        );
        assert_eq!(
            postgres,
            "INSERT INTO t (a, b)\nSELECT * FROM unnest($1, $2) AS r\nON CONFLICT DO NOTHING"
        );
    }

    #[test]
    fn keys_are_compared_and_rows_are_locked() {
        let (sqlite, postgres) =
            both("SELECT a FROM t WHERE a {in: ids} AND b > $2\n{lock no key update of t, u skip}");
        assert_eq!(sqlite, "SELECT a FROM t WHERE a IN (SELECT value ->> 0 FROM json_each(?1)) AND b > ?2\n");
        assert_eq!(
            postgres,
            "SELECT a FROM t WHERE a = ANY($1) AND b > $2\nFOR NO KEY UPDATE OF t, u SKIP LOCKED"
        );
        assert_eq!(both("{lock}").1, "FOR UPDATE");
    }

    #[test]
    fn the_values_of_one_row_are_parameters() {
        for (text, one) in [
            (
                "-- Of r.a.\nUPDATE tr SET x = r.x, y = $2 FROM {rows: a, x}\nWHERE tr.a = r.a",
                "-- Of r.a.\nUPDATE tr SET x = ?2, y = ?3 WHERE tr.a = ?1",
            ),
            (
                "SELECT r.a FROM {rows: a} JOIN t ON t.a = r.a",
                "SELECT r.a FROM (SELECT ?1 AS a) AS r JOIN t ON t.a = r.a",
            ),
            (
                "INSERT INTO t {values: a, b}\nON CONFLICT DO NOTHING",
                "INSERT INTO t (a, b)\nVALUES (?1, ?2)\nON CONFLICT DO NOTHING",
            ),
            (
                "SELECT a FROM t WHERE a {in: ids} AND b > $2 {lock}",
                "SELECT a FROM t WHERE a = ?1 AND b > ?2 ",
            ),
            ("SELECT min(r.a) FROM {rows: a} GROUP BY r.a", ""),
            ("SELECT $1", ""),
        ] {
            assert_eq!(expand(text, Dialect::SqliteRow).unwrap(), one);
        }
    }

    #[test]
    fn what_is_unknown_or_does_not_fit_is_refused() {
        for text in ["{row: a}", "{lock tight}", "{in: a, b}", "{rows: a} {rows: b}", "{in: a} $1", "{in: a"]
        {
            assert!(expand(text, Dialect::Postgres).is_err(), "{text}");
        }
    }
}
