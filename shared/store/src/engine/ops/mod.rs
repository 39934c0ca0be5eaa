//! What the writer does, one file per transition or group of them.

pub(super) mod agents;
pub(super) mod breakers;
pub(super) mod budgets;
pub(super) mod cancel;
mod charge;
pub(super) mod claim;
pub(super) mod control;
pub(super) mod crons;
pub(super) mod decide;
pub(super) mod delegations;
pub(super) mod leader;
pub(super) mod leases;
pub(super) mod operate;
pub(super) mod prune;
pub(super) mod push;
pub(super) mod queues;
pub(super) mod remote;
pub(super) mod schemas;
pub(super) mod session_state;
pub(super) mod statistics;
pub(super) mod tenants;
pub(super) mod time_out;
pub(super) mod turns;
pub(super) mod upkeep;
pub(super) mod webhooks;
pub(super) mod workers;
pub(super) mod workflows;
