//! Who is told of events, and what became of it.

use crate::{Page, StoreError, Term};
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::feed::Cursor;
use turnstone_domain::webhook::{Attempted, Delivery, DeliveryState, NewDelivery, Webhook, WebhookChange};

/// What the scheduler takes to be posted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taking {
    /// Nobody takes what is taken now before this: a delivery whose scheduler dies waits for it, and is posted again.
    pub until: Timestamp,
    /// At most this many deliveries.
    pub limit: usize,
    /// At most this many of one webhook, so that a slow receiver does not take all the room.
    pub per_webhook: usize,
    /// None of these webhooks': they have enough under way.
    pub busy: Vec<String>,
}

/// Who is told of events, and what became of it. `tenant` narrows to what is that tenant's; `None` is everybody's.
#[async_trait]
pub trait Webhooks: Send + Sync + 'static {
    /// Makes a webhook. It is told of what happens from now on; its `since` and `updated_at` are the store's to choose.
    async fn create_webhook(&self, new: Webhook) -> Result<(), StoreError>;

    /// All webhooks, oldest first.
    async fn webhooks(&self, tenant: Option<&str>) -> Result<Vec<Webhook>, StoreError>;

    /// One webhook.
    async fn webhook(&self, id: &str, tenant: Option<&str>) -> Result<Option<Webhook>, StoreError>;

    /// Changes a webhook and returns it as it is then.
    async fn change_webhook(
        &self,
        id: &str,
        tenant: Option<&str>,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Webhook>, StoreError>;

    /// Deletes a webhook with its deliveries; `false` when there is none.
    async fn delete_webhook(&self, id: &str, tenant: Option<&str>) -> Result<bool, StoreError>;

    /// Deliveries of a webhook, newest first, and how many there are in this state.
    async fn deliveries(
        &self,
        webhook: &str,
        state: Option<DeliveryState>,
        page: Page,
    ) -> Result<(Vec<Delivery>, u64), StoreError>;

    /// Makes a delivery that no event brought about.
    async fn deliver(&self, new: NewDelivery) -> Result<(), StoreError>;

    /// A delivery is posted anew, under the id that it has; `None` when there is none.
    async fn redeliver(
        &self,
        webhook: &str,
        delivery: &str,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError>;

    /// The webhooks that are told of anything.
    async fn active_webhooks(&self) -> Result<Vec<Webhook>, StoreError>;

    /// How far events have been told.
    async fn webhook_mark(&self) -> Result<Cursor, StoreError>;

    /// Events from `from` to `to` become these deliveries; the mark moves in the same transaction. `false`, and nothing
    /// is written, when the mark stands elsewhere by now.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended.
    async fn fan_out(
        &self,
        term: &Term,
        from: Cursor,
        to: Cursor,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreError>;

    /// Takes deliveries that are due, each with one more attempt. Whoever takes them posts them and settles them.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended.
    async fn take_deliveries(
        &self,
        term: &Term,
        taking: Taking,
        now: Timestamp,
    ) -> Result<Vec<Delivery>, StoreError>;

    /// Says what became of an attempt. Changes nothing when another attempt of it has begun, or it is gone.
    async fn settle_delivery(
        &self,
        delivery: &Delivery,
        attempted: Attempted,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// When the next delivery is due.
    async fn next_delivery(&self) -> Result<Option<Timestamp>, StoreError>;
}
