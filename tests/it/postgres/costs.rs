//! The cost of a turn and of a plain job, measured from outside: round trips by a proxy that parses the protocol,
//! rows by triggers, commits by transaction ids.

use crate::conformance::jobs::{agent, plain, request};
use std::collections::HashMap;
use turnstone_domain::{Clock as _, JobState, NewJob};
use turnstone_store::{
    ClaimRequest, ConfigChange, JobKind, PostgresOptions, QueueLimits, RemoteOutcome, Report, ReportedEnd,
    Ring,
};
use turnstone_tests::servers::{Database, Postgres, Said, Wire};
use turnstone_tests::{Fleet, Place, wait};

/// Counts each written row. A sequence keeps its value when a transaction is rolled back.
const COUNT_ROWS: &str = "
CREATE SEQUENCE rows_written;
GRANT USAGE, SELECT ON SEQUENCE rows_written TO PUBLIC;
CREATE FUNCTION count_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('rows_written'); RETURN NULL; END $$;
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
        AND relnamespace = 'public'::regnamespace AND relname NOT IN ('_sqlx_migrations', 'workers', 'writers')
    LOOP
        EXECUTE format('CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION count_row()', name);
    END LOOP;
END $$;";

/// A fleet whose database is behind a recording proxy. Queries of the test itself are not counted.
struct Site {
    fleet: Fleet,
    wire: Wire,
    beside: Place,
}

/// The cost of an operation.
#[derive(PartialEq, Eq, Debug)]
struct Cost {
    /// The statements, in order, without the periodic ones of workers and clocks.
    statements: Vec<&'static str>,
    rows: i64,
}

impl Site {
    /// Starts a fleet. An idle worker beats, and in a fleet with limits it claims through the connection of all writes: only a
    /// test of turns has one.
    async fn start(workers: usize) -> Self {
        let database: Database = Postgres::shared().await.database().await;
        let beside = Place::from(&database);
        beside.migrate().await;
        Postgres::shared().await.psql(&database, COUNT_ROWS).await;
        let wire = Wire::start(Postgres::shared().await.addr()).await;
        let options = PostgresOptions { listen: false, ..PostgresOptions::new(database.url_at(wire.addr)) };
        let fleet = Fleet::builder().workers(workers).on_database(database).reached_by(options);
        let fleet = fleet.start().await;
        Self { fleet, wire, beside }
    }

    async fn rows(&self) -> i64 {
        self.beside
            .number("SELECT last_value + CASE WHEN is_called THEN 1 ELSE 0 END FROM rows_written")
            .await
    }

    async fn push(&self, job: NewJob) {
        let pushed = self.fleet.store.intake.push(vec![job]).await.expect("the push");
        assert_eq!(pushed.len(), 1);
    }

    /// Runs an agent's job to its end.
    async fn turn(&self, job: NewJob) {
        let id = job.id.clone();
        self.push(job).await;
        self.fleet.store.doorbell.ring(Ring::Available);
        let state =
            format!("SELECT count(*) FROM jobs WHERE id = '{id}' AND state = '{}'", JobState::Completed);
        wait::until("the job completes", async || self.beside.number(&state).await == 1).await;
    }

    /// Runs a plain job to its end, like a worker over HTTP.
    async fn work(&self) {
        let (remote, at) = (&self.fleet.store.remote, self.fleet.clock.now());
        let request = ClaimRequest { worker_id: String::new(), ..request(JobKind::Plain, 1, at) };
        let job = remote.fetch(request).await.expect("the claim").pop().expect("a job").job.id;
        let end = ReportedEnd::Done { result: "done".into() };
        let report = Report { job, worker: None, tenant: None, token: None, end, at };
        let outcome = remote.report(report).await.expect("the end");
        assert!(matches!(outcome, RemoteOutcome::Done(_)), "{outcome:?}");
    }

    async fn cost_of(&self, work: impl AsyncFnOnce()) -> Cost {
        let rows = self.rows().await;
        self.wire.forget();
        work().await;
        let statements = kinds(&self.wire.said_by_connection());
        Cost { statements, rows: self.rows().await - rows }
    }

    /// Returns the cost of work during which no worker beat. A commit that a beat shares has another form.
    async fn cost_between_beats(&self, work: impl AsyncFn()) -> Cost {
        wait::found("the work runs between two beats", async || {
            let cost = self.cost_of(&work).await;
            let has_beat = self.wire.said().iter().any(|text| is_beat(text));
            (!has_beat).then_some(cost)
        })
        .await
    }
}

