//! Random histories of engagements with several inputs, on a store and on a model. Inputs wait for one another, ask
//! their user, are cancelled, and are deleted with age. After every step both are equal.

use super::backend::{Backend, Opened, open};
use super::jobs::{LEASE, NOW, agent, complete, discard, done, request};
use super::model::DELAYS_MS;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, json};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::question::{AskedUser, Question};
use turnstone_domain::terms::Continues;
use turnstone_domain::tool_call::ToolCallMove;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    CallId, Ids, JobId, JobState, Lease, NewJob, Phase, Settlement, Timestamp, TurnWrite, Wait,
};
use turnstone_store::{AnswerOutcome, CancelOutcome, Duty, JobKind, NewAnswer, StoreError, Term};

const STEPS: usize = 50;

/// One step. Its target is picked when the step runs.
#[derive(Clone, Debug)]
enum Op {
    Begin,
    Send { engagement: Index, reopens: bool },
    Claim { limit: usize },
    Phases { input: Index, phases: usize },
    End { input: Index, end: End },
    Answer { input: Index, fits: bool },
    Cancel { input: Index },
    Lapse,
    Prune { of: Index },
}

#[derive(Clone, Copy, Debug)]
enum End {
    Complete,
    Discard,
    Ask,
    Yield,
}

fn operation() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    let end = prop_oneof![
        3 => Just(End::Complete),
        1 => Just(End::Discard),
        2 => Just(End::Ask),
        1 => Just(End::Yield),
    ];
    prop_oneof![
        2 => Just(Op::Begin),
        5 => (index(), any::<bool>()).prop_map(|(engagement, reopens)| Op::Send { engagement, reopens }),
        6 => (1_usize..4).prop_map(|limit| Op::Claim { limit }),
        5 => (index(), 1_usize..9).prop_map(|(input, phases)| Op::Phases { input, phases }),
        6 => (index(), end).prop_map(|(input, end)| Op::End { input, end }),
        3 => (index(), prop::bool::weighted(0.8)).prop_map(|(input, fits)| Op::Answer { input, fits }),
        3 => index().prop_map(|input| Op::Cancel { input }),
        1 => Just(Op::Lapse),
        1 => index().prop_map(|of| Op::Prune { of }),
    ]
}

/// An input in the model.
struct Input {
    id: JobId,
    engagement: usize,
    state: JobState,
    attempt: i64,
    lease: Option<Lease>,
    lease_expires_at: Timestamp,
    /// The turn that the input runs next.
    turn: i64,
    /// The last turn with a committed phase.
    begun: i64,
    /// The number of committed phases of that turn.
    done: usize,
    /// True when the input waits for its user.
    asks: bool,
    /// The number of questions asked: each is a call at a position of its own.
    questions: i64,
    /// Leases that expired in a row without a committed phase.
    lapses: usize,
    /// When it may be claimed.
    run_at: Timestamp,
    ended_at: Option<Timestamp>,
    pruned: bool,
}

impl Input {
    fn is_open(&self) -> bool {
        self.ended_at.is_none() && !self.pruned
    }
}

struct Engagement {
    first: NewJob,
    turns: i64,
    pruned: bool,
}

struct History<'a> {
    at: &'a Opened,
    term: Term,
    now: Timestamp,
    engagements: Vec<Engagement>,
    /// In the order in which they were accepted.
    inputs: Vec<Input>,
}

fn pick(of: &[usize], index: &Index) -> Option<usize> {
    (!of.is_empty()).then(|| of[index.index(of.len())])
}

impl<'a> History<'a> {
    async fn begin(at: &'a Opened) -> Self {
        Self { at, term: at.term().await, now: NOW, engagements: Vec::new(), inputs: Vec::new() }
    }

    async fn step(&mut self, op: Op) {
        self.now = self.now.plus_ms(1);
        match op {
            Op::Begin => self.push(None, false).await,
            Op::Send { engagement, reopens } => {
                let living: Vec<usize> =
                    (0..self.engagements.len()).filter(|n| !self.engagements[*n].pruned).collect();
                if let Some(engagement) = pick(&living, &engagement) {
                    self.push(Some(engagement), reopens).await;
                }
            }
            Op::Claim { limit } => self.claim(limit).await,
            Op::Phases { input, phases } => {
                if let Some(n) = pick(&self.among(|input| input.lease.is_some()), &input) {
                    self.phases(n, phases).await;
                }
            }
            Op::End { input, end } => {
                if let Some(n) = pick(&self.among(|input| input.lease.is_some()), &input) {
                    self.end(n, end).await;
                }
            }
            Op::Answer { input, fits } => {
                if let Some(n) = pick(&self.among(|input| !input.pruned), &input) {
                    self.answer(n, fits).await;
                }
            }
            Op::Cancel { input } => {
                if let Some(n) = pick(&self.among(|input| !input.pruned), &input) {
                    self.cancel(n).await;
                }
            }
            Op::Lapse => self.lapse().await,
            Op::Prune { of } => self.prune(&of).await,
        }
    }

