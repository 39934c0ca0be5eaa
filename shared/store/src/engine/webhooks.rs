//! Webhooks: the subscribers to events, and the outcome of each delivery.

use super::Engine;
use super::ops::webhooks::{self as ops, MARK};
use super::rows::{decode, get};
use super::session::{Arg, Args};
use super::statement::decode_all;
use super::views::{all, many};
use crate::{Page, StoreError, Term, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::feed::Cursor;
use turnstone_domain::webhook::{Attempted, Delivery, DeliveryState, NewDelivery, Webhook, WebhookChange};

/// The scheduler's request for deliveries to post.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taking {
    /// No scheduler takes these deliveries again before this time. If this scheduler dies, they are posted again
    /// after it.
    pub until: Timestamp,
    /// At most this many deliveries.
    pub limit: usize,
    /// At most this many of one webhook, so that a slow receiver does not take all the room.
    pub per_webhook: usize,
    /// None of these webhooks': they have enough under way.
    pub busy: Vec<String>,
}

/// The handle for webhooks and their deliveries. `tenant` limits each call to that tenant's; `None` means any
/// tenant.
#[derive(Clone)]
pub struct Webhooks(pub(super) Arc<Engine>);

impl Webhooks {
    /// Makes a webhook. It receives events from now on; the store chooses its `since` and `updated_at`.
    /// A tenant has at most `most` webhooks.
    #[boxed]
    pub async fn create_webhook(&self, new: Webhook, most: u32) -> Result<(), StoreError> {
        // It receives what is numbered from now on.
        self.0.number_commits().await?;
        let requested = (new, most);
        self.0
            .write(requested, |tx, (new, most)| {
                Box::pin(ops::create(&mut tx.session, &mut tx.unit, new, *most))
            })
            .await
    }

    /// All webhooks, oldest first.
    #[boxed]
    pub async fn webhooks(&self, tenant: Option<&str>) -> Result<Vec<Webhook>, StoreError> {
        self.list(None, tenant, None).await
    }

    /// One webhook.
    #[boxed]
    pub async fn webhook(&self, id: &str, tenant: Option<&str>) -> Result<Option<Webhook>, StoreError> {
        Ok(self.list(Some(id), tenant, None).await?.pop())
    }

    /// Changes a webhook and returns it as it is then.
    #[boxed]
    pub async fn change_webhook(
        &self,
        id: &str,
        tenant: Option<&str>,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        self.0.number_commits().await?;
        let requested = (id.to_owned(), tenant.map(str::to_owned), change, now);
        self.0
            .write(requested, |tx, (id, tenant, change, now)| {
                let before = &mut tx.before;
                let of = (id.as_str(), tenant.as_deref());
                Box::pin(ops::change(&mut tx.session, &mut tx.unit, of, (change, before), *now))
            })
            .await
    }

    /// Deletes a webhook with its deliveries; `false` when there is none.
    #[boxed]
    pub async fn delete_webhook(&self, id: &str, tenant: Option<&str>) -> Result<bool, StoreError> {
        self.0
            .write((id.to_owned(), tenant.map(str::to_owned)), |tx, (id, tenant)| {
                Box::pin(ops::delete(&mut tx.session, id, tenant.as_deref()))
            })
            .await
    }

    /// Deliveries of a webhook, newest first, and how many there are in this state.
    #[boxed]
    pub async fn deliveries(
        &self,
        webhook: &str,
        state: Option<DeliveryState>,
        page: Page,
        after: Option<&str>,
    ) -> Result<(Vec<Delivery>, u64), StoreError> {
        let state = state.map(DeliveryState::as_str);
        let values = [webhook.into(), state.into()];
        let (action, text) = ("count deliveries", &sql::SELECT_DELIVERY_COUNTS);
        let counted = self.0.readers.read(action, text, Args::Values(&values)).await?;
        let total = decode_all(&counted, |row| get::<i64>(row, "deliveries"))?;
        let (most, offset) = (page.limit.into(), page.offset.into());
        let values = [webhook.into(), state.into(), Arg::Text(None), most, offset, after.into()];
        let (action, text) = ("list deliveries", &sql::SELECT_DELIVERIES);
        let found = many(&self.0.readers, action, text, &values, decode).await?;
        Ok((found, total.into_iter().next().unwrap_or_default().unsigned_abs()))
    }

