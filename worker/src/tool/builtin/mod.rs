//! Tools that need no configuration.

mod clock;
mod http_get;
mod save_artifact;

pub use clock::ClockTool;
pub use http_get::HttpGetTool;
pub use save_artifact::{NAMES as SAVE_ARTIFACT, SaveArtifactTool};
