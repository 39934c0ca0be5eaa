//! Secrets: named by reference, resolved where they are used, and struck out of everything that leaves the process.

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

/// Values shorter than this are not searched for in texts: striking them out would hit innocent words.
const SHORTEST_REDACTED: usize = 6;

/// Values that came without a reference, as credentials of users do, are forgotten beyond so many.
const MOST: usize = 50_000;

/// The last use of secrets that were resolved by reference: they are never forgotten.
const ALWAYS: u64 = u64::MAX;

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

/// A reference to a secret: `env:NAME` or `file:/path`. The reference itself is not secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// The content of a file, without trailing white space.
    File(PathBuf),
}

impl SecretRef {
    /// Reads a reference.
    ///
    /// # Errors
    /// A sentence that shows the two forms. The text is not repeated, since it may be the secret itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err("a secret is given by reference: `env:NAME` or `file:/path`".to_owned()),
        }
    }

    /// Fetches the secret. From then on its value is struck out of logs and errors.
    ///
    /// # Errors
    /// A sentence that names the reference, never the value.
    pub fn resolve(&self) -> Result<Secret, String> {
        let value = match self {
            Self::Env(name) => crate::environment::var(name)
                .ok_or_else(|| format!("the environment variable {name} is not set")),
            Self::File(path) => std::fs::read_to_string(path)
                .map(|text| text.trim_end().to_owned())
                .map_err(|e| format!("the secret file {} cannot be read: {e}", path.display())),
        }?;
        if value.is_empty() {
            return Err(format!("the secret {self} is empty"));
        }
        remember(&value, ALWAYS);
        Ok(Secret(value))
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A secret value. It is shown only by [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns a secret that came by its value, without a reference. From then on it is struck out of logs and errors,
    /// until tens of thousands of others were used since.
    #[must_use]
    pub fn given(value: impl Into<String>) -> Self {
        let value = value.into();
        let used = KNOWN.read().unwrap_or_else(PoisonError::into_inner).uses.fetch_add(1, Ordering::Relaxed);
        remember(&value, used);
        Self(value)
    }

    /// Returns the value itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Remembers a value that was used the `used`-th time that any was.
fn remember(value: &str, used: u64) {
    if value.len() < SHORTEST_REDACTED {
        return;
    }
    // Inside a JSON string or a `{:?}` the value has its quotes and backslashes escaped; in a log line both meet.
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let once = escape(value);
    let forms = [value.to_owned(), escape(&once), once];
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    // Each call of a tool brings its own again.
    let mut is_new = false;
    for form in &forms {
        is_new |= !known.touched(form, used);
    }
    drop(known);
    if is_new {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        forms.into_iter().for_each(|form| known.add(form, used, MOST));
    }
}

/// The secrets that were resolved so far. There are as many as users have credentials.
#[derive(Default)]
struct Known {
    /// When each was used last, counted in uses of any.
    all: HashMap<String, AtomicU64>,
    uses: AtomicU64,
    /// Finds most of them at once.
    most: Option<AhoCorasick>,
    /// Secrets that were added since it was made.
    new: Vec<String>,
}

impl Known {
    /// Notes that one is used; returns true if it is known.
    fn touched(&self, form: &str, used: u64) -> bool {
        let known = self.all.get(form);
        if let Some(last) = known {
            last.fetch_max(used, Ordering::Relaxed);
        }
        known.is_some()
    }

    /// Adds a secret. Beyond `most` secrets, those that were unused for longest are forgotten: credentials that were
    /// rotated, or whose users are gone.
    fn add(&mut self, form: String, used: u64, most: usize) {
        if self.touched(&form, used) {
            return;
        }
        self.all.insert(form.clone(), AtomicU64::new(used));
        self.new.push(form);
        if self.all.len() > most {
            let mut uses: Vec<u64> = self.all.values().map(|last| last.load(Ordering::Relaxed)).collect();
            uses.sort_unstable();
            let oldest = uses[uses.len() / 4];
            self.all.retain(|_, last| *last.get_mut() > oldest || *last.get_mut() == ALWAYS);
            self.most = AhoCorasick::new(self.all.keys()).ok();
            self.new.clear();
            if self.most.is_none() {
                self.new = self.all.keys().cloned().collect();
            }
            return;
        }
        // Seldom enough that making it anew costs each secret little.
        if self.new.len() > 32.max(self.all.len() / 4)
            && let Ok(most) = AhoCorasick::new(self.all.keys())
        {
            self.most = Some(most);
            self.new.clear();
        }
    }

    /// Returns their ranges in a text, from left to right; overlapping ranges are merged.
    fn found(&self, text: &str) -> Vec<Range<usize>> {
        let most =
            self.most.iter().flat_map(|most| most.find_overlapping_iter(text)).map(|found| found.range());
        let new = self.new.iter().flat_map(|form| text.match_indices(form.as_str()));
        let mut found: Vec<Range<usize>> = most.chain(new.map(|(at, form)| at..at + form.len())).collect();
        found.sort_unstable_by_key(|range| range.start);
        found.dedup_by(|next, before| {
            let overlaps = next.start < before.end;
            if overlaps {
                before.end = before.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

/// Returns the text with every secret that was resolved so far struck out.
#[must_use]
pub fn redact(text: &str) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for range in known.found(text) {
        let before = text.get(done..range.start).unwrap_or_default();
        out.push_str(before);
        out.push_str("***");
        done = range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolved_secret_is_struck_out_everywhere() {
        let file = std::env::temp_dir().join(format!("turnstone-secret-{}", std::process::id()));
        std::fs::write(&file, "hunter2-hunter2\n").unwrap();
        let secret = SecretRef::parse(&format!("file:{}", file.display())).unwrap().resolve().unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(secret.expose(), "hunter2-hunter2");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(redact("key=hunter2-hunter2;"), "key=***;");
    }

    #[test]
    fn a_secret_that_begins_with_another_leaves_no_tail() {
        remember("prefix-of-another", ALWAYS);
        remember("prefix-of-another-secret", ALWAYS);
        assert_eq!(redact("(prefix-of-another-secret, prefix-of-another)"), "(***, ***)");
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut known = Known::default();
        known.add("by-reference".to_owned(), ALWAYS, 8);
        for n in 0..30_u64 {
            known.add(format!("credential-{n:02}"), n + 1, 8);
            // The first one is used all the time.
            assert!(known.touched("credential-00", n + 1), "{n}");
            assert!(known.all.len() <= 8, "{n}");
        }
        let found = |text: &str| known.found(text).len();
        assert_eq!((found("by-reference"), found("credential-00"), found("credential-29")), (1, 1, 1));
        assert_eq!(found("credential-01"), 0);
    }

    #[test]
    fn a_literal_is_refused_without_being_repeated() {
        let error = SecretRef::parse("sk-live-123").unwrap_err();
        assert!(error.contains("env:NAME") && !error.contains("sk-live"), "{error}");
        assert!(
            SecretRef::parse("env:TURNSTONE_SURELY_UNSET")
                .unwrap()
                .resolve()
                .unwrap_err()
                .contains("TURNSTONE_SURELY_UNSET")
        );
    }

    #[test]
    fn many_secrets_are_struck_out_like_few() {
        let secrets: Vec<String> = (0..500).map(|n| format!("one-of-many-{n:04}-secrets")).collect();
        for secret in &secrets {
            let _ = Secret::given(secret.as_str());
            assert_eq!(redact(&format!("key={secret};")), "key=***;");
        }
        let all = secrets.join(" and ");
        assert_eq!(redact(&all), vec!["***"; 500].join(" and "));
        let _ = Secret::given("one-of-many-0007-secrets-and-its-tail");
        assert_eq!(redact("(one-of-many-0007-secrets-and-its-tail)"), "(***)");
    }
}
