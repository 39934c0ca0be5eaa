//! A history: each step runs on the store and on the model, and then their states are compared.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, done, plain, question};
use super::model::{Answer, End, ModelJob, Write};
use super::operations::{EndOp, Kind, Op, Pick, QUEUES, Spend};
use super::shown;
use proptest::sample::Index;
use serde_json::json;
use std::collections::HashMap;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::review::ReviewState;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    JobError, JobState, Lease, Phase, RawJson, RecordEnd, ReviewId, Settlement, Timestamp, TurnWrite, Wait,
};
use turnstone_store::{
    CancelOutcome, ClaimRequest, Committed, Decision, DecisionOutcome, Duty, JobKind, LedgerError, Past,
    StoreError, Term,
};

/// A store, the model of it, and the time.
pub struct History<'a> {
    at: &'a Opened,
    term: Term,
    now: Timestamp,
    jobs: Vec<ModelJob>,
    /// Every lease ever granted, with its job.
    given: Vec<(usize, Lease)>,
    /// The ends of the records of jobs, as their workers know them.
    ends: HashMap<usize, RecordEnd>,
    /// Every review ever opened, with its job.
    reviews: Vec<(usize, ReviewId)>,
}

impl<'a> History<'a> {
    pub async fn begin(at: &'a Opened) -> Self {
        let term = at.term().await;
        Self {
            at,
            term,
            now: NOW,
            jobs: Vec::new(),
            given: Vec::new(),
            ends: HashMap::new(),
            reviews: Vec::new(),
        }
    }

    /// Makes a step and compares.
    pub async fn step(&mut self, number: usize, op: Op) {
        let reported = format!("step {number}, {op:?}");
        match op {
            Op::Push(job) => self.push(job.at(self.now)).await,
            Op::PushKnown { known } => self.push_known(known).await,
            Op::Claim { kind, queues, limit } => self.claim(kind, &queues, limit).await,
            Op::Checkpoint { lease, phases, spend, messages } => {
                self.checkpoint(&lease, phases, spend, messages).await;
            }
            Op::Repeat { lease } => self.repeat(&lease).await,
            Op::CheckpointAll => self.checkpoint_all().await,
            Op::Settle { lease, phases, end } => self.settle(&lease, phases, end).await,
            Op::Extend { leases, ms } => self.extend(&leases, ms).await,
            Op::Release { leases } => self.release(&leases).await,
            Op::Cancel { job } => self.cancel(job).await,
            Op::Decide { review, approve } => self.decide(review, approve).await,
            Op::Advance { ms } => self.now = self.now.plus_ms(ms),
            Op::ReleaseAll => {
                let held =
                    self.each(|job, _| job.shown.state == JobState::Active && job.is_agent(), ModelJob::reap);
                assert_eq!(self.at.store.upkeep.release_all(self.now).await.unwrap(), held, "{reported}");
            }
            duty => self.duty(&duty, &reported).await,
        }
        let lost = self.lost_in_model();
        shown::compare(self.at, &mut self.jobs, &self.given, &lost, &reported).await;
    }

    async fn push(&mut self, new: turnstone_domain::NewJob) {
        let model = ModelJob::pushed(new.clone());
        let pushed = self.at.store.intake.push(vec![new]).await.unwrap().remove(0);
        assert_eq!((&pushed.id, pushed.state), (&model.shown.id, model.shown.state));
        self.jobs.push(model);
    }

    async fn push_known(&mut self, known: Index) {
        let Some(known) = pick_of(&self.jobs, &known) else { return };
        let new = self.jobs[known].new.clone();
        let refused = self.at.store.intake.push(vec![plain(0), new.clone()]).await.unwrap_err();
        assert!(matches!(&refused, StoreError::DuplicateJob(id) if *id == new.id), "{refused}");
    }

