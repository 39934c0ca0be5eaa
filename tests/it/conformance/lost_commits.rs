//! A lease whose record the database has set back is lost: no write continues an older record.

use super::backend::Opened;
use super::delegation::child;
use super::jobs::{
    LEASE, NOW, agent, book, complete, discard, done, engagement, nothing, park, reserve, retry,
};
use super::on_every_store;
use serde_json::json;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome};
use turnstone_domain::{
    CallId, Ids, JobState, Lease, Phase, RecordEnd, Settlement, Timestamp, TurnWrite, Wait,
};
use turnstone_store::{Claim, JobKind, LedgerError, Target};
use turnstone_tests::earlier::Earlier;

on_every_store![
    a_write_after_lost_commits_is_refused_and_the_job_resumes_from_its_record,
    an_event_in_the_place_of_a_lost_write_hides_nothing,
    a_lost_claim_and_a_lost_settlement_leave_no_gap,
    writes_of_others_end_no_lease,
    a_write_counts_once_whatever_it_has,
];

/// The worker of a claim, with the end of the record that it knows.
struct Writer<'a> {
    at: &'a Opened,
    lease: Lease,
    end: RecordEnd,
}

impl<'a> Writer<'a> {
    fn of(at: &'a Opened, claim: &Claim) -> Self {
        Self { at, lease: claim.lease.clone(), end: claim.engagement.as_ref().unwrap().record_end }
    }

    async fn claimed(at: &'a Opened) -> Self {
        Self::of(at, &at.claim(JobKind::Agent, 1).await.remove(0))
    }

    async fn write(&mut self, write: TurnWrite) -> Result<(), LedgerError> {
        let write = TurnWrite { follows: Some(self.end), ..write };
        self.end = self.at.store.ledger.checkpoint(&self.lease, write, NOW, LEASE).await?.record_end;
        Ok(())
    }

    async fn settle(&self, write: TurnWrite, settlement: Settlement) -> Result<(), LedgerError> {
        let write = TurnWrite { follows: Some(self.end), ..write };
        self.at.store.ledger.settle(&self.lease, write, settlement, NOW).await
    }

