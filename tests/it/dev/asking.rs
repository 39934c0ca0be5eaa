//! A job that waits for its user: every view names the question and the command that answers it.

use super::Dev;
use serde_json::json;

const SETTINGS: &str = "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = 'script'\n\
                        default_model = 'm'\n[agents]\ndir = 'agents'\n";
const SCRIPT: &str = "
rules:
  - when: {tools_include: [ask-user], tool_results: 0}
    answer: {tool_calls: [{name: ask-user, arguments: {request_keys: {city: Where to?, day: When?}}}]}
  - answer: {text: booked}
";
const AGENT: &str = "kind: \"openagentspec:v1/agent\"\nname: travel\ndescription: An agent that books.\nintent: You book.\n\
                     owner: tests\ncapabilities: {ask-user: {}}\n";

#[tokio::test]
async fn a_question_to_the_user_is_shown_with_the_command_that_answers_it() {
    let folder = turnstone_tests::scratch::folder();
    std::fs::create_dir(folder.path().join("agents")).unwrap();
    for (file, text) in [("turnstone.toml", SETTINGS), ("script.yaml", SCRIPT), ("agents/travel.yaml", AGENT)]
    {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let dev = Dev::start(folder.path(), &[]).await;
    let pushed = dev
        .run(&[
            "job",
            "push",
            "--type",
            "agent.ask",
            "--agent",
            "travel",
            "--args",
            "[\"a trip\"]",
            "-o",
            "ids",
        ])
        .await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let id = pushed.stdout.trim();
    let events = dev.events(id, |name, _| name == "job.parked").await;
    let requested = events.iter().find(|event| event["name"] == "input.requested").expect("a question");
    let call = requested["data"]["call_id"].as_str().unwrap();
    let engagement = requested["engagement_id"].as_str().unwrap();
    let command = format!("turnstone engagement answer {engagement} --call {call} city=VALUE day=VALUE");
    for view in [
        &["job", "get", id][..],
        &["job", "list", "--state", "pending"],
        &["review", "list"],
        &["engagement", "show", engagement],
        &["engagement", "list"],
    ] {
        let shown = dev.run(view).await;
        assert!(shown.stdout.contains("Where to?") && shown.stdout.contains("When?"), "{view:?}: {shown:?}");
        assert!(shown.stdout.contains(&command), "{view:?} does not show {command}: {shown:?}");
        assert!(!shown.stdout.contains("review  by"), "a review without an id: {shown:?}");
        assert!(!shown.stderr.contains("there are none"), "{view:?}: {shown:?}");
    }
    let answer = command.replacen("VALUE", "Oslo", 1).replacen("VALUE", "Monday", 1);
    let words: Vec<&str> = answer.split(' ').skip(1).collect();
    let answered = dev.run(&words).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let watched = dev.run(&["job", "watch", id]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    for part in ["city: Where to?; day: When?", "until its user answers", command.as_str(), "booked"] {
        assert!(watched.stdout.contains(part), "{part}: {watched:?}");
    }
    let done = dev.get(&format!("/ojs/v1/jobs/{id}")).await;
    let job = done.get("job").unwrap_or(&done);
    assert_eq!(job["state"], json!("completed"), "{done:#}");
}
