//! Who is told of events, and what became of it.

use async_trait::async_trait;

/// Who is told of events, and what became of it.
#[async_trait]
pub trait Webhooks: Send + Sync + 'static {}
