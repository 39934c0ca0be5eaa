//! The operations of a history.

use super::jobs::{agent, plain};
use proptest::prelude::*;
use proptest::sample::Index;
use turnstone_domain::{NewJob, Timestamp};

/// One step of a history. Its target is picked among the existing jobs when the step runs.
#[derive(Clone, Debug)]
pub enum Op {
    Push(Job),
    /// A new job together with an existing one: refused whole.
    PushKnown {
        known: Index,
    },
    Claim {
        kind: Kind,
        queues: Vec<usize>,
        limit: usize,
    },
    Checkpoint {
        lease: Pick,
        phases: usize,
        spend: Spend,
        messages: usize,
    },
    /// Repeats the last phase.
    Repeat {
        lease: Pick,
    },
    /// Commits the next phase of every lease ever granted, in one call.
    CheckpointAll,
    Settle {
        lease: Pick,
        phases: usize,
        end: EndOp,
    },
    Extend {
        leases: Vec<Pick>,
        ms: i64,
    },
    Release {
        leases: Vec<Pick>,
    },
    Cancel {
        job: Index,
    },
    Decide {
        review: Index,
        approve: bool,
    },
    Advance {
        ms: i64,
    },
    Promote,
    Reap,
    ReleaseAll,
    ExpireJobs,
    ExpireReviews,
    TimeOut,
}

/// A lease: a current one, or any ever granted.
#[derive(Clone, Debug)]
pub struct Pick {
    pub index: Index,
    pub holds: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Agent,
    Plain,
}

#[derive(Clone, Copy, Debug)]
pub enum Spend {
    Nothing,
    Reserve(i64),
    /// This share of the reservation, in percent; the rest is returned.
    Book(i64),
}

#[derive(Clone, Copy, Debug)]
pub enum EndOp {
    Complete,
    Retry(i64),
    Discard,
    Park(Option<i64>),
    Yield,
}

/// A job to be pushed; times are relative to the push.
#[derive(Clone, Debug)]
pub struct Job {
    kind: Kind,
    queue: usize,
    priority: i64,
    delay: i64,
    expires: Option<i64>,
    timeout: Option<i64>,
    budget: Option<i64>,
    max_attempts: u32,
}

/// The queues of histories; `*` is all of them.
pub const QUEUES: [&str; 3] = ["a", "b", "*"];

impl Job {
    pub fn at(&self, now: Timestamp) -> NewJob {
        let mut job = if self.kind == Kind::Agent { agent(self.budget) } else { plain(0) };
        job.queue = QUEUES[self.queue].to_owned();
        job.priority = self.priority;
        job.created_at = now;
        job.run_at = now.plus_ms(self.delay);
        job.expires_at = self.expires.map(|ms| now.plus_ms(ms));
        job.timeout_ms = self.timeout;
        job.retry.max_attempts = self.max_attempts;
        job
    }
}

fn pick() -> impl Strategy<Value = Pick> {
    (any::<Index>(), prop::bool::weighted(0.8)).prop_map(|(index, holds)| Pick { index, holds })
}

fn job() -> impl Strategy<Value = Job> {
    let kind = prop_oneof![3 => Just(Kind::Agent), 1 => Just(Kind::Plain)];
    let delay = prop_oneof![2 => Just(0), 1 => 1_i64..20_000];
    let expires = prop::option::weighted(0.2, 1_i64..60_000);
    let timeout = prop::option::weighted(0.3, 1_i64..10_000);
    let budget = prop::option::weighted(0.8, 0_i64..100);
    (kind, 0_usize..2, -1_i64..2, delay, expires, timeout, budget, 1_u32..4).prop_map(
        |(kind, queue, priority, delay, expires, timeout, budget, max_attempts)| Job {
            kind,
            queue,
            priority,
            delay,
            expires,
            timeout,
            budget,
            max_attempts,
        },
    )
}

fn end() -> impl Strategy<Value = EndOp> {
    prop_oneof![
        1 => Just(EndOp::Complete),
        2 => (0_i64..15_000).prop_map(EndOp::Retry),
        1 => Just(EndOp::Discard),
        3 => prop::option::of(0_i64..20_000).prop_map(EndOp::Park),
        1 => Just(EndOp::Yield),
    ]
}

fn spend() -> impl Strategy<Value = Spend> {
    prop_oneof![
        2 => Just(Spend::Nothing),
        3 => (0_i64..60).prop_map(Spend::Reserve),
        2 => (0_i64..=100).prop_map(Spend::Book),
    ]
}

fn claim() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![3 => Just(Kind::Agent), 1 => Just(Kind::Plain)];
    let queues = prop_oneof![
        3 => Just(vec![2]),
        1 => Just(vec![1, 0]),
        1 => Just(vec![0, 1]),
        1 => (0_usize..2).prop_map(|queue| vec![queue]),
    ];
    (kind, queues, 1_usize..4).prop_map(|(kind, queues, limit)| Op::Claim { kind, queues, limit })
}

/// Any step.
pub fn operation() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => job().prop_map(Op::Push),
        1 => any::<Index>().prop_map(|known| Op::PushKnown { known }),
        10 => claim(),
        9 => (pick(), 0_usize..4, spend(), 0_usize..3).prop_map(|(lease, phases, spend, messages)| {
            Op::Checkpoint { lease, phases, spend, messages }
        }),
        1 => pick().prop_map(|lease| Op::Repeat { lease }),
        2 => Just(Op::CheckpointAll),
        7 => (pick(), 0_usize..3, end()).prop_map(|(lease, phases, end)| Op::Settle { lease, phases, end }),
        2 => (prop::collection::vec(pick(), 1..4), 1_i64..20_000)
            .prop_map(|(leases, ms)| Op::Extend { leases, ms }),
        2 => prop::collection::vec(pick(), 1..4).prop_map(|leases| Op::Release { leases }),
        2 => any::<Index>().prop_map(|job| Op::Cancel { job }),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(review, approve)| Op::Decide { review, approve }),
        5 => prop_oneof![1_i64..100, 1_000_i64..15_000].prop_map(|ms| Op::Advance { ms }),
        2 => Just(Op::Promote),
        2 => Just(Op::Reap),
        1 => Just(Op::ReleaseAll),
        2 => Just(Op::ExpireJobs),
        2 => Just(Op::ExpireReviews),
        2 => Just(Op::TimeOut),
    ]
}
