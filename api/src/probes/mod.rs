//! Probes for supervisors and load balancers: neither needs a key.

pub(crate) mod livez;
mod readyz;
pub(crate) mod routes;

pub(crate) use readyz::readiness;

use crate::outage::store_failed;
use crate::reply;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use std::time::{Duration, Instant};
use turnstone_store::Views;
use utoipa::ToSchema;

/// A store that has not answered after this time is unhealthy.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// A status, in one word.
#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    #[schema(example = "ok")]
    status: &'static str,
}

/// Returns 200 if the store answers, else 503. `body` receives that result and the milliseconds that the store took.
pub(crate) async fn about_the_store<T: Serialize>(
    views: &Views,
    body: impl FnOnce(bool, u64) -> T,
) -> Response {
    let requested = Instant::now();
    let answers = store_answers(views).await;
    let took_ms = u64::try_from(requested.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = if answers { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    reply::json(status, &body(answers, took_ms))
}

/// Returns true if the store answers within the probe's time limit.
async fn store_answers(views: &Views) -> bool {
    match tokio::time::timeout(PING_TIMEOUT, views.check()).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            store_failed!(warn, error, "not ready: the store fails");
            false
        }
        Err(waited) => {
            store_failed!(warn, waited, "not ready: the store did not answer in time");
            false
        }
    }
}
