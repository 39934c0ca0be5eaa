//! A connection breaks at exactly one message. The outcome of a statement that commits itself is looked up and never
//! guessed, and a statement that arrives after the look-up fails.

use serde_json::json;
use turnstone_domain::JobState;
use turnstone_store::{PostgresOptions, Ring};
use turnstone_tests::servers::{Answer, Lost, Postgres, Wire};
use turnstone_tests::{Fleet, Place, journal, wait};

/// Parts of the statement that commits a turn.
const COMMIT: &[&str] = &[", mark AS (", "INSERT INTO journal"];
/// Parts of the statement that commits a settlement.
const SETTLEMENT: &[&str] = &[", mark AS (", "INSERT INTO job_results"];
const CLAIM: &[&str] = &["WITH asked AS MATERIALIZED"];
const LOOK_UP: &[&str] = &["SELECT last_commit FROM writers"];
const GIVE_BACK: &[&str] = &["given AS ("];

fn has(said: &str, words: &[&str]) -> bool {
    words.iter().all(|words| said.contains(words))
}

/// A fleet without workers whose store reaches its database through a recording proxy.
struct Site {
    fleet: Fleet,
    wire: Wire,
    beside: Place,
}

impl Site {
    async fn start() -> Self {
        let postgres = Postgres::shared().await;
        let database = postgres.database().await;
        let beside = Place::from(&database);
        let wire = Wire::start(postgres.addr()).await;
        let options = PostgresOptions { listen: false, ..PostgresOptions::new(database.url_at(wire.addr)) };
        let fleet = Fleet::builder().on_database(database).reached_by(options).workers(0).start().await;
        Self { fleet, wire, beside }
    }

    async fn push(&self) -> String {
        let job = json!({"type": "agent.cut", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 50_000});
        self.fleet.push(&job).await
    }

    /// Adds a worker while a job waits, so that its first claim takes the job.
    fn work(&mut self) {
        self.wire.forget();
        self.fleet.add_worker(4);
        self.fleet.store.doorbell.ring(Ring::Available);
    }

    fn times(&self, words: &[&str]) -> usize {
        self.wire.said().iter().filter(|said| has(said, words)).count()
    }

    /// Waits until the look-up holds the row of its writer: a later statement was sent.
    async fn looked_up(&self) {
        let after = || self.wire.said().iter().skip_while(|said| !has(said, LOOK_UP)).count();
        wait::until("a commit is looked up", async || after() > 1).await;
    }

    /// Asserts that the job ends as if undisturbed: one answer bought, committed and booked.
    async fn ends(&self, id: &str, attempts: i64) {
        let done = self.fleet.wait_for(id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], &done["attempt"]), (&json!("completed"), &json!(attempts)), "{done:#}");
        assert_eq!(done["ext_agent_tokens_used"], 10 + 5, "{done:#}");
        assert_eq!(self.fleet.models.count(), 1, "the model was asked twice");
        assert_eq!(self.beside.number(journal::CHECKPOINTS).await, 7);
        assert_eq!(self.beside.number(&journal::event_count("job.completed")).await, 1);
    }
}

/// Asserts that a late statement fails.
async fn fails_late(late: Lost) {
    let answer = late.arrive().await;
    assert!(matches!(answer, Answer::Failed(_)), "a statement was committed after it was taken for lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_commit_whose_answer_is_lost_is_looked_up() {
    for words in [COMMIT, SETTLEMENT] {
        let mut site = Site::start().await;
        let id = site.push().await;
        let lost = site.wire.lose_the_answer(words);
        site.work();
        assert_eq!(lost.await, Answer::Done, "{words:?}");
        site.ends(&id, 1).await;
        assert_eq!(site.times(LOOK_UP), 1, "{words:?}: {:#?}", site.wire.said());
        // The write before the model call and the settlement: neither was repeated.
        assert_eq!(site.times(COMMIT), 2, "{words:?}: {:#?}", site.wire.said());
        site.fleet.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_commit_that_arrives_after_the_look_up_fails() {
    for words in [COMMIT, SETTLEMENT] {
        let mut site = Site::start().await;
        let id = site.push().await;
        let lost = site.wire.delay(words);
        site.work();
        let late = lost.await;
        site.looked_up().await;
        fails_late(late).await;
        site.ends(&id, 1).await;
        assert_eq!(site.times(LOOK_UP), 1, "{words:?}: {:#?}", site.wire.said());
        site.fleet.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_claim_whose_answer_is_lost_is_released() {
    let mut site = Site::start().await;
    let id = site.push().await;
    let lost = site.wire.lose_the_answer(CLAIM);
    site.work();
    assert_eq!(lost.await, Answer::Done);
    // The claimed job is looked up and released; it is claimed again without using a retry.
    site.ends(&id, 2).await;
    let said = site.wire.said();
    let at = |words: &[&str]| said.iter().position(|said| has(said, words));
    assert!(at(LOOK_UP).zip(at(GIVE_BACK)).is_some_and(|(looked, gave)| looked < gave), "{said:#?}");
    assert_eq!(site.beside.number(&journal::event_count("job.yielded")).await, 1);
    assert!(site.fleet.job(&id).await["errors"].as_array().is_none_or(Vec::is_empty));
    site.fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_claim_that_arrives_after_the_look_up_takes_nothing() {
    let mut site = Site::start().await;
    let first = site.push().await;
    let lost = site.wire.delay(CLAIM);
    site.work();
    let late = lost.await;
    site.ends(&first, 1).await;
    assert!(site.times(LOOK_UP) >= 1, "{:#?}", site.wire.said());
    site.fleet.stop_workers().await;
    // Only the mark keeps the late claim from leasing this job to a worker that is gone.
    let second = site.push().await;
    fails_late(late).await;
    assert_eq!(site.fleet.job(&second).await["state"], "available");
    site.work();
    let completed = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    wait::until("the second job completes", async || site.beside.number(completed).await == 2).await;
    site.fleet.end().await;
}
