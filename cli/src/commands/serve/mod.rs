//! The services, one file each, and the parts that they and `turnstone dev` share.

pub mod agents;
pub mod api;
pub mod budgets;
pub mod equipment;
pub mod fleet_store;
pub mod listening;
pub mod open_files;
pub mod probed;
pub mod programs;
mod renewal;
pub mod scheduler;
mod service;
mod signals;
pub mod started;
pub mod worker;

pub use equipment::Equipment;
pub use fleet_store::Ground;
pub use listening::Listening;
pub use renewal::Renewal;
pub use service::{Farewell, Service, ServicePart};
pub use signals::Signals;
