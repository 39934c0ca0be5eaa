//! Merges the sources of the configuration and remembers the source of each value.

use super::problem::{self, FileText};
use super::sections::{ClientConfig, Config};
use crate::failure::Failure;
use config::{Environment, File, FileFormat, Value, ValueKind};
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "turnstone.toml";
/// The prefix of environment variables of the configuration.
const PREFIX: &str = "TURNSTONE_";
/// The separator between a section and a key.
const SEPARATOR: &str = "__";
/// Short names of variables that are set by hand often.
const SHORT: &[(&str, &str)] = &[
    ("TURNSTONE_URL", "TURNSTONE_CLIENT__URL"),
    ("TURNSTONE_API_KEY_REF", "TURNSTONE_CLIENT__API_KEY"),
    ("DATABASE_URL", "TURNSTONE_STORE__URL"),
    ("REDIS_URL", "TURNSTONE_REDIS__URL"),
];
/// The key of the server's address, and the variables that set it.
const URL: &str = "client.url";
const URL_VARIABLES: [&str; 2] = ["TURNSTONE_URL", "TURNSTONE_CLIENT__URL"];
/// The keys whose value in the environment is a comma-separated list.
const LISTS: [&str; 4] = ["worker.queues", "server.api_keys", "encryption.previous", "attest.trusted"];

/// The source of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line.
    Flag,
    /// This environment variable.
    Env(String),
    /// This file.
    File(PathBuf),
    /// No source sets it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Env(name) => write!(f, "env {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The sources above the defaults.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// `--config`; without it `./turnstone.toml`, if there is one.
    pub file: Option<PathBuf>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// Values from the command line by key, such as `worker.slots`.
    pub flags: Vec<(&'static str, String)>,
}

/// A configuration and its sources.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The effective configuration.
    pub config: Config,
    merged: Value,
    file: Option<FileText>,
    /// The short variables that were used, with their long names.
    short: Vec<(&'static str, &'static str)>,
}

