//! Faults of the database and of its network, under load: the real program as separate processes, each test on a
//! PostgreSQL of its own. Under every fault no process needs a restart, and no job is lost or done twice.

mod accepted;
mod agent_spec_flows;
mod commits;
mod connections;
mod failover;
mod flows;
pub(crate) mod gate;
mod invariants;
mod load;
mod network;
mod repeated;
mod restarts;
mod sessions;
pub(crate) mod site;
