//! Who is told of events, and what became of it: the calls.

use super::Engine;
use super::ops::webhooks::{Answer, MARK, Request};
use super::rows::{delivery, get, maybe, webhook};
use super::session::{Arg, Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer as Answered, Request as Asked};
use crate::{Page, StoreError, Taking, Term, Webhooks, sql};
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::feed::Cursor;
use turnstone_domain::webhook::{Attempted, Delivery, DeliveryState, NewDelivery, Webhook, WebhookChange};

impl<R: Reader> Engine<R> {
    async fn of_webhooks(&self, request: Request) -> Result<Answer, StoreError> {
        match self.request(Asked::Webhooks(Box::new(request))).await? {
            Answered::Webhooks(answer) => Ok(answer),
            _ => Err(StoreError::Closed),
        }
    }

    async fn changed(&self, request: Request) -> Result<bool, StoreError> {
        match self.of_webhooks(request).await? {
            Answer::Changed(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }

    async fn list(
        &self,
        id: Option<&str>,
        tenant: Option<&str>,
        active: Option<i64>,
    ) -> Result<Vec<Webhook>, StoreError> {
        let values = [id.into(), tenant.into(), Arg::Int(active)];
        let rows = self.readers.read("list webhooks", &sql::SELECT_WEBHOOKS, Args::Values(&values)).await?;
        decode_all(&rows, webhook)
    }
}

#[async_trait]
impl<R: Reader> Webhooks for Engine<R> {
    async fn create_webhook(&self, new: Webhook) -> Result<(), StoreError> {
        self.changed(Request::Create(Box::new(new))).await.map(|_| ())
    }

    async fn webhooks(&self, tenant: Option<&str>) -> Result<Vec<Webhook>, StoreError> {
        self.list(None, tenant, None).await
    }

    async fn webhook(&self, id: &str, tenant: Option<&str>) -> Result<Option<Webhook>, StoreError> {
        Ok(self.list(Some(id), tenant, None).await?.pop())
    }

    async fn change_webhook(
        &self,
        id: &str,
        tenant: Option<&str>,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError> {
        let (id, tenant) = (id.to_owned(), tenant.map(str::to_owned));
        match self.of_webhooks(Request::Change { id, tenant, change: Box::new(change), now }).await? {
            Answer::Webhook(webhook) => Ok(webhook.map(|webhook| *webhook)),
            _ => Err(StoreError::Closed),
        }
    }

    async fn delete_webhook(&self, id: &str, tenant: Option<&str>) -> Result<bool, StoreError> {
        self.changed(Request::Delete { id: id.to_owned(), tenant: tenant.map(str::to_owned) }).await
    }

    async fn deliveries(
        &self,
        webhook: &str,
        state: Option<DeliveryState>,
        page: Page,
    ) -> Result<(Vec<Delivery>, u64), StoreError> {
        let state = state.map(DeliveryState::as_str);
        let values = [webhook.into(), state.into()];
        let (action, text) = ("count deliveries", &sql::SELECT_DELIVERY_COUNTS);
        let counted = self.readers.read(action, text, Args::Values(&values)).await?;
        let total = decode_all(&counted, |row| get::<i64>(row, "deliveries"))?;
        let values = [webhook.into(), state.into(), Arg::Text(None), page.limit.into(), page.offset.into()];
        let (action, text) = ("list deliveries", &sql::SELECT_DELIVERIES);
        let rows = self.readers.read(action, text, Args::Values(&values)).await?;
        Ok((decode_all(&rows, delivery)?, total.into_iter().next().unwrap_or_default().unsigned_abs()))
    }

    async fn deliver(&self, new: NewDelivery) -> Result<(), StoreError> {
        self.changed(Request::Deliver(new)).await.map(|_| ())
    }

    async fn redeliver(
        &self,
        webhook: &str,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        let request = Request::Redeliver { webhook: webhook.to_owned(), delivery: id.to_owned(), now };
        if !self.changed(request).await? {
            return Ok(None);
        }
        let values = [webhook.into(), Arg::Text(None), id.into(), 1_i64.into(), 0_i64.into()];
        let (action, text) = ("read a delivery", &sql::SELECT_DELIVERIES);
        let rows = self.readers.read(action, text, Args::Values(&values)).await?;
        Ok(decode_all(&rows, delivery)?.pop())
    }

    async fn active_webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.list(None, None, Some(1)).await
    }

    async fn webhook_mark(&self) -> Result<Cursor, StoreError> {
        let values = [MARK.into()];
        let (action, text) = ("read how far events are told", &sql::SELECT_EVENT_MARK);
        let rows = self.readers.read(action, text, Args::Values(&values)).await?;
        let marks = decode_all(&rows, |row| {
            Ok(Cursor { tx: get(row, "tx")?, stream: get(row, "stream")?, seq: get(row, "seq")? })
        })?;
        Ok(marks.into_iter().next().unwrap_or_default())
    }

    async fn fan_out(
        &self,
        term: &Term,
        from: Cursor,
        to: Cursor,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreError> {
        self.changed(Request::FanOut { term: term.clone(), from, to, deliveries }).await
    }

    async fn take_deliveries(
        &self,
        term: &Term,
        taking: Taking,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError> {
        match self.of_webhooks(Request::Take { term: term.clone(), taking, now }).await? {
            Answer::Deliveries(deliveries) => Ok(deliveries),
            _ => Err(StoreError::Closed),
        }
    }

    async fn settle_delivery(
        &self,
        delivery: &Delivery,
        attempted: Attempted,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let request = Request::Settle {
            delivery: delivery.id.clone(),
            webhook: delivery.webhook_id.clone(),
            attempt: delivery.attempts,
            attempted,
            now,
        };
        self.changed(request).await.map(|_| ())
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError> {
        let (action, text) = ("look for the next delivery", &sql::SELECT_NEXT_DELIVERY);
        let rows = self.readers.read(action, text, Args::Values(&[])).await?;
        let due = decode_all(&rows, |row| maybe::<i64>(row, "due"))?;
        Ok(due.into_iter().flatten().next().map(Timestamp))
    }
}
