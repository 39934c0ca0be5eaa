//! Random values are damaged while jobs of every kind run: each other job completes, and each damaged one says which column.

use super::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use turnstone_tests::{Backend, Place, wait};

/// Numbers that look random and depend on the seed alone.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Values of a job, and the rows of a job with this number that hold them.
const CELLS: [(&str, &str, &str); 12] = [
    ("job_envelopes", "args", "job_seq = {seq}"),
    ("job_envelopes", "meta", "job_seq = {seq}"),
    ("job_envelopes", "options", "job_seq = {seq}"),
    ("job_envelopes", "extra", "job_seq = {seq}"),
    ("job_envelopes", "retry", "job_seq = {seq}"),
    ("jobs", "position", "seq = {seq} AND position IS NOT NULL"),
    ("journal", "body", "job_seq = {seq} AND phases > 0"),
    ("journal", "said", "job_seq = {seq} AND messages > 0"),
    ("tool_calls", "input", "job_seq = {seq}"),
    ("tool_calls", "outcome", "job_seq = {seq} AND outcome IS NOT NULL"),
    ("reviews", "question", "job_seq = {seq} AND state = 'open'"),
    (
        "workflow_steps",
        "job",
        "state = 'waiting' AND workflow_seq = (SELECT workflow_seq FROM jobs WHERE seq = {seq})",
    ),
];

/// The most values that are damaged before workers and reviewers get their turn.
const PER_ROUND: usize = 2;
/// How often a value is thrown for in a round: many jobs have none of the thrown column.
const THROWS: usize = 40;

/// The longest time that all jobs may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// The time after which the scheduler looks at every open review.
const UNTIL_REVIEWS_ARE_READ_MS: i64 = 60_000;

/// Enqueues this many jobs, of every kind in turn.
async fn enqueue(stage: &Stage, jobs: usize) {
    let server = &stage.server;
    let plain = |n: usize| json!({"type": "mail.send", "args": [n], "options": {"queue": "whole"}});
    for n in 0..jobs {
        match n % 5 {
            0 | 1 => {
                server.push(&plain(n)).await;
            }
            2 => {
                let asked = json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "m"});
                server.push(&asked).await;
            }
            3 => {
                let booking = json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "zz-booker"}});
                server.push(&booking).await;
            }
            _ => {
                let chain = json!({"type": "chain", "steps": [plain(n), plain(n)]});
                server.post("/ojs/v1/workflows", &chain).await.expect(201);
            }
        }
    }
}

/// Damages a value of a job that has not ended. Returns the job and the column.
async fn damage(
    place: &Place,
    dice: &mut Dice,
    known: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    let living: Vec<(i64, String)> =
        place.rows("SELECT seq, id FROM jobs WHERE ended_at IS NULL AND queue <> 'q' ORDER BY seq").await;
    let (seq, id) = living.get(dice.below(living.len().max(1)))?;
    if known.contains_key(id) {
        return None;
    }
    let (table, column, rows) = CELLS[dice.below(CELLS.len())];
    let rows = rows.replace("{seq}", &seq.to_string());
    if place.number(&format!("SELECT count(*) FROM {table} WHERE {rows}")).await == 0 {
        return None;
    }
    place.change(&format!("UPDATE {table} SET {column} = '[damaged' WHERE {rows}")).await;
    Some((id.clone(), format!("{table}.{column}")))
}

/// Lets workers over HTTP and reviewers do what waits for them.
async fn serve(stage: &Stage) {
    let fetch = json!({"queues": ["whole"], "count": 20, "worker_id": "w"});
    let fetched = stage.server.post("/ojs/v1/workers/fetch", &fetch).await.expect(200).json();
    for job in fetched["jobs"].as_array().unwrap() {
        let ack = json!({"job_id": job["id"], "result": 1});
        stage.server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    }
    stage.approve().await;
    stage.server.pass_ms(200).await;
}

async fn run(backend: Backend, seed: u64, jobs: usize, cells: usize) {
    let stage = Stage::start(backend).await;
    let place = &stage.server.fleet.place;
    let before = place.number("SELECT coalesce(max(seq), 0) FROM jobs").await;
    enqueue(&stage, jobs).await;
    let (mut dice, mut damaged) = (Dice(seed), BTreeMap::new());
    let living = format!("SELECT count(*) FROM jobs WHERE seq > {before} AND ended_at IS NULL");
    let parked = format!("{living} AND state = 'pending'");
    wait::until_within("all jobs end", PATIENCE, async || {
        let wanted = cells.min(damaged.len() + PER_ROUND);
        for _ in 0..THROWS {
            if damaged.len() < wanted
                && let Some((id, column)) = damage(place, &mut dice, &damaged).await
            {
                damaged.insert(id, column);
            }
        }
        serve(&stage).await;
        let left = place.number(&living).await;
        // Every review that can be read has its answer.
        if left > 0 && left == place.number(&parked).await {
            stage.server.pass_ms(UNTIL_REVIEWS_ARE_READ_MS).await;
        }
        left == 0
    })
    .await;
    assert_eq!(damaged.len(), cells, "seed {seed}: too few jobs were left to damage");
    let ended: Vec<(String, String)> =
        place.rows(&format!("SELECT id, state FROM jobs WHERE seq > {before}")).await;
    let (mut unreadable, mut harmed) = (0, Vec::new());
    for (id, state) in ended {
        match (damaged.get(&id), state.as_str()) {
            (_, "completed") => {}
            (Some(column), "discarded") => {
                is_dead_letter(&stage, &id, column, seed).await;
                unreadable += 1;
            }
            _ => harmed.push((id, state)),
        }
    }
    assert_eq!(harmed, [], "seed {seed}: {damaged:?}");
    let running = "SELECT count(*) FROM workflows WHERE state = 'running' AND name IS NULL";
    assert_eq!(
        place.number(running).await,
        0,
        "seed {seed}: a workflow waits for a step that cannot be read"
    );
    assert!(unreadable > 0, "seed {seed}: no damage was met: {damaged:?}");
    stage.lists_answer("random damage").await;
    stage.server.end().await;
}

async fn is_dead_letter(stage: &Stage, id: &str, column: &str, seed: u64) {
    let job = stage.server.job(id).await;
    let said = job["errors"].to_string() + &job["error"].to_string();
    let column = column.split('.').next_back().unwrap();
    assert!(
        said.contains("JOB_UNREADABLE") && said.contains(&format!("column {column}")),
        "seed {seed}: {column} is not named: {job:#}"
    );
    let dead = stage.server.get(&format!("/ojs/v1/dead-letter/{id}")).await;
    assert_eq!(dead.status, 200, "seed {seed}: {}", dead.text);
    let raw: Value = stage.server.get(&format!("/ojs/v1/admin/jobs/{id}/raw")).await.expect(200).json();
    assert!(raw.to_string().contains("[damaged"), "seed {seed}: {raw:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_damage_harms_its_own_jobs_alone() {
    run(Backend::Sqlite, 20, 60, 5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: 500 jobs on both stores"]
async fn random_damage_beside_500_jobs_harms_its_own_jobs_alone() {
    for backend in Backend::ALL {
        for seed in [1, 2, 3] {
            run(backend, seed, 500, 10).await;
        }
    }
}
