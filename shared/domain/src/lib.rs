//! The words and the rules of Turnstone: jobs, turns, phases, checkpoints, leases, budgets, reviews and agents.
//!
//! This crate knows nothing about async, SQL, HTTP or any wire format: everything here is a value or a pure
//! function of its arguments. Time, ids and randomness come in as arguments ([`Clock`], [`Ids`]).
//!
//! ```text
//!  a job       job ── state, lease, retry, settlement, terms, overrides, error, attest
//!    │
//!  its past    engagement ── message, checkpoint (of a phase), tool_call, event, guardrail_check
//!    │                       turn_write is what one turn adds to it
//!  its agent   agent ── policy, schema, screen, short_circuit, question, review, memory, session_state, artifact
//!    │
//!  its means   budget, breaker, address
//!    │
//!  many jobs   workflow, cron, webhook, feed, fork, record, comparison
//!
//!  under all   ids, clock, duration, json, digest, trace_context
//! ```

pub mod address;
pub mod agent;
pub mod artifact;
pub mod attest;
pub mod audit;
pub mod breaker;
pub mod budget;
pub mod checkpoint;
pub mod clock;
pub mod comparison;
pub mod cron;
pub mod digest;
pub mod duration;
pub mod embedded;
pub mod engagement;
pub mod error;
pub mod event;
pub mod feed;
pub mod flaw;
pub mod fork;
pub mod guardrail_check;
pub mod ids;
pub mod job;
pub mod json;
pub mod lease;
pub mod memory;
pub mod message;
pub mod number;
pub mod overrides;
pub mod phase;
pub mod policy;
pub mod principal;
pub mod question;
pub mod record;
pub mod reported;
pub mod retry;
pub mod review;
pub mod schema;
pub mod screen;
pub mod session_state;
pub mod settlement;
pub mod short_circuit;
pub mod state;
pub mod terms;
pub mod tool_call;
pub mod trace_context;
pub mod turn_write;
pub mod webhook;
pub mod workflow;

pub use agent::AgentDefinition;
pub use checkpoint::{Checkpoint, NewCheckpoint, Spent};
pub use clock::{Clock, ClockStep, ClockSteps, MachineClock, SystemClock, Timestamp};
pub use error::JobError;
pub use event::{EventData, EventName, NewEvent, PhaseCompleted};
pub use ids::{ArtifactId, CallId, EngagementId, IdSource, Identified, Ids, JobId, ReviewId};
pub use job::{Job, NewJob};
pub use json::{RawJson, RawObject};
pub use lease::Lease;
pub use overrides::Overrides;
pub use phase::Phase;
pub use settlement::{NewChild, Settlement, Wait};
pub use state::JobState;
pub use terms::Terms;
pub use turn_write::{RecordEnd, TurnWrite};
