//! Real servers for tests: PostgreSQL, Redis and PgBouncer as private processes, and proxies that break on
//! demand.
//!
//! Every server listens on `127.0.0.1` only, keeps its files in a folder of its own, and ends with the test
//! process in every case (`supervise.sh`). `tests/install-servers.sh` installs a missing program once. If
//! that is impossible, `build.rs` has left out the tests that need it; with `CI=true` they fail and name the
//! packages.

mod database;
pub mod find;
mod pgbouncer;
mod port;
mod postgres;
mod programs;
mod redis;
mod supervised;
mod tcp_proxy;
mod template;
mod wire;

pub use database::Database;
pub use pgbouncer::PgBouncer;
pub use port::Port;
pub use postgres::{Postgres, WITH_STANDBYS};
pub use programs::{faketime_path, need_python, need_sqlite_shell};
pub use redis::Redis;
pub use tcp_proxy::TcpProxy;
pub use wire::{Answer, Lost, Said, Wire};

/// Runs blocking work (processes, pipes, files) beside the runtime, so that the rest of a test continues
/// meanwhile.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => panic!("the test's runtime ended: {error}"),
        },
    }
}
