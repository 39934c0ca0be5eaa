//! What operators allow tenants (OJS multi-tenancy §8).

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::terms::Rate;

/// What a tenant may have; `None` is as much as it likes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TenantLimits {
    /// Active jobs over all queues.
    pub max_concurrency: Option<i64>,
    /// Available, scheduled and retryable jobs over all queues.
    pub max_queue_depth: Option<i64>,
    /// Scheduled jobs over all queues.
    pub max_scheduled: Option<i64>,
    /// Accepted jobs per period.
    pub max_enqueue_rate: Option<Rate>,
}

/// A tenant that was set up by an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TenantSetup {
    /// Its name.
    pub tenant: String,
    /// What it may have.
    pub limits: TenantLimits,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// Since when it has limits.
    pub created_at: Timestamp,
    /// When they were set last.
    pub updated_at: Timestamp,
}

/// What operators allow tenants.
#[async_trait]
pub trait Tenants: Send + Sync + 'static {
    /// What a tenant was set up with; `None` when it was not.
    async fn tenant(&self, name: &str) -> Result<Option<TenantSetup>, StoreError>;

    /// Sets what a tenant may have, in place of what it might before; its age stays. What it has above a new limit goes on.
    async fn set_up(&self, tenant: TenantSetup) -> Result<(), StoreError>;

    /// Lets a tenant have as much as it likes; returns whether it had limits. Its jobs stay.
    async fn forget_limits(&self, name: &str) -> Result<bool, StoreError>;
}
