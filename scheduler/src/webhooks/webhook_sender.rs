//! The leader's webhook sender: a few posts at a time, fewer of any one webhook, and no duty waits for them.

use super::fan_out::FanOut;
use super::post::{Post, ReceiverAnswer};
use super::retry;
use crate::leadership::Leadership;
use crate::tick::{FALLBACK, SHORTEST, Setback, pause};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use turnstone_domain::webhook::{AfterAttempt, Attempted, Delivery, Webhook};
use turnstone_domain::{Clock, Ids, Timestamp};
use turnstone_store::{Doorbell, Feed, Ring, Store, StoreError, Taking, Term, Webhooks};

/// The most posts under way at once.
const UNDER_WAY: usize = 64;
/// The most posts under way to one webhook; beyond it, no more of its deliveries are taken.
const PER_WEBHOOK: usize = 8;
/// Notifications within this time are handled by one query.
const GATHER: Duration = Duration::from_millis(20);
/// The number of queries after a notification: its events may still wait for an older transaction to end.
const LOOKS: u32 = 5;
/// The pause between two of these queries.
const SOON: Duration = Duration::from_millis(100);
/// The time in milliseconds after the timeout of its post at which an unsettled delivery is taken again.
const MARGIN_MS: i64 = 60_000;

/// The settings of webhooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookSenderOptions {
    /// True if addresses outside of the public internet may be reached.
    pub allow_private: bool,
    /// How long a receiver may take to answer.
    pub timeout: Duration,
}

impl WebhookSenderOptions {
    /// How long a receiver may take to answer.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}

impl Default for WebhookSenderOptions {
    fn default() -> Self {
        Self { allow_private: false, timeout: Self::TIMEOUT }
    }
}

/// Posts events to webhooks.
pub struct WebhookSender {
    feed: Feed,
    webhooks: Webhooks,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    post: Arc<Post>,
    taken_ms: i64,
}

/// The posts under way, and their number by webhook.
#[derive(Default)]
struct UnderWay {
    posts: JoinSet<String>,
    of: HashMap<String, usize>,
    /// The number of queries that are still to be made after a notification.
    looks: u32,
    /// True if there is no active webhook: then events are ignored.
    idle: bool,
}

impl UnderWay {
    fn busy(&self) -> Vec<String> {
        self.of.iter().filter(|(_, posts)| **posts >= PER_WEBHOOK).map(|(id, _)| id.clone()).collect()
    }

    /// Waits until a post has ended; for ever when none is under way.
    async fn one_ended(&mut self) {
        match self.posts.join_next().await {
            Some(Ok(webhook)) => {
                if let Some(posts) = self.of.get_mut(&webhook) {
                    *posts -= 1;
                }
                self.of.retain(|_, posts| *posts > 0);
            }
            // A post that panicked does not name its webhook.
            Some(Err(_)) => self.of.clear(),
            None => std::future::pending().await,
        }
    }
}

impl WebhookSender {
    /// Returns a sender over `store`.
    ///
    /// # Errors
    /// A sentence that says why the HTTP client cannot be built.
    pub fn new(
        store: &Store,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        options: &WebhookSenderOptions,
    ) -> Result<Self, String> {
        let timeout_ms = i64::try_from(options.timeout.as_millis()).unwrap_or(i64::MAX);
        Ok(Self {
            feed: store.feed.clone(),
            webhooks: store.webhooks.clone(),
            clock,
            ids,
            post: Arc::new(Post::new(options.allow_private, options.timeout)?),
            taken_ms: timeout_ms.saturating_add(MARGIN_MS),
        })
    }

    /// Posts all pending events now, and waits for the responses.
    pub(crate) async fn round(&self, term: &Term) -> Result<(), StoreError> {
        let mut under_way = UnderWay::default();
        while self.step(term, &mut under_way).await?.is_some() || !under_way.posts.is_empty() {
            while !under_way.posts.is_empty() {
                under_way.one_ended().await;
            }
        }
        Ok(())
    }

