//! The kinds of engagements that are recorded, by topic.

mod artifacts;
mod asking;
mod budgets;
mod control;
mod delegation;
mod failures;
mod forks;
mod guardrails;
mod inputs;
mod mcp;
mod protocols;
mod reviews;
mod state;
mod tools;
mod turns;
mod workflows;

/// Returns the names of all kinds.
pub fn all() -> impl Iterator<Item = &'static str> {
    [
        artifacts::KINDS,
        asking::KINDS,
        budgets::KINDS,
        control::KINDS,
        delegation::KINDS,
        failures::KINDS,
        forks::KINDS,
        guardrails::KINDS,
        inputs::KINDS,
        mcp::KINDS,
        protocols::KINDS,
        reviews::KINDS,
        state::KINDS,
        tools::KINDS,
        turns::KINDS,
        workflows::KINDS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