    /// Makes a delivery that no event brought about.
    #[boxed]
    pub async fn deliver(&self, new: NewDelivery) -> Result<(), StoreError> {
        self.0.write(new, |tx, new| Box::pin(ops::deliver(&mut tx.session, &mut tx.unit, new))).await
    }

    /// A delivery is posted anew, under the id that it has; `None` when there is none.
    #[boxed]
    pub async fn redeliver(
        &self,
        webhook: &str,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        let requested = (webhook.to_owned(), id.to_owned(), now);
        let posted = self.0.write(requested, |tx, (webhook, delivery, now)| {
            Box::pin(ops::redeliver(&mut tx.session, &mut tx.unit, webhook, delivery, *now))
        });
        if !posted.await? {
            return Ok(None);
        }
        let (none, one) = (Arg::Text(None), 1_i64.into());
        let values = [webhook.into(), Arg::Text(None), id.into(), one, 0_i64.into(), none];
        let (action, text) = ("read a delivery", &sql::SELECT_DELIVERIES);
        let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
        Ok(decode_all(&rows, decode)?.pop())
    }

    /// Returns the webhooks that receive events.
    #[boxed]
    pub async fn active_webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.list(None, None, Some(1)).await
    }

    /// Returns the position up to which events are published to webhooks.
    #[boxed]
    pub async fn webhook_mark(&self) -> Result<Cursor, StoreError> {
        let values = [MARK.into()];
        let (action, text) = ("read the mark of webhooks", &sql::SELECT_EVENT_MARK);
        let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
        let marks = decode_all(&rows, |row| {
            let (number, stream, seq) = (get(row, "number")?, get(row, "stream")?, get(row, "seq")?);
            Ok(Cursor { number, commit: 0, stream, seq })
        })?;
        Ok(marks.into_iter().next().unwrap_or_default())
    }

    /// Events from `from` to `to` become these deliveries; the mark moves in the same transaction. `false`, and nothing
    /// is written, when the mark is at another position by now.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended.
    #[boxed]
    pub async fn fan_out(
        &self,
        term: &Term,
        from: Cursor,
        to: Cursor,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreError> {
        self.0
            .write((term.clone(), from, to, deliveries), |tx, (term, from, to, deliveries)| {
                Box::pin(ops::fan_out(&mut tx.session, term, (*from, *to), deliveries))
            })
            .await?
    }

    /// Takes deliveries that are due, each with one more attempt. The caller posts them and settles them.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended.
    #[boxed]
    pub async fn take_deliveries(
        &self,
        term: &Term,
        taking: Taking,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.0
            .write((term.clone(), taking, now), |tx, (term, taking, now)| {
                Box::pin(ops::take(&mut tx.session, term, taking, *now))
            })
            .await?
    }

    /// Records the outcome of an attempt. Changes nothing when another attempt of it has begun, or it is gone.
    #[boxed]
    pub async fn settle_delivery(
        &self,
        delivery: &Delivery,
        attempted: Attempted,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let requested = (delivery.id.clone(), delivery.attempts, delivery.webhook_id.clone(), attempted, now);
        self.0
            .write(requested, |tx, (delivery, attempt, webhook, attempted, now)| {
                Box::pin(ops::settle(&mut tx.session, (delivery, *attempt), webhook, attempted, *now))
            })
            .await
            .map(|_| ())
    }

    /// When the next delivery is due.
    #[boxed]
    pub async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        let (action, text) = ("look for the next delivery", &sql::SELECT_NEXT_DELIVERY);
        let rows = self.0.readers.read(action, text, Args::Values(&[])).await?;
        let due = decode_all(&rows, |row| get::<Option<i64>>(row, "due"))?;
        Ok(due.into_iter().flatten().next().map(Timestamp))
    }

    async fn list(
        &self,
        id: Option<&str>,
        tenant: Option<&str>,
        active: Option<i64>,
    ) -> Result<Vec<Webhook>, StoreError> {
        let values = [id.into(), tenant.into(), Arg::Int(active)];
        let (action, text) = ("list webhooks", &sql::SELECT_WEBHOOKS);
        match id {
            Some(_) => all(&self.0.readers, action, text, &values, decode).await,
            None => many(&self.0.readers, action, text, &values, decode).await,
        }
    }
}