    /// Returns the jobs that a claim takes, in order.
    fn claimable(&self, kind: Kind, queues: &[&str], limit: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        for queue in queues {
            let mut jobs: Vec<usize> = (0..self.jobs.len())
                .filter(|n| {
                    let job = &self.jobs[*n];
                    let fits = job.new.queue == *queue && job.is_agent() == (kind == Kind::Agent);
                    fits && job.is_claimable(self.now)
                })
                .collect();
            jobs.sort_by_key(|n| (-self.jobs[*n].new.priority, *n));
            taken.extend(jobs);
        }
        taken.truncate(limit);
        taken
    }

    async fn claim(&mut self, kind: Kind, queues: &[usize], limit: usize) {
        let requested: Vec<&str> = queues.iter().map(|queue| QUEUES[*queue]).collect();
        let served = if requested == ["*"] { vec!["a", "b"] } else { requested.clone() };
        let request = ClaimRequest {
            kind: if kind == Kind::Agent { JobKind::Agent } else { JobKind::Plain },
            queues: requested.iter().map(|queue| (*queue).to_owned()).collect(),
            limit,
            worker_id: "w".into(),
            lease_ms: LEASE,
            tenant: None,
            runtime_tags: None,
            now: self.now,
        };
        let claims = self.at.store.ledger.claim(request).await.unwrap();
        let expected = self.claimable(kind, &served, limit);
        let ids: Vec<_> = expected.iter().map(|n| &self.jobs[*n].shown.id).collect();
        assert_eq!(claims.iter().map(|claim| &claim.job).collect::<Vec<_>>(), ids, "which jobs are claimed");
        for (claim, n) in claims.iter().zip(expected) {
            let job = &mut self.jobs[n];
            job.claim(&claim.lease.token, self.now, LEASE);
            assert_eq!((claim.attempt, claim.failures), (job.shown.attempt, job.shown.failures));
            assert_eq!(claim.lease.expires_at, job.lease_expires_at);
            assert_eq!(claim.engagement.is_some(), job.is_agent());
            if let (Some(claimed), Some(agent)) = (&claim.engagement, &job.shown.agent) {
                self.ends.insert(n, claimed.record_end);
                let phases: Vec<Phase> = claimed.checkpoints.iter().map(|c| c.phase).collect();
                assert_eq!(phases, Phase::ALL[..job.done], "the checkpoints of the unfinished turn");
                let budget = (claimed.budget.limit, claimed.budget.settled, claimed.budget.reserved);
                assert_eq!(budget, (agent.limit, agent.settled, agent.reserved));
                assert_eq!((claimed.position.turn, claimed.engagement.turns), (agent.turn, agent.turns));
                assert!(!matches!(claimed.past, Past::Nothing) || agent.messages == 0);
            }
            self.given.push((n, claim.lease.clone()));
        }
        self.adopt_promotions().await;
    }

    /// A claim may promote due jobs that it does not take, which is an edge of the table of states.
    async fn adopt_promotions(&mut self) {
        for job in &mut self.jobs {
            if job.is_due(self.now) && self.at.state(&job.shown.id).await == JobState::Available {
                job.promote();
            }
        }
    }

    fn lease(&self, pick: &Pick) -> Option<(usize, Lease)> {
        let holding: Vec<&(usize, Lease)> =
            self.given.iter().filter(|(n, lease)| !pick.holds || self.holds(*n, lease)).collect();
        pick_of(&holding, &pick.index).map(|n| holding[n].clone())
    }

    fn holds(&self, n: usize, lease: &Lease) -> bool {
        self.jobs[n].shown.token.as_ref() == Some(&lease.token)
    }

    fn lost_in_model(&self) -> Vec<String> {
        let lost = self.given.iter().filter(|(n, lease)| !self.holds(*n, lease));
        lost.map(|(_, lease)| lease.token.clone()).collect()
    }

