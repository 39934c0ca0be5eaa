//! The writes of what operators do to many jobs at once: dead letters, bulk operations, statistics, tenants.

mod delete;
mod reset;
mod revive;
mod several;

pub(in super::super) use delete::apply as delete;
pub(in super::super) use reset::apply as reset;
pub(in super::super) use revive::apply as revive;
pub(in super::super) use several::apply as several;
