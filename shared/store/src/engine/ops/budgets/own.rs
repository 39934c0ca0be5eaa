//! The budget of one engagement and its delegates.

use super::{raised, resume};
use crate::engine::rows::{budget, get};
use crate::engine::session::{Arg, Args, Row, Session};
use crate::engine::statement::read;
use crate::engine::unit::Unit;
use crate::{OwnBudget, StoreError, sql};
use turnstone_domain::budget::{Amount, Budget, OnExceed};
use turnstone_domain::event::{ChangedBudget, EventBody, Limits};
use turnstone_domain::{EngagementId, JobId, Timestamp};

/// Changes the budget of an engagement.
pub(in crate::engine) async fn set(
    session: &mut Session,
    unit: &mut Unit,
    engagement: &EngagementId,
    tenant: Option<&str>,
    change: &OwnBudget,
    now: Timestamp,
) -> Result<Option<Budget>, StoreError> {
    let (action, values) = ("read a budget", [engagement.as_str().into(), tenant.into()]);
    let decode = |row: &Row| Ok((get::<i64>(row, "seq")?, JobId(get(row, "job_id")?), budget(row)?));
    let found = read(session, action, &sql::SELECT_BUDGET_OF_ENGAGEMENT, &values, decode).await?.pop();
    let Some((seq, job, _)) = found else { return Ok(None) };
    // Every writer locks the job before the budget; that keeps out others who want to change the same.
    let job_seq = unit.read_job(session, &job, None).await?;
    let found = read(session, action, &sql::SELECT_BUDGET_OF_ENGAGEMENT, &values, decode).await?.pop();
    let Some((_, _, before)) = found else { return Ok(None) };
    let tokens = raised(change.tokens.unwrap_or(before.limit), change.raise.tokens);
    let money = raised(change.cost.unwrap_or(before.money.limit), change.raise.cost);
    let on_exceed = change.on_exceed.or(before.on_exceed);
    let row = [
        seq.into(),
        Arg::Int(tokens),
        Arg::Int(money),
        on_exceed.map(OnExceed::as_str).into(),
        Arg::Int(before.warn_at),
    ];
    session.execute("set a budget", &sql::UPDATE_OWN_BUDGET_LIMITS, Args::Values(&row)).await?;
    if let Some(job_seq) = job_seq {
        let limits = |tokens: Option<i64>, money: Option<i64>| {
            Some(Limits {
                tokens,
                tokens_per_day: None,
                cost: money.map(Amount),
                cost_per_day: None,
                on_exceed: None,
            })
        };
        let changed = ChangedBudget {
            subject: engagement.to_string(),
            before: limits(before.limit, before.money.limit),
            after: limits(tokens, money),
        };
        unit.note(job_seq, EventBody::BudgetChanged(changed), now)?;
        unit.distrust(job_seq);
        unit.flush(session).await?;
    }
    resume::open(session, unit, resume::Of::Engagement(seq), now).await?;
    let after = read(session, action, &sql::SELECT_BUDGET_OF_ENGAGEMENT, &values, budget).await?;
    Ok(after.into_iter().next())
}
