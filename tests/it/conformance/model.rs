//! The reference: the rules of a store, in memory.

use turnstone_domain::error::FailureKind;
use turnstone_domain::review::ReviewState;
use turnstone_domain::{EventName, JobId, JobState, NewJob, Phase, RawJson, ReviewId, Timestamp};

/// How many milliseconds longer than its timeout an attempt of an agent job may take.
const GRACE_MS: i64 = 5_000;
/// The delays after leases that expire in a row without progress, in milliseconds.
pub const DELAYS_MS: [i64; 4] = [0, 1_000, 5_000, 60_000];
/// The number of such leases after which a job is held.
const MAX_LAPSES: usize = 5;

/// A job in the model.
#[derive(Clone, Debug)]
pub struct ModelJob {
    pub new: NewJob,
    pub shown: Shown,
    pub claimed_at: Timestamp,
    pub lease_expires_at: Timestamp,
    pub lapses: usize,
    /// True when it is held for an operator.
    pub held: bool,
    pub reserved: i64,
    /// The number of committed phases of the current turn.
    pub done: usize,
    /// Reviews with a recorded late answer.
    pub late: Vec<ReviewId>,
    /// The stream does not tell yet that the current attempt has started.
    untold_start: bool,
}

/// The fields of a job that a store returns.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    pub id: JobId,
    pub state: JobState,
    pub attempt: i64,
    pub failures: i64,
    pub run_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub worker: Option<String>,
    /// The token of the current lease.
    pub token: Option<String>,
    pub retry_delay_ms: Option<i64>,
    pub result: Option<RawJson>,
    pub errors: Vec<(i64, FailureKind, Timestamp)>,
    pub events: Vec<EventName>,
    pub agent: Option<ShownAgent>,
}

/// The agent's fields.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ShownAgent {
    pub turn: i64,
    pub turns: i64,
    pub tokens_used: i64,
    pub limit: Option<i64>,
    pub settled: i64,
    pub reserved: i64,
    pub checkpoints: Vec<(i64, Phase)>,
    pub messages: usize,
    pub reviews: Vec<(ReviewId, ReviewState, Option<Timestamp>, Option<Timestamp>)>,
}

/// How a lease is to end.
#[derive(Clone, Debug)]
pub enum End {
    Complete(RawJson),
    Retry { kind: FailureKind, delay_ms: i64 },
    Discard(FailureKind),
    Park { review: ReviewId, deadline_at: Option<Timestamp> },
    Yield,
}

/// The expected result of a write under a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Written,
    LeaseLost,
    BudgetExceeded {
        left: i64,
        needed: i64,
    },
    /// The store refuses it: a phase is committed once.
    Refused,
}

/// A write before a lease continues or ends.
#[derive(Clone, Debug, Default)]
pub struct Write {
    pub phases: Vec<(i64, Phase)>,
    pub reserve: Option<i64>,
    pub book: Option<(i64, i64)>,
    pub messages: usize,
}

impl ModelJob {
    pub fn pushed(new: NewJob) -> Self {
        let agent = new.engagement.as_ref().map(|engagement| ShownAgent {
            turn: 1,
            limit: engagement.agent.limits.token_budget,
            ..ShownAgent::default()
        });
        let waits = new.run_at > new.created_at;
        let shown = Shown {
            id: new.id.clone(),
            state: if waits { JobState::Scheduled } else { JobState::Available },
            attempt: 0,
            failures: 0,
            run_at: new.run_at,
            started_at: None,
            ended_at: None,
            worker: None,
            token: None,
            retry_delay_ms: None,
            result: None,
            errors: Vec::new(),
            events: if waits {
                vec![EventName::JobEnqueued, EventName::JobScheduled]
            } else {
                vec![EventName::JobEnqueued]
            },
            agent,
        };
        let (claimed_at, lease_expires_at) = (Timestamp(0), Timestamp(0));
        Self {
            new,
            shown,
            claimed_at,
            lease_expires_at,
            lapses: 0,
            held: false,
            reserved: 0,
            done: 0,
            late: Vec::new(),
            untold_start: false,
        }
    }

    pub fn is_agent(&self) -> bool {
        self.shown.agent.is_some()
    }

    /// Returns true when the job is due and not yet promoted.
    pub fn is_due(&self, now: Timestamp) -> bool {
        matches!(self.shown.state, JobState::Scheduled | JobState::Retryable) && self.shown.run_at <= now
    }

    /// Returns true when a claim may take it.
    pub fn is_claimable(&self, now: Timestamp) -> bool {
        let alive = self.new.expires_at.is_none_or(|expires_at| expires_at > now);
        alive && !self.held && (self.shown.state == JobState::Available || self.is_due(now))
    }