    /// Returns the next phases of the job's turn, for the model and for the store.
    fn next(&self, n: usize, phases: usize, spend: Spend, messages: usize) -> (Write, TurnWrite) {
        let mut write = Write::default();
        let mut to_store = TurnWrite { follows: self.ends.get(&n).copied(), ..TurnWrite::default() };
        let job = &self.jobs[n];
        let Some(agent) = &job.shown.agent else { return (write, to_store) };
        for phase in Phase::ALL.iter().skip(job.done).take(phases) {
            write.phases.push((agent.turn, *phase));
            let mut one = done(*phase);
            one.checkpoints[0].turn = agent.turn;
            to_store.checkpoints.append(&mut one.checkpoints);
            to_store.events.append(&mut one.events);
            if phase.next().is_none() {
                to_store.position = Some(Position { turn: agent.turn + 1, ..Position::default() });
            }
        }
        write.messages = messages;
        to_store.messages =
            (0..messages).map(|_| (agent.turn, Message::text(Role::User, "x").into())).collect();
        match spend {
            Spend::Nothing => {}
            Spend::Reserve(tokens) => {
                write.reserve = Some(tokens);
                to_store.budget = Some(BudgetMove::Reserve { tokens });
            }
            Spend::Book(percent) => {
                let (reserved, used) = (job.reserved, job.reserved * percent / 100);
                write.book = Some((reserved, used));
                to_store.budget = Some(BudgetMove::Settle { reserved, used });
            }
        }
        (write, to_store)
    }

    async fn checkpoint(&mut self, pick: &Pick, phases: usize, spend: Spend, messages: usize) {
        let Some((n, lease)) = self.lease(pick) else { return };
        let (write, to_store) = self.next(n, phases, spend, messages);
        self.write(n, &lease, &write, to_store).await;
    }

    async fn write(&mut self, n: usize, lease: &Lease, write: &Write, to_store: TurnWrite) {
        let outcome = self.at.store.ledger.checkpoint(lease, to_store, self.now, LEASE).await;
        let job = &mut self.jobs[n];
        let expected = job.write(&lease.token, write);
        if expected == Answer::Written {
            job.lease_expires_at = self.now.plus_ms(LEASE);
            if let (Ok(Committed { budget, record_end, .. }), Some(agent)) = (&outcome, &job.shown.agent) {
                self.ends.insert(n, *record_end);
                assert_eq!((budget.settled, budget.reserved), (agent.settled, agent.reserved));
            }
        }
        assert_eq!(answer(&outcome), expected, "{outcome:?}");
    }

    async fn repeat(&mut self, pick: &Pick) {
        let Some((n, lease)) = self.lease(pick) else { return };
        let last = self.jobs[n].shown.agent.as_ref().and_then(|agent| agent.checkpoints.last().copied());
        let Some((turn, phase)) = last else { return };
        let write = Write { phases: vec![(turn, phase)], messages: 1, ..Write::default() };
        // A worker whose answer was lost follows the end from before.
        let mut to_store = done(phase);
        to_store.follows = Some(RecordEnd { writes: -1, turn, phase: None });
        to_store.checkpoints[0].turn = turn;
        to_store.messages = vec![(turn, Message::text(Role::User, "x").into())];
        self.write(n, &lease, &write, to_store).await;
    }

    async fn checkpoint_all(&mut self) {
        let given = self.given.clone();
        let steps: Vec<(Write, TurnWrite)> =
            given.iter().map(|(n, _)| self.next(*n, 1, Spend::Reserve(5), 1)).collect();
        let writes = given.iter().zip(&steps).map(|((_, lease), (_, to_store))| {
            self.at.store.ledger.checkpoint(lease, to_store.clone(), self.now, LEASE)
        });
        let outcomes = futures::future::join_all(writes).await;
        for (((n, lease), (write, _)), outcome) in given.iter().zip(&steps).zip(outcomes) {
            let job = &mut self.jobs[*n];
            let expected = job.write(&lease.token, write);
            if expected == Answer::Written {
                job.lease_expires_at = self.now.plus_ms(LEASE);
                self.ends.extend(outcome.as_ref().ok().map(|done| (*n, done.record_end)));
            }
            assert_eq!(answer(&outcome), expected, "{outcome:?}");
        }
    }

