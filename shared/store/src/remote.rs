//! What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress.

use async_trait::async_trait;

/// What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress.
#[async_trait]
pub trait Remote: Send + Sync + 'static {}
