//! Faults of the database and of the way to it, under load: the real program as separate processes on a PostgreSQL of
//! the test's own. Whatever happens to the database, no process needs a restart, and nothing is lost or done twice.

mod accepted;
mod commits;
mod connections;
mod flows;
pub(crate) mod gate;
mod invariants;
mod load;
mod network;
mod repeated;
mod restarts;
pub(crate) mod site;
