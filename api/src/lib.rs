//! The HTTP side of Turnstone: OJS, agents, engagements, reviews and probes.
//!
//! Endpoints parse, call and answer; the rules are in `turnstone-ojs` and the domain, the SQL in the store. This crate
//! knows nothing about workers or the scheduler: only the store connects them.
//!
//! One endpoint is one file; its route is in the `routes.rs` beside it. The state that they share, `api`, knows none of
//! them: only `router` does.
//!
//! ```text
//!  connection (serve, tls) ─▶ stamp ─▶ auth: principals, tokens, access, audit_chain ─▶ query, request ─▶ an endpoint ─▶ the store
//!                                                                          │
//!  client ◀─ stamp ◀─ reply: answers and errors in one shape ◀─────────────┤
//!  client ◀─ stamp ◀─ stream ◀─ shared_stream ◀─ doorbell ◀────────────────╯
//!
//!  endpoints   ojs; agents, engagements, reviews, artifacts, budgets, credentials, fleet, keys, freeze, ids; agent_protocol, a2a; probes
//!  answers     the answers that clients in Rust read; rows, counts and parts are in several answers
//!  docs        the OpenAPI document, from the description of each endpoint
//!  scrape      probes and metrics of processes without an API
//! ```

mod a2a;
mod access;
mod agent_protocol;
mod agents;
mod alias;
pub mod answers;
mod api;
mod artifacts;
mod audit;
mod audit_chain;
mod auth;
mod batches;
mod blocking;
mod budgets;
mod caller;
mod caps;
mod connection;
mod counts;
mod credentials;
mod docs;
mod doorbell;
mod engagements;
mod exposure;
mod fleet;
mod freeze;
mod ids;
mod keys;
mod metrics;
mod names;
mod ojs;
mod outage;
mod parts;
mod principals;
mod probes;
mod query;
mod reply;
mod request;
mod reset;
mod reviews;
mod router;
mod rows;
mod scrape;
mod serve;
mod shared_stream;
mod stamp;
mod stream;
mod tls;
mod tokens;

#[cfg(test)]
mod tests;

pub use access::UndeclaredAccess;
pub use api::{Api, ApiOptions, DEFAULT_FAILED_LOGINS, DEFAULT_MAX_BODY_BYTES};
pub use artifacts::saved_name;
pub use caller::Peer;
pub use caps::Caps;
pub use exposure::{ExposureError, check_exposure};
pub use principals::ConfiguredKeys;
pub use scrape::{Probed, serve_probes};
pub use serve::{ServeLimits, serve};
pub use tls::Tls;
pub use tokens::{Issuer, IssuerConfig};
