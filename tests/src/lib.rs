//! The test harness: a fleet with a real database, real HTTP, a model server and a tool server of its own.
//!
//! Everything that the product meets is outside of it. The model and the tools are HTTP servers that keep a
//! log. Faults come from a decorating ledger ([`crash::CrashLedger`]) or from SIGKILL, and time from a clock
//! that tests move.
//!
//! ```text
//!  tests/it ─▶ Fleet ─┬─ api over HTTP, scheduler, workers ─▶ Place: SQLite file, PostgreSQL database
//!                     ├─ ModelServer, ToolServer, Receiver: what the product calls
//!                     ╰─ ManualClock, CrashLedger: time and faults
//!  tests/it ─▶ OjsServer: a Fleet without workers
//!  tests/it ─▶ processes, binaries, crash_worker: real processes that are killed
//!  servers: PostgreSQL, Redis, PgBouncer, and proxies before them
//! ```

#![expect(clippy::expect_used, reason = "a harness that cannot continue says so and fails")]

pub mod binaries;
pub mod clock;
pub mod crash;
pub mod documents;
pub mod earlier;
pub mod fleet;
pub mod http;
pub mod insist;
pub mod journal;
pub mod model_server;
pub mod ojs_server;
pub mod otlp;
pub mod place;
pub mod processes;
pub mod receiver;
pub mod scratch;
pub mod servers;
pub mod small_disk;
pub mod sse;
pub mod token_issuer;
pub mod tool_server;
pub mod wait;
pub mod witness;
pub mod worker;

pub use fleet::{Backend, Fleet, FleetBuilder};
pub use model_server::{Gate, ModelServer, Reply};
pub use ojs_server::OjsServer;
pub use place::Place;
pub use receiver::{Receipt, Receiver};
pub use tool_server::ToolServer;
