//! Tools that need no configuration.

mod ask_user;
mod clock;
mod http_get;

pub use ask_user::AskUserTool;
pub use clock::ClockTool;
pub use http_get::HttpGetTool;
