//! What operators allow tenants: the calls.

use super::Engine;
use super::ops::tenants::Request as Asked;
use super::rows::{Fields, Inconsistency, get, maybe, time};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::{StoreError, TenantLimits, TenantSetup, Tenants, sql};
use async_trait::async_trait;
use turnstone_domain::terms::Rate;

fn setup(row: &impl Fields) -> Result<TenantSetup, Inconsistency> {
    let rate = maybe(row, "enqueue_rate")?.zip(maybe(row, "enqueue_period_ms")?);
    Ok(TenantSetup {
        tenant: get(row, "tenant")?,
        limits: TenantLimits {
            max_concurrency: maybe(row, "max_concurrency")?,
            max_queue_depth: maybe(row, "max_queue_depth")?,
            max_scheduled: maybe(row, "max_scheduled")?,
            max_enqueue_rate: rate.map(|(limit, period_ms)| Rate { limit, period_ms }),
        },
        reason: maybe(row, "reason")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

impl<R: Reader> Engine<R> {
    async fn of_tenants(&self, asked: Asked) -> Result<bool, StoreError> {
        match self.request(Request::Tenants(asked)).await? {
            Answer::Tenants(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Tenants for Engine<R> {
    async fn tenant(&self, name: &str) -> Result<Option<TenantSetup>, StoreError> {
        let (action, values) = ("read limits of a tenant", [name.into()]);
        let rows = self.readers.read(action, &sql::SELECT_TENANT_LIMITS, Args::Values(&values)).await?;
        Ok(decode_all(&rows, setup)?.pop())
    }

    async fn set_up(&self, tenant: TenantSetup) -> Result<(), StoreError> {
        self.of_tenants(Asked::SetUp(Box::new(tenant))).await.map(|_| ())
    }

    async fn forget_limits(&self, name: &str) -> Result<bool, StoreError> {
        self.of_tenants(Asked::Forget(name.to_owned())).await
    }
}
