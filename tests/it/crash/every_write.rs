//! Kills before and after each write of an engagement. An undisturbed run numbers the writes and records the expected
//! result; a run with a kill must leave the same.

use super::{die, shared_out, start};
use futures::future::join_all;
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::{JobState, Phase};
use turnstone_tests::crash::{CrashLedger, Written};
use turnstone_tests::wait::Pauses;
use turnstone_tests::{Backend, Fleet, FleetBuilder, journal, worker};

/// Slots of each worker, unless a scene says otherwise.
const SLOTS: usize = 4;

/// A fleet in real time without workers, with a job in it.
pub struct Scene {
    pub fleet: Fleet,
    pub id: String,
    prices: &'static str,
    /// Slots of each worker.
    slots: usize,
    time: AbortOnDropHandle<()>,
}

impl Scene {
    /// Starts the fleet and enqueues the job.
    pub async fn set(
        fleet: FleetBuilder,
        prices: &'static str,
        push: impl AsyncFnOnce(&Fleet) -> String,
    ) -> Self {
        let fleet = fleet.workers(0).in_real_time().start().await;
        let (id, time) = (push(&fleet).await, fleet.keep_time());
        Self { fleet, id, prices, slots: SLOTS, time }
    }

    /// The same with workers of one slot, so that jobs run one after another, in their order.
    pub fn with_one_slot(self) -> Self {
        Self { slots: 1, ..self }
    }

    /// A worker takes the job and dies; its reservations are returned.
    pub async fn die(&self, kill: &Kill) {
        self.attended(die(&self.fleet, self.slots, self.prices, &kill.point())).await;
        self.fleet.release_all().await;
    }

    /// Another worker runs the job to its end.
    pub async fn end(&self) {
        let worker = start(&self.fleet, self.slots, 15_000, self.prices, None);
        self.ended().await;
        drop(worker);
    }

    /// Ends the fleet and checks its invariants.
    pub async fn close(self) {
        drop(self.time);
        self.fleet.end().await;
    }

    async fn ended(&self) {
        self.attended(self.fleet.wait_for(&self.id, &[JobState::Completed, JobState::Discarded])).await;
    }

    /// A reviewer approves whatever is asked, and the user answers, until this ends.
    async fn attended<T>(&self, until: impl Future<Output = T>) -> T {
        tokio::select! {
            ended = until => ended,
            () = approve_all(&self.fleet) => panic!("the reviewer went away"),
            () = answer_all(&self.fleet, &self.id) => panic!("the user went away"),
        }
    }
}

/// Answers every question to the user and every call of a tool of the client.
async fn answer_all(fleet: &Fleet, job: &str) {
    let engagement = fleet.engagement_of(job).await;
    let mut pauses = Pauses::default();
    loop {
        answer(fleet, &engagement).await;
        pauses.next().await;
    }
}

/// Answers the question to the user, or the call of a tool of the client, if the engagement waits for one.
async fn answer(fleet: &Fleet, engagement: &str) {
    let awaiting = fleet.get(&format!("/engagements/{engagement}")).await["awaiting"].clone();
    if let (Some(keys), Some(call)) = (awaiting["request_keys"].as_object(), awaiting["call_id"].as_str()) {
        let answers: serde_json::Map<_, _> = keys.keys().map(|key| (key.clone(), json!("go on"))).collect();
        let body = json!({"answers": answers, "call_id": call});
        // The answer before may have been the same, and counted.
        fleet.post(&format!("/engagements/{engagement}/answer"), &body).await;
    }
}

async fn approve_all(fleet: &Fleet) {
    let mut pauses = Pauses::default();
    loop {
        approve(fleet).await;
        pauses.next().await;
    }
}

/// Approves every open review.
async fn approve(fleet: &Fleet) {
    let reviews = fleet.get("/reviews?state=open").await;
    for review in reviews["items"].as_array().into_iter().flatten() {
        let path = format!("/reviews/{}/approve", review["id"].as_str().expect("an id"));
        let by = review["reviewer"].as_str().filter(|name| *name == "operator").unwrap_or("manager");
        let (status, answer) = fleet.post(&path, &json!({"by": by})).await;
        assert!(status.is_success(), "{answer}");
    }
}

/// A kill before or after a write.
#[derive(Clone, Debug)]
pub struct Kill {
    number: usize,
    pub write: Written,
    pub after: bool,
}

