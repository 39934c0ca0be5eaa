//! The invariants after a fault.

use super::load::Load;
use super::site::{Fleet, Site};
use std::collections::BTreeSet;
use turnstone_tests::journal;

/// Counts that must be zero at the end.
const NOTHING: [(&str, &str); 8] = [
    ("leases are held", "SELECT count(*) FROM jobs WHERE lease_token IS NOT NULL"),
    ("jobs have reservations", "SELECT count(*) FROM jobs WHERE reserved <> 0"),
    ("budgets have reservations", "SELECT count(*) FROM totals WHERE reserved <> 0"),
    ("checkpoints were committed twice", journal::PHASES_TWICE),
    (
        "jobs have more or less than the seven checkpoints of one turn",
        "SELECT count(*) FROM jobs j WHERE (SELECT sum(v.phases) FROM journal v WHERE v.stream = j.stream) <> 7",
    ),
    (
        "jobs were completed more or less than once",
        "SELECT count(*) FROM jobs j WHERE \
         (SELECT count(*) FROM journal v WHERE v.stream = j.stream AND v.names LIKE '%job.completed%') <> 1",
    ),
    (
        "budgets differ from what their checkpoints say",
        "SELECT count(*) FROM totals b JOIN jobs j ON j.engagement_seq = b.seq WHERE b.settled <> \
         (SELECT sum(v.tokens_in + v.tokens_out) FROM journal v WHERE v.stream = j.stream)",
    ),
    ("streams of events have gaps", journal::GAPS),
];

impl Site {
    /// Ends the load and waits until every job is completed. Checks that no job was lost or done twice, and that no
    /// process had to be restarted.
    pub async fn ends_well(&self, load: Load, fleet: Fleet) {
        let accepted = load.end().await;
        assert!(!accepted.is_empty(), "there was no load");
        self.until(
            "every job is completed",
            "SELECT count(*) FROM jobs WHERE state <> 'completed'",
            |left| left == 0,
        )
        .await;
        let ids = self.postgres.psql(&self.database, "SELECT id FROM jobs").await;
        let stored: BTreeSet<String> = ids.lines().map(str::to_owned).collect();
        let lost: Vec<_> = accepted.difference(&stored).collect();
        let unasked: Vec<_> = stored.difference(&accepted).collect();
        assert!(lost.is_empty() && unasked.is_empty(), "lost: {lost:?}; not enqueued: {unasked:?}");
        for (what, sql) in NOTHING {
            assert_eq!(self.number(sql).await, 0, "{what}");
        }
        fleet.stop().await;
    }
}
