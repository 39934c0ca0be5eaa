//! An unreachable provider delays jobs and loses none (RS-26, RS-47); OSSA's retries within a turn (RS-25).

use super::{push, register};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Gate, Reply, wait};

/// A model that fails until `well` is set, and always fails for jobs with the input "poison".
fn model(well: &Arc<AtomicBool>) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    let well = Arc::clone(well);
    move |request: &Value| {
        let poison = request["messages"].to_string().contains("poison");
        match well.load(Ordering::SeqCst) && !poison {
            false => Reply::Status(503),
            true => Reply::text("back"),
        }
    }
}

fn job(input: &str) -> Value {
    json!({"type": "agent.x", "args": [input], "ext_agent_model": "m"})
}

async fn in_state(fleet: &Fleet, states: &str) -> i64 {
    fleet.number(&format!("SELECT count(*) FROM jobs WHERE state IN ({states})")).await
}

/// RS-47: the failures of twenty jobs open the breaker. The other jobs make no call, wait as `retryable`, and use no
/// attempt of their policy. All complete when the provider is back, before their own retry times.
#[tokio::test]
async fn an_outage_of_a_minute_delays_jobs_and_loses_none() {
    for backend in Backend::ALL {
        let well = Arc::new(AtomicBool::new(false));
        let fleet = Fleet::builder().on(backend).model(model(&well)).start().await;
        let mut ids = Vec::new();
        for _ in 0..40 {
            ids.push(fleet.push(&job("hi")).await);
        }
        fleet.until("every job has failed", async || in_state(&fleet, "'retryable'").await == 40).await;
        let called = fleet.models.count();
        assert!((20..35).contains(&called), "{called} calls: those under way when it opens are made");
        assert_eq!(
            fleet.number("SELECT count(*) FROM breaker_waits").await,
            40 - i64::try_from(called).unwrap()
        );
        let refused = "SELECT count(*) FROM jobs WHERE failures > 0";
        assert_eq!(fleet.number(refused).await, 0, "a refusal is no failure");
        // A trial call fails about once a second.
        for _ in 0..6 {
            fleet.clock.advance_ms(10_000);
            fleet.tick().await;
            let active = "'active', 'available'";
            fleet.until("the trial call is over", async || in_state(&fleet, active).await == 0).await;
        }
        let lost = "'completed', 'discarded'";
        assert_eq!(in_state(&fleet, lost).await, 0);
        well.store(true, Ordering::SeqCst);
        // The breaker is half-open after a second. From then on the waiting jobs need no further time.
        fleet.clock.advance_ms(1_100);
        fleet.tick().await;
        released(&fleet).await;
        assert_eq!(fleet.get("/breakers").await["breakers"], json!([]));
        for _ in 0..20 {
            fleet.clock.advance_ms(300_000);
            fleet.tick().await;
        }
        for id in &ids {
            let done = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("back")), "{done:#}");
        }
        fleet.end().await;
    }
}

/// The jobs that wait for a breaker.
const WAITING: &str = "SELECT count(*) FROM breaker_waits AS w JOIN jobs AS j ON j.seq = w.job_seq \
                       WHERE j.state = 'retryable' AND j.attempt = w.attempt";

/// Waits until no job waits for a breaker. A job that is refused just before the breaker closes is released by the scheduler.
async fn released(fleet: &Fleet) {
    let none = async || {
        fleet.tick().await;
        fleet.number(WAITING).await == 0
    };
    fleet.until("no job waits for the breaker", none).await;
}

/// RS-47: a worker is killed in the trial call of a half-open breaker. When its lease has expired, the trial's place
/// is free again. In real time, all jobs are released long before another trial call may replace it (60 s), and
/// before a job becomes due by itself (30 s).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_in_a_trial_call_delays_no_job() {
    for backend in Backend::ALL {
        let (well, gate) = (Arc::new(AtomicBool::new(false)), Gate::default());
        let (answers, held) = (Arc::clone(&well), gate.clone());
        let script = move |_: &Value| match answers.load(Ordering::SeqCst) {
            false => Reply::Status(503),
            true => Reply::text("back").behind(&held),
        };
        let fleet = Fleet::builder().on(backend).workers(0).in_real_time().model(script).start().await;
        for _ in 0..40 {
            fleet.push(&job("hi")).await;
        }
        let mut victim = crate::crash::spawn(&fleet, 4, None);
        let refused =
            async || in_state(&fleet, "'active', 'available'").await == 0 && fleet.number(WAITING).await > 0;
        fleet.until("jobs wait for the breaker", refused).await;
        let called = fleet.models.count();
        well.store(true, Ordering::SeqCst);
        let trial = async || {
            fleet.tick().await;
            fleet.models.count() > called
        };
        fleet.until("a trial call is under way", trial).await;
        victim.start_kill().unwrap();
        crate::crash::killed(victim).await;
        fleet.release_all().await;
        gate.open();
        let other = crate::crash::spawn(&fleet, 4, None);
        let none = async || {
            fleet.tick().await;
            fleet.number(WAITING).await == 0
        };
        wait::until_within("no job waits for the breaker", Duration::from_secs(25), none).await;
        let closed = async || fleet.get("/breakers").await["breakers"] == json!([]);
        fleet.until("the breaker is closed", closed).await;
        let completed = async || {
            fleet.tick().await;
            in_state(&fleet, "'completed'").await == 40
        };
        fleet.until("all jobs complete", completed).await;
        drop(other);
        fleet.end().await;
    }
}

