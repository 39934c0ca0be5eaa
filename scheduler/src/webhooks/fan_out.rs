//! Events since the mark become deliveries to the webhooks that match them.

use serde_json::json;
use turnstone_domain::feed::{Cursor, FeedEvent, FeedFilter};
use turnstone_domain::webhook::{NewDelivery, Webhook};
use turnstone_domain::{Ids, Timestamp};
use turnstone_ojs::{CloudEvent, form, names_matching};
use turnstone_store::{Feed, StoreError, Term, Webhooks};

/// Events that are read in one step, so that the transaction that writes their deliveries stays short.
const PAGE: u32 = 200;
/// The most steps before due deliveries are posted.
const STEPS: usize = 20;

/// The handles by which events are read and deliveries are written.
pub(super) struct FanOut<'a> {
    pub(super) feed: &'a Feed,
    pub(super) webhooks: &'a Webhooks,
    pub(super) ids: &'a dyn Ids,
}

impl FanOut<'_> {
    /// Continues from the mark; returns true if there is more.
    pub(super) async fn step_by_step(
        &self,
        term: &Term,
        hooks: &[Webhook],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        // No webhook receives events from before the first webhook was made.
        let Some(since) = hooks.iter().map(|hook| hook.since).min() else { return Ok(false) };
        let patterns = hooks.iter().flat_map(|hook| hook.events.iter().map(String::as_str));
        let filter = FeedFilter::of_names(names_matching(patterns));
        for _ in 0..STEPS {
            let mark = self.webhooks.webhook_mark().await?;
            // Positions of this database: they name no commit to look for.
            let begin = Cursor::after_all_of(since, 0);
            let from = if mark.place() < begin.place() { begin } else { mark };
            let page = self.feed.feed(&filter, from, PAGE).await?;
            if page.cursor.place() > from.place() {
                let deliveries =
                    page.events.iter().flat_map(|event| self.deliveries(event, hooks, now)).collect();
                self.webhooks.fan_out(term, mark, page.cursor, deliveries).await?;
            }
            if !page.has_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn deliveries<'h>(
        &'h self,
        event: &'h FeedEvent,
        hooks: &'h [Webhook],
        now: Timestamp,
    ) -> impl Iterator<Item = NewDelivery> + 'h {
        let wanting = hooks.iter().filter(|hook| hook.is_concerned(event));
        let wanting =
            wanting.filter_map(|hook| Some((hook, form(hook.events.iter().map(String::as_str), event)?)));
        wanting.map(move |(hook, form)| {
            let reported = CloudEvent::in_form(event, form);
            NewDelivery {
                id: format!("msg_{}", self.ids.next()),
                webhook_id: hook.id.clone(),
                event_id: reported.id.clone(),
                body: json!(reported).to_string(),
                event: reported.name,
                created_at: now,
            }
        })
    }
}
