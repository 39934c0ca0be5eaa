//! Who is told of events, and what became of it: the writes.

use super::super::columns::Columns;
use super::super::rows;
use super::super::session::{Arg, Args, Session, limit as row_limit};
use super::super::statement::{Writes, as_json, read};
use super::super::unit::Unit;
use super::leader;
use crate::{Ring, StoreError, Taking, Term, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::feed::Cursor;
use turnstone_domain::webhook::{
    AfterAttempt, Attempted, Delivery, DeliveryState, NewDelivery, Webhook, WebhookChange,
};

/// The name of the mark that says how far events are told.
pub(in super::super) const MARK: &str = "webhooks";

pub(in super::super) async fn create(
    session: &mut Session,
    unit: &mut Unit,
    new: &Webhook,
) -> Result<(), StoreError> {
    unit.rings.push(Ring::Due);
    let (events, filter, metadata) = (as_json(&new.events)?, as_json(&new.filter)?, as_json(&new.metadata)?);
    let values = [
        new.id.as_str().into(),
        new.tenant.as_deref().into(),
        new.url.as_str().into(),
        events.as_str().into(),
        filter.as_str().into(),
        metadata.as_str().into(),
        new.secret.0.as_str().into(),
        i64::from(new.active).into(),
        new.created_at.0.into(),
    ];
    session.execute("make a webhook", &sql::INSERT_WEBHOOK, Args::Values(&values)).await.map(|_| ())
}

pub(in super::super) async fn change(
    session: &mut Session,
    unit: &mut Unit,
    (id, tenant): (&str, Option<&str>),
    change: &WebhookChange,
    now: Timestamp,
) -> Result<Option<Webhook>, StoreError> {
    unit.rings.push(Ring::Due);
    let values = [id.into(), tenant.into()];
    let mut found = read(session, "read a webhook", &sql::LOCK_WEBHOOK, &values, rows::webhook).await?;
    let Some(mut webhook) = found.pop() else { return Ok(None) };
    let WebhookChange { url, events, filter, metadata, active, secret } = change.clone();
    webhook.url = url.unwrap_or(webhook.url);
    webhook.events = events.unwrap_or(webhook.events);
    webhook.filter = filter.unwrap_or(webhook.filter);
    webhook.metadata = metadata.unwrap_or(webhook.metadata);
    webhook.active = active.unwrap_or(webhook.active);
    if let Some((secret, until)) = secret {
        webhook.old_secret = (until > now).then(|| (webhook.secret.clone(), until));
        webhook.secret = secret;
    }
    webhook.updated_at = now;
    let (events, filter, metadata) =
        (as_json(&webhook.events)?, as_json(&webhook.filter)?, as_json(&webhook.metadata)?);
    let (old_secret, old_until) =
        webhook.old_secret.as_ref().map(|(s, until)| (s.0.as_str(), until.0)).unzip();
    let values = [
        id.into(),
        webhook.url.as_str().into(),
        events.as_str().into(),
        filter.as_str().into(),
        metadata.as_str().into(),
        webhook.secret.0.as_str().into(),
        old_secret.into(),
        Arg::Int(old_until),
        i64::from(webhook.active).into(),
        now.0.into(),
    ];
    session.execute("change a webhook", &sql::UPDATE_WEBHOOK, Args::Values(&values)).await?;
    Ok(Some(webhook))
}

pub(in super::super) async fn delete(
    session: &mut Session,
    id: &str,
    tenant: Option<&str>,
) -> Result<bool, StoreError> {
    let values = [id.into(), tenant.into()];
    if session.execute("delete a webhook", &sql::DELETE_WEBHOOK, Args::Values(&values)).await? == 0 {
        return Ok(false);
    }
    let (action, text) = ("delete a webhook's deliveries", &sql::DELETE_DELIVERIES_OF_WEBHOOK);
    session.execute(action, text, Args::Values(&[id.into()])).await?;
    Ok(true)
}

/// Adds a delivery.
pub(in super::super) async fn deliver(
    session: &mut Session,
    unit: &mut Unit,
    new: &NewDelivery,
) -> Result<(), StoreError> {
    unit.rings.push(Ring::Due);
    insert(session, std::slice::from_ref(new)).await
}

/// Posts a delivery again; returns whether there is one.
pub(in super::super) async fn redeliver(
    session: &mut Session,
    unit: &mut Unit,
    webhook: &str,
    delivery: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    unit.rings.push(Ring::Due);
    let values = [delivery.into(), webhook.into(), now.0.into()];
    let (action, text) = ("post a delivery anew", &sql::UPDATE_REPEATED_DELIVERY);
    Ok(session.execute(action, text, Args::Values(&values)).await? > 0)
}

/// Moves the mark and adds the deliveries of the events in between; returns whether the mark stood at `from`.
pub(in super::super) async fn fan_out(
    session: &mut Session,
    term: &Term,
    (from, to): (Cursor, Cursor),
    deliveries: &[NewDelivery],
) -> Result<Result<bool, StoreError>, StoreError> {
    if !leader::holds(session, term).await? {
        return Ok(Err(StoreError::Deposed));
    }
    let moved = move_mark(session, from, to).await?;
    if moved {
        insert(session, deliveries).await?;
    }
    Ok(Ok(moved))
}

async fn insert(session: &mut Session, new: &[NewDelivery]) -> Result<(), StoreError> {
    let rows: Vec<_> = new
        .iter()
        .map(|new| {
            let (id, webhook, event_id) = (new.id.clone(), new.webhook_id.clone(), new.event_id.clone());
            (id, webhook, event_id, new.event.clone(), new.body.clone(), new.created_at)
        })
        .collect();
    let mut writes = Writes::default();
    // A webhook may have been deleted since it was read.
    writes.if_new("write deliveries", &sql::INSERT_DELIVERIES, rows);
    writes.run(session).await
}

async fn move_mark(session: &mut Session, from: Cursor, to: Cursor) -> Result<bool, StoreError> {
    let values = [
        MARK.into(),
        from.tx.into(),
        from.stream.into(),
        from.seq.into(),
        to.tx.into(),
        to.stream.into(),
        to.seq.into(),
    ];
    let (action, text) = ("move the mark of webhooks", &sql::INSERT_EVENT_MARK);
    Ok(session.execute(action, text, Args::Values(&values)).await? > 0)
}

pub(in super::super) async fn take(
    session: &mut Session,
    term: &Term,
    taking: &Taking,
    now: Timestamp,
) -> Result<Result<Vec<Delivery>, StoreError>, StoreError> {
    if !leader::holds(session, term).await? {
        return Ok(Err(StoreError::Deposed));
    }
    let busy = format!(",{},", taking.busy.join(","));
    let values = [
        now.0.into(),
        row_limit(taking.limit).into(),
        row_limit(taking.per_webhook).into(),
        busy.as_str().into(),
    ];
    let (action, text) = ("look for due deliveries", &sql::SELECT_DUE_DELIVERIES);
    let mut due = read(session, action, text, &values, rows::delivery).await?;
    if due.is_empty() {
        return Ok(Ok(due));
    }
    let keys = Columns::of(due.iter().map(|delivery| (delivery.id.clone(),)).collect());
    let args = Args::Rows(keys, &[Arg::Int(Some(taking.until.0))]);
    session.execute("take deliveries", &sql::UPDATE_TAKEN_DELIVERIES, args).await?;
    for delivery in &mut due {
        delivery.attempts += 1;
        delivery.next_at = Some(taking.until);
    }
    Ok(Ok(due))
}

pub(in super::super) async fn settle(
    session: &mut Session,
    (delivery, attempt): (&str, i64),
    webhook: &str,
    attempted: &Attempted,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (state, next_at) = match attempted.next {
        AfterAttempt::Delivered => (DeliveryState::Delivered, None),
        AfterAttempt::Again(at) => (DeliveryState::Pending, Some(at.0)),
        AfterAttempt::GiveUp | AfterAttempt::Gone => (DeliveryState::Failed, None),
    };
    let ended_at = (state != DeliveryState::Pending).then_some(now.0);
    let values = [
        delivery.into(),
        attempt.into(),
        state.as_str().into(),
        Arg::Int(next_at),
        Arg::Int(attempted.status),
        attempted.error.as_deref().into(),
        Arg::Int(ended_at),
    ];
    let changed =
        session.execute("settle a delivery", &sql::UPDATE_SETTLED_DELIVERY, Args::Values(&values)).await? > 0;
    if changed && attempted.next == AfterAttempt::Gone {
        let values = [webhook.into(), now.0.into()];
        session.execute("end a webhook", &sql::UPDATE_GONE_WEBHOOK, Args::Values(&values)).await?;
    }
    Ok(changed)
}