/// Ten jobs whose model always fails do not delay the others: those complete while no time passes.
#[tokio::test]
async fn ten_failing_jobs_delay_no_other() {
    let well = Arc::new(AtomicBool::new(true));
    let fleet = Fleet::builder().model(model(&well)).start().await;
    for _ in 0..10 {
        fleet.push(&job("poison")).await;
    }
    fleet.until("all ten have failed", async || in_state(&fleet, "'retryable'").await == 10).await;
    for round in 1..=4 {
        for _ in 0..10 {
            fleet.push(&job("hi")).await;
        }
        let done = "the good jobs of this round complete";
        fleet.until(done, async || in_state(&fleet, "'completed'").await == 10 * round).await;
        // The ten fail once more.
        fleet.clock.advance_ms(60_000);
        fleet.tick().await;
        let failed = 10 * (round + 1);
        let all = "SELECT count(*) FROM job_errors";
        fleet.until("the ten have failed again", async || fleet.number(all).await >= failed).await;
    }
    assert_eq!(fleet.number("SELECT count(*) FROM breaker_waits").await, 0, "no job was refused");
    fleet.end().await;
}

/// A reset closes the breaker at once and releases every job that waits for it.
#[tokio::test]
async fn a_reset_releases_the_waiting_jobs() {
    let well = Arc::new(AtomicBool::new(false));
    let fleet = Fleet::builder().model(model(&well)).start().await;
    for _ in 0..30 {
        fleet.push(&job("hi")).await;
    }
    fleet.until("every job has failed", async || in_state(&fleet, "'retryable'").await == 30).await;
    let waited = 30 - i64::try_from(fleet.models.count()).unwrap();
    assert!(waited > 0, "jobs wait for the breaker");
    well.store(true, Ordering::SeqCst);
    let name = fleet.get("/breakers").await["breakers"][0]["name"].as_str().unwrap().to_owned();
    let path = format!("/breakers/{}", name.replace('/', "%2F"));
    let (status, body) = fleet.send(reqwest::Method::DELETE, &path, "").await;
    assert_eq!(status.as_u16(), 200, "{body}");
    let released = "the refused jobs complete";
    fleet.until(released, async || in_state(&fleet, "'completed'").await >= waited).await;
    fleet.clock.advance_ms(300_000);
    fleet.tick().await;
    fleet.until("the others complete", async || in_state(&fleet, "'completed'").await == 30).await;
    fleet.end().await;
}

/// RS-26, RS-47: the same in a quiet fleet, whose few failures do not open a breaker at once, with the default retry
/// policy. A minute without a provider, checked every 2 s, loses no job.
#[tokio::test]
async fn a_job_with_the_default_retries_outlasts_an_outage() {
    let cases = [(Backend::Sqlite, 503), (Backend::Postgres, 500), (Backend::Sqlite, 429)];
    for (backend, wrong) in cases.into_iter().filter(|(backend, _)| Backend::ALL.contains(backend)) {
        let well = Arc::new(AtomicBool::new(false));
        let answers = Arc::clone(&well);
        let script = move |_: &Value| match answers.load(Ordering::SeqCst) {
            false => Reply::Status(wrong),
            true => Reply::text("back"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let id = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
        let step = async |ms: i64| {
            fleet.clock.advance_ms(ms);
            fleet.tick().await;
            let sql = "SELECT count(*) FROM jobs WHERE state IN ('active', 'available')";
            fleet.until("no call is running", async || fleet.number(sql).await == 0).await;
        };
        for _ in 0..40 {
            step(2_000).await;
            assert_eq!(fleet.job(&id).await["state"], "retryable", "{wrong} on {backend:?}");
        }
        let tried = fleet.models.count();
        assert!(tried > 3, "{tried} calls: more than the policy's attempts");
        well.store(true, Ordering::SeqCst);
        for _ in 0..5 {
            step(61_000).await;
        }
        let done = fleet.job(&id).await;
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("back")), "{done:#}");
        fleet.end().await;
    }
}