    pub fn promote(&mut self) {
        self.shown.state = JobState::Available;
        self.shown.events.push(EventName::JobAvailable);
    }

    pub fn claim(&mut self, token: &str, now: Timestamp, lease_ms: i64) {
        if self.shown.state != JobState::Available {
            self.promote();
        }
        self.shown.state = JobState::Active;
        self.shown.attempt += 1;
        self.shown.started_at = self.shown.started_at.or(Some(now));
        self.shown.worker = Some("w".to_owned());
        self.shown.token = Some(token.to_owned());
        self.untold_start = true;
        if !self.is_agent() {
            self.tell_start();
        }
        self.claimed_at = now;
        self.lease_expires_at = now.plus_ms(lease_ms);
    }

    /// An agent's stream has the start with what is written first.
    fn tell_start(&mut self) {
        if std::mem::take(&mut self.untold_start) {
            self.shown.events.push(EventName::JobStarted);
        }
    }

    /// Ends the lease: nothing stays reserved.
    fn leave(&mut self, state: JobState, now: Timestamp) {
        if let Some(agent) = &mut self.shown.agent {
            agent.reserved -= self.reserved;
        }
        self.reserved = 0;
        self.shown.worker = None;
        self.shown.token = None;
        self.shown.state = state;
        if state.is_terminal() {
            self.shown.ended_at = Some(now);
        }
    }

    fn fail(&mut self, kind: FailureKind, now: Timestamp) {
        self.shown.failures += 1;
        self.shown.errors.push((self.shown.attempt, kind, now));
    }

    /// Applies a write and returns the result that the store must return.
    pub fn write(&mut self, token: &str, write: &Write) -> Answer {
        if self.shown.token.as_deref() != Some(token) {
            return Answer::LeaseLost;
        }
        let Some(agent) = &mut self.shown.agent else { return Answer::Written };
        if let (Some(needed), Some(limit)) = (write.reserve, agent.limit) {
            let left = limit - agent.settled - agent.reserved;
            if needed > left {
                return Answer::BudgetExceeded { left, needed };
            }
        }
        if write.phases.iter().any(|phase| agent.checkpoints.contains(phase)) {
            return Answer::LeaseLost;
        }
        self.tell_start();
        let Some(agent) = &mut self.shown.agent else { return Answer::Written };
        let reserve = write.reserve.unwrap_or_default();
        let (back, used) = write.book.unwrap_or_default();
        self.reserved += reserve - back;
        agent.reserved += reserve - back;
        // One warning is due when four fifths of a limit are spent.
        if let Some(limit) = agent.limit.filter(|limit| *limit > 0) {
            let from = (limit * 80 / 100).max(1);
            if agent.settled < from && agent.settled + used >= from {
                self.shown.events.push(EventName::BudgetWarning);
            }
        }
        agent.settled += used;
        agent.tokens_used += used;
        agent.messages += write.messages;
        for (turn, phase) in &write.phases {
            self.lapses = 0;
            agent.checkpoints.push((*turn, *phase));
            self.shown.events.push(EventName::PhaseCompleted);
            self.done = phase.index() + 1;
            if phase.next().is_none() {
                self.done = 0;
                agent.turns = *turn;
                agent.turn = turn + 1;
            }
        }
        Answer::Written
    }

    pub fn end(&mut self, end: End, now: Timestamp) {
        self.tell_start();
        match end {
            End::Complete(result) => {
                self.leave(JobState::Completed, now);
                self.shown.result = Some(result);
                self.shown.events.push(EventName::JobCompleted);
            }
            End::Retry { kind, delay_ms } => {
                self.fail(kind, now);
                self.leave(JobState::Retryable, now);
                self.shown.run_at = now.plus_ms(delay_ms);
                self.shown.retry_delay_ms = Some(delay_ms);
                self.shown.events.extend([EventName::JobFailed, EventName::JobRetrying]);
            }
            End::Discard(kind) => {
                self.fail(kind, now);
                self.leave(JobState::Discarded, now);
                self.shown.events.extend([EventName::JobFailed, EventName::JobDiscarded]);
            }
            End::Park { review, deadline_at } => {
                self.leave(JobState::Pending, now);
                self.shown.events.extend([EventName::ReviewOpened, EventName::JobParked]);
                if let Some(agent) = &mut self.shown.agent {
                    agent.reviews.push((review, ReviewState::Open, deadline_at, None));
                }
            }
            End::Yield => {
                self.leave(JobState::Available, now);
                self.shown.events.push(EventName::JobYielded);
            }
        }
    }

    pub fn lease_has_lapsed(&self, now: Timestamp) -> bool {
        self.shown.state == JobState::Active && self.lease_expires_at <= now
    }

