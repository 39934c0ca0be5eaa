//! An engagement is paused, resumed, forked, merged, or one of its calls made again.

use async_trait::async_trait;

/// An engagement is paused, resumed, forked, merged, or one of its calls made again.
#[async_trait]
pub trait Control: Send + Sync + 'static {}
