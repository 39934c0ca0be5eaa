//! What must hold when the fault is over.

use super::load::Load;
use super::site::{Fleet, Site};
use std::collections::BTreeSet;

/// What must be zero at the end.
const NOTHING: [(&str, &str); 8] = [
    ("leases are held", "SELECT count(*) FROM jobs WHERE lease_token IS NOT NULL"),
    ("jobs have reservations", "SELECT count(*) FROM jobs WHERE reserved <> 0"),
    ("budgets have reservations", "SELECT count(*) FROM budgets WHERE reserved <> 0"),
    (
        "checkpoints were committed twice",
        "SELECT count(*) - count(DISTINCT (job_seq, turn, phase)) FROM checkpoints",
    ),
    (
        "jobs have more or less than the seven checkpoints of one turn",
        "SELECT count(*) FROM jobs j WHERE (SELECT count(*) FROM checkpoints c WHERE c.job_seq = j.seq) <> 7",
    ),
    (
        "jobs were completed more or less than once",
        "SELECT count(*) FROM jobs j WHERE \
         (SELECT count(*) FROM events e WHERE e.stream = j.stream AND e.name = 'job.completed') <> 1",
    ),
    (
        "budgets differ from what their checkpoints say",
        "SELECT count(*) FROM budgets b JOIN jobs j ON j.engagement_seq = b.seq WHERE b.settled <> \
         (SELECT sum(c.tokens_in + c.tokens_out) FROM checkpoints c WHERE c.job_seq = j.seq)",
    ),
    (
        "streams of events have gaps",
        "SELECT count(*) FROM (SELECT stream FROM events GROUP BY stream HAVING max(seq) <> count(*)) AS gaps",
    ),
];

impl Site {
    /// Ends the load, waits until everything is completed, and checks that nothing was lost or done twice and that no
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
        assert!(lost.is_empty() && unasked.is_empty(), "lost: {lost:?}; nobody asked for: {unasked:?}");
        for (what, sql) in NOTHING {
            assert_eq!(self.number(sql).await, 0, "{what}");
        }
        fleet.stop().await;
    }
}
