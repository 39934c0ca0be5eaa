//! `/ojs/v1/rate-limits` (OJS rate limiting): the limits that jobs name, their usage, and an operator's own. Each
//! tenant has keys of its own: the header `X-OJS-Tenant` selects the tenant.

use crate::api::Shared;
use crate::parts::SlicePosition;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Params, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::Timestamp;
use turnstone_domain::terms::RateLimit;
use turnstone_ojs::{Fields, LimitRequest, OjsError, read_limit};
use turnstone_store::{Limit, Page};
use utoipa::ToSchema;

/// A limit and its usage.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct LimitReply {
    /// The key.
    #[schema(example = "stripe")]
    pub key: String,
    /// The tenant of the key; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant_id: Option<String>,
    /// Jobs that run under it.
    pub concurrency: Concurrency,
    /// null when starts per period are not limited.
    rate: Option<RateUse>,
    /// The least time between two starts; null when there is none.
    throttle_ms: Option<i64>,
    /// The same, with the time of the next start; null when there is none.
    throttle: Option<ThrottleUse>,
    /// Available jobs that name it.
    pub waiting_count: i64,
    /// True if an operator's limit replaces the one that jobs name.
    overridden: bool,
}

/// Jobs that run under a limit.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Concurrency {
    /// null when it is not limited.
    pub limit: Option<i64>,
    /// How many run.
    pub active: i64,
    /// How many more may start; null when it is not limited.
    available: Option<i64>,
}

/// Jobs that started under a limit.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct RateUse {
    limit: i64,
    period_ms: i64,
    /// The starts in the current window.
    current_count: i64,
    remaining: i64,
    /// The end of the window, RFC 3339.
    resets_at: String,
    /// The same.
    window_resets_at: String,
}

/// Starts that are kept apart.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ThrottleUse {
    interval_ms: i64,
    /// RFC 3339.
    next_allowed_at: String,
}

impl LimitReply {
    fn of(limit: Limit, now: Timestamp) -> Self {
        let available = limit.concurrency.map(|most| (most - limit.active).max(0));
        let rate = limit.rate.zip(limit.window(now)).map(|(rate, (remaining, resets_at))| RateUse {
            limit: rate.limit,
            period_ms: rate.period_ms,
            current_count: rate.limit - remaining,
            remaining,
            resets_at: resets_at.to_rfc3339(),
            window_resets_at: resets_at.to_rfc3339(),
        });
        Self {
            concurrency: Concurrency { limit: limit.concurrency, active: limit.active, available },
            rate,
            throttle_ms: limit.throttle_ms,
            throttle: limit.throttle_ms.map(|interval_ms| ThrottleUse {
                interval_ms,
                next_allowed_at: limit.next_at.max(now).to_rfc3339(),
            }),
            waiting_count: limit.waiting,
            overridden: limit.overridden,
            tenant_id: limit.tenant,
            key: limit.name,
        }
    }
}

/// Limits by key.
#[derive(Serialize, ToSchema)]
pub(super) struct LimitList {
    rate_limits: Vec<LimitReply>,
    pagination: SlicePosition,
}

/// Lists the limits that jobs have named, by key.
#[utoipa::path(
    get, path = "/ojs/v1/rate-limits", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise, at most 200.", minimum = 1, maximum = 200),
        ("offset" = Option<u32>, Query, description = "After this many."),
    ),
    responses((status = 200, description = "The limits.", body = LimitList)),
)]
pub(crate) async fn list_limits(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let page =
        Page { limit: params.number("limit", 50, 1, 200)?, offset: params.number("offset", 0, 0, u32::MAX)? };
    let (limits, total) = app.api.store.queues.limits(tenant.name(), page).await?;
    let pagination = SlicePosition::of(total, page, limits.len());
    let now = app.api.clock.now();
    let rate_limits = limits.into_iter().map(|limit| LimitReply::of(limit, now)).collect();
    Ok(reply::ok(&LimitList { rate_limits, pagination }))
}

async fn reply(app: &Shared, tenant: &Tenant, key: &str) -> Answer {
    let found = app.api.store.queues.limit(tenant.name(), key).await?;
    let limit = found.ok_or_else(|| OjsError::not_found("rate limit", key))?;
    Ok(reply::ok(&LimitReply::of(limit, app.api.clock.now())))
}

/// Shows a limit. It is known as soon as a job that names it was accepted.
#[utoipa::path(
    get, path = "/ojs/v1/rate-limits/{key}", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(("key" = String, Path, description = "The key.", example = "stripe")),
    responses((status = 200, description = "The limit.", body = LimitReply)),
)]
pub(crate) async fn show_limit(State(app): State<Shared>, tenant: Tenant, Segment(key): Segment) -> Answer {
    reply(&app, &tenant, &key).await
}

/// Puts a limit in place of the one that jobs name, until it is deleted.
#[utoipa::path(
    put, path = "/ojs/v1/rate-limits/{key}", tag = "queues",
    security(("tenant" = ["operator"])),
    params(("key" = String, Path, description = "The key.", example = "stripe")),
    request_body = LimitRequest,
    responses((status = 200, description = "It stands.", body = LimitReply)),
)]
pub(crate) async fn override_limit(
    State(app): State<Shared>,
    tenant: Tenant,
    Segment(key): Segment,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let limit = read(&key, &body)?;
    app.api.store.queues.override_limit(tenant.name(), &key, Some(limit)).await?;
    reply(&app, &tenant, &key).await
}

/// Removes an operator's limit: the one that jobs name applies again.
#[utoipa::path(
    delete, path = "/ojs/v1/rate-limits/{key}", tag = "queues",
    security(("tenant" = ["operator"])),
    params(("key" = String, Path, description = "The key.", example = "stripe")),
    responses((status = 200, description = "The limit that jobs name counts.", body = LimitReply)),
)]
pub(crate) async fn restore_limit(
    State(app): State<Shared>,
    tenant: Tenant,
    Segment(key): Segment,
) -> Answer {
    app.api.store.queues.override_limit(tenant.name(), &key, None).await?;
    reply(&app, &tenant, &key).await
}

fn read(key: &str, body: &[u8]) -> Result<RateLimit, Failure> {
    if key.chars().count() > 256 || key.chars().any(char::is_control) {
        let why = "must have 1 to 256 characters, none of them a control character";
        return Err(OjsError::invalid_request("the key", why).into());
    }
    let limit = read_limit("", &Fields::read(body)?.0)?;
    if limit.concurrency.is_none() && limit.rate.is_none() && limit.throttle_ms.is_none() {
        let why = "limits nothing; give concurrency, rate or throttle";
        return Err(OjsError::invalid_request("the limit", why).into());
    }
    Ok(limit)
}
