//! Providers that send without end: a worker holds a bounded part of the answer.

use crate::program::Program;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply};

/// How much a provider sends, in pieces of this length, unless the worker disconnects.
const SENT: usize = 512 * 1024 * 1024;
const PIECE: usize = 64 * 1024;
/// The most memory that an answer may cost the worker.
const MOST: u64 = 64 * 1024 * 1024;

/// The bytes that the provider repeats, and the code of the error.
const FLOODS: [(&str, &str); 4] = [
    ("one line", "OSSA_LLM_ERROR"),
    ("comments", "OSSA_LLM_ERROR"),
    ("pieces of an answer", "OSSA_LLM_ERROR"),
    ("an error", "OSSA_LLM_ERROR"),
];

fn flood(name: &str) -> Reply {
    let (status, piece) = match name {
        "one line" => (200, "x".repeat(PIECE)),
        "comments" => (200, format!(": {}\n\n", "x".repeat(PIECE))),
        "pieces of an answer" => {
            let delta = json!({"choices": [{"index": 0, "delta": {"content": "y".repeat(PIECE)}, "finish_reason": null}]});
            (200, format!("data: {delta}\n\n"))
        }
        "an error" => (400, "x".repeat(PIECE)),
        _ => return Reply::text("done"),
    };
    Reply::Repeated(status, piece.into_bytes(), SENT / PIECE)
}

/// Issue 5, "Bad input": 512 MB with and without lines, as an answer and as an error, cost a real worker less than 64 MiB each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_endless_answer_costs_the_worker_a_bounded_amount_of_memory() {
    let script = |request: &Value| {
        let input = request["messages"].as_array().unwrap().iter().find(|m| m["role"] == "user").unwrap();
        flood(input["content"].as_str().unwrap())
    };
    let fleet = Fleet::builder().postgres().in_real_time().workers(0).model(script).start().await;
    let folder = turnstone_tests::scratch::folder();
    let settings = format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_provider = 'test'\ndefault_model = 'm'\n",
        fleet.models.url
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    let database = fleet.place.to_string();
    let env = [("DATABASE_URL", database.as_str())];
    let mut worker = Program::start(folder.path(), &["worker", "--name", "one"], &env);
    worker.first_line("turnstone worker one runs ").await;
    let ended = async |input: &str| {
        let job = json!({"type": "agent.x", "args": [input], "ext_agent_model": "m", "options": {"retry": {"max_attempts": 1}}});
        let id = fleet.push(&job).await;
        fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await
    };
    assert_eq!(ended("nothing").await["state"], "completed");
    let before = worker.memory("VmHWM");
    for (name, code) in FLOODS {
        let job = ended(name).await;
        assert_eq!(job["error"]["code"], code, "{name}: {job:#}");
        match (before, worker.memory("VmHWM")) {
            (Some(before), Some(after)) => {
                eprintln!("{name}: {} bytes more", after - before);
                assert!(after - before < MOST, "{name} cost {} bytes", after - before);
            }
            _ => eprintln!("this system has no /proc: the memory of the worker is not measured"),
        }
    }
    worker.stop().await;
    fleet.end().await;
}
