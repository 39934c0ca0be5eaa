//! Tools that need no configuration.

mod clock;
mod http_get;

pub use clock::ClockTool;
pub use http_get::HttpGetTool;
