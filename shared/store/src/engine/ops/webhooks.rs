//! The writes of webhooks and their deliveries.

use super::super::rows::{self, WebhookRow};
use super::super::session::{Arg, Args, Session, limit as row_limit};
use super::super::statement::{Writes, execute, read, read_readable};
use super::super::unit::Unit;
use super::{has_room, leader};
use crate::{Ring, StoreError, Taking, Term, sql};
use serde_json::json;
use turnstone_domain::feed::Cursor;
use turnstone_domain::webhook::{
    AfterAttempt, Attempted, Delivery, DeliveryState, NewDelivery, Webhook, WebhookChange,
};
use turnstone_domain::{Timestamp, digest};

/// The name of the mark up to which events are published to webhooks.
pub(in super::super) const MARK: &str = "webhooks";

pub(in super::super) async fn create(
    session: &mut Session,
    unit: &mut Unit,
    new: &Webhook,
    most: u32,
) -> Result<(), StoreError> {
    has_room(session, "webhooks", (&sql::SELECT_WEBHOOK_COUNT, new.tenant.as_deref()), most).await?;
    unit.rings.push(Ring::Due);
    let rows = vec![WebhookRow::of(new)];
    execute(session, "make a webhook", &sql::INSERT_WEBHOOK, rows, &[]).await.map(|_| ())
}

/// Changes a webhook. `before` receives the digest of its former settings.
pub(in super::super) async fn change(
    session: &mut Session,
    unit: &mut Unit,
    (id, tenant): (&str, Option<&str>),
    (change, before): (&WebhookChange, &mut Option<String>),
    now: Timestamp,
) -> Result<Option<Webhook>, StoreError> {
    unit.rings.push(Ring::Due);
    let values = [id.into(), tenant.into()];
    let mut found =
        read(session, "read a webhook", &sql::LOCK_WEBHOOK, &values, rows::decode::<Webhook>).await?;
    let Some(mut webhook) = found.pop() else { return Ok(None) };
    let settings = json!([webhook.url, webhook.events, webhook.filter, webhook.metadata, webhook.active]);
    *before = Some(digest::of_json(&settings));
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
    let rows = vec![WebhookRow::of(&webhook)];
    execute(session, "change a webhook", &sql::UPDATE_WEBHOOK, rows, &[]).await?;
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

/// Moves the mark and adds the deliveries of the events in between; returns true when the mark was at `from`.
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
    let delivery = |new: &NewDelivery| Delivery {
        id: new.id.clone(),
        webhook_id: new.webhook_id.clone(),
        event_id: new.event_id.clone(),
        event: new.event.clone(),
        body: new.body.clone(),
        state: DeliveryState::Pending,
        attempts: 0,
        next_at: Some(new.created_at),
        status: None,
        error: None,
        created_at: new.created_at,
        ended_at: None,
    };
    let rows = new.iter().map(delivery).collect();
    let mut writes = Writes::default();
    // A webhook may have been deleted since it was read.
    writes.some("write deliveries", &sql::INSERT_DELIVERIES, rows);
    writes.run(session).await
}

async fn move_mark(session: &mut Session, from: Cursor, to: Cursor) -> Result<bool, StoreError> {
    let values = [
        MARK.into(),
        from.number.into(),
        from.stream.into(),
        from.seq.into(),
        to.number.into(),
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
    let mut due = read_readable(session, action, text, &values, rows::decode::<Delivery>).await?;
    if due.is_empty() {
        return Ok(Ok(due));
    }
    let keys: Vec<String> = due.iter().map(|delivery| delivery.id.clone()).collect();
    let until = [taking.until.0.into()];
    execute(session, "take deliveries", &sql::UPDATE_TAKEN_DELIVERIES, keys, &until).await?;
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