impl Kill {
    /// Returns the point in the format that the worker process reads.
    fn point(&self) -> String {
        format!("write:{}:{}", self.number, if self.after { "after" } else { "before" })
    }

    /// Returns true when a model has answered and its answer is not committed. Only then is the model called again.
    fn loses_an_answer(&self) -> bool {
        self.write.books && !self.after
    }

    /// Returns true when the next job may run already. A slot is free for it as soon as the settlement is sent, and its
    /// model may be asked before the settlement is committed.
    fn overlaps(&self, jobs: i64) -> bool {
        jobs > 1 && !matches!(self.write.kind, "claim" | "checkpoint")
    }

    /// Returns true when the records do not show whether a tool call was made.
    pub fn doubts_a_call(&self) -> bool {
        if self.after { self.write.intent } else { self.write.outcome }
    }
}

/// Returns all kills around these writes.
pub fn kills(writes: &[Written]) -> Vec<Kill> {
    let around = |(at, write): (usize, &Written)| {
        let kill = |after| Kill { number: at + 1, write: write.clone(), after };
        // A death before a claim is a death after the write before it.
        [false, true].map(kill).into_iter().filter(|kill| kill.after || kill.write.kind != "claim")
    };
    writes.iter().enumerate().flat_map(around).collect()
}

/// The result of an engagement.
#[derive(Clone, PartialEq, Debug)]
pub struct Left {
    state: Value,
    result: Value,
    /// Roles and contents of its messages.
    said: Vec<(Value, Value)>,
    tokens: i64,
    checkpoints: i64,
    engagements: i64,
    reviews: i64,
    /// The keys under which tools were called.
    keys: usize,
    money: i64,
    model_calls: usize,
    tool_calls: usize,
}

const TOKENS: &str = "SELECT CAST(sum(tokens_used) AS BIGINT) FROM jobs";
const MONEY: &str =
    "SELECT CAST(coalesce(sum(money_settled), 0) AS BIGINT) FROM totals WHERE scope = 'engagement'";
const REVIEWS: &str = "SELECT count(*) FROM reviews WHERE kind <> 'unknown_outcome'";
const DOUBTS: &str = "SELECT count(*) FROM reviews WHERE kind = 'unknown_outcome'";

impl Left {
    async fn by(Scene { fleet, id, .. }: &Scene) -> Self {
        let job = fleet.job(id).await;
        let messages = fleet.get(&format!("/engagements/{}/messages", fleet.engagement_of(id).await)).await;
        let said = messages["messages"].as_array().expect("messages").iter();
        let tools = fleet.tools.calls();
        let mut keys: Vec<_> = tools.iter().map(|call| &call.key).collect();
        keys.sort();
        keys.dedup();
        Self {
            state: job["state"].clone(),
            result: job["result"].clone(),
            said: said.map(|message| (message["role"].clone(), message["content"].clone())).collect(),
            tokens: fleet.number(TOKENS).await,
            checkpoints: fleet.number(journal::CHECKPOINTS).await,
            engagements: fleet.number("SELECT count(*) FROM engagements").await,
            reviews: fleet.number(REVIEWS).await,
            keys: keys.len(),
            money: fleet.number(MONEY).await,
            model_calls: fleet.models.count(),
            tool_calls: tools.len(),
        }
    }
}

/// Runs an engagement without a kill, and returns its writes and its result.
pub async fn undisturbed(mut scene: Scene) -> (Vec<Written>, Left) {
    let mut writes = None;
    let (prices, slots) = (scene.prices, scene.slots);
    scene.fleet.add_worker_with(slots, |mut deps| {
        let ledger = CrashLedger::new(Arc::clone(&deps.ledger), None);
        writes = Some(ledger.writes());
        deps.ledger = Arc::new(ledger);
        worker::with_settings(deps, prices)
    });
    scene.ended().await;
    scene.fleet.stop_workers().await;
    let writes = writes.expect("a worker").lock().unwrap_or_else(PoisonError::into_inner).clone();
    let infer = |write: &Written| write.has(Phase::Infer);
    assert!(writes.iter().any(infer), "no model was asked: {writes:#?}");
    let left = Left::by(&scene).await;
    scene.close().await;
    (writes, left)
}

/// The additional tool calls of a run with a kill.
#[derive(Clone, Copy, Default)]
pub struct Repeated {
    /// The number of repeated calls.
    pub calls: usize,
    /// The cost of the repeated calls, in millionths.
    pub money: i64,
}

