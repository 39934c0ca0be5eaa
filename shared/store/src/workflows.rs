//! Chains, groups and batches: jobs that wait for one another.

use async_trait::async_trait;

/// Chains, groups and batches: jobs that wait for one another.
#[async_trait]
pub trait Workflows: Send + Sync + 'static {}
