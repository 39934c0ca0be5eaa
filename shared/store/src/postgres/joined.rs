//! Several statements that write as one, so that they cost one round trip together.

use super::packed;
use crate::engine::session::Write;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// More texts than this are not kept.
const KEPT: usize = 256;

/// Statements that were made of several, to be used again: the same few meet in most commits.
#[derive(Default)]
pub(super) struct Texts(HashMap<Vec<(usize, bool, bool)>, Arc<str>>);

impl Texts {
    /// The statement that `make` makes of these writes.
    pub(super) fn of(&mut self, writes: &[Write], make: impl FnOnce() -> String) -> Arc<str> {
        let part = |write: &Write| (std::ptr::from_ref(write.text).addr(), write.each, write.rows.placed);
        let key = writes.iter().map(part).collect();
        if self.0.len() > KEPT {
            self.0.clear();
        }
        Arc::clone(self.0.entry(key).or_insert_with(|| make().into()))
    }
}

/// Makes each statement a common table expression (`w0`, `w1`, …), and returns how many parameters they take. Parameters are
/// numbered on from one statement to the next.
fn expressions(all: &mut String, writes: &[Write]) -> usize {
    let mut parameters = 0;
    for (at, write) in writes.iter().enumerate() {
        let comma = if at == 0 { "WITH" } else { "," };
        let kept = if write.numbers { "MATERIALIZED " } else { "" };
        let _ = write!(all, "{comma} w{at} AS {kept}(");
        renumber(all, &packed::text(write.text.postgres, &write.rows), parameters);
        all.push_str(if write.numbers { ")" } else { "RETURNING 1)" });
        parameters += packed::count(&write.rows);
    }
    parameters
}

/// Makes one statement of several; it returns how many rows each of them wrote.
pub(super) fn joined(writes: &[Write]) -> String {
    let mut all = String::new();
    expressions(&mut all, writes);
    let counts: Vec<String> = (0..writes.len()).map(|at| format!("(SELECT count(*) FROM w{at})")).collect();
    let _ = write!(all, "\nSELECT {}", counts.join(", "));
    all
}

/// As [`joined`], for a statement that is a transaction of its own. Where rows are counted (`true`), it fails with
/// [`counted`]'s message unless as many were written as the parameter says that follows those of the texts. `mark` is a
/// further statement that writes one row, counted behind the others; its parameters come last.
pub(super) fn alone(writes: &[Write], mark: &str) -> String {
    let mut all = String::new();
    let mut parameters = expressions(&mut all, writes);
    let expected = writes.iter().filter(|write| write.each).count();
    all.push_str(", mark AS (");
    renumber(&mut all, mark, parameters + expected);
    // Counted first, so that its row is locked before anything is waited for.
    let _ = write!(all, "RETURNING 1)\nSELECT {}", check("mark", "1", writes.len()));
    for (at, _) in writes.iter().enumerate().filter(|(_, write)| write.each) {
        parameters += 1;
        let _ = write!(all, ", {}", check(&format!("w{at}"), &format!("${parameters}"), at));
    }
    all
}

/// An expression that fails when another number of rows was written than `expected`: the text is no number then, and NULL
/// otherwise. It depends on what was written, so it is never folded. The rows are counted once: each mention of them would add
/// nodes to the plan.
fn check(rows: &str, expected: &str, at: usize) -> String {
    format!(
        "CAST(nullif('{WRONG}{at} ' || (SELECT count(*) FROM {rows}), '{WRONG}{at} ' || {expected}) AS BIGINT)"
    )
}

/// How the text begins that is no number.
const WRONG: &str = "rows of w";

/// The statement whose count was wrong, and its count, if that is what an error says.
pub(super) fn counted(message: &str) -> Option<(usize, u64)> {
    let (_, said) = message.split_once(WRONG)?;
    let (at, count) = said.split_once(' ')?;
    let count: String = count.chars().take_while(char::is_ascii_digit).collect();
    Some((at.parse().ok()?, count.parse().ok()?))
}

/// Appends a text with its parameters moved by `by`, and without the comments of its file.
fn renumber(all: &mut String, text: &str, by: usize) {
    for line in text.lines().filter(|line| !line.starts_with("--")) {
        let mut rest = line;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            let digits = after[1..].find(|c: char| !c.is_ascii_digit()).map_or(after.len(), |end| end + 1);
            all.push_str(before);
            match after[1..digits].parse::<usize>() {
                Ok(number) => {
                    let _ = write!(all, "${}", number + by);
                }
                Err(_) => all.push_str(&after[..digits]),
            }
            rest = &after[digits..];
        }
        all.push_str(rest);
        all.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::{alone, counted, joined};
    use crate::engine::columns::{Column, Columns};
    use crate::engine::session::Write;
    use crate::sql::Text;

    static ONE: Text = Text {
        sqlite: "",
        sqlite_row: "",
        postgres: "-- Adds.\nINSERT INTO a (x)\nSELECT * FROM unnest($1) AS r\n",
        columns: &[],
    };
    static TWO: Text = Text {
        sqlite: "",
        sqlite_row: "",
        postgres: "UPDATE b SET x = r.x FROM unnest($1, $2) AS r (x, y) WHERE y = r.y\n",
        columns: &[],
    };

    fn write(text: &'static Text, columns: Vec<Column>, each: bool) -> Write {
        let rows = Columns { names: [].as_slice().into(), columns, rows: 1, placed: false };
        Write { action: "write", text, rows, each, numbers: false }
    }

    fn number(value: i64) -> Column {
        Column::Ints(vec![Some(value)])
    }

    fn word(value: &'static str) -> Column {
        Column::Texts(vec![Some(value.into())])
    }

    #[test]
    fn a_statement_alone_checks_its_counts_and_leaves_its_mark() {
        let writes = [write(&ONE, vec![number(1)], true), write(&TWO, vec![number(1), word("y")], false)];
        let text = alone(&writes, "UPDATE m SET c = $2 WHERE w = $1\n");
        assert!(text.contains("FROM unnest($2, $3) AS r (x, y) WHERE y = r.y\nRETURNING 1)"), "{text}");
        assert!(text.contains("mark AS (UPDATE m SET c = $6 WHERE w = $5\nRETURNING 1)"), "{text}");
        let (_, checks) = text.rsplit_once("RETURNING 1)\nSELECT ").unwrap();
        assert_eq!(checks, format!("{}, {}", super::check("mark", "1", 2), super::check("w0", "$4", 0)));
        let said = "invalid input syntax for type bigint: \"rows of w0 3\"";
        assert_eq!(counted(said), Some((0, 3)));
        assert_eq!(counted("duplicate key"), None);
    }

    #[test]
    fn parameters_are_numbered_on() {
        let writes =
            [write(&TWO, vec![number(1), number(2)], true), write(&TWO, vec![number(1), word("y")], true)];
        let text = joined(&writes);
        assert!(text.contains("cardinality($1) / 2) AS p (n)) AS r (x, y)"), "{text}");
        assert!(text.ends_with(
            "w1 AS (UPDATE b SET x = r.x FROM unnest($2, $3) AS r (x, y) WHERE y = r.y\nRETURNING 1)\n\
             SELECT (SELECT count(*) FROM w0), (SELECT count(*) FROM w1)"
        ));
    }
}
