//! `dev --demo`: the example job from its first event to its result, also when the process is killed in between.

use super::Dev;
use serde_json::Value;
use turnstone_domain::Phase;
use turnstone_domain::schema::Schema;
use turnstone_examples::RESEARCH_JOB;

/// Returns the only job of the demo's type.
async fn demo_job(dev: &Dev) -> Value {
    let jobs = dev.get("/ojs/v1/admin/jobs?type=agent.research").await;
    assert_eq!(jobs["pagination"]["total"], 1, "{jobs:#}");
    jobs["items"][0].clone()
}

fn is_answer(name: &str, event: &Value) -> bool {
    name == "phase.completed" && event["data"]["phase"] == "infer"
}

async fn assert_complete(dev: &Dev, id: &str, attempt: i64) {
    let job = dev.get(&format!("/ojs/v1/jobs/{id}")).await["job"].clone();
    assert_eq!((&job["state"], &job["attempt"]), (&"completed".into(), &attempt.into()), "{job:#}");
    let sent: Value = serde_json::from_str(RESEARCH_JOB).unwrap();
    for (field, value) in sent.as_object().unwrap().iter().filter(|(field, _)| *field != "options") {
        assert_eq!(&job[field], value, "field {field} differs from the sent one");
    }
    Schema::compile(&sent["ext_agent_output_schema"]).unwrap().check(&job["result"]).unwrap();
    assert_eq!(job["ext_agent_model_used"], "scripted:gpt-4o", "a script must be named as such");
    assert_eq!(job["ext_agent_tool_results"].as_array().unwrap().len(), 2);

    let engagement = job["ext_agent_engagement_id"].as_str().unwrap();
    let checkpoints = dev.get(&format!("/engagements/{engagement}/checkpoints?per_page=100")).await;
    let checkpoints = checkpoints["checkpoints"].as_array().unwrap();
    let phases: Vec<(i64, &str)> =
        checkpoints.iter().map(|c| (c["turn"].as_i64().unwrap(), c["phase"].as_str().unwrap())).collect();
    let expected: Vec<(i64, &str)> =
        (1..=3).flat_map(|turn| Phase::ALL.map(|phase| (turn, phase.as_str()))).collect();
    assert_eq!(phases, expected, "each phase of each turn is committed once");
    let tokens = |field: &str| checkpoints.iter().filter_map(|c| c[field].as_i64()).sum::<i64>();
    assert_eq!(job["ext_agent_tokens_used"], tokens("tokens_in") + tokens("tokens_out"));
}

#[tokio::test]
async fn the_demo_runs_its_job_and_suggests_commands() {
    let folder = turnstone_tests::scratch::folder();
    let mut dev = Dev::start(folder.path(), &["--demo"]).await;
    let said = dev.says("Ctrl-C stops me.").await;
    let job = demo_job(&dev).await;
    let id = job["id"].as_str().unwrap();
    assert_complete(&dev, id, 1).await;
    for words in [
        "a script and no model",
        "no API key is needed",
        "faq-desk, release-notes, travel-desk",
        "BUDGET LEFT",
        "web_search",
        "https://quantum.example/",
        "2,658 of 50,000 tokens used",
        &format!("result of {id}"),
    ] {
        assert!(said.contains(words), "{words:?} is missing:\n{said}");
    }
    let data = folder.path().join("data");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    paste_the_next_commands(&dev, &said).await;
    dev.signal("INT");
    assert_eq!(dev.ended().await, Some(0));
    dev.database().check().await;
}

/// Runs the suggested commands as printed, except those that start a server.
async fn paste_the_next_commands(dev: &Dev, said: &str) {
    let next = said.split_once("Five things to try next").expect("the next commands").1;
    let program = turnstone_tests::binaries::turnstone().display().to_string();
    let commands: Vec<&str> = next
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(&program) && !line.contains(" dev "))
        .collect();
    assert_eq!(commands.len(), 6, "{next}");
    assert!(next.contains(&format!("kill -9 {}", dev.program.pid())), "{next}");
    let mut outputs = Vec::new();
    for command in commands {
        let mut shell = tokio::process::Command::new("sh");
        super::without_environment(&mut shell).arg("-c").arg(command).current_dir(dev.program.folder());
        let output = shell.output().await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&output.stderr));
        if command.contains("--agent travel-desk") {
            dev.events(said.trim(), |name, _| name == "job.parked").await;
        }
        outputs.push(said);
    }
    let [get, list, watched, booking, reviews, _approved] = outputs.as_slice() else { panic!("{outputs:?}") };
    assert_eq!(serde_json::from_str::<Value>(get).unwrap()["state"], "completed");
    assert!(list.contains("agent.research") && watched.contains("result of"), "{list}\n{watched}");
    assert!(reviews.contains("travel-manager"), "{reviews}");
    let id = booking.trim();
    dev.events(id, |name, _| name == "job.completed").await;
    let booked = dev.get(&format!("/ojs/v1/jobs/{id}")).await;
    assert_eq!(booked["job"]["result"]["booking_reference"], "TS-0001", "{booked:#}");
}

#[tokio::test]
async fn a_killed_demo_resumes_the_same_job() {
    let folder = turnstone_tests::scratch::folder();
    let mut dev = Dev::start(folder.path(), &["--demo"]).await;
    dev.says("BUDGET LEFT").await;
    let id = demo_job(&dev).await["id"].as_str().unwrap().to_owned();
    dev.events(&id, is_answer).await;
    dev.signal("KILL");
    assert_eq!(dev.ended().await, None, "SIGKILL leaves no exit code");

    let mut dev = Dev::start(folder.path(), &["--demo"]).await;
    let said = dev.says("Ctrl-C stops me.").await;
    assert!(said.contains(&format!("{id} was left unfinished and resumes")), "{said}");
    assert!(said.contains("1 job of an earlier run resumes"), "{said}");
    assert_eq!(demo_job(&dev).await["id"], id.as_str(), "the demo enqueues no second job");
    assert_complete(&dev, &id, 2).await;
    dev.signal("TERM");
    assert_eq!(dev.ended().await, Some(0));
    dev.database().check().await;
}
