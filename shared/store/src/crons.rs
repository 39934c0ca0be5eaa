//! Entries that make a job at times.

use async_trait::async_trait;

/// Entries that make a job at times.
#[async_trait]
pub trait Crons: Send + Sync + 'static {}
