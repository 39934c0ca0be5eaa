//! Groups of reviewers, with the real program on both databases. The worker that opened the review and the API that
//! recorded votes are killed; another worker and another API continue.

use crate::program::{Program, Ran, run};
use serde_json::json;
use turnstone_tests::model_server::booking;
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::{Backend, ModelServer, ToolServer, fleet, wait};

const AGENT: &str = "kind: \"openagentspec:v1/agent\"\nname: booker\ndescription: An agent that books.\nintent: You book.\n\
                     owner: olga\ncapabilities:\n  book:\n    user_identity: false\n    input_restriction:\n      \
                     require_review: board\n";
const JOB: [&str; 9] =
    ["job", "push", "--type", "agent.book", "--agent", "booker", "--args", "[\"book it\"]", "-o"];

/// A fleet on PostgreSQL in separate processes, or one process on SQLite.
struct House {
    folder: tempfile::TempDir,
    database: Option<Database>,
    models: ModelServer,
    tools: ToolServer,
    api: Option<Program>,
    worker: Option<Program>,
    scheduler: Option<Program>,
    url: String,
}

impl House {
    /// Starts all processes, and registers the agent.
    async fn open(backend: Backend, groups: &str) -> Self {
        fleet::install_crypto();
        let database = match backend {
            Backend::Postgres => Some(Postgres::shared().await.database().await),
            Backend::Sqlite => None,
        };
        let (models, tools) = (ModelServer::start(booking).await, ToolServer::start().await);
        let folder = turnstone_tests::scratch::folder();
        let settings = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n\
             [tools.book]\ndescription = 'Book it.'\nurl = '{}/book'\nallow_private = true\n{groups}",
            models.url, tools.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
        std::fs::write(folder.path().join("booker.yaml"), AGENT).expect("a file");
        let (api, worker, scheduler) = (None, None, None);
        let mut house = Self { folder, database, models, tools, api, worker, scheduler, url: String::new() };
        if house.database.is_some() {
            assert_eq!(house.local(&["migrate"]).await.code, Some(0));
            let mut scheduler = house.start(&["scheduler"]);
            scheduler.first_line("turnstone scheduler ").await;
            house.scheduler = Some(scheduler);
        }
        house.begin("first").await;
        let applied = house.ask(&["agent", "apply", "booker.yaml"]).await;
        assert_eq!(applied.code, Some(0), "{applied:?}");
        house
    }

    fn env(&self) -> Vec<(&str, &str)> {
        self.database.iter().map(|database| ("DATABASE_URL", database.url.as_str())).collect()
    }

    fn start(&self, arguments: &[&str]) -> Program {
        Program::start(self.folder.path(), arguments, &self.env())
    }

    async fn local(&self, arguments: &[&str]) -> Ran {
        run(self.folder.path(), arguments, &self.env()).await
    }

    /// Starts an API process, and a worker of this name.
    async fn begin(&mut self, worker: &str) {
        let arguments: &[&str] = match self.database {
            Some(_) => &["api", "--bind", "127.0.0.1:0"],
            None => &["dev", "--data", "data", "--bind", "127.0.0.1:0"],
        };
        let mut api = self.start(arguments);
        self.url = api.first_line("turnstone listens on ").await;
        self.api = Some(api);
        if self.database.is_some() {
            let mut program = self.start(&["worker", "--name", worker]);
            program.first_line(&format!("turnstone worker {worker} runs ")).await;
            self.worker = Some(program);
        }
    }

    /// Kills the API process and the worker with SIGKILL.
    async fn kill(&mut self) {
        for mut program in [self.worker.take(), self.api.take()].into_iter().flatten() {
            program.signal("KILL");
            assert_eq!(program.ended().await, None);
        }
    }

    /// Runs a command against the running API.
    async fn ask(&self, arguments: &[&str]) -> Ran {
        run(self.folder.path(), &[arguments, &["--url", &self.url]].concat(), &[]).await
    }

    async fn answer(&self, verb: &str, review: &str, by: &str) -> Ran {
        self.ask(&["review", verb, review, "--by", by, "--reason", "because", "-o", "json"]).await
    }

