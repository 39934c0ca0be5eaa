//! `/ojs/v1/admin/tenants/{id}` (OJS multi-tenancy §8, §10): the limits of a tenant, and its jobs.

use crate::api::{App, Shared};
use crate::audit::Operator;
use crate::counts::StateCounts;
use crate::ojs::jobs::list_jobs;
use crate::parts::JobPage;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Params, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::RawObject;
use turnstone_domain::terms::Rate;
use turnstone_ojs::request::between;
use turnstone_ojs::{Fields, OjsError, check_tenant, read_limit};
use turnstone_store::{JobFilter, TenantLimits, TenantSetup};
use utoipa::ToSchema;

/// No limit is greater; beyond it sums could overflow.
const MOST: i64 = 1_000_000_000_000;

/// The limits of a tenant.
#[derive(Default, Deserialize, ToSchema)]
#[schema(example = json!({"max_concurrency": 20, "max_queue_depth": 50_000, "max_scheduled": 10_000,
                          "max_enqueue_rate": {"limit": 1000, "period": "PT1M"}}))]
pub(super) struct LimitsRequest {
    /// Active jobs over all queues.
    #[serde(default, deserialize_with = "between::<_, 0, MOST>")]
    max_concurrency: Option<i64>,
    /// Available, scheduled and retryable jobs over all queues.
    #[serde(default, deserialize_with = "between::<_, 0, MOST>")]
    max_queue_depth: Option<i64>,
    /// Scheduled jobs over all queues.
    #[serde(default, deserialize_with = "between::<_, 0, MOST>")]
    max_scheduled: Option<i64>,
    /// `limit` accepted jobs per `period`.
    #[schema(value_type = Option<Map<String, Value>>)]
    max_enqueue_rate: Option<RawObject>,
    /// Why it is set.
    reason: Option<String>,
}

/// A tenant that is set up.
#[derive(Deserialize, ToSchema)]
pub(super) struct TenantRequest {
    limits: Option<LimitsRequest>,
}

/// A tenant.
#[derive(Serialize, ToSchema)]
pub(super) struct TenantDetail {
    id: String,
    tenant_id: String,
    limits: ShownLimits,
    /// Why they were set, in the operator's words.
    reason: Option<String>,
    total_jobs: u64,
    /// Jobs that have not ended.
    unfinished_jobs: u64,
    jobs: StateCounts,
    /// Since when it has limits, RFC 3339; null when it has none.
    created_at: Option<String>,
    /// When they were set last, RFC 3339.
    updated_at: Option<String>,
}

/// The limits of a tenant; null is unlimited.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantLimits)]
pub(super) struct ShownLimits {
    max_concurrency: Option<i64>,
    max_queue_depth: Option<i64>,
    max_scheduled: Option<i64>,
    max_enqueue_rate: Option<ShownRate>,
}

/// Accepted jobs per period.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantRate)]
pub(super) struct ShownRate {
    limit: i64,
    period_ms: i64,
}

/// Limits that were taken away.
#[derive(Serialize, ToSchema)]
pub(super) struct ForgottenTenant {
    deleted: bool,
    tenant_id: String,
}

/// Shows a tenant: its limits and its jobs. An unknown one has neither.
#[utoipa::path(
    get, path = "/ojs/v1/admin/tenants/{id}", operation_id = "admin_show_tenant", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The tenant."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The same tenant, if it is sent."),
    ),
    responses((status = 200, description = "The tenant.", body = TenantDetail)),
)]
pub(crate) async fn show(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    checked(&id, &tenant)?;
    detail(&app, id).await
}

/// Sets up a tenant: the limits replace those it had.
#[utoipa::path(
    put, path = "/ojs/v1/admin/tenants/{id}", operation_id = "admin_put_tenant", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The tenant.")),
    request_body = TenantRequest,
    responses((status = 200, description = "The tenant.", body = TenantDetail)),
)]
pub(crate) async fn put(
    State(app): State<Shared>,
    Segment(id): Segment,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let sent = Fields::read_if_any(&body)?;
    refuse_unsupported(&sent.0)?;
    refuse_unsupported(&sent.object("limits")?.unwrap_or_default())?;
    let TenantRequest { limits } = sent.typed()?;
    set(&app, id, &operator, limits.unwrap_or_default(), "limits").await
}

/// Sets the limits of a tenant in place of those it had.
#[utoipa::path(
    put, path = "/ojs/v1/admin/tenants/{id}/limits", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The tenant.")),
    request_body = LimitsRequest,
    responses((status = 200, description = "The tenant.", body = TenantDetail)),
)]
pub(crate) async fn put_limits(
    State(app): State<Shared>,
    Segment(id): Segment,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let sent = Fields::read(&body)?;
    refuse_unsupported(&sent.0)?;
    set(&app, id, &operator, sent.typed()?, "").await
}

