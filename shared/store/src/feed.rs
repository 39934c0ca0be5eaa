//! All events in one order.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::feed::{Cursor, FeedEvent, FeedFilter};

/// A part of the feed.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedPage {
    /// The events that the filter wants, oldest first.
    pub events: Vec<FeedEvent>,
    /// How far the reader has come, whether events were found or not.
    pub cursor: Cursor,
    /// Whether there may be more behind the cursor already.
    pub has_more: bool,
}

/// All events in one order, which is the same for every reader and never changes: a reader that goes on from its cursor
/// misses nothing and sees nothing twice, whoever writes meanwhile.
///
/// On PostgreSQL an event is shown once no transaction is under way that might still write one before it. A long
/// transaction, of whatever database of the server, delays the feed; it makes no hole in it.
#[async_trait]
pub trait Feed: Send + Sync + 'static {
    /// Up to `limit` events after `after`. Looks through a bounded number of events; what is left is `has_more`.
    async fn feed(&self, filter: &FeedFilter, after: Cursor, limit: u32) -> Result<FeedPage, StoreError>;

    /// The cursor after which nothing has happened yet.
    async fn feed_end(&self) -> Result<Cursor, StoreError>;
}
