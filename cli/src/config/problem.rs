//! Turns problems of a configuration into a sentence with the key, the place and a suggestion.

use super::layers::{Loaded, Origin};
use crate::failure::Failure;
use config::ConfigError;
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};

/// The least likeness of two words for a suggestion; 1 is equal.
const ALIKE: f64 = 0.75;

/// A configuration file and its text, for line numbers.
#[derive(Clone, Debug)]
pub struct FileText {
    /// The file.
    pub path: PathBuf,
    text: String,
}

impl FileText {
    /// Checks that the text is TOML.
    ///
    /// # Errors
    /// The problem, with line and column. The line itself is not repeated, since it may contain a secret.
    pub fn parse(path: PathBuf, text: String) -> Result<Self, Failure> {
        let file = Self { path, text };
        match DeTable::parse(&file.text) {
            Ok(_) => Ok(file),
            Err(error) => {
                let place = file.place(error.span().map_or(0, |span| span.start));
                Err(Failure::usage(format!("{place}: {}", error.message().replace('\n', ", "))))
            }
        }
    }

    /// `file:line:column` of a key; the file alone when the key is not in it.
    fn place_of(&self, key: &[&str]) -> String {
        let found = DeTable::parse(&self.text).ok().and_then(|table| key_offset(table.get_ref(), key));
        found.map_or_else(|| self.path.display().to_string(), |offset| self.place(offset))
    }

    fn place(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", self.path.display())
    }
}

fn key_offset(table: &DeTable<'_>, key: &[&str]) -> Option<usize> {
    let (first, rest) = key.split_first()?;
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == first)?;
    match (rest, value.get_ref()) {
        ([], _) => Some(name.span().start),
        (rest, DeValue::Table(inner)) => key_offset(inner, rest),
        _ => None,
    }
}

