//! The places from which claims look. The index of waiting jobs keeps an entry of each job that was taken until no
//! transaction can see the job as waiting any more. A transaction that is left open keeps all of them, and each claim would
//! walk over them.

use crate::ClaimRequest;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A claim that takes longer than this, and than [`OF_A_JOB`] for each job, probably walked over many entries.
const SLOW: Duration = Duration::from_millis(5);
/// The time that a job of a claim may take.
const OF_A_JOB: Duration = Duration::from_micros(50);
/// The time in which claims look from a place. A job with a smaller number and the same priority that becomes available
/// meanwhile is not seen before its end.
const LASTS: Duration = Duration::from_millis(500);

/// By queue, the priority and the number of the last job that was taken.
type Places = BTreeMap<String, (i64, i64)>;

/// The places of the last kind of claim. Claims of different kinds that alternate leave none.
#[derive(Default)]
pub(super) struct Passed {
    of: Option<ClaimRequest>,
    /// The time of the last claim that looked from the beginning.
    since: Option<Instant>,
    places: Places,
}

impl Passed {
    /// Returns the places from which a claim may look; none means from the beginning. A claim of one job always looks from the
    /// beginning: its worker may expect a certain one.
    pub(super) fn places(&mut self, request: &ClaimRequest, at: Instant) -> &Places {
        let is_recent = self.since.is_some_and(|since| at.duration_since(since) < LASTS);
        if !is_recent || request.limit == 1 || !self.of.as_ref().is_some_and(|of| is_alike(of, request)) {
            self.forget();
        }
        &self.places
    }

    /// Forgets all, so that the next claim looks from the beginning.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Notes the jobs of a claim, with its beginning: their queues, priorities and numbers, in the order of the claim. Places
    /// are kept only while more jobs wait than a claim takes, so no job waits while a worker is idle.
    pub(super) fn note(&mut self, request: &ClaimRequest, began: Instant, taken: Vec<(String, i64, i64)>) {
        let from_beginning = self.places.is_empty();
        let usual = SLOW + OF_A_JOB * u32::try_from(taken.len()).unwrap_or(u32::MAX);
        if taken.len() < request.limit || (from_beginning && began.elapsed() < usual) {
            return self.forget();
        }
        if from_beginning {
            (self.since, self.of) = (Some(began), Some(request.clone()));
        }
        self.places.extend(taken.into_iter().map(|(queue, priority, seq)| (queue, (priority, seq))));
    }
}

/// Returns whether two claims look for the same jobs.
fn is_alike(one: &ClaimRequest, other: &ClaimRequest) -> bool {
    one.kind == other.kind
        && one.queues == other.queues
        && one.tenant == other.tenant
        && one.runtime_tags == other.runtime_tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobKind;
    use turnstone_domain::Timestamp;

    fn request(queue: &str) -> ClaimRequest {
        ClaimRequest {
            kind: JobKind::Plain,
            queues: vec![queue.to_owned()],
            limit: 2,
            worker_id: "w".to_owned(),
            lease_ms: 1_000,
            tenant: None,
            runtime_tags: None,
            now: Timestamp(0),
        }
    }

    fn taken(seqs: &[i64]) -> Vec<(String, i64, i64)> {
        seqs.iter().map(|seq| ("q".to_owned(), 0, *seq)).collect()
    }

    #[test]
    fn only_slow_claims_of_a_backlog_leave_a_place() {
        let (mut passed, now, slow) = (Passed::default(), Instant::now(), Instant::now() - SLOW * 2);
        passed.note(&request("q"), now + LASTS, taken(&[1, 2]));
        assert!(passed.places(&request("q"), now).is_empty(), "it was fast");
        passed.note(&request("q"), slow, taken(&[1]));
        assert!(passed.places(&request("q"), now).is_empty(), "it took all there is");
        passed.note(&request("q"), slow, taken(&[1, 2]));
        assert_eq!(passed.places(&request("q"), now)["q"], (0, 2));
        passed.note(&request("q"), now, taken(&[3, 4]));
        assert_eq!(passed.places(&request("q"), now)["q"], (0, 4), "those from a place are fast");
    }

    #[test]
    fn a_place_is_forgotten_after_a_while_and_for_other_claims() {
        let (mut passed, slow) = (Passed::default(), Instant::now() - SLOW * 2);
        passed.note(&request("q"), slow, taken(&[1, 2]));
        passed.note(&request("q"), slow + LASTS / 2, taken(&[3, 4]));
        assert!(passed.places(&request("q"), slow + LASTS).is_empty());
        passed.note(&request("q"), slow, taken(&[1, 2]));
        assert!(passed.places(&request("other"), slow).is_empty());
        passed.note(&request("q"), slow, taken(&[1, 2]));
        let of_one = ClaimRequest { limit: 1, ..request("q") };
        assert!(passed.places(&of_one, slow).is_empty());
    }
}
