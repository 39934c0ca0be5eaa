//! The worker: claims agent jobs and runs their turns.
//!
//! It contains no SQL and no HTTP server: the [`turnstone_store::Ledger`] makes its work durable.

mod breakers;
pub mod deps;
mod flow;
mod freeze;
pub mod model;
mod oci;
pub mod options;
mod phases;
pub mod runtime;
pub mod tool;
mod turn;

pub use deps::Deps;
pub use options::WorkerOptions;
pub use runtime::{Worker, host_name};
pub use turn::rerun::{Difference, Rerun, rerun};