/// Explains why the merged values are no configuration.
pub fn explain(error: &ConfigError, loaded: &Loaded) -> Failure {
    let (path, reason) = dissect(error);
    let mut key: Vec<&str> = path.split('.').filter(|name| !name.is_empty()).collect();
    let Some((unknown, known)) = unknown_key(&reason) else {
        return Failure::usage(format!("{}`{}`: {reason}", place(loaded, &key), key.join(".")));
    };
    let section = key.join(".");
    key.push(unknown);
    let within = if section.is_empty() { String::new() } else { format!(" in [{section}]") };
    let what = if section.is_empty() { "section" } else { "key" };
    let failure = Failure::usage(format!("{}unknown {what} `{unknown}`{within}", place(loaded, &key)));
    match suggestion(unknown, &known) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`? Known here: {}", known.join(", "))),
        None if known.is_empty() => failure,
        None => failure.hint(format!("known here: {}", known.join(", "))),
    }
}

/// Returns the place of the key, followed by the problem.
fn place(loaded: &Loaded, key: &[&str]) -> String {
    let origin = (1..=key.len())
        .rev()
        .map(|len| &key[..len])
        .map(|part| loaded.origin(part))
        .find(|o| *o != Origin::Default);
    match (origin, loaded.file()) {
        (Some(Origin::Env(name)), _) => format!("environment variable {name}: "),
        (Some(Origin::File(_)), Some(file)) => format!("{}: ", file.place_of(key)),
        (Some(Origin::Flag), _) => "command line: ".to_owned(),
        _ => String::new(),
    }
}

/// Returns the key that an error is about, and the reason without the `config` crate's own remarks on its origin.
fn dissect(error: &ConfigError) -> (String, String) {
    match error {
        ConfigError::Type { unexpected, expected, key, .. } => {
            (key.clone().unwrap_or_default(), format!("expected {expected}, found {unexpected}"))
        }
        ConfigError::At { error, key, .. } => {
            let (inner, reason) = dissect(error);
            let outer = key.clone().unwrap_or_default();
            let joined = if outer.is_empty() || inner.is_empty() {
                outer + &inner
            } else {
                format!("{outer}.{inner}")
            };
            (joined, reason)
        }
        ConfigError::NotFound(key) => {
            let (section, field) = key.rsplit_once('.').unwrap_or(("", key));
            (section.to_owned(), format!("`{field}` is missing"))
        }
        other => (String::new(), other.to_string()),
    }
}

/// Reads serde's sentence about an unknown field or variant: the word and the known ones.
fn unknown_key(reason: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = reason.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = words.next()?;
    Some((unknown, words.collect()))
}

/// Returns the known word that was probably meant.
#[must_use]
pub fn suggestion<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |known: &&str| strsim::jaro_winkler(&word.to_ascii_lowercase(), known);
    let best = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= ALIKE).then_some(best)
}

#[cfg(test)]
mod tests {
    use crate::config::Layers;
    use crate::failure::Exit;

    fn refusal(toml: &str, env: &[(&str, &str)]) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.toml");
        std::fs::write(&path, toml).unwrap();
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let failure = Layers { file: Some(path), env, flags: Vec::new() }.load().unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        let folder = format!("{}/", dir.path().display());
        (failure.message.replace(&folder, ""), failure.hint.unwrap_or_default())
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_a_suggestion() {
        let (message, hint) = refusal("# mine\n\n[worker]\nslot = 3\n", &[]);
        assert_eq!(message, "t.toml:4:1: unknown key `slot` in [worker]");
        assert_eq!(
            hint,
            "did you mean `slots`? Known here: name, slots, queues, lease_ms, drain_grace_ms, metrics_bind, review_deadline_ms, artifact_max_bytes, artifacts_max_bytes"
        );
    }

    #[test]
    fn an_unknown_section_is_named_too() {
        let (message, hint) = refusal("[wroker]\nslots = 3\n", &[]);
        assert_eq!(message, "t.toml:1:2: unknown section `wroker`");
        assert!(hint.starts_with("did you mean `worker`?"), "{hint}");
    }

    #[test]
    fn providers_and_tools_are_as_strict() {
        let (message, hint) = refusal("[providers.openai]\nkind = 'openai'\nbase_ur = 'x'\n", &[]);
        assert_eq!(message, "t.toml:3:1: unknown key `base_ur` in [providers.openai]");
        assert!(hint.starts_with("did you mean `base_url`?"), "{hint}");
        let (message, _) = refusal("[tools.a]\ndescription = 'd'\n", &[]);
        assert_eq!(message, "t.toml:1:8: `tools.a`: `url` is missing");
        let (message, _) = refusal("[providers.x]\nkind = 'opnai'\n", &[]);
        assert!(message.starts_with("t.toml:2:1: `providers.x.kind`: unknown variant `opnai`"), "{message}");
    }

    #[test]
    fn an_unknown_variable_is_named_as_it_was_set() {
        let (message, hint) = refusal("", &[("TURNSTONE_SERVER__BINDD", "x")]);
        assert_eq!(message, "environment variable TURNSTONE_SERVER__BINDD: unknown key `bindd` in [server]");
        assert!(hint.starts_with("did you mean `bind`?"), "{hint}");
    }

    #[test]
    fn nothing_is_suggested_for_a_word_that_is_like_no_other() {
        let (_, hint) = refusal("[models]\nxyzzy = 1\n", &[]);
        assert_eq!(
            hint,
            "known here: default_provider, default_model, timeout_ms, max_tokens, context_tokens, on_context_overflow"
        );
    }

    #[test]
    fn a_wrong_type_is_named_with_its_place() {
        let (message, _) = refusal("[worker]\nslots = 'many'\n", &[]);
        assert!(
            message.starts_with("t.toml:2:1: `worker.slots`: expected ") && message.contains("many"),
            "{message}"
        );
        let (message, _) = refusal("", &[("TURNSTONE_WORKER__SLOTS", "-1")]);
        assert!(
            message.starts_with("environment variable TURNSTONE_WORKER__SLOTS: `worker.slots`"),
            "{message}"
        );
        let (message, _) = refusal("[server]\nbind = 'localhost'\n", &[]);
        assert!(message.starts_with("t.toml:2:1: `server.bind`: "), "{message}");
    }

    #[test]
    fn a_literal_secret_is_refused_and_not_repeated() {
        let (message, hint) = refusal("[server]\napi_keys = ['sk-live-123']\n", &[]);
        assert!(message.contains("api_keys") && message.contains("env:NAME"), "{message}");
        assert!(!format!("{message}{hint}").contains("sk-live"), "{message}");
        let (message, _) = refusal("[client]\napi_key = sk-live-123\n", &[]);
        assert!(message.starts_with("t.toml:2:") && !message.contains("sk-live"), "{message}");
    }

    #[test]
    fn a_key_given_twice_is_an_error() {
        let (message, _) = refusal("[worker]\nslots = 1\nslots = 2\n", &[]);
        assert!(message.starts_with("t.toml:3:1: duplicate key"), "{message}");
    }
}
