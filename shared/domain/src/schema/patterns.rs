//! The cost of regular expressions before they are compiled.
//!
//! A pattern of twelve bytes, such as `\p{L}{190}`, compiles into megabytes. The cost counts the transitions that the
//! pattern expands to: one for an ASCII range of a class, four for another range, times each bounded repetition. A million
//! of them take about 0.1 s and 20 MB to compile.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

/// The most that the patterns of one schema may cost together.
pub const MOST_SCHEMA_COST: u64 = 500_000;
/// The most that the patterns of one request, document or tool server may cost together.
pub const MOST_REQUEST_COST: u64 = 2_000_000;
/// The most that the patterns of one policy expression may cost together.
pub(crate) const MOST_EXPRESSION_COST: u64 = 200_000;
/// The longest pattern, in bytes.
const LONGEST: usize = 4_096;
/// The cost of the smallest pattern.
const BASE: u64 = 2_000;
/// The cost of reading one Unicode class.
const UNICODE_CLASS: u64 = 2_500;
/// The cost of a pattern that looks around, which is matched by backtracking.
const LOOKAROUND: u64 = 10_000;
/// Groups in groups, as many as the engine allows: a pattern is refused by both or by none.
const NESTED: u32 = 250;

const LOOKS_AROUND: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];

/// The cost that the patterns of one request may still have. A schema that is given twice costs once.
#[derive(Debug)]
pub struct Allowance {
    left: u64,
    counted: HashSet<String>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: MOST_REQUEST_COST, counted: HashSet::new() }
    }
}

impl Allowance {
    /// Takes the cost of every pattern in a schema, or in a value that contains schemas.
    ///
    /// # Errors
    /// A sentence: the patterns together cost too much, or one pattern is refused.
    pub fn take(&mut self, holder: &Value) -> Result<(), String> {
        let mut found = Patterns::default();
        found.collect(holder);
        for pattern in found.all {
            if self.counted.contains(pattern) {
                continue;
            }
            let cost = ecma_cost(pattern, self.left).map_err(|why| refused(pattern, &why))?;
            self.left = self.left.checked_sub(cost).ok_or_else(|| {
                "its patterns are too large together; shorten them, or send fewer schemas at once".to_owned()
            })?;
            self.counted.insert(pattern.to_owned());
        }
        Ok(())
    }
}

/// Checks the patterns of one schema, and returns their cost and whether one of them looks around.
pub(super) fn vet(schema: &Value) -> Result<(u64, bool), String> {
    let mut found = Patterns::default();
    found.collect(schema);
    let mut left = MOST_SCHEMA_COST;
    for pattern in &found.all {
        let cost = ecma_cost(pattern, left).map_err(|why| refused(pattern, &why))?;
        left = left
            .checked_sub(cost)
            .ok_or("its patterns are too large together; use fewer, or smaller repetitions")?;
    }
    let looks_around = found.all.iter().any(|pattern| looks_around(pattern));
    Ok((MOST_SCHEMA_COST - left, looks_around))
}

/// Returns the cost of a pattern as Rust's engine reads it, at most a little above `most`.
///
/// # Errors
/// A sentence that gives the reason for the refusal.
pub(crate) fn cost(pattern: &str, most: u64) -> Result<u64, String> {
    if pattern.len() > LONGEST {
        return Err(format!("has {} bytes; at most {LONGEST} are allowed", pattern.len()));
    }
    let classes = pattern.matches(r"\p").count() + pattern.matches(r"\P").count();
    let read = BASE + UNICODE_CLASS * classes as u64;
    if read > most {
        return Ok(read);
    }
    let mut parser = ParserBuilder::new().nest_limit(NESTED).build();
    let parsed = parser.parse(pattern).map_err(|error| match error {
        regex_syntax::Error::Parse(error) => format!("cannot be used: {}", error.kind()),
        regex_syntax::Error::Translate(error) => format!("cannot be used: {}", error.kind()),
        _ => "cannot be used".to_owned(),
    })?;
    Ok(read.saturating_add(transitions(&parsed)))
}

