//! What operators do to many jobs at once: dead letters, bulk, statistics, tenants.

use async_trait::async_trait;

/// What operators do to many jobs at once: dead letters, bulk, statistics, tenants.
#[async_trait]
pub trait Operate: Send + Sync + 'static {}