    fn among(&self, wanted: impl Fn(&Input) -> bool) -> Vec<usize> {
        (0..self.inputs.len()).filter(|n| wanted(&self.inputs[*n])).collect()
    }

    /// Returns the open inputs of an engagement, in order.
    fn open(&self, engagement: usize) -> Vec<usize> {
        self.among(|input| input.engagement == engagement && input.is_open())
    }

    /// Returns the turn with which the next input of an engagement begins. No turn begins twice.
    fn next_turn(&self, engagement: usize) -> i64 {
        let begun = self.among(|input| {
            input.engagement == engagement && !input.is_open() && !input.pruned && input.begun > 0
        });
        let begun = begun.last().map_or(0, |n| self.inputs[*n].begun);
        self.engagements[engagement].turns.max(begun) + 1
    }

    async fn push(&mut self, engagement: Option<usize>, reopens: bool) {
        let id = JobId(SystemIds.next());
        let mut job = match engagement {
            None => agent(None),
            Some(n) => self.engagements[n].first.clone(),
        };
        (job.id, job.created_at, job.run_at) = (id.clone(), self.now, self.now);
        let continues = if reopens { Continues::Always } else { Continues::WhileOpen };
        job.terms.continues = engagement.map(|_| continues);
        let pushed = self.at.store.intake.push(vec![job.clone()]).await;
        let open = engagement.map_or(0, |n| self.open(n).len());
        if engagement.is_some() && open == 0 && !reopens {
            assert!(matches!(pushed, Err(StoreError::NotContinued { .. })), "it has ended: {pushed:?}");
            return;
        }
        pushed.unwrap();
        let number = engagement.unwrap_or_else(|| {
            self.engagements.push(Engagement { first: job, turns: 0, pruned: false });
            self.engagements.len() - 1
        });
        let turn = self.next_turn(number);
        let state = if open == 0 { JobState::Available } else { JobState::Pending };
        self.inputs.push(Input {
            id,
            engagement: number,
            state,
            attempt: 0,
            lease: None,
            lease_expires_at: self.now,
            turn,
            begun: 0,
            done: 0,
            asks: false,
            questions: 0,
            lapses: 0,
            run_at: self.now,
            ended_at: None,
            pruned: false,
        });
    }

    /// Makes the inputs available whose time has come.
    async fn promote(&mut self) {
        let due = self.among(|input| input.state == JobState::Scheduled && input.run_at <= self.now);
        let promoted = self.at.store.upkeep.perform(Duty::PromoteDue, &self.term, self.now, 1_000).await;
        assert_eq!(promoted.unwrap(), due.len());
        due.into_iter().for_each(|n| self.inputs[n].state = JobState::Available);
    }

    async fn claim(&mut self, limit: usize) {
        self.promote().await;
        let claims = self.at.store.ledger.claim(request(JobKind::Agent, limit, self.now)).await.unwrap();
        let mut expected = self.among(|input| {
            input.is_open() && input.state == JobState::Available && input.lapses < DELAYS_MS.len() + 1
        });
        expected.truncate(limit);
        let ids: Vec<&JobId> = expected.iter().map(|n| &self.inputs[*n].id).collect();
        assert_eq!(
            claims.iter().map(|claim| &claim.job).collect::<Vec<_>>(),
            ids,
            "which inputs are claimed"
        );
        for (claim, n) in claims.into_iter().zip(expected) {
            let input = &mut self.inputs[n];
            input.state = JobState::Active;
            input.attempt += 1;
            input.lease_expires_at = claim.lease.expires_at;
            let side = claim.engagement.unwrap();
            let done: Vec<Phase> = side.checkpoints.iter().map(|done| done.phase).collect();
            assert_eq!((side.position.turn, done.as_slice()), (input.turn, &Phase::ALL[..input.done]), "{n}");
            assert_eq!(side.engagement.turns, self.engagements[input.engagement].turns);
            input.lease = Some(claim.lease);
        }
    }