/// Returns the cost of a pattern of a JSON Schema.
fn ecma_cost(pattern: &str, most: u64) -> Result<u64, String> {
    if pattern.len() > LONGEST {
        return Err(format!("has {} bytes; at most {LONGEST} are allowed", pattern.len()));
    }
    let read =
        jsonschema_regex::to_rust_regex(pattern).map_err(|()| "is no regular expression".to_owned())?;
    if !looks_around(&read) {
        return cost(&read, most);
    }
    let plain = LOOKS_AROUND.iter().fold(read, |text, look| Cow::Owned(text.replace(look, "(?:")));
    cost(&plain, most).map(|cost| cost.saturating_add(LOOKAROUND))
}

fn looks_around(pattern: &str) -> bool {
    LOOKS_AROUND.iter().any(|look| pattern.contains(look))
}

fn refused(pattern: &str, why: &str) -> String {
    let shown: String = pattern.chars().take(40).collect();
    let more = if shown.len() < pattern.len() { "…" } else { "" };
    format!("the pattern `{shown}{more}` {why}")
}

fn transitions(pattern: &Hir) -> u64 {
    let all = |parts: &[Hir]| parts.iter().map(transitions).fold(0, u64::saturating_add);
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().map(|range| if range.end().is_ascii() { 1 } else { 4 }).sum()
        }
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min.saturating_add(1)).max(1);
            transitions(&repeated.sub).saturating_mul(times.into())
        }
        HirKind::Capture(capture) => transitions(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts).saturating_add(1),
    }
}

/// The patterns of a schema, each once.
#[derive(Default)]
struct Patterns<'a> {
    all: Vec<&'a str>,
    known: HashSet<&'a str>,
}

impl<'a> Patterns<'a> {
    fn collect(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("pattern", Value::String(pattern)) => self.add(pattern),
                        ("patternProperties", Value::Object(patterns)) => {
                            patterns.keys().for_each(|pattern| self.add(pattern));
                        }
                        _ => {}
                    }
                    self.collect(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn add(&mut self, pattern: &'a str) {
        if self.known.insert(pattern) {
            self.all.push(pattern);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn usual_patterns_are_cheap() {
        let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
        for pattern in [r"^\d{4}-\d{2}-\d{2}$", r"^[\w.-]{1,64}$", email, r"^.{1,4000}$", "^[a-f0-9]{64}$"] {
            assert!(ecma_cost(pattern, MOST_SCHEMA_COST).unwrap() < 25_000, "{pattern}");
        }
        assert!(vet(&json!({"pattern": r"^[\p{L}\p{M}' -]{1,80}$"})).is_ok());
    }

    #[test]
    fn patterns_are_refused_by_what_they_expand_to() {
        for pattern in [r"\p{L}{1000}", "((a{100}){100}){100}", r"(\p{L}{30}){30}", "[a-z&&[^b]]{999999}"] {
            let why = vet(&json!({"pattern": pattern})).unwrap_err();
            assert!(why.contains("too large") || why.contains("cannot be used"), "{pattern}: {why}");
        }
        for (pattern, words) in
            [(r"(a)\1", "cannot be used"), ("(", "is no regular"), (&"a".repeat(5_000), "5000 bytes")]
        {
            let why = vet(&json!({"properties": {"x": {"pattern": pattern}}})).unwrap_err();
            assert!(why.contains(words), "{pattern}: {why}");
        }
    }

    #[test]
    fn many_patterns_share_one_allowance() {
        let each: Vec<Value> =
            (0..2_000).map(|at| json!({"pattern": format!(r"\p{{L}}{{50}}a{at}")})).collect();
        assert!(vet(&json!({"anyOf": each})).unwrap_err().contains("too large together"));
        let mut allowance = Allowance::default();
        let taken = each.iter().take_while(|schema| allowance.take(schema).is_ok()).count();
        assert!((5..50).contains(&taken), "{taken}");
        // The same one again costs nothing.
        assert_eq!(allowance.take(&each[0]), Ok(()));
    }
}