/// Removes the limits of a tenant. Its jobs stay.
#[utoipa::path(
    delete, path = "/ojs/v1/admin/tenants/{id}", operation_id = "admin_delete_tenant", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The tenant.")),
    responses((status = 200, description = "It has no limits.", body = ForgottenTenant)),
)]
pub(crate) async fn forget(State(app): State<Shared>, Segment(id): Segment, operator: Operator) -> Answer {
    if !app.api.store.tenants.forget_limits(&id).await? {
        return Err(OjsError::not_found("tenant with limits", &id).into());
    }
    operator.did("tenant.forget", &id, "done");
    Ok(reply::ok(&ForgottenTenant { deleted: true, tenant_id: id }))
}

/// Lists the jobs of a tenant, by the filters of operators.
#[utoipa::path(
    get, path = "/ojs/v1/admin/tenants/{id}/jobs", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The tenant."),
        ("state" = Option<String>, Query, description = "One of the eight states."),
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("tag" = Option<String>, Query, description = "With this tag."),
        ("agent" = Option<String>, Query, description = "Of this agent."),
        ("error_code" = Option<String>, Query, description = "Only jobs whose last error has this code."),
        ("after" = Option<String>, Query, description = "After the job with this id, in an order by created_at: `next_after` of the part before."),
        ("since" = Option<String>, Query, description = "Accepted then or later, RFC 3339."),
        ("until" = Option<String>, Query, description = "Accepted before then, RFC 3339."),
        ("sort" = Option<String>, Query, description = "created_at unless said otherwise; priority, attempt, scheduled_at or ended_at."),
        ("order" = Option<String>, Query, description = "desc unless said otherwise; or asc."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The jobs.", body = JobPage)),
)]
pub(crate) async fn jobs(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    checked(&id, &tenant)?;
    let filter = JobFilter { tenant: Some(id), ..list_jobs::filter(&params)? };
    list_jobs::answer(&app, &filter, &params).await
}

/// A tenant sees itself only.
fn checked(id: &str, tenant: &Tenant) -> Result<(), OjsError> {
    match tenant.name() {
        Some(name) if name != id => Err(OjsError::not_found("tenant", id)),
        _ => Ok(()),
    }
}

async fn set(app: &App, id: String, operator: &Operator, sent: LimitsRequest, path: &str) -> Answer {
    check_tenant(&id).map_err(|why| OjsError::invalid_request("the tenant", why))?;
    let limits = TenantLimits {
        max_concurrency: sent.max_concurrency,
        max_queue_depth: sent.max_queue_depth,
        max_scheduled: sent.max_scheduled,
        max_enqueue_rate: sent.max_enqueue_rate.map(|rate| rate_of(&rate, path)).transpose()?,
    };
    let (reason, now) = (sent.reason, app.api.clock.now());
    let setup = TenantSetup { tenant: id.clone(), limits, reason, created_at: now, updated_at: now };
    app.api.store.tenants.set_up(setup).await?;
    operator.did("tenant.limits", &id, "set");
    detail(app, id).await
}

fn rate_of(rate: &RawObject, path: &str) -> Result<Rate, OjsError> {
    let path =
        if path.is_empty() { "max_enqueue_rate".to_owned() } else { format!("{path}.max_enqueue_rate") };
    let missing = || OjsError::invalid_request(&format!("{path}.limit"), "is missing");
    read_limit(&path, rate)?.rate.ok_or_else(missing)
}

/// Refuses members of the specification that this server does not support: clients would rely on them otherwise.
fn refuse_unsupported(sent: &RawObject) -> Result<(), OjsError> {
    match ["fairness_weight", "priority_boost"].into_iter().find(|name| sent.given(name).is_some()) {
        None => Ok(()),
        Some(name) => {
            let message =
                format!("{name} of a tenant is not supported; put its queues into a pool by weight.");
            Err(OjsError::unsupported(message).with("field", name))
        }
    }
}

async fn detail(app: &App, id: String) -> Answer {
    let store = &app.api.store;
    let setup = store.tenants.tenant(&id).await?;
    let jobs = StateCounts::of(store.views.counts_of(None, Some(&id)).await?);
    let limits = setup.as_ref().map(|setup| setup.limits.clone()).unwrap_or_default();
    let rate = limits.max_enqueue_rate.map(|Rate { limit, period_ms }| ShownRate { limit, period_ms });
    let detail = TenantDetail {
        id: id.clone(),
        tenant_id: id,
        limits: ShownLimits {
            max_concurrency: limits.max_concurrency,
            max_queue_depth: limits.max_queue_depth,
            max_scheduled: limits.max_scheduled,
            max_enqueue_rate: rate,
        },
        reason: setup.as_ref().and_then(|setup| setup.reason.clone()),
        total_jobs: jobs.total(),
        unfinished_jobs: jobs.unfinished(),
        jobs,
        created_at: setup.as_ref().map(|setup| setup.created_at.to_rfc3339()),
        updated_at: setup.as_ref().map(|setup| setup.updated_at.to_rfc3339()),
    };
    Ok(reply::ok(&detail))
}
