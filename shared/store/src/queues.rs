//! Queues as operators see them: paused, bounded, limited, weighted.

use async_trait::async_trait;

/// Queues as operators see them: paused, bounded, limited, weighted.
#[async_trait]
pub trait Queues: Send + Sync + 'static {}
