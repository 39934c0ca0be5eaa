//! What the arguments of a job type have to look like.

use async_trait::async_trait;

/// What the arguments of a job type have to look like.
#[async_trait]
pub trait Schemas: Send + Sync + 'static {}
