//! Circuit breakers: the writes. Each is decided by its statement, so that processes need not agree beforehand.

use super::super::rows::{Fields, Inconsistency, get, time_or_none};
use super::super::session::{Args, Session};
use super::super::statement::read;
use crate::breakers::{BreakerKey, Passage, Trouble};
use crate::{StoreError, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::agent::errors::Breaker;

/// How long a call waits before it asks again whether it may find out if all is well.
const PROBED_MS: i64 = 1000;

/// What is asked.
pub(in super::super) enum Request {
    Pass { key: BreakerKey, rule: Breaker, now: Timestamp },
    Failed { key: BreakerKey, rule: Breaker, now: Timestamp },
    Succeeded { key: BreakerKey, rule: Breaker, probe: bool, now: Timestamp },
    NotMade { key: BreakerKey, now: Timestamp },
    Reset { key: BreakerKey },
}

/// What came of it.
pub(in super::super) enum Answer {
    Passage(Passage),
    /// Until when the breaker is open.
    Noted(Option<Timestamp>),
    /// Whether it was not well.
    Reset(bool),
}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    request: &Request,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Pass { key, rule, now } => Answer::Passage(pass(session, key, rule, *now).await?),
        Request::Failed { key, rule, now } => {
            let reopen = now.plus_ms(milliseconds(rule.timeout_ms)).0;
            let threshold = i64::from(rule.failure_threshold.max(1));
            let values = [key.as_str().into(), now.0.into(), reopen.into(), threshold.into()];
            let rows = read(session, "note a failure", &sql::BREAKER_FAILED, &values, trouble).await?;
            Answer::Noted(rows.first().and_then(|row| row.open_until))
        }
        Request::Succeeded { key, rule, probe, now } => {
            succeeded(session, key, rule, *probe, *now).await?;
            Answer::Noted(None)
        }
        Request::NotMade { key, now } => {
            let values = [key.as_str().into(), now.0.into()];
            session.execute("give a probe back", &sql::BREAKER_GIVE_BACK, Args::Values(&values)).await?;
            Answer::Noted(None)
        }
        Request::Reset { key } => {
            let values = [key.as_str().into()];
            Answer::Reset(
                session.execute("reset a breaker", &sql::BREAKER_RESET, Args::Values(&values)).await? > 0,
            )
        }
    })
}

async fn pass<S: Session>(
    session: &mut S,
    key: &BreakerKey,
    rule: &Breaker,
    now: Timestamp,
) -> Result<Passage, StoreError> {
    let values = [key.as_str().into()];
    let rows = read(session, "read a breaker", &sql::BREAKER_TO_PASS, &values, trouble).await?;
    let Some(until) = rows.first().and_then(|row| row.open_until) else { return Ok(Passage::Free) };
    if now < until {
        return Ok(Passage::Refused { until });
    }
    // A probe that was never heard of again, because its process died, is let through anew after the timeout.
    let forgotten = now.plus_ms(-milliseconds(rule.timeout_ms)).0;
    let most = i64::from(rule.half_open_requests.max(1));
    let values = [key.as_str().into(), now.0.into(), most.into(), forgotten.into()];
    let written = session.execute("pass a breaker", &sql::BREAKER_PROBE, Args::Values(&values)).await?;
    Ok(if written > 0 { Passage::Probe } else { Passage::Refused { until: now.plus_ms(PROBED_MS) } })
}

async fn succeeded<S: Session>(
    session: &mut S,
    key: &BreakerKey,
    rule: &Breaker,
    probe: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let most = i64::from(rule.half_open_requests.max(1));
    if probe {
        let values = [key.as_str().into(), now.0.into()];
        session.execute("count a probe", &sql::BREAKER_SUCCEEDED, Args::Values(&values)).await?;
    }
    let values = [key.as_str().into(), most.into()];
    session.execute("close a breaker", &sql::BREAKER_CLOSE, Args::Values(&values)).await.map(|_| ())
}

fn milliseconds(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

pub(in super::super) fn trouble(row: &impl Fields) -> Result<Trouble, Inconsistency> {
    Ok(Trouble {
        key: BreakerKey::of(get(row, "name")?),
        failures: get(row, "failures")?,
        open_until: time_or_none(row, "open_until")?,
    })
}