/// Returns the kinds of the statements of the work, in order. Periodic statements do not belong to it, nor do their transactions,
/// nor the rest of a transaction that had begun before.
fn kinds(said: &[Said]) -> Vec<&'static str> {
    let mut kinds: Vec<_> = said.iter().map(|said| kind(&said.text)).collect();
    // The statements of each connection since its last transaction.
    let mut since: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, Said { connection, .. }) in said.iter().enumerate() {
        let open = since.entry(*connection).or_default();
        match kinds[at] {
            Some("begin") => *open = vec![at],
            Some("end") => leave_out(&mut kinds, &[std::mem::take(open), vec![at]].concat()),
            _ => open.push(at),
        }
    }
    for open in since.into_values() {
        if open.first().is_some_and(|at| kinds[*at] == Some("begin")) {
            leave_out(&mut kinds, &open);
        }
    }
    kinds.into_iter().flatten().collect()
}

/// Leaves a transaction out, unless it began here and has a statement that is not periodic.
fn leave_out(kinds: &mut [Option<&'static str>], transaction: &[usize]) {
    let has_begun = transaction.first().is_some_and(|at| kinds[*at] == Some("begin"));
    let inside = |at: &usize| kinds[*at].is_some_and(|kind| !["begin", "end"].contains(&kind));
    if !has_begun || !transaction.iter().any(inside) {
        transaction.iter().for_each(|at| kinds[*at] = None);
    }
}

fn is_beat(text: &str) -> bool {
    text.contains("INTO workers") || text.contains("UPDATE workers")
}

/// Returns the kind of a statement, or `None` for a periodic one.
fn kind(text: &str) -> Option<&'static str> {
    let has = |part: &str| text.contains(part);
    match () {
        // Beats, clocks, and the list of open breakers, which are periodic.
        () if is_beat(text) || has("clock_timestamp") || has("FROM breakers") => None,
        () if has("WITH asked AS MATERIALIZED") => Some("claim"),
        () if has("mark AS (") => Some("commit"),
        () if has("BEGIN") => Some("begin"),
        // Alone, or behind the row of a commit with events.
        () if text.trim().ends_with("COMMIT") => Some("end"),
        () => Some("read"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_lone_turn_is_three_round_trips_and_few_rows() {
    let site = Site::start(1).await;
    // The first turn reads the agent's definition and prepares statements.
    site.turn(agent(None)).await;
    let pushed = site.cost_between_beats(async || site.push(plain(0)).await).await;
    assert_eq!(pushed.statements, ["commit"]);
    assert_eq!(pushed.rows, ROWS_OF_PUSH);

    let ran = Box::pin(site.cost_between_beats(async || site.turn(agent(None)).await)).await;
    let (claims, others): (Vec<_>, Vec<_>) = ran.statements.into_iter().partition(|kind| *kind == "claim");
    assert!(!claims.is_empty());
    // The push, the write before the model call, the settlement.
    assert_eq!(others, ["commit", "commit", "commit"], "{:#?}", site.wire.said());
    assert_eq!(ran.rows, ROWS_OF_PUSH_AND_TURN);
    site.fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_queue_with_a_bound_costs_one_refused_statement_only_once() {
    let site = Site::start(0).await;
    let limits = QueueLimits { max_depth: Some(9), ..QueueLimits::default() };
    let change = ConfigChange { limits: Some(limits), ..ConfigChange::default() };
    site.fleet.store.queues.configure("q", change, site.fleet.clock.now()).await.expect("the bound");
    let first = site.cost_of(async || site.push(plain(0)).await).await;
    let second = site.cost_of(async || site.push(plain(0)).await).await;
    // The statement that pushes without a look is a transaction of its own; the push with a look has a begin and an end.
    let times = |cost: &Cost, kind| cost.statements.iter().filter(|statement| **statement == kind).count();
    assert_eq!((times(&first, "commit"), times(&first, "end")), (1, 1), "{first:?}");
    assert_eq!((times(&second, "commit"), times(&second, "end")), (0, 1), "{second:?}");
    site.fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_plain_job_is_claimed_and_ended_in_one_statement_each() {
    let site = Site::start(0).await;
    site.push(plain(0)).await;
    site.work().await;
    site.push(plain(0)).await;
    let worked = site.cost_of(async || site.work().await).await;
    // After the claim the job is read for the response; before the end, what belongs to it.
    assert_eq!(worked.statements, ["claim", "read", "read", "commit"]);
    assert_eq!(worked.rows, ROWS_OF_WORK);
    site.fleet.end().await;
}

/// Job, journal and commit at the claim; the same and the result at the end.
const ROWS_OF_WORK: i64 = 7;
/// A job, its envelope, its event, the commit.
const ROWS_OF_PUSH: i64 = 4;
/// The same with engagement and totals; and for the turn: the job three times; totals, journal and commit twice; and the result.
const ROWS_OF_PUSH_AND_TURN: i64 = 16;