    /// Posts events to webhooks as long as it leads. At the end of a term the posts under way are aborted; the next
    /// leader repeats them.
    pub(crate) async fn keep_sending(&self, leadership: &Leadership, doorbell: &Doorbell) {
        let mut setback = Setback::none();
        loop {
            let term = leadership.begun().await;
            let error = tokio::select! {
                error = self.send_due(&term, doorbell, &mut setback) => error,
                () = leadership.ended(&term) => continue,
            };
            if matches!(error, StoreError::Deposed) {
                leadership.lose(&term);
                continue;
            }
            let (first, wait) = setback.failed();
            if first {
                tracing::warn!(%error, "events cannot be read for webhooks; it is tried again until they can");
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn send_due(&self, term: &Term, doorbell: &Doorbell, setback: &mut Setback) -> StoreError {
        // Subscribe before the first query, so that nothing that happens after it is missed.
        let (mut ear, mut listens) = (doorbell.listen(), true);
        let mut under_way = UnderWay::default();
        loop {
            let wait = match self.look(term, &mut under_way).await {
                Ok(wait) => wait,
                Err(error) => return error,
            };
            if setback.recovered() {
                tracing::info!("events are read for webhooks again");
            }
            // Without webhooks it waits for no event, and no other process has to send any.
            let idle = under_way.idle;
            if std::mem::replace(&mut listens, !idle) == idle {
                ear = if idle { doorbell.listen_for_work() } else { doorbell.listen() };
                if !idle {
                    continue;
                }
            }
            tokio::select! {
                () = under_way.one_ended() => {}
                () = tokio::time::sleep(wait) => {}
                () = hint_arrives(&mut ear, idle) => {
                    tokio::time::sleep(GATHER).await;
                    ear = ear.resubscribe();
                    under_way.looks = LOOKS;
                }
            }
        }
    }

    /// Makes and posts deliveries, and returns the pause before the next query.
    async fn look(&self, term: &Term, under_way: &mut UnderWay) -> Result<Duration, StoreError> {
        let soon = under_way.looks > 0;
        under_way.looks = under_way.looks.saturating_sub(1);
        if self.step(term, under_way).await?.is_some() {
            return Ok(SHORTEST);
        }
        let wait = pause(self.webhooks.next_delivery().await?, self.clock.now());
        // Due deliveries that were not taken wait for a post to end, which wakes the sender.
        let wait = if wait.is_zero() { FALLBACK } else { wait };
        Ok(if soon { wait.min(SOON) } else { wait })
    }

    /// Makes deliveries of new events and begins to post due ones. Returns `None` when there is nothing more to do.
    async fn step(&self, term: &Term, under_way: &mut UnderWay) -> Result<Option<()>, StoreError> {
        let hooks = self.webhooks.active_webhooks().await?;
        under_way.idle = hooks.is_empty();
        let now = self.clock.now();
        let (feed, webhooks) = (&self.feed, &self.webhooks);
        let more = FanOut { feed, webhooks, ids: self.ids.as_ref() }.step_by_step(term, &hooks, now).await?;
        let limit = UNDER_WAY.saturating_sub(under_way.posts.len());
        if hooks.is_empty() || limit == 0 {
            return Ok(more.then_some(()));
        }
        let hooks: HashMap<String, Webhook> = hooks.into_iter().map(|hook| (hook.id.clone(), hook)).collect();
        let until = now.plus_ms(self.taken_ms);
        let taking = Taking { until, limit, per_webhook: PER_WEBHOOK, busy: under_way.busy() };
        let taken = self.webhooks.take_deliveries(term, taking, now).await?;
        let any = !taken.is_empty();
        for delivery in taken {
            // A webhook that was made meanwhile: its delivery is taken again in a minute.
            let Some(webhook) = hooks.get(&delivery.webhook_id) else { continue };
            *under_way.of.entry(delivery.webhook_id.clone()).or_default() += 1;
            under_way.posts.spawn(self.deliver(webhook.clone(), delivery));
        }
        Ok((more || any).then_some(()))
    }

    fn deliver(&self, webhook: Webhook, delivery: Delivery) -> impl Future<Output = String> + Send + use<> {
        let (post, clock, webhooks) =
            (Arc::clone(&self.post), Arc::clone(&self.clock), self.webhooks.clone());
        async move {
            let answer = post.send(&webhook, &delivery, clock.now()).await;
            let now = clock.now();
            let attempted = attempted(answer, &delivery, now);
            if let Some(why) = &attempted.error {
                tracing::debug!(
                    webhook = webhook.id,
                    delivery = delivery.id,
                    why,
                    "a webhook delivery failed"
                );
            }
            if attempted.next == AfterAttempt::Gone {
                tracing::warn!(
                    webhook = webhook.id,
                    "a receiver is gone for good; its webhook is not active any more"
                );
            }
            if let Err(error) = webhooks.settle_delivery(&delivery, attempted, now).await {
                tracing::warn!(%error, delivery = delivery.id, "the outcome of a delivery could not be written; the delivery is repeated");
            }
            webhook.id
        }
    }
}

fn attempted(answer: ReceiverAnswer, delivery: &Delivery, now: Timestamp) -> Attempted {
    let again = || match retry::delay_ms(&delivery.id, delivery.attempts) {
        Some(ms) => AfterAttempt::Again(now.plus_ms(ms)),
        None => AfterAttempt::GiveUp,
    };
    match answer {
        ReceiverAnswer::Taken(status) => {
            Attempted { status: Some(status.into()), error: None, next: AfterAttempt::Delivered }
        }
        ReceiverAnswer::Gone(why) => {
            Attempted { status: Some(410), error: Some(why), next: AfterAttempt::Gone }
        }
        ReceiverAnswer::Refused(status, why) => {
            Attempted { status: Some(status.into()), error: Some(why), next: again() }
        }
        ReceiverAnswer::Silent(why) => Attempted { status: None, error: Some(why), next: again() },
    }
}

/// Waits for an event that may concern a webhook, or for a change of a webhook. A missed notification also ends the wait.
async fn hint_arrives(ear: &mut Receiver<Ring>, idle: bool) {
    loop {
        match ear.recv().await {
            Ok(Ring::Events(_) | Ring::AllEvents) | Err(RecvError::Lagged(_)) if !idle => return,
            Ok(Ring::Due) => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