    async fn phases(&mut self, n: usize, phases: usize) {
        let mut write = TurnWrite::default();
        let input = &mut self.inputs[n];
        for _ in 0..phases {
            input.lapses = 0;
            let phase = Phase::ALL[input.done];
            let mut one = done(phase);
            one.checkpoints[0].turn = input.turn;
            write.checkpoints.append(&mut one.checkpoints);
            (input.begun, input.done) = (input.turn, input.done + 1);
            if input.done == Phase::ALL.len() {
                self.engagements[input.engagement].turns = input.turn;
                (input.turn, input.done) = (input.turn + 1, 0);
                write.position = Some(Position { turn: input.turn, begins: 1, ..Position::default() });
            }
        }
        let lease = input.lease.clone().unwrap();
        self.at.store.ledger.checkpoint(&lease, write, self.now, LEASE).await.unwrap();
        self.inputs[n].lease_expires_at = self.now.plus_ms(LEASE);
    }

    async fn end(&mut self, n: usize, end: End) {
        let input = &mut self.inputs[n];
        let mut write = TurnWrite::default();
        let settlement = match end {
            End::Complete => complete(),
            End::Discard => discard(),
            End::Yield => Settlement::Yield,
            End::Ask => {
                let arguments = json!({"question": "Well?"});
                let call_id = CallId(SystemIds.next());
                write.tool_calls.push(ToolCallMove::Intend {
                    call_id: call_id.clone(),
                    turn: input.turn,
                    position: input.questions,
                    name: "ask_user".to_owned(),
                    input: arguments.clone(),
                    idempotent: true,
                    sent: false,
                });
                input.questions += 1;
                let question = Question::read(&arguments).unwrap();
                Settlement::Park { wait: Wait::Input(AskedUser { call_id, question, exposes: Map::new() }) }
            }
        };
        let lease = input.lease.take().unwrap();
        self.at.store.ledger.settle(&lease, write, settlement, self.now).await.unwrap();
        let input = &mut self.inputs[n];
        match end {
            End::Yield => input.state = JobState::Available,
            End::Ask => (input.state, input.asks) = (JobState::Pending, true),
            End::Complete => self.over(n, JobState::Completed),
            End::Discard => self.over(n, JobState::Discarded),
        }
    }

    /// Ends an input. If it was the first one, the next one begins.
    fn over(&mut self, n: usize, state: JobState) {
        let engagement = self.inputs[n].engagement;
        let was_first = self.open(engagement).first() == Some(&n);
        let input = &mut self.inputs[n];
        (input.state, input.ended_at, input.lease, input.asks) = (state, Some(self.now), None, false);
        if let Some(next) = self.open(engagement).first().copied().filter(|_| was_first) {
            let turn = self.next_turn(engagement);
            let input = &mut self.inputs[next];
            (input.state, input.turn) = (JobState::Available, turn);
        }
    }

    async fn answer(&mut self, n: usize, fits: bool) {
        let values = if fits { json!({"answer": "yes"}) } else { json!({"other": 1}) };
        let job = self.at.store.views.job(&self.inputs[n].id).await.unwrap();
        let answer = NewAnswer {
            job: self.inputs[n].id.clone(),
            tenant: None,
            call: job.and_then(|job| job.agent?.position.asks).unwrap_or_else(|| CallId(String::new())),
            key: None,
            values: values.as_object().cloned().unwrap(),
            by: "u".to_owned(),
            message: None,
            at: self.now,
        };
        let outcome = self.at.store.intake.answer_question(answer).await.unwrap();
        let input = &mut self.inputs[n];
        match (input.asks, fits) {
            (true, true) => {
                assert!(matches!(outcome, AnswerOutcome::Answered(_)), "{outcome:?}");
                (input.state, input.asks) = (JobState::Available, false);
            }
            (true, false) => assert!(matches!(outcome, AnswerOutcome::Refused(_)), "{outcome:?}"),
            (false, _) => assert!(
                !matches!(outcome, AnswerOutcome::Answered(_) | AnswerOutcome::Refused(_)),
                "no question is open: {outcome:?}"
            ),
        }
    }

    async fn cancel(&mut self, n: usize) {
        let outcome = self.at.store.intake.cancel(&self.inputs[n].id, self.now).await.unwrap();
        if self.inputs[n].is_open() {
            assert_eq!(outcome, CancelOutcome::Cancelled { previous: self.inputs[n].state });
            self.over(n, JobState::Cancelled);
        } else {
            assert_eq!(outcome, CancelOutcome::AlreadyEnded(self.inputs[n].state));
        }
    }

