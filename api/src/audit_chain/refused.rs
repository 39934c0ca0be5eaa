//! Entries of refused requests, which belong to no change.

use axum::response::Response;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use turnstone_ojs::OjsError;
use turnstone_store::{Audit, AuditNote};

/// One refused request in so many milliseconds is recorded, on average.
const EVERY_MS: i64 = 100;
/// So many are recorded at once.
const BURST: i64 = 1_000;

/// Records refused requests. A flood of them is counted in the log instead, so that it cannot fill the database.
pub(crate) struct RefusedRequests {
    audit: Audit,
    /// The theoretical arrival time of the next request under the rate, in milliseconds since the epoch.
    next: AtomicI64,
    left_out: AtomicU64,
}

impl RefusedRequests {
    pub(crate) fn new(audit: Audit) -> Self {
        Self { audit, next: AtomicI64::new(i64::MIN), left_out: AtomicU64::new(0) }
    }

    /// Appends an entry, beside the response.
    pub(crate) fn record(&self, note: &AuditNote, response: &Response) {
        let now = note.at;
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            let next = next.max(now.0);
            (next - now.0 < EVERY_MS * BURST).then_some(next + EVERY_MS)
        });
        if taken.is_err() {
            let left_out = self.left_out.fetch_add(1, Ordering::Relaxed) + 1;
            if left_out.is_power_of_two() {
                tracing::warn!(left_out, "refused requests come too fast; the audit leaves some out");
            }
            return;
        }
        let (audit, entry) = (self.audit.clone(), note.entry(&outcome(response), None));
        tokio::spawn(async move {
            if let Err(error) = audit.append(vec![entry]).await {
                tracing::warn!(%error, "a refused request could not be recorded");
            }
        });
    }
}

/// Returns the status and the code of a refusal.
fn outcome(response: &Response) -> String {
    let code = response.extensions().get::<OjsError>().map_or("", |error| error.code);
    format!("{} {code}", response.status().as_u16()).trim_end().to_owned()
}