/// Asserts that a killed worker leaves the same as an undisturbed one. An answer that was not committed is bought again, and
/// no other one is: that of the job that was killed, or of the next one in its slot.
pub async fn assert_left(scene: &Scene, plain: &Left, kill: &Kill, again: Repeated, at: &str) {
    let left = Left::by(scene).await;
    let lost = usize::from(kill.loses_an_answer());
    let most = lost.max(usize::from(kill.overlaps(plain.engagements)));
    let bought_again = left.model_calls.saturating_sub(plain.model_calls);
    assert!(
        (lost..=most).contains(&bought_again),
        "{bought_again} answers are bought again, {at}: {kill:#?}"
    );
    let expected = Left {
        model_calls: plain.model_calls + bought_again,
        tool_calls: plain.tool_calls + again.calls,
        money: plain.money + again.money,
        ..plain.clone()
    };
    assert_eq!(left, expected, "{at}: {kill:#?}");
    scene.fleet.place.check().await;
}

/// Kills a worker of the scene, lets another one end it, and compares. A call of a tool that is not idempotent is in
/// doubt after the kill; it is repeated only after the reviewer's approval. `price` is the price of such a call, if
/// the scene has one.
pub async fn continues<F: Future<Output = Scene>>(
    set: impl Fn(Backend) -> F,
    (backend, kill): (Backend, &Kill),
    (plain, price): (&Left, Option<i64>),
) -> Scene {
    let at = format!("{} on {backend:?}", kill.point());
    let scene = set(backend).await;
    scene.die(kill).await;
    super::budgets::assert_nothing_reserved(
        &scene.fleet,
        &format!("when the dead worker's lease has ended, {at}"),
    )
    .await;
    scene.end().await;
    let doubts = price.is_some() && kill.doubts_a_call();
    let again = Repeated {
        // A kill before the commit of the outcome comes after the call.
        calls: usize::from(doubts && !kill.after),
        // The intent was already charged.
        money: if doubts { price.unwrap_or_default() } else { 0 },
    };
    assert_left(&scene, plain, kill, again, &at).await;
    assert_eq!(scene.fleet.number(DOUBTS).await, i64::from(doubts), "reviews of unknown outcomes, {at}");
    scene
}

/// Runs the kills around the writes of one kind, on alternating databases.
pub async fn around<F: Future<Output = Scene>>(kind: &str, set: impl Fn(Backend) -> F, price: Option<i64>) {
    let (writes, plain) = undisturbed(set(Backend::Sqlite).await).await;
    let kills: Vec<_> = kills(&writes).into_iter().filter(|kill| kill.write.kind == kind).collect();
    assert!(!kills.is_empty(), "no write is a {kind}: {writes:#?}");
    for (backend, kill) in shared_out(&kills) {
        continues(&set, (backend, kill), (&plain, price)).await.close().await;
    }
}

/// Kills a worker of the scene each time the job waits, and answers after its death; another worker continues. Asserts
/// that as many waits as expected are left as an undisturbed run leaves them.
pub async fn killed_at_each_wait<F: Future<Output = Scene>>(
    set: impl Fn(Backend) -> F,
    backend: Backend,
    (plain, waits): (&Left, usize),
) {
    let scene = set(backend).await;
    let engagement = scene.fleet.engagement_of(&scene.id).await;
    let mut kills = 0;
    loop {
        let mut worker = start(&scene.fleet, scene.slots, 15_000, scene.prices, None);
        let reached = [JobState::Completed, JobState::Discarded, JobState::Pending];
        if scene.fleet.wait_for(&scene.id, &reached).await["state"] != "pending" {
            break;
        }
        worker.start_kill().expect("a worker that runs");
        super::killed(worker).await;
        kills += 1;
        approve(&scene.fleet).await;
        answer(&scene.fleet, &engagement).await;
    }
    assert_eq!(kills, waits, "waits on {backend:?}");
    assert_eq!(Left::by(&scene).await, *plain, "on {backend:?}");
    scene.close().await;
}

/// Runs every kill of a scene, on both databases.
pub async fn at_every_write<F: Future<Output = Scene>>(set: impl Fn(Backend) -> F, price: Option<i64>) {
    join_all(Backend::ALL.map(async |backend| {
        let (writes, plain) = undisturbed(set(backend).await).await;
        for kill in kills(&writes) {
            continues(&set, (backend, &kill), (&plain, price)).await.close().await;
        }
    }))
    .await;
}