    async fn lapse(&mut self) {
        self.now = self.now.plus_ms(LEASE + 1);
        let lapsed = self.among(|input| input.lease.is_some() && input.lease_expires_at <= self.now);
        for n in &lapsed {
            let input = &mut self.inputs[*n];
            input.lapses += 1;
            // Without a delay it is available at once; after the last delay it is held.
            let delay = DELAYS_MS.get(input.lapses - 1).copied().unwrap_or(0);
            input.state = if delay > 0 { JobState::Scheduled } else { JobState::Available };
            (input.run_at, input.lease) = (self.now.plus_ms(delay), None);
        }
        let reaped =
            self.at.store.upkeep.perform(Duty::ReapExpired, &self.term, self.now, 1_000).await.unwrap();
        assert_eq!(reaped, lapsed.len());
    }

    /// Prunes all engagements whose inputs ended before some input did. An engagement with a later or an open input
    /// stays whole.
    async fn prune(&mut self, of: &Index) {
        let ends: Vec<Timestamp> = self.inputs.iter().filter_map(|input| input.ended_at).collect();
        let before = match ends.is_empty() {
            true => self.now,
            false => ends[of.index(ends.len())].plus_ms(1),
        };
        let fold = Duty::FoldStatistics { until: self.now.plus_ms(1) };
        while self.at.store.upkeep.perform(fold, &self.term, self.now, 1_000).await.unwrap() > 0 {}
        while self.at.store.upkeep.perform(Duty::Prune { before }, &self.term, self.now, 1_000).await.unwrap()
            > 0
        {}
        for (number, engagement) in self.engagements.iter_mut().enumerate() {
            let inputs = || self.inputs.iter().filter(|input| input.engagement == number);
            engagement.pruned |= inputs().all(|input| input.ended_at.is_some_and(|at| at < before));
        }
        for input in &mut self.inputs {
            input.pruned = self.engagements[input.engagement].pruned;
        }
    }

    /// Asserts that the store and the model are equal.
    async fn compare(&self, context: &str) {
        for (n, input) in self.inputs.iter().enumerate() {
            let found = self.at.store.views.job(&input.id).await.unwrap();
            let found = found.map(|job| (job.state, job.attempt, job.ended_at));
            let expected = (!input.pruned).then_some((input.state, input.attempt, input.ended_at));
            assert_eq!(found, expected, "{context}: input {n}");
        }
        for (number, engagement) in self.engagements.iter().enumerate() {
            let id = &engagement.first.engagement.as_ref().unwrap().id;
            let found = self.at.store.views.engagement(id).await.unwrap();
            let expected = (!engagement.pruned).then_some(engagement.turns);
            assert_eq!(found.map(|found| found.0.turns), expected, "{context}: engagement {number}");
            let works = |n: &usize| {
                let input = &self.inputs[*n];
                input.asks || input.state != JobState::Pending
            };
            let working = self.open(number).iter().filter(|n| works(n)).count();
            assert_eq!(working, usize::from(!self.open(number).is_empty()), "one at a time");
        }
    }
}

fn config(cases: u32) -> ProptestConfig {
    let requested = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: requested.unwrap_or(cases), max_shrink_iters: 500, ..ProptestConfig::default() }
}

fn run(backend: Backend, ops: Vec<Op>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let at = open(backend).await;
        let mut history = History::begin(&at).await;
        for (step, op) in ops.into_iter().enumerate() {
            let context = format!("step {step}, {op:?}");
            history.step(op).await;
            history.compare(&context).await;
        }
    });
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn inputs_on_sqlite_do_what_the_model_does(ops in prop::collection::vec(operation(), 1..=STEPS)) {
        run(Backend::Sqlite, ops);
    }
}

proptest! {
    #![proptest_config(config(5))]

    #[test]
    #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
    fn inputs_on_postgres_do_what_the_model_does(ops in prop::collection::vec(operation(), 1..=STEPS)) {
        run(Backend::Postgres, ops);
    }
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    #[ignore = "long: 40 histories on each store"]
    fn inputs_on_every_store_do_what_the_model_does(ops in prop::collection::vec(operation(), 1..=STEPS)) {
        run(Backend::Sqlite, ops.clone());
        run(Backend::Postgres, ops);
    }
}
