//! The configuration: flag, then environment variable `TURNSTONE_SECTION__KEY`, then `turnstone.toml`, then default.

pub mod address;
mod budgets;
mod encryption;
mod layers;
mod problem;
mod sections;
mod shown;

pub use encryption::EncryptionConfig;
pub use layers::{Layers, Loaded};
pub use problem::suggestion;
pub use sections::{ClientConfig, Config, LogConfig, ModelsConfig};
pub use shown::shown;

use crate::failure::Failure;

/// The most turns that one worker process may hold at once.
const MOST_SLOTS: u32 = 100_000;
/// The shortest lease: below it a busy machine would lose healthy jobs.
const SHORTEST_LEASE_MS: u64 = 1_000;
/// The most connections that one process may open.
const MOST_CONNECTIONS: u32 = 1_000;
/// The shortest time for a statement: below it a busy database would end healthy ones.
const SHORTEST_STATEMENT_MS: u64 = 1_000;
/// The longest time for a statement: after 30 seconds a process gives its connection up.
const LONGEST_STATEMENT_MS: u64 = 29_000;
/// The longest name of a worker.
const LONGEST_NAME: usize = 128;

impl Config {
    /// Checks the rules that the types cannot express.
    ///
    /// # Errors
    /// The first value that cannot work, with its key.
    pub fn check(&self) -> Result<(), Failure> {
        let wrong = |key: &str, rule: String| {
            Err(Failure::usage(format!("`{key}` {rule}"))
                .hint(format!("`turnstone config show` says where `{key}` comes from")))
        };
        let worker = &self.worker;
        if !(1..=MOST_SLOTS).contains(&worker.slots) {
            return wrong(
                "worker.slots",
                format!("is {}; it must lie between 1 and {MOST_SLOTS}", worker.slots),
            );
        }
        if worker.lease_ms < SHORTEST_LEASE_MS {
            return wrong(
                "worker.lease_ms",
                format!("is {}; it must be at least {SHORTEST_LEASE_MS}", worker.lease_ms),
            );
        }
        if worker.queues.is_empty() {
            return wrong(
                "worker.queues",
                "is empty; name the queues, or use \"*\" for every queue".to_owned(),
            );
        }
        if let Some(name) = worker.named_queues().unwrap_or_default().iter().find(|name| !is_queue_name(name))
        {
            return wrong(
                "worker.queues",
                format!("names `{name}`; a queue is written with a-z, 0-9, `-` and `.`"),
            );
        }
        if worker.name.as_deref().is_some_and(|name| !is_worker_name(name)) {
            return wrong(
                "worker.name",
                format!(
                    "must have 1 to {LONGEST_NAME} characters, none of them a space or a control character"
                ),
            );
        }
        let store = &self.store;
        for (key, value, least) in
            [("store.connections", store.connections, 2), ("store.writers", store.writers, 1)]
        {
            if !(least..=MOST_CONNECTIONS).contains(&value) {
                return wrong(key, format!("is {value}; it must lie between {least} and {MOST_CONNECTIONS}"));
            }
        }
        if !(SHORTEST_STATEMENT_MS..=LONGEST_STATEMENT_MS).contains(&store.statement_timeout_ms) {
            let bounds = format!("must lie between {SHORTEST_STATEMENT_MS} and {LONGEST_STATEMENT_MS}");
            return wrong("store.statement_timeout_ms", bounds);
        }
        let sections = [
            ("budgets", self.budgets.check()),
            ("reviews", self.reviews.check()),
            ("models.context_tokens", self.models.check()),
        ];
        if let Some((key, Err(problem))) = sections.into_iter().find(|(_, checked)| checked.is_err()) {
            return wrong(key, problem);
        }
        let (models, server) = (&self.models, &self.server);
        for (key, value) in [
            ("models.timeout_ms", models.timeout_ms),
            ("models.max_tokens", models.max_tokens.into()),
            ("server.max_connections", server.max_connections.into()),
            ("server.header_timeout_ms", server.header_timeout_ms),
            ("server.body_timeout_ms", server.body_timeout_ms),
            ("server.idle_timeout_ms", server.idle_timeout_ms),
        ] {
            if value == 0 {
                return wrong(key, "is 0; it must be at least 1".to_owned());
            }
        }
        if let Some(Err(problem)) = self.log.filter.as_deref().map(turnstone_telemetry::check_filter) {
            return wrong("log.filter", format!("cannot be used: {problem}"));
        }
        let is_url =
            reqwest::Url::parse(&self.client.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !is_url {
            return wrong("client.url", "is not an address such as http://127.0.0.1:8080".to_owned());
        }
        Ok(())
    }
}

/// OJS core §3: `^[a-z0-9][a-z0-9\-.]*$`, at most 128 characters.
fn is_queue_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 128
        && name.starts_with(is_word)
        && name.chars().all(|c| is_word(c) || matches!(c, '-' | '.'))
}

fn is_worker_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.chars().count())
        && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::sections::WorkerConfig;
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_serve_every_queue() {
        let config = Config::default();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.worker.named_queues(), None);
        let named = WorkerConfig { queues: vec!["a".into()], ..WorkerConfig::default() };
        assert_eq!(named.named_queues(), Some(&["a".to_owned()][..]));
    }

    #[test]
    fn values_that_cannot_work_are_named() {
        type Spoil = fn(&mut Config);
        let broken: [(&str, Spoil); 15] = [
            ("worker.name", |c| c.worker.name = Some("two words".into())),
            ("store.connections", |c| c.store.connections = 1),
            ("store.writers", |c| c.store.writers = 0),
            ("store.statement_timeout_ms", |c| c.store.statement_timeout_ms = 0),
            ("store.statement_timeout_ms", |c| c.store.statement_timeout_ms = 60_000),
            ("worker.slots", |c| c.worker.slots = 0),
            ("worker.lease_ms", |c| c.worker.lease_ms = 10),
            ("worker.queues", |c| c.worker.queues.clear()),
            ("worker.queues", |c| c.worker.queues = vec!["a".into(), "No Such".into()]),
            ("client.url", |c| c.client.url = "localhost:8080".into()),
            ("models.timeout_ms", |c| c.models.timeout_ms = 0),
            ("models.max_tokens", |c| c.models.max_tokens = 0),
            ("models.context_tokens", |c| c.models.context_tokens = [("p/m".to_owned(), 0)].into()),
            ("models.context_tokens", |c| c.models.context_tokens = [("/m".to_owned(), 9)].into()),
            ("log.filter", |c| c.log.filter = Some("worker=loudly".into())),
        ];
        for (key, spoil) in broken {
            let mut config = Config::default();
            spoil(&mut config);
            let failure = config.check().unwrap_err();
            assert!(failure.message.contains(key), "{failure}");
        }
    }
}