    pub fn reap(&mut self, now: Timestamp) {
        self.lapses += 1;
        self.tell_start();
        self.shown.events.push(EventName::LeaseExpired);
        if self.is_agent() {
            self.lapse(now);
        } else if self.is_last_attempt() {
            self.end(End::Discard(FailureKind::Silence), now);
        } else {
            self.fail(FailureKind::Silence, now);
            self.leave(JobState::Available, now);
        }
    }

    /// An agent job waits longer after each lapse, and is held in the end.
    fn lapse(&mut self, now: Timestamp) {
        match DELAYS_MS.get(self.lapses - 1) {
            _ if self.lapses >= MAX_LAPSES => {
                self.leave(JobState::Available, now);
                self.held = true;
                self.shown.events.push(EventName::AgentPaused);
            }
            Some(0) | None => self.leave(JobState::Available, now),
            Some(delay_ms) => {
                self.leave(JobState::Scheduled, now);
                self.shown.run_at = now.plus_ms(*delay_ms);
                self.shown.events.push(EventName::JobRescheduled);
            }
        }
    }

    /// Returns when its attempt exceeds its timeout.
    pub fn times_out_at(&self) -> Option<Timestamp> {
        let timeout = self.new.timeout_ms.filter(|_| self.shown.state == JobState::Active)?;
        let grace = if self.is_agent() { GRACE_MS } else { 0 };
        Some(self.claimed_at.plus_ms(timeout + grace))
    }

    /// Every attempt of a plain job counts, also one without an outcome.
    fn is_last_attempt(&self) -> bool {
        self.shown.attempt >= i64::from(self.new.retry.max_attempts)
    }

    pub fn time_out(&mut self, now: Timestamp) {
        let failures = if self.is_agent() { self.shown.failures + 1 } else { self.shown.attempt };
        let end = if failures >= i64::from(self.new.retry.max_attempts) {
            End::Discard(FailureKind::Timeout)
        } else {
            End::Retry { kind: FailureKind::Timeout, delay_ms: 1_000 << (failures - 1) }
        };
        self.end(end, now);
    }

    /// Returns the open review, if the job waits for one.
    pub fn open_review(
        &mut self,
    ) -> Option<&mut (ReviewId, ReviewState, Option<Timestamp>, Option<Timestamp>)> {
        self.shown.agent.as_mut()?.reviews.iter_mut().find(|review| review.1 == ReviewState::Open)
    }

    /// Returns when the open review expires as a rejection.
    pub fn deadline(&mut self) -> Option<Timestamp> {
        self.open_review()?.2
    }

    /// Answers the open review.
    pub fn decide(&mut self, state: ReviewState, now: Timestamp) {
        if let Some(review) = self.open_review() {
            (review.1, review.3) = (state, Some(now));
        }
        self.shown.state = JobState::Available;
        self.shown.events.extend([EventName::ReviewDecided, EventName::JobAvailable]);
    }

    /// Records an answer that came too late, once per reviewer, while the job is running.
    pub fn hear_too_late(&mut self, review: &ReviewId) {
        if !self.shown.state.is_terminal() && !self.late.contains(review) {
            self.late.push(review.clone());
            self.tell_start();
            self.shown.events.push(EventName::ReviewAnsweredLate);
        }
    }

    fn close_review(&mut self, now: Timestamp) {
        if let Some(review) = self.open_review() {
            (review.1, review.3) = (ReviewState::Expired, Some(now));
        }
    }

    pub fn cancel(&mut self, now: Timestamp) {
        self.tell_start();
        self.close_review(now);
        self.leave(JobState::Cancelled, now);
        self.shown.events.push(EventName::JobCancelled);
    }

    pub fn expires(&self, now: Timestamp) -> bool {
        !self.shown.state.is_terminal() && self.new.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    pub fn expire(&mut self, now: Timestamp) {
        self.tell_start();
        self.close_review(now);
        self.shown.errors.push((self.shown.attempt, FailureKind::Expired, now));
        self.leave(JobState::Discarded, now);
        self.shown.events.push(EventName::JobExpired);
    }

    /// Returns the next time at which the scheduler changes it.
    pub fn next_due(&mut self) -> Option<Timestamp> {
        let (state, run_at) = (self.shown.state, self.shown.run_at);
        let waits = matches!(state, JobState::Scheduled | JobState::Retryable).then_some(run_at);
        let lease = (state == JobState::Active).then_some(self.lease_expires_at);
        let end = self.new.expires_at.filter(|_| !state.is_terminal());
        [waits, lease, end, self.times_out_at(), self.deadline()].into_iter().flatten().min()
    }
}
