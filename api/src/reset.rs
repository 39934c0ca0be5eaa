//! Cursors whose events are not in the database: where their readers begin anew.

use axum::response::sse::Event as Frame;
use serde_json::json;
use turnstone_domain::feed::{Cursor, StreamCursor};
use turnstone_ojs::OjsError;
use turnstone_store::{EventFilter, Feed, StoreError, Views};

/// The name of the server-sent event before a stream begins anew.
const RESET: &str = "reset";

/// A stream that begins anew: its server-sent event.
#[derive(Debug)]
pub(crate) struct Reset {
    /// The cursor from which it continues.
    begin: String,
    /// The cursor of the newest event.
    newest: String,
    /// The cursor that was refused.
    lost: String,
}

impl Reset {
    /// Returns the reset of a reader of all events with the cursor `lost`.
    pub(crate) async fn of_feed(feed: &Feed, lost: String) -> Result<Self, StoreError> {
        let newest = feed.feed_end().await?.to_string();
        Ok(Self { begin: Cursor::START.to_string(), newest, lost })
    }

    /// Returns the reset of a reader of a job or an engagement with the cursor `lost`.
    pub(crate) async fn of_stream(
        views: &Views,
        filter: &EventFilter,
        lost: String,
    ) -> Result<Self, StoreError> {
        let newest = views.newest_event(filter).await?.to_string();
        Ok(Self { begin: StreamCursor::default().to_string(), newest, lost })
    }

    /// Returns the reset of a reader of a run whose newest event has this number.
    pub(crate) fn of_run(newest: i64, lost: i64) -> Self {
        Self { begin: "0".to_owned(), newest: newest.to_string(), lost: lost.to_string() }
    }

    /// Returns the error of a page: 409.
    pub(crate) fn into_error(self) -> OjsError {
        OjsError::cursor_lost(&self.lost).with("begin", self.begin).with("newest", self.newest)
    }

    /// Returns the server-sent event. Its id is the cursor from which the stream continues.
    pub(crate) fn into_frame(self) -> Frame {
        let frame = Frame::default().id(&self.begin).event(RESET);
        let error = self.into_error();
        let mut data = json!({"code": error.code, "message": error.message});
        for (name, value) in *error.details {
            data[name] = value;
        }
        frame.data(data.to_string())
    }
}