    async fn event(&self, job: &str, name: &str) {
        let url = format!("{}/ojs/v1/jobs/{job}/events", self.url);
        let reading = turnstone_tests::sse::read(&url, None, |seen| {
            seen.last().is_some_and(|event| event.event == name || event.event == "job.discarded")
        });
        let seen = wait::output("an event of the job", reading).await;
        assert_eq!(seen.last().map(|event| event.event.as_str()), Some(name));
    }

    /// Enqueues a job that parks for its reviewers, and returns its id and the review's.
    async fn parked(&self) -> (String, String) {
        let pushed = self.ask(&[&JOB[..], &["ids"]].concat()).await;
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        let job = pushed.stdout.trim().to_owned();
        self.event(&job, "job.parked").await;
        let review = self.ask(&["review", "list", "-o", "ids"]).await.stdout.trim().to_owned();
        assert!(!review.is_empty() && !review.contains('\n'), "{review}");
        (job, review)
    }

    /// Asserts that the job completed with one tool call, and was charged once.
    async fn booked(&self, job: &str) {
        self.event(job, "job.completed").await;
        let done = self.ask(&["job", "get", job, "-o", "json"]).await.json();
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("booked")), "{done:#}");
        assert_eq!((self.tools.calls().len(), self.models.calls().len()), (1, 2));
    }

    async fn close(mut self) {
        for program in [self.worker.take(), self.api.take(), self.scheduler.take()].into_iter().flatten() {
            program.stop().await;
        }
    }
}

/// OAS-31, OAS-32: votes survive the worker that opened the review and the API that recorded them. Two of three
/// approve across both, each has one vote, a stranger has none, and nothing is called or charged twice.
#[tokio::test]
async fn votes_of_a_group_survive_a_killed_worker_and_a_killed_api() {
    let board = "[reviews.groups.board]\nmembers = ['ann', 'ben', 'cem']\nquorum = 2\n";
    for backend in Backend::ALL {
        let mut house = House::open(backend, board).await;
        let (job, review) = house.parked().await;
        let first = house.answer("approve", &review, "ann").await;
        assert_eq!((first.code, &first.json()["state"]), (Some(0), &json!("open")), "{first:?}");
        house.kill().await;
        assert!(house.tools.calls().is_empty(), "one of two is not enough");
        house.begin("second").await;
        let again = house.answer("approve", &review, "ann").await;
        assert_eq!(again.code, Some(5), "the first vote is on record: {again:?}");
        let stranger = house.answer("approve", &review, "mallory").await;
        assert_eq!(stranger.code, Some(3), "{stranger:?}");
        let shown = house.ask(&["review", "show", &review]).await.stdout;
        assert!(shown.contains("1 yes, 0 no; 2 of 3 have to agree"), "{shown}");
        let no = house.answer("reject", &review, "ben").await;
        assert_eq!((no.code, &no.json()["state"]), (Some(0), &json!("open")), "{no:?}");
        let decided = house.answer("approve", &review, "cem").await;
        assert_eq!((decided.code, &decided.json()["state"]), (Some(0), &json!("approved")), "{decided:?}");
        house.booked(&job).await;
        house.close().await;
    }
}

/// The same with silence: the review escalates to the next step although all processes of the first step are dead.
/// Then only the next step's reviewer may answer.
#[tokio::test]
async fn a_review_escalates_although_worker_and_api_were_killed() {
    let board = "[reviews.groups.board]\nmembers = ['ann', 'ben', 'cem']\nquorum = 2\nanswer_within_ms = 1000\n\
                 escalate_to = 'chair'\n[reviews.groups.chair]\nmembers = ['olga']\nanswer_within_ms = 6000000\n";
    for backend in Backend::ALL {
        let mut house = House::open(backend, board).await;
        let (job, review) = house.parked().await;
        house.kill().await;
        house.begin("second").await;
        house.event(&job, "review.escalated").await;
        let late = house.answer("approve", &review, "ann").await;
        assert_eq!(late.code, Some(3), "{late:?}");
        let decided = house.answer("approve", &review, "olga").await;
        assert_eq!((decided.code, &decided.json()["state"]), (Some(0), &json!("approved")), "{decided:?}");
        house.booked(&job).await;
        house.close().await;
    }
}