/// RS-25: an OSSA agent repeats the model call within the turn, as `llm.retry_config` says; no attempt of the job is
/// used.
#[tokio::test]
async fn a_model_call_is_retried_within_the_turn() {
    let tries = AtomicUsize::new(0);
    let fleet = Fleet::builder()
        .model(move |_: &Value| match tries.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Reply::Status(503),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    register(
        &fleet,
        "  llm: {provider: openai, model: m, retry_config: {max_attempts: 3, backoff_strategy: fixed, initial_delay_ms: 1}}",
    )
    .await;
    let id = push(&fleet).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], &done["attempt"]), (&json!("completed"), &json!(1)), "{done:#}");
    assert_eq!(fleet.models.count(), 3);
    let events = fleet.event_names(&id).await;
    assert_eq!(events.iter().filter(|name| *name == "model.retrying").count(), 2);
    let failed = fleet.number("SELECT count(*) FROM job_errors").await;
    assert_eq!(failed, 0);
    fleet.end().await;
}

/// RS-26, RS-47: failures of an outage are counted apart. The first failure of another kind after it counts as the
/// first one.
#[tokio::test]
async fn an_outage_uses_up_no_retry_of_other_failures() {
    for backend in Backend::ALL {
        let tries = AtomicUsize::new(0);
        let script = move |_: &Value| match tries.fetch_add(1, Ordering::SeqCst) {
            0..=2 => Reply::Status(503),
            3 | 4 => Reply::Wire(b"data: {nonsense\n\n".to_vec()),
            _ => Reply::text("done"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let id = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
        for failed in 1..=5 {
            let sql = format!(
                "SELECT count(*) FROM job_errors AS e WHERE {failed} = (SELECT count(*) FROM job_errors)"
            );
            fleet.until("it has failed once more", async || fleet.number(&sql).await == failed).await;
            let job = fleet.wait_for(&id, &[JobState::Retryable, JobState::Discarded]).await;
            assert_eq!(job["state"], "retryable", "{failed} on {backend:?}: {job:#}");
            fleet.clock.advance_ms(61_000);
            fleet.tick().await;
        }
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("done")), "{done:#}");
        fleet.end().await;
    }
}

/// Runs a job with the default retry policy to its end, on a provider that always gives this reply. Returns the
/// number of tries and the sum of the delays after them in milliseconds.
async fn tried(backend: Backend, reply: Reply) -> (usize, i64) {
    let fleet = Fleet::builder().on(backend).model(move |_: &Value| reply.clone()).start().await;
    let id = fleet.push(&json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"})).await;
    let mut delays = 0;
    let ended = loop {
        let job = fleet.settled(&id).await;
        if job["state"] != "retryable" {
            break job;
        }
        let delay = fleet.number("SELECT run_at FROM jobs").await - fleet.now().0;
        // The wait for an open circuit breaker is no try.
        if job["error"]["code"] != "OSSA_CIRCUIT_OPEN" {
            delays += delay;
        }
        assert!(fleet.models.count() < 100, "it is tried for ever");
        fleet.clock.advance_ms(delay);
        fleet.tick().await;
    };
    assert_eq!(ended["state"], "discarded", "{ended:#}");
    let tries = fleet.models.count();
    fleet.end().await;
    (tries, delays)
}

/// RS-26, RS-47: with the default retry policy a job is tried 25 times while its provider is unreachable. More than
/// half an hour passes between the first try and the last. Three tries end a job whose work fails.
#[tokio::test]
async fn an_outage_ends_a_job_after_25_tries_and_half_an_hour() {
    let (tries, delays) = tried(Backend::Sqlite, Reply::Status(503)).await;
    assert!(tries == 25 && delays >= 30 * 60_000, "{tries} tries in {delays} ms");
    let nonsense = Reply::Wire(b"data: {nonsense\n\n".to_vec());
    assert_eq!(tried(Backend::Sqlite, nonsense).await.0, 3);
}

/// RS-26, RS-47: the same with a busy provider, on PostgreSQL.
#[tokio::test]
#[ignore = "long: 25 tries on the second database"]
async fn a_busy_provider_ends_a_job_after_25_tries_and_half_an_hour() {
    let (tries, delays) = tried(Backend::Postgres, Reply::Status(429)).await;
    assert!(tries == 25 && delays >= 30 * 60_000, "{tries} tries in {delays} ms");
}