    async fn settle(&mut self, pick: &Pick, phases: usize, end: EndOp) {
        let Some((n, lease)) = self.lease(pick) else { return };
        let (write, to_store) = self.next(n, phases, Spend::Nothing, 0);
        let (end, settlement) = self.end(n, end);
        let outcome = self.at.store.ledger.settle(&lease, to_store, settlement, self.now).await;
        let expected = self.jobs[n].write(&lease.token, &write);
        assert_eq!(answer(&outcome), expected, "{outcome:?}");
        if expected == Answer::Written {
            if let End::Park { review, .. } = &end {
                self.reviews.push((n, review.clone()));
            }
            self.jobs[n].end(end, self.now);
        }
    }

    fn end(&self, n: usize, end: EndOp) -> (End, Settlement) {
        match end {
            EndOp::Complete => {
                let result = RawJson::of(&json!({"n": n}));
                (End::Complete(result.clone()), Settlement::Complete { result, withheld: false })
            }
            EndOp::Retry(delay_ms) => {
                let error = JobError::new(FailureKind::Tool, "it broke");
                let run_at = self.now.plus_ms(delay_ms);
                (End::Retry { kind: error.kind, delay_ms }, Settlement::Retry { error, run_at, delay_ms })
            }
            EndOp::Discard => {
                let error = JobError::new(FailureKind::Policy, "it must not");
                (End::Discard(error.kind), Settlement::Discard { error })
            }
            // Only agent jobs are parked.
            EndOp::Park(ms) if self.jobs[n].is_agent() => {
                let deadline_at = ms.map(|ms| self.now.plus_ms(ms));
                let review = question(deadline_at);
                (
                    End::Park { review: review.id.clone(), deadline_at },
                    Settlement::Park { wait: Wait::Review(review) },
                )
            }
            EndOp::Park(_) | EndOp::Yield => (End::Yield, Settlement::Yield),
        }
    }

    /// Returns leases without duplicates.
    fn leases(&self, picks: &[Pick]) -> Vec<(usize, Lease)> {
        let mut leases: Vec<(usize, Lease)> = picks.iter().filter_map(|pick| self.lease(pick)).collect();
        leases.sort_by(|a, b| a.1.token.cmp(&b.1.token));
        leases.dedup_by(|a, b| a.1.token == b.1.token);
        leases
    }

    async fn extend(&mut self, picks: &[Pick], ms: i64) {
        let picked = self.leases(picks);
        let leases: Vec<Lease> = picked.iter().map(|(_, lease)| lease.clone()).collect();
        let lost = self.at.store.ledger.extend(&leases, self.now, ms).await.unwrap();
        let (held, gone): (Vec<_>, Vec<_>) = picked.iter().partition(|(n, lease)| self.holds(*n, lease));
        assert_eq!(lost, gone.iter().map(|(_, lease)| lease.token.clone()).collect::<Vec<_>>());
        for (n, _) in held {
            self.jobs[*n].lease_expires_at = self.now.plus_ms(ms);
        }
    }

    async fn release(&mut self, picks: &[Pick]) {
        let picked = self.leases(picks);
        let leases: Vec<Lease> = picked.iter().map(|(_, lease)| lease.clone()).collect();
        self.at.store.ledger.release(&leases, self.now).await.unwrap();
        for (n, lease) in picked {
            if self.holds(n, &lease) {
                self.jobs[n].end(End::Yield, self.now);
            }
        }
    }

    async fn cancel(&mut self, job: Index) {
        let Some(n) = pick_of(&self.jobs, &job) else { return };
        let job = &mut self.jobs[n];
        let outcome = self.at.store.intake.cancel(&job.shown.id, self.now).await.unwrap();
        let previous = job.shown.state;
        if previous.is_terminal() {
            assert_eq!(outcome, CancelOutcome::AlreadyEnded(previous));
        } else {
            assert_eq!(outcome, CancelOutcome::Cancelled { previous });
            job.cancel(self.now);
        }
    }

