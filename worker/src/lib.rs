//! The worker: claims agent jobs and runs their turns.
//!
//! It contains no SQL and no HTTP server: the [`turnstone_store::Ledger`] makes its work durable.
//!
//! ```text
//!  store ─▶ runtime: claimer ─▶ apalis ─▶ turn: run_job
//!             │ leases: extend, revoke      │ conclude: how the turn ends
//!             │ beats                       ▼
//!             │                           phases: init ─▶ norm ─▶ resol ─▶ infer ─▶ exec ─▶ persist ─▶ emit
//!             │                             │                │        │       │
//!             │                             │ flow: the node │        │       ╰─▶ tool: HTTP, MCP, remote, built-in
//!             │                             ╰────────────────┴────────┴─────────▶ model: providers
//!             │                             ╰─▶ policy: guardrails, filters, restrictions, reviews
//!             │                             ╰─▶ state: the claim, the past, bodies, and the outbox with the lease
//!             ╰─ breakers, cache, deps, options: shared by all turns
//! ```

mod breakers;
mod cache;
pub mod deps;
mod flow;
mod freeze;
pub mod model;
mod oci;
pub mod options;
mod phases;
mod policy;
pub mod runtime;
mod schema_check;
#[cfg(test)]
mod served;
mod state;
pub mod tool;
mod turn;
mod writes;

pub use deps::Deps;
pub use options::WorkerOptions;
pub use runtime::{Worker, host_name};
pub use turn::rerun::{Difference, Rerun, rerun};
pub use turnstone_outbound::OwnAddresses;
