//! The end-to-end suites, in one program so that the dependencies are linked once.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod a2a;
mod agent_protocol;
mod bad_input;
mod budget;
mod budgets;
mod cancel;
mod chaos;
mod conformance;
mod crash;
mod delegation;
mod demo;
mod dev;
mod drain;
mod elsewhere;
mod errors;
mod faults;
mod fleet;
mod fleet_commands;
mod further;
mod gallery;
mod guardrails;
mod inputs;
mod limits;
mod long;
mod main_job;
mod model;
mod ojs;
mod openagentspec;
mod policy;
mod postgres;
mod program;
mod random;
mod redis;
mod replay;
mod retry;
mod review;
mod reviewers;
mod scheduler;
mod sealed;
mod servers;
mod session_state;
mod streams;
mod telemetry;
mod tools;