    async fn decide(&mut self, review: Index, approve: bool) {
        let Some(at) = pick_of(&self.reviews, &review) else { return };
        let (n, id) = self.reviews[at].clone();
        let decision = Decision {
            approve,
            by: "ann".into(),
            principal: None,
            reason: None,
            reported: None,
            at: self.now,
        };
        let outcome = self.at.store.intake.decide_review(&id, decision).await.unwrap();
        let job = &mut self.jobs[n];
        let agent = job.shown.agent.as_ref().unwrap();
        let (_, state, deadline, _) = agent.reviews.iter().find(|review| review.0 == id).unwrap();
        let (state, overdue) = (*state, deadline.is_some_and(|deadline| deadline <= self.now));
        match state {
            ReviewState::Open if overdue => {
                assert_eq!(outcome, DecisionOutcome::TooLate(ReviewState::Expired));
                job.hear_too_late(&id);
            }
            ReviewState::Open => {
                let decided = if approve { ReviewState::Approved } else { ReviewState::Rejected };
                let DecisionOutcome::Decided(answered) = outcome else { panic!("{outcome:?}") };
                assert_eq!((&answered.id, answered.state), (&id, decided));
                job.decide(decided, self.now);
            }
            _ => {
                assert_eq!(outcome, DecisionOutcome::TooLate(state));
                job.hear_too_late(&id);
            }
        }
    }

    /// Applies a change to each job that it concerns, and returns their number.
    fn each(
        &mut self,
        concerns: impl Fn(&mut ModelJob, Timestamp) -> bool,
        change: impl Fn(&mut ModelJob, Timestamp),
    ) -> usize {
        let now = self.now;
        let concerned = self.jobs.iter_mut().filter_map(|job| concerns(job, now).then_some(job));
        concerned.map(|job| change(job, now)).count()
    }

    async fn duty(&mut self, op: &Op, reported: &str) {
        let (duty, expected) = match op {
            Op::Promote => (Duty::PromoteDue, self.each(|job, now| job.is_due(now), |job, _| job.promote())),
            Op::Reap => (Duty::ReapExpired, self.each(|job, now| job.lease_has_lapsed(now), ModelJob::reap)),
            Op::ExpireJobs => (Duty::ExpireJobs, self.each(|job, now| job.expires(now), ModelJob::expire)),
            Op::ExpireReviews => {
                let overdue =
                    |job: &mut ModelJob, now| job.deadline().is_some_and(|deadline| deadline <= now);
                let expire = |job: &mut ModelJob, now| job.decide(ReviewState::Expired, now);
                (Duty::ExpireReviews, self.each(overdue, expire))
            }
            Op::TimeOut => {
                let late = |job: &mut ModelJob, now| job.times_out_at().is_some_and(|at| at <= now);
                (Duty::TimeOutJobs, self.each(late, ModelJob::time_out))
            }
            other => panic!("{other:?} is no duty"),
        };
        let changed = self.at.store.upkeep.perform(duty, &self.term, self.now, 1_000).await.unwrap();
        assert_eq!(changed, expected, "{reported}");
    }
}

fn pick_of<T>(from: &[T], index: &Index) -> Option<usize> {
    (!from.is_empty()).then(|| index.index(from.len()))
}

fn answer<T>(outcome: &Result<T, LedgerError>) -> Answer {
    match outcome {
        Ok(_) => Answer::Written,
        Err(LedgerError::LeaseLost(_)) => Answer::LeaseLost,
        Err(LedgerError::BudgetExceeded { left, needed, .. }) => {
            Answer::BudgetExceeded { left: *left, needed: *needed }
        }
        Err(LedgerError::StateConflict | LedgerError::Store(_) | LedgerError::Unpriced { .. }) => {
            Answer::Refused
        }
    }
}
