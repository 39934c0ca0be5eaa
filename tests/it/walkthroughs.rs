//! The walkthroughs and the procedures of the pages, from their own files and commands.

use crate::agent_spec::{end, flow, part, start, then};
use crate::pages::{block_with, blocks, run_script, script, write_files};
use crate::program::Ran;
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::servers::{Port, Postgres, need_sqlite_shell};

const PAGE: &str = "docs/WALKTHROUGHS.md";

/// The variables of a server on a port of its own.
fn place(port: &Port) -> [(&'static str, String); 2] {
    let address = port.addr();
    [("TURNSTONE_SERVER__BIND", address.to_string()), ("TURNSTONE_URL", format!("http://{address}"))]
}

/// Runs a script with a port of its own and further variables.
async fn play(folder: &Path, script: &str, env: &[(&str, &str)]) -> Ran {
    let port = Port::reserve();
    let place = place(&port);
    let place = place.iter().map(|(name, value)| (*name, value.as_str()));
    let env: Vec<(&str, &str)> = place.chain(env.iter().copied()).collect();
    let ran = run_script(folder, script, &env).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    ran
}

fn lines(folder: &Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Plays the batch with so many jobs, and checks its results.
async fn batch(jobs: usize) {
    let folder = turnstone_tests::scratch::folder();
    let blocks = blocks(PAGE, "## A batch");
    write_files(folder.path(), &blocks);
    let ran = play(folder.path(), &script(&blocks, "sh"), &[("JOBS", &jobs.to_string())]).await;
    let (done, failed) = (jobs - jobs / 50, jobs / 50);
    let progress = format!("run=7: {done} of {jobs} done, {failed} failed (");
    assert!(ran.stdout.contains(&progress) && ran.stdout.contains("some jobs failed"), "{ran:?}");
    assert!(ran.stdout.contains(&format!("would retry {failed} jobs")), "{ran:?}");
    let ids = std::fs::read_to_string(folder.path().join("ids.txt")).unwrap();
    let ids: std::collections::BTreeSet<&str> = ids.lines().collect();
    let results = lines(folder.path(), "results.jsonl");
    assert!(results.iter().all(|job| ids.contains(job["id"].as_str().unwrap())) && ids.len() == jobs);
    let with = |state: &str| results.iter().filter(|job| job["state"] == state).count();
    assert_eq!((results.len(), with("completed"), with("discarded")), (jobs, done, failed));
    for (at, job) in results.iter().enumerate() {
        let said = job["result"].as_str().unwrap_or_default();
        assert!(said.contains(&format!(" {}.", at + 1)) || job["error"]["code"].is_string(), "{job}");
    }
}

#[tokio::test]
async fn a_batch_is_played_from_the_page() {
    batch(100).await;
}

#[tokio::test]
#[ignore = "long: 5,000 jobs of agents"]
async fn a_batch_of_5000_jobs_is_played_from_the_page() {
    batch(5_000).await;
}

#[tokio::test]
async fn a_research_agent_is_played_from_the_page() {
    let folder = turnstone_tests::scratch::folder();
    let blocks = blocks(PAGE, "## A research agent");
    write_files(folder.path(), &blocks);
    let ran = play(folder.path(), &script(&blocks, "sh"), &[]).await;
    for words in [
        "save-artifact",
        "The report is saved: ",
        "report.md",
        "calls fact-checker",
        "they part in turn 4, phase ",
        "the same: 4 turns, ",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}\n{}", ran.stdout, ran.stderr);
    }
}

/// The fleet is scaled up and down, drained, killed, backed up and restored.
#[tokio::test]
#[ignore = "long: a fleet of processes, two clusters of PostgreSQL, and leases that run out"]
async fn a_fleet_is_played_from_the_page() {
    let folder = turnstone_tests::scratch::folder();
    let all = blocks(PAGE, "## A fleet");
    write_files(folder.path(), &all);
    let server = Postgres::own().await;
    let database = server.database().await;
    // The API stays up during the backup: the script waits for the file that says so.
    let stop = blocks(PAGE, "### After a restore").remove(0).text;
    let commands = script(&all, "sh").replace(&stop, "");
    let waits = "touch ready\nuntil [ -e copied ]; do sleep 0.1; done\n";
    let first = format!("{commands}{waits}{stop}");
    let playing = async { play(folder.path(), &first, &[("DATABASE_URL", &database.url)]).await };
    let copying = async {
        turnstone_tests::wait::until_within(
            "the backup is due",
            turnstone_tests::wait::PATIENCE * 4,
            async || folder.path().join("ready").exists(),
        )
        .await;
        let restored = server.restored_from_backup().await;
        std::fs::write(folder.path().join("copied"), "").unwrap();
        restored
    };
    let (ran, restored) = tokio::join!(playing, copying);
    assert!(ran.stdout.contains("night: 200 of 200 done") && ran.stdout.contains("was killed"), "{ran:?}");
    assert_eq!(lines(folder.path(), "results.jsonl").len(), 200);
    server.stop_immediate().await;
    let copy = restored.named(&database.name);
    let ran = play(folder.path(), &script(&all, "sh restored"), &[("DATABASE_URL", &copy.url)]).await;
    assert!(ran.stdout.contains("morning: 200 of 200 done"), "{ran:?}");
    assert_eq!(
        lines(folder.path(), "night.jsonl"),
        lines(folder.path(), "results.jsonl"),
        "what was done stays"
    );
}

/// Waits until the server of this address answers.
fn until_served(url: &str) -> String {
    format!("until turnstone queue list --url {url} > /dev/null 2>&1; do sleep 0.2; done\n")
}

/// A script beside a server that starts before and ends behind it.
fn served(script: &str) -> String {
    let until = until_served("\"$TURNSTONE_URL\"");
    format!("turnstone dev &\nserver=$!\n{until}{script}kill \"$server\"\nwait \"$server\"\n")
}

/// Keys, freezes and the audit.
#[tokio::test]
async fn the_commands_of_security_run_as_they_stand() {
    let folder = turnstone_tests::scratch::folder();
    write_files(folder.path(), &blocks(PAGE, "## A batch"));
    std::fs::write(folder.path().join("desk.yaml"), turnstone_tests::documents::oas("desk", "")).unwrap();
    // The page cannot know the end of a chain.
    let noted = "\"$(turnstone audit verify | sed -n 's/^end of the chain: //p')\"";
    let commands = script(&blocks("docs/SECURITY.md", ""), "sh").replace("4211:9f86d081…", noted);
    let ran = play(folder.path(), &served(&commands), &[]).await;
    for words in ["the whole fleet is frozen", "tenant acme is no longer frozen", "none missing, changed or"]
    {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    assert_eq!(lines(folder.path(), "audit.ndjson").len(), 9, "one entry for each change");
}

/// The values of credentials need a key that encrypts them.
#[tokio::test]
async fn the_commands_of_openagentspec_run_as_they_stand() {
    let folder = turnstone_tests::scratch::folder();
    write_files(folder.path(), &blocks(PAGE, "## A batch"));
    let commands = script(&blocks("docs/OPENAGENTSPEC.md", ""), "sh");
    let env = [
        ("TURNSTONE_ENCRYPTION__KEY", "env:TEST_KEY"),
        ("TEST_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="),
        ("CRM_KEY", "crm-secret-1"),
        ("KEY_OF_U17", "user-secret-1"),
        ("KEY_OF_U17_AT_ACME", "member-secret-1"),
    ];
    let ran = play(folder.path(), &served(&commands), &env).await;
    for owner in ["static:desk", "user:u-17", "member:acme:u-17"] {
        assert!(ran.stdout.contains(owner), "{owner}: {ran:?}");
    }
    assert!(!ran.stdout.contains("secret-1") && !ran.stderr.contains("secret-1"), "{ran:?}");
}

#[tokio::test]
async fn the_script_of_the_scripted_model_runs_as_it_stands() {
    let folder = turnstone_tests::scratch::folder();
    let all = blocks("docs/SCRIPTED-MODEL.md", "");
    std::fs::write(folder.path().join("turnstone.toml"), script(&all, "toml")).unwrap();
    std::fs::write(folder.path().join("script.yaml"), script(&all, "yaml")).unwrap();
    let push = script(&all, "sh").replace("turnstone dev\n", "");
    let ran = play(folder.path(), &served(&push), &[]).await;
    assert!(ran.stdout.contains("You said hello."), "{ran:?}");
}

/// A flow whose model is in a second document, and whose key is in the registry.
#[tokio::test]
async fn the_commands_of_agent_spec_run_as_they_stand() {
    let folder = turnstone_tests::scratch::folder();
    write_files(folder.path(), &blocks(PAGE, "## A batch"));
    let reference = |id: &str| json!({"$component_ref": id});
    let greet = json!({"llm_config": reference("llm"), "prompt_template": "Say hello."});
    let greet = part("LlmNode", "greet", greet);
    let flow = flow(
        "greeting",
        &[start("start", &[]), greet, end("end", &[])],
        &[then("start", "greet"), then("greet", "end")],
        &[],
    );
    let fields =
        json!({"model_id": "m", "url": "https://models.example/v1", "api_key": reference("llm.api_key")});
    let model = part("OpenAiCompatibleConfig", "llm", fields);
    let agent = part("Agent", "clerk", json!({"llm_config": reference("llm"), "system_prompt": "Be short."}));
    let documents = [
        ("flow.yaml", flow),
        ("agent.yaml", agent),
        ("parts.yaml", json!({"$referenced_components": {"llm": model}})),
        ("values.json", json!({"llm.api_key": "sk-test-1"})),
    ];
    for (name, document) in documents {
        std::fs::write(folder.path().join(name), document.to_string()).unwrap();
    }
    let commands = script(&blocks("docs/AGENT-SPEC.md", ""), "sh");
    let ran = play(folder.path(), &served(&commands), &[]).await;
    assert!(ran.stdout.contains("greeting") && !ran.stdout.contains("sk-test-1"), "{ran:?}");
}

/// The commands of CONFORMANCE, with the server beside them. The report has to have no failure.
#[tokio::test]
async fn the_commands_of_conformance_run_as_they_stand() {
    let folder = turnstone_tests::scratch::folder();
    let port = Port::reserve();
    let url = format!("http://{}", port.addr());
    let commands = script(&blocks("docs/CONFORMANCE.md", ""), "sh")
        .replace("http://127.0.0.1:8090", &url)
        .replace("127.0.0.1:8090)", &format!("{}) &", port.addr()))
        .replace("turnstone conformance run", &format!("{}turnstone conformance run", until_served(&url)));
    let ran = run_script(folder.path(), &commands, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(folder.path().join("report.xml").exists());
}

/// A copy that is made while jobs run is a database in which they continue.
#[ignore = "long: a backup while jobs run"]
#[tokio::test]
async fn the_backup_of_operating_runs_as_it_stands() {
    let folder = turnstone_tests::scratch::folder();
    write_files(folder.path(), &blocks(PAGE, "## A batch"));
    let job = "{\"type\": \"agent.echo\", \"args\": [\"line\"], \"ext_agent_model\": \"m\"}\n";
    std::fs::write(folder.path().join("jobs.jsonl"), job.repeat(200)).unwrap();
    need_sqlite_shell();
    let copy = block_with("docs/OPERATING.md", ".backup").replace("/backup/", "copy/");
    let push = "turnstone job push jobs.jsonl --tag night --last -o ids > ids.txt\n";
    let restored = "turnstone job watch --tag night\n";
    let restart = "rm -r .turnstone\nmv copy .turnstone\n";
    // Nothing would be shown if the jobs had ended before the copy.
    let slow = "rules:\n  - answer: {text: done, delay_ms: 2000}\n";
    std::fs::write(folder.path().join("script.yaml"), slow).unwrap();
    let unfinished =
        "test \"$(sqlite3 copy/turnstone.db 'SELECT count(*) FROM jobs WHERE ended_at IS NULL')\" -gt 0\n";
    let copied = served(&format!("mkdir -m 700 copy\n{push}{copy}{unfinished}"));
    let ran = play(folder.path(), &format!("{copied}{restart}{}", served(restored)), &[]).await;
    assert!(ran.stdout.contains("night: 200 of 200 done"), "{ran:?}");
}

/// The three commands of the README and of JOBS, and the backup of OPERATING.
#[tokio::test]
async fn the_three_commands_of_a_batch_are_the_same_on_each_page() {
    let [readme, jobs] =
        ["README.md", "docs/JOBS.md"].map(|page| block_with(page, "job push jobs.jsonl --tag"));
    assert_eq!(readme, jobs);
    let folder = turnstone_tests::scratch::folder();
    write_files(folder.path(), &blocks(PAGE, "## A batch"));
    let job = "{\"type\": \"agent.echo\", \"args\": [\"line\"], \"ext_agent_model\": \"m\"}\n";
    std::fs::write(folder.path().join("jobs.jsonl"), job.repeat(20)).unwrap();
    let ran = play(folder.path(), &served(&readme), &[]).await;
    assert!(ran.stdout.contains("run=7: 20 of 20 done"), "{ran:?}");
    assert_eq!(lines(folder.path(), "results.jsonl").len(), 20);
}
