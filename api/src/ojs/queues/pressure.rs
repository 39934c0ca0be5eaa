//! Headers about the queue and the limit in the response to an accepted job (OJS backpressure, OJS rate limiting).

use crate::api::App;
use crate::reply::Failure;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use turnstone_domain::terms::RateLimit;
use turnstone_domain::{Terms, Timestamp};
use turnstone_store::{Limit, Pressure, Pushed};

const QUEUE_PRESSURE: HeaderName = HeaderName::from_static("x-ojs-queue-pressure");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Adds the depth of the queue, when its operator wants clients to receive it, and the usage of the job's limit, if it
/// names one. The usage is the limit, the starts that are left now, and the end of the window (Unix seconds).
pub(crate) async fn add_headers(
    app: &App,
    headers: &mut HeaderMap,
    (queue, terms): (&str, &Terms),
    pushed: &Pushed,
) -> Result<(), Failure> {
    if let Some(Pressure { depth, bound }) = pushed.pressure {
        let value = bound.map_or_else(|| depth.to_string(), |bound| format!("{depth}/{bound}"));
        headers.extend(HeaderValue::try_from(value).ok().map(|value| (QUEUE_PRESSURE, value)));
    }
    let Some(limit) = &terms.rate_limit else { return Ok(()) };
    let queues = &app.api.store.queues;
    let known = match &limit.key {
        Some(key) => queues.limit(terms.tenant.as_deref(), key).await?,
        None => queues.limit_of_queue(queue).await?,
    };
    let (most, remaining, reset) = left(known.as_ref(), limit, app.api.clock.now());
    for (name, value) in [(LIMIT, most), (REMAINING, remaining), (RESET, reset)] {
        headers.insert(name, HeaderValue::from(value));
    }
    Ok(())
}

/// Returns the limit, the starts that are left at `now`, and the end of the window. The scarcest limit counts.
fn left(known: Option<&Limit>, requested: &RateLimit, now: Timestamp) -> (i64, i64, i64) {
    let seconds = |at: Timestamp| at.0.div_euclid(1_000) + i64::from(at.0.rem_euclid(1_000) > 0);
    let Some(limit) = known else {
        let most = requested.rate.map(|rate| rate.limit).or(requested.concurrency).unwrap_or(1);
        return (most, most, seconds(now));
    };
    let free = limit.concurrency.map(|most| (most, (most - limit.active).max(0), now));
    let rate = limit.rate.zip(limit.window(now)).map(|(rate, (left, at))| (rate.limit, left, at));
    let throttle = limit.throttle_ms.map(|_| (1, i64::from(limit.next_at <= now), limit.next_at.max(now)));
    let scarcest = [free, rate, throttle].into_iter().flatten().min_by_key(|(_, left, _)| *left);
    let (most, left, at) = scarcest.unwrap_or((1, 1, now));
    (most, left, seconds(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::terms::Rate;

    #[test]
    fn what_is_scarcest_counts() {
        let now = Timestamp(10_500);
        let mut limit = Limit {
            name: "k".to_owned(),
            tenant: None,
            overridden: false,
            concurrency: Some(5),
            rate: Some(Rate { limit: 10, period_ms: 2_000 }),
            throttle_ms: None,
            active: 2,
            waiting: 0,
            window_at: Timestamp(10_000),
            started: 4,
            next_at: Timestamp(0),
        };
        let requested = RateLimit { concurrency: Some(7), ..RateLimit::default() };
        assert_eq!(left(Some(&limit), &requested, now), (5, 3, 11));
        limit.started = 10;
        assert_eq!(left(Some(&limit), &requested, now), (10, 0, 12));
        limit.window_at = Timestamp(8_000);
        assert_eq!(left(Some(&limit), &requested, now), (5, 3, 11), "the window is over");
        limit.throttle_ms = Some(700);
        limit.next_at = Timestamp(11_200);
        assert_eq!(left(Some(&limit), &requested, now), (1, 0, 12));
        assert_eq!(left(None, &requested, now), (7, 7, 11));
    }
}
