//! Several statements that write as one, so that they cost one round trip together.

use std::fmt::Write as _;

/// Makes each statement a common table expression of one that returns how many rows each of them wrote. `texts` are the
/// statements with the number of their parameters; parameters are numbered on from one statement to the next.
pub(super) fn joined<'a>(texts: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut all = String::from("WITH");
    let mut counts = String::from("SELECT");
    let mut parameters = 0;
    for (at, (text, count)) in texts.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(all, "{comma} w{at} AS (");
        renumber(&mut all, text, parameters);
        all.push_str("RETURNING 1)");
        let _ = write!(counts, "{comma} (SELECT count(*) FROM w{at})");
        parameters += count;
    }
    all.push('\n');
    all.push_str(&counts);
    all
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
    use super::joined;

    #[test]
    fn parameters_are_numbered_on() {
        let one = "-- Adds.\nINSERT INTO a (x, y)\nSELECT * FROM unnest($1, $2)\n";
        let two = "UPDATE b SET x = $10 WHERE y = $1\n";
        assert_eq!(
            joined([(one, 2), (two, 10)].into_iter()),
            "WITH w0 AS (INSERT INTO a (x, y)\nSELECT * FROM unnest($1, $2)\nRETURNING 1), w1 AS (UPDATE b SET x = $12 \
             WHERE y = $3\nRETURNING 1)\nSELECT (SELECT count(*) FROM w0), (SELECT count(*) FROM w1)"
        );
    }
}