    /// Writes as a worker does that knows nothing of a loss; returns true if its lease is lost.
    async fn is_refused(&mut self, next: Next) -> bool {
        let written = match next {
            Next::Checkpoint(write) => self.write(write).await,
            Next::Settlement(end) => self.settle(done(Phase::Resol), end).await,
        };
        match written {
            Err(LedgerError::LeaseLost(job)) => job == self.lease.job,
            other => panic!("{other:?}"),
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "a few of them, for one case")]
enum Next {
    Checkpoint(TurnWrite),
    Settlement(Settlement),
}

fn intended(call_id: CallId) -> ToolCallMove {
    ToolCallMove::Intend {
        call_id,
        turn: 1,
        position: 0,
        name: "search".into(),
        input: json!({}),
        idempotent: true,
        sent: true,
    }
}

fn outcome(call_id: CallId) -> ToolCallMove {
    let outcome = ToolOutcome::Success { output: json!(1) };
    ToolCallMove::Settle { call_id, outcome, handled: None, duration_ms: 1, withheld: false }
}

fn calls(calls: Vec<ToolCallMove>) -> TurnWrite {
    TurnWrite { tool_calls: calls, ..nothing() }
}

/// Every kind of write that may follow one that the database has lost.
fn writes(call: &CallId) -> Vec<(&'static str, Next)> {
    let wait = Wait::Children(vec![child(None)]);
    vec![
        ("a checkpoint", Next::Checkpoint(done(Phase::Resol))),
        ("an extension", Next::Checkpoint(nothing())),
        ("a reservation", Next::Checkpoint(reserve(10))),
        ("a payment", Next::Checkpoint(book(0, 5))),
        ("the intent of a call", Next::Checkpoint(calls(vec![intended(SystemIds.next().into())]))),
        ("the outcome of a call", Next::Checkpoint(calls(vec![outcome(call.clone())]))),
        ("a result", Next::Settlement(complete())),
        ("a retry", Next::Settlement(retry(NOW.plus_ms(1)))),
        ("a failure", Next::Settlement(discard())),
        ("a review", Next::Settlement(park(None))),
        ("children", Next::Settlement(Settlement::Park { wait })),
        ("a yield", Next::Settlement(Settlement::Yield)),
        ("a more urgent job", Next::Settlement(Settlement::GiveWay)),
    ]
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_write_after_lost_commits_is_refused_and_the_job_resumes_from_its_record(at: &Opened) {
    let place = at.place.beside();
    let call: CallId = SystemIds.next().into();
    for (what, next) in writes(&call) {
        let held = at.held(Some(100)).await;
        let mut writer = Writer::of(at, &held);
        writer.write(done(Phase::Init)).await.unwrap();
        let stored = writer.end;
        let earlier = Earlier::keep(&place).await;
        writer
            .write(TurnWrite { tool_calls: vec![intended(call.clone())], ..done(Phase::Norm) })
            .await
            .unwrap();
        assert_ne!(writer.end, stored);
        earlier.restore().await;

        let events = at.events(&held.job).await.len();
        assert!(writer.is_refused(next).await, "{what}");
        assert!(writer.is_refused(Next::Checkpoint(done(Phase::Infer))).await, "{what}: it stays refused");
        assert_eq!(at.state(&held.job).await, JobState::Active, "{what}");
        assert_eq!(at.events(&held.job).await.len(), events, "{what}");

        // Its worker gives the job back under its token.
        at.store.ledger.release(std::slice::from_ref(&writer.lease), NOW).await.unwrap();
        let again = at.claim(JobKind::Agent, 1).await.remove(0);
        assert_eq!(again.job, held.job, "{what}");
        let side = again.engagement.as_ref().unwrap();
        assert_eq!(side.record_end, stored, "{what}");
        assert_eq!(side.checkpoints.iter().map(|done| done.phase).collect::<Vec<_>>(), [Phase::Init]);
        let mut writer = Writer::of(at, &again);
        for phase in &Phase::ALL[1..6] {
            writer.write(done(*phase)).await.unwrap();
        }
        writer.settle(done(Phase::Emit), complete()).await.unwrap();
        assert_eq!(at.store.views.record_gaps(&engagement(&held)).await.unwrap(), [], "{what}");
        let page = turnstone_store::Page { limit: 100, offset: 0 };
        let rows = at.store.views.checkpoints(&engagement(&held), page).await.unwrap();
        let phases: Vec<Phase> = rows.iter().map(|row| row.checkpoint.phase).collect();
        assert_eq!(phases, Phase::ALL, "{what}");
        earlier.drop().await;
    }
}

fn target(held: &Claim) -> Target {
    Target { job: held.job.clone(), tenant: None, by: None, at: NOW }
}

/// The lost write had one event. Another process adds one, so the numbers of events are the same again.
async fn an_event_in_the_place_of_a_lost_write_hides_nothing(at: &Opened) {
    let (place, other) = (at.place.beside(), at.place.open().await);
    let held = at.held(Some(100)).await;
    let mut writer = Writer::of(at, &held);
    writer.write(done(Phase::Init)).await.unwrap();
    let earlier = Earlier::keep(&place).await;
    let before = at.events(&held.job).await.len();
    writer.write(done(Phase::Norm)).await.unwrap();
    let lost = at.events(&held.job).await.len();
    earlier.restore().await;
    other.control.pause(target(&held), None).await.unwrap().unwrap();
    assert_eq!((at.events(&held.job).await.len(), lost), (before + 1, before + 1));
    assert!(writer.is_refused(Next::Checkpoint(done(Phase::Resol))).await);
    assert_eq!(at.store.views.record_gaps(&engagement(&held)).await.unwrap(), []);
    earlier.drop().await;
}

async fn a_lost_claim_and_a_lost_settlement_leave_no_gap(at: &Opened) {
    let place = at.place.beside();
    let id = at.push(agent(None)).await;
    let earlier = Earlier::keep(&place).await;
    let mut first = Writer::claimed(at).await;
    earlier.restore().await;
    assert!(first.is_refused(Next::Checkpoint(done(Phase::Init))).await, "the claim is lost");

    let mut second = Writer::claimed(at).await;
    second.write(done(Phase::Init)).await.unwrap();
    let earlier = Earlier::keep(&place).await;
    second.settle(done(Phase::Norm), park(None)).await.unwrap();
    earlier.restore().await;
    let after: Timestamp = NOW.plus_ms(LEASE);
    assert_eq!(at.perform(turnstone_store::Duty::ReapExpired, after).await, 1, "its worker has settled it");
    let again = at.claim_at(JobKind::Agent, 1, after.plus_ms(60_000)).await.remove(0);
    assert_eq!(again.job, id);
    assert_eq!(
        again.engagement.as_ref().unwrap().record_end,
        RecordEnd { phase: Some(Phase::Init), turn: 1, writes: 1 }
    );
    let mut third = Writer::of(at, &again);
    third.write(done(Phase::Norm)).await.unwrap();
    earlier.drop().await;
}

async fn writes_of_others_end_no_lease(at: &Opened) {
    let other = at.place.open().await;
    let held = at.held(Some(100)).await;
    let mut writer = Writer::of(at, &held);
    writer.write(done(Phase::Init)).await.unwrap();
    other.control.pause(target(&held), None).await.unwrap().unwrap();
    writer.write(done(Phase::Norm)).await.unwrap();
    other.control.resume(target(&held), None, None).await.unwrap().unwrap();
    writer.write(reserve(60)).await.unwrap();
    assert!(matches!(writer.write(reserve(60)).await, Err(LedgerError::BudgetExceeded { .. })));
    writer.write(done(Phase::Resol)).await.unwrap();
    assert_eq!(writer.end, RecordEnd { writes: 4, turn: 1, phase: Some(Phase::Resol) });
    writer.settle(done(Phase::Infer), Settlement::Yield).await.unwrap();
    let again = at.claim(JobKind::Agent, 1).await.remove(0);
    let end = again.engagement.as_ref().unwrap().record_end;
    assert_eq!(end, RecordEnd { writes: 5, turn: 1, phase: Some(Phase::Infer) });
}

async fn a_write_counts_once_whatever_it_has(at: &Opened) {
    let held = at.held(Some(100)).await;
    let mut writer = Writer::of(at, &held);
    assert_eq!(writer.end, RecordEnd::default());
    for write in [nothing(), done(Phase::Init), reserve(1), nothing()] {
        let before = writer.end.writes;
        writer.write(write).await.unwrap();
        assert_eq!(writer.end.writes, before + 1);
    }
    assert_eq!(at.query("SELECT writes FROM totals").await, 4);
}