impl Layers {
    /// Returns the layers of this process.
    #[must_use]
    pub fn of_process(file: Option<PathBuf>, flags: Vec<(&'static str, String)>) -> Self {
        Self {
            file,
            env: turnstone_telemetry::environment::vars_os()
                .into_iter()
                .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
                .collect(),
            flags,
        }
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// A sentence with the key, the source and, if possible, a suggestion.
    pub fn load(self) -> Result<Loaded, Failure> {
        let file = self.read_file()?;
        let merged = self.merge(file.as_ref())?;
        let short = SHORT
            .iter()
            .copied()
            .filter(|(short, long)| self.env.contains_key(*short) && !self.env.contains_key(*long));
        let mut loaded = Loaded { config: Config::default(), merged, file, short: short.collect() };
        let typed: Result<Config, _> = loaded.merged.clone().try_deserialize();
        loaded.config = typed.map_err(|error| problem::explain(&error, &loaded))?;
        loaded.config.file = loaded.file.as_ref().map(|file| file.path.clone());
        loaded.anchor_paths();
        loaded.config.check()?;
        Ok(loaded)
    }

    /// Returns the settings of a client: the server's address and the key. Other problems are returned to be remarked,
    /// and do not prevent requests to a running server.
    ///
    /// # Errors
    /// As [`Layers::load`], when `[client]` itself is wrong, or only an unreadable file could name the server.
    pub fn load_client(self) -> Result<(ClientConfig, Option<Failure>), Failure> {
        #[derive(serde::Deserialize)]
        struct ClientSection {
            #[serde(default)]
            client: ClientConfig,
        }
        let again = self.clone();
        let failure = match self.load() {
            Ok(loaded) => return Ok((loaded.config.client, None)),
            Err(failure) => failure,
        };
        let named = again.flags.iter().any(|(key, _)| *key == URL)
            || URL_VARIABLES.iter().any(|name| again.env.contains_key(*name));
        let file = match again.read_file() {
            Ok(file) => file,
            Err(_) if named => None,
            Err(_) => return Err(failure),
        };
        match again.merge(file.as_ref()).map(|merged| merged.try_deserialize::<ClientSection>()) {
            Ok(Ok(part)) if reqwest::Url::parse(&part.client.url).is_ok() => Ok((part.client, Some(failure))),
            _ => Err(failure),
        }
    }

    fn read_file(&self) -> Result<Option<FileText>, Failure> {
        let path = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        match std::fs::read_to_string(path) {
            Ok(text) => FileText::parse(path.to_owned(), text).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound && self.file.is_none() => Ok(None),
            Err(error) => Err(Failure::usage(format!(
                "the configuration file {} cannot be read: {error}",
                path.display()
            ))
            .hint("--config names the file; without it ./turnstone.toml is read if it is there")),
        }
    }

    fn merge(&self, file: Option<&FileText>) -> Result<Value, Failure> {
        let is_ours = |name: &str| {
            name.to_ascii_uppercase().strip_prefix(PREFIX).is_some_and(|key| key.contains(SEPARATOR))
        };
        let mut env: config::Map<String, String> =
            self.env.iter().filter(|(name, _)| is_ours(name)).map(|(k, v)| (k.clone(), v.clone())).collect();
        for (short, long) in SHORT {
            if let Some(value) = self.env.get(*short).filter(|value| !value.is_empty()) {
                env.entry((*long).to_owned()).or_insert_with(|| value.clone());
            }
        }
        let environment = LISTS.iter().fold(
            Environment::with_prefix("TURNSTONE")
                .prefix_separator("_")
                .separator(SEPARATOR)
                .try_parsing(true)
                .list_separator(",")
                .source(Some(env)),
            |environment, key| environment.with_list_parse_key(key),
        );
        let unreadable =
            |error: config::ConfigError| Failure::usage(format!("the configuration cannot be read: {error}"));
        let mut builder = config::Config::builder();
        if let Some(file) = file {
            builder = builder.add_source(File::from(file.path.as_path()).format(FileFormat::Toml));
        }
        builder = builder.add_source(environment);
        for (key, value) in &self.flags {
            let set = if LISTS.contains(key) {
                builder.set_override(*key, value.split(',').map(str::trim).collect::<Vec<_>>())
            } else {
                builder.set_override(*key, value.as_str())
            };
            builder = set.map_err(unreadable)?;
        }
        Ok(builder.build().map_err(unreadable)?.cache)
    }
}

impl Loaded {
    /// Makes paths in the file relative to the file's directory.
    fn anchor_paths(&mut self) {
        let Some(base) = self.file.as_ref().and_then(|file| file.path.parent()).map(Path::to_owned) else {
            return;
        };
        if matches!(self.origin(&["server", "data"]), Origin::File(_)) {
            self.config.server.data = base.join(&self.config.server.data);
        }
        if matches!(self.origin(&["agents", "dir"]), Origin::File(_)) {
            self.config.agents.dir = self.config.agents.dir.as_ref().map(|dir| base.join(dir));
        }
        if matches!(self.origin(&["server", "tls", "cert"]), Origin::File(_))
            && let Some(tls) = &mut self.config.server.tls
        {
            (tls.cert, tls.key) = (base.join(&tls.cert), base.join(&tls.key));
        }
        if matches!(self.origin(&["remote", "ca"]), Origin::File(_)) {
            self.config.remote.ca = self.config.remote.ca.as_ref().map(|ca| base.join(ca));
        }
        self.config.base = base;
    }

    /// Returns the source of this key's value.
    #[must_use]
    pub fn origin(&self, key: &[&str]) -> Origin {
        let Some(value) = self.find(key).and_then(first_leaf) else { return Origin::Default };
        match value.origin() {
            None => Origin::Flag,
            // The `config` crate writes it so; files are identified by their path.
            Some("the environment") => Origin::Env(self.variable(key)),
            Some(path) => {
                Origin::File(self.file.as_ref().map_or_else(|| PathBuf::from(path), |file| file.path.clone()))
            }
        }
    }

    /// Returns the file that was read, with its text.
    pub(super) fn file(&self) -> Option<&FileText> {
        self.file.as_ref()
    }

    fn variable(&self, key: &[&str]) -> String {
        let name = format!("{PREFIX}{}", key.join(SEPARATOR).to_ascii_uppercase());
        self.short.iter().find(|(_, long)| *long == name).map_or(name, |(short, _)| (*short).to_owned())
    }

    fn find(&self, key: &[&str]) -> Option<&Value> {
        key.iter().try_fold(&self.merged, |value, name| match &value.kind {
            ValueKind::Table(table) => table.get(*name),
            _ => None,
        })
    }
}

/// Returns the first leaf of a value: merged tables have no source, but their leaves do.
fn first_leaf(value: &Value) -> Option<&Value> {
    match &value.kind {
        ValueKind::Table(table) if value.origin().is_none() => table.values().find_map(first_leaf),
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(
        toml: &str,
        env: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> (tempfile::TempDir, Layers) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.toml");
        std::fs::write(&path, toml).unwrap();
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let flags = flags.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        (dir, Layers { file: Some(path), env, flags })
    }

    fn load(toml: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<Loaded, Failure> {
        let (_dir, layers) = layers(toml, env, flags);
        layers.load()
    }

    #[test]
    fn a_client_needs_nothing_but_its_own_section() {
        let client = |toml: &str, flags: &[(&'static str, &str)]| {
            let (_dir, layers) = layers(toml, &[], flags);
            layers.load_client()
        };
        let broken = "[client]\nurl = 'http://far.example'\n[prices]\nnonsense = 1";
        let (config, wrong) = client(broken, &[]).unwrap();
        assert_eq!(config.url, "http://far.example");
        assert!(wrong.unwrap().message.contains("nonsense"));
        assert_eq!(
            client("[client]\nurl = 'http://far.example'", &[]).unwrap().1.map(|wrong| wrong.message),
            None
        );
        assert!(client("[client", &[]).is_err(), "it might name another server");
        let (config, wrong) = client("[client", &[("client.url", "http://near.example")]).unwrap();
        assert_eq!((config.url.as_str(), wrong.is_some()), ("http://near.example", true));
        for own in ["[client]\nulr = 'x'", "[client]\nurl = 'nonsense'"] {
            assert!(client(own, &[]).is_err(), "{own}");
        }
    }

    #[test]
    fn each_layer_wins_over_the_one_below() {
        let toml =
            "[worker]\nslots = 2\nlease_ms = 2000\ndrain_grace_ms = 2000\n[server]\nbind = '127.0.0.1:1'";
        let env = [("TURNSTONE_WORKER__SLOTS", "3"), ("TURNSTONE_WORKER__LEASE_MS", "3000"), ("HOME", "/x")];
        let loaded = load(toml, &env, &[("worker.slots", "4")]).unwrap();
        let worker = &loaded.config.worker;
        assert_eq!((worker.slots, worker.lease_ms, worker.drain_grace_ms), (4, 3000, 2000));
        assert_eq!(worker.queues, ["*"]);
        assert_eq!(loaded.origin(&["worker", "slots"]), Origin::Flag);
        assert_eq!(loaded.origin(&["worker", "lease_ms"]), Origin::Env("TURNSTONE_WORKER__LEASE_MS".into()));
        assert!(
            matches!(loaded.origin(&["worker", "drain_grace_ms"]), Origin::File(path) if path.ends_with("t.toml"))
        );
        assert_eq!(loaded.origin(&["worker", "queues"]), Origin::Default);
    }

    #[test]
    fn lists_and_maps_can_come_from_the_environment() {
        let env = [
            ("TURNSTONE_WORKER__QUEUES", "a,b"),
            ("TURNSTONE_SERVER__API_KEYS", "env:ONE,file:/two"),
            ("TURNSTONE_AGENTS__DIR", "./agents"),
            ("TURNSTONE_URL", "http://not.a.section"),
        ];
        let config = load("", &env, &[]).unwrap().config;
        assert_eq!(config.worker.queues, ["a", "b"]);
        assert_eq!(
            config.server.api_keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["env:ONE", "file:/two"]
        );
        assert_eq!(config.agents.dir, Some(PathBuf::from("./agents")));
    }

    #[test]
    fn the_short_variables_stand_below_the_long_ones_and_the_flags() {
        let short = ("TURNSTONE_URL", "http://short:1");
        let loaded = load("[client]\nurl = 'http://file:1'", &[short], &[]).unwrap();
        assert_eq!(loaded.config.client.url, "http://short:1");
        assert_eq!(loaded.origin(&["client", "url"]), Origin::Env("TURNSTONE_URL".into()));
        let loaded = load("", &[short, ("TURNSTONE_CLIENT__URL", "http://long:1")], &[]).unwrap();
        assert_eq!(loaded.config.client.url, "http://long:1");
        assert_eq!(
            load("", &[short], &[("client.url", "http://flag:1")]).unwrap().config.client.url,
            "http://flag:1"
        );
    }

    #[test]
    fn the_database_comes_from_where_operators_put_it() {
        let file = "[store]\nurl = 'postgres://ann:from-the-file@db/t'";
        let database = ("DATABASE_URL", "postgres://ann:by-the-habit@db/t");
        let ours = ("TURNSTONE_STORE__URL", "file:/run/secrets/database");
        for (env, shown, origin) in [
            (&[][..], "postgres://ann:***@db/t", None),
            (&[database][..], "postgres://ann:***@db/t", Some("DATABASE_URL")),
            (&[database, ours][..], "file:/run/secrets/database", Some("TURNSTONE_STORE__URL")),
        ] {
            let loaded = load(file, env, &[]).unwrap();
            assert_eq!(loaded.config.store.url.as_ref().unwrap().to_string(), shown);
            match origin {
                Some(name) => assert_eq!(loaded.origin(&["store", "url"]), Origin::Env(name.into())),
                None => assert!(matches!(loaded.origin(&["store", "url"]), Origin::File(_))),
            }
            assert!(!format!("{:?}", loaded.config).contains("from-the"), "the password shows itself");
        }
    }

    #[test]
    fn redis_and_limits_are_read_as_they_are_written() {
        let toml = "[redis]\nurl = 'redis://file/0'\n[limits.'openai/gpt-4.1']\nrequests_per_minute = 60\n\
            tokens_per_minute = 30_000\n[limits.'local/*']";
        let loaded = load(toml, &[("REDIS_URL", "redis://:s3cret-word@env/1")], &[]).unwrap();
        assert_eq!(loaded.config.redis.url.as_ref().unwrap().to_string(), "redis://:***@env/1");
        assert_eq!(loaded.origin(&["redis", "url"]), Origin::Env("REDIS_URL".into()));
        let limits = &loaded.config.limits;
        assert_eq!(limits.keys().collect::<Vec<_>>(), ["local/*", "openai/gpt-4.1"]);
        let limit = limits["openai/gpt-4.1"];
        assert_eq!((limit.requests_per_minute, limit.tokens_per_minute), (Some(60), Some(30_000)));
        let key = ["limits", "openai/gpt-4.1", "requests_per_minute"];
        assert!(matches!(loaded.origin(&key), Origin::File(_)));
        let failure = load("[limits.'a/b']\nrequests = 1", &[], &[]).unwrap_err();
        assert!(failure.message.contains("unknown key `requests`"), "{failure}");
    }

    #[test]
    fn a_flag_may_be_a_list() {
        let loaded = load("[worker]\nqueues = ['c']", &[], &[("worker.queues", "a, b")]).unwrap();
        assert_eq!(loaded.config.worker.queues, ["a", "b"]);
        assert_eq!(loaded.origin(&["worker", "queues"]), Origin::Flag);
    }

    #[test]
    fn names_below_providers_and_tools_keep_their_case_and_order() {
        let toml = "[tools.Search]\ndescription = 'd'\nurl = 'https://a.example/'\n[tools.Search.headers]\nX-Me = 'a'\n\
            [tools.Search.input_schema]\ntype = 'object'\nadditionalProperties = false\n\
            [tools.Search.input_schema.properties]\nzebra = {}\nApple = {}\nmango = {}";
        let config = load(toml, &[("TURNSTONE_PROVIDERS__LOCAL__KIND", "openai")], &[]).unwrap().config;
        let schema = config.tools["Search"].input_schema.to_value().unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(
            schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["zebra", "Apple", "mango"]
        );
        assert!(config.tools["Search"].headers.contains_key("X-Me"));
        assert!(config.providers.contains_key("local"));
    }

    #[test]
    fn paths_in_the_file_are_relative_to_it_and_all_others_to_where_we_stand() {
        let (dir, layers) = layers("[server]\ndata = 'd'\n[agents]\ndir = '/abs'", &[], &[]);
        let config = layers.load().unwrap().config;
        assert_eq!((config.base.as_path(), config.server.data), (dir.path(), dir.path().join("d")));
        assert_eq!(config.agents.dir, Some(PathBuf::from("/abs")));
        let config = load("[server]\ndata = 'd'", &[("TURNSTONE_AGENTS__DIR", "a")], &[("server.data", "x")])
            .unwrap()
            .config;
        assert_eq!((config.server.data, config.agents.dir), (PathBuf::from("x"), Some(PathBuf::from("a"))));
    }

    #[test]
    fn a_named_file_must_exist() {
        let missing = Layers { file: Some("/nowhere/t.toml".into()), ..Layers::default() };
        let failure = missing.load().unwrap_err();
        assert!(failure.message.contains("/nowhere/t.toml") && failure.hint.is_some(), "{failure}");
    }
}
