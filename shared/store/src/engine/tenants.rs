//! The limits that operators set for tenants (OJS multi-tenancy §8).

use super::Engine;
use super::ops::tenants as ops;
use super::rows::{Fields, Inconsistency, get};
use super::session::Args;
use super::statement::decode_all;
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::terms::Rate;

/// The limits of a tenant; `None` is unlimited.
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
    /// The limits of the tenant.
    pub limits: TenantLimits,
    /// Why, in the operator's words.
    pub reason: Option<String>,
    /// Since when it has limits.
    pub created_at: Timestamp,
    /// When they were set last.
    pub updated_at: Timestamp,
}

pub(super) fn setup(row: &impl Fields) -> Result<TenantSetup, Inconsistency> {
    let rate = get::<Option<i64>>(row, "enqueue_rate")?.zip(get(row, "enqueue_period_ms")?);
    Ok(TenantSetup {
        tenant: get(row, "tenant")?,
        limits: TenantLimits {
            max_concurrency: get(row, "max_concurrency")?,
            max_queue_depth: get(row, "max_queue_depth")?,
            max_scheduled: get(row, "max_scheduled")?,
            max_enqueue_rate: rate.map(|(limit, period_ms)| Rate { limit, period_ms }),
        },
        reason: get(row, "reason")?,
        created_at: get(row, "created_at")?,
        updated_at: get(row, "updated_at")?,
    })
}

/// The handle for tenants and their limits.
#[derive(Clone)]
pub struct Tenants(pub(super) Arc<Engine>);

impl Tenants {
    /// Returns the setup of a tenant; `None` when it has none.
    #[boxed]
    pub async fn tenant(&self, name: &str) -> Result<Option<TenantSetup>, StoreError> {
        let (action, values) = ("read limits of a tenant", [name.into()]);
        let rows = self.0.readers.read(action, &sql::SELECT_TENANT_LIMITS, Args::Values(&values)).await?;
        Ok(decode_all(&rows, setup)?.pop())
    }

    /// Sets the limits of a tenant in place of its earlier ones; its age stays. Jobs above a new limit continue.
    #[boxed]
    pub async fn set_up(&self, tenant: TenantSetup) -> Result<(), StoreError> {
        self.0
            .write(tenant, |tx, setup| {
                Box::pin(ops::set_up(&mut tx.session, &mut tx.unit, (setup, &mut tx.before)))
            })
            .await
    }

    /// Lets a tenant have as much as it likes; returns whether it had limits. Its jobs stay.
    #[boxed]
    pub async fn forget_limits(&self, name: &str) -> Result<bool, StoreError> {
        self.0
            .write(name.to_owned(), |tx, name| {
                Box::pin(ops::forget(&mut tx.session, &mut tx.unit, (name.as_str(), &mut tx.before)))
            })
            .await
    }
}
