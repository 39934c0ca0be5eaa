//! A private Redis server.

use super::beside;
use super::port::Port;
use super::programs::{redis_cli, redis_server};
use super::supervised::{Recipe, Supervised};
use super::template::succeeded;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A Redis server that keeps its data in memory only. It is stopped when it is dropped.
pub struct Redis {
    server: Arc<Supervised>,
    port: Port,
}

impl Redis {
    /// Starts a server.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with these settings (`redis.conf`'s names and values), such as
    /// `("appendonly", "yes")`.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let own = [("bind", "127.0.0.1"), ("daemonize", "no"), ("save", ""), ("appendonly", "no")];
        let settings = own.iter().chain(settings);
        let settings: Vec<OsString> =
            settings.flat_map(|(name, value)| [format!("--{name}").into(), value.into()]).collect();
        let server = beside(move || {
            let mut command = vec![redis_server().into()];
            command.extend(settings);
            command.push("--dir".into());
            let place = |folder: &Path| folder.into();
            Supervised::prepare(Recipe {
                name: "Redis",
                command,
                place,
                last_signal: "KILL",
                never_as_root: false,
            })
        })
        .await;
        let port = server.start_on_a_port(|port| format!("--port {port}"), answers).await;
        Self { server, port }
    }

    /// Returns its address: `redis://127.0.0.1:…`. It stays the same over restarts.
    pub fn url(&self) -> String {
        format!("redis://{}", self.port.addr())
    }

    /// Stops the server in an orderly way; returns when it is down.
    pub async fn stop(&self) {
        self.server.end("TERM").await;
    }

    /// Kills the server; returns when it is down.
    pub async fn kill(&self) {
        self.server.end("KILL").await;
    }

    /// Starts the server after it was stopped or killed; returns when it answers.
    pub async fn start_again(&self) {
        let port = self.port.number();
        let runs = self.server.start(format!("--port {port}"), move || answers(port)).await;
        assert!(runs, "Redis does not start again:\n{}", self.server.log_tail());
    }

    /// Deletes all data.
    pub async fn flush(&self) {
        self.command(&["FLUSHALL"]).await;
    }

    /// Changes a setting of the running server.
    pub async fn config(&self, key: &str, value: &str) {
        let answer = self.command(&["CONFIG", "SET", key, value]).await;
        assert_eq!(answer, "OK", "Redis does not set {key} to {value}");
    }

    /// Runs any command; returns the output of `redis-cli`.
    pub async fn command(&self, words: &[&str]) -> String {
        let mut command = cli(self.port.number());
        command.args(words);
        beside(move || succeeded("redis-cli", command.output())).await
    }
}

fn cli(port: u16) -> Command {
    let mut command = Command::new(redis_cli());
    command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    command
}

fn answers(port: u16) -> bool {
    // The server answers LOADING while it reads its files.
    cli(port).arg("PING").output().is_ok_and(|output| output.stdout.starts_with(b"PONG"))
}
