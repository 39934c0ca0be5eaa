//! `turnstone agent`, `policy test`, `engagement list` and `credential` against a `turnstone dev`.

use super::Dev;
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::ToolServer;

/// Offers 790 to an input with "dear", and 640 to all others.
const SCRIPT: &str = "
rules:
  - when: {user_contains: dear, tools_include: [book], tool_results: 0}
    answer: {tool_calls: [{name: book, arguments: {price: 790}}]}
  - when: {tools_include: [book], tool_results: 0}
    answer: {tool_calls: [{name: book, arguments: {price: 640}}]}
  - answer: {text: booked}
";

fn document(name: &str, capability: &str) -> String {
    format!(
        "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent that books.\nintent: You book.\n\
         owner: tests\ncapabilities:\n  {capability}:\n    user_identity: false\n"
    )
}

async fn dev(folder: &Path, tools: &ToolServer) -> Dev {
    let settings = format!(
        "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = 'script'\n\
         default_model = 'm'\n[tools.book]\ndescription = 'Book'\nurl = '{}/book'\nallow_private = true\n",
        tools.url
    );
    let asserting = format!(
        "{}    input_restriction:\n      assertion: recent.book.inputs.price <= 700\n",
        document("shopper", "book")
    );
    for (file, text) in [
        ("turnstone.toml", settings),
        ("script.yaml", SCRIPT.to_owned()),
        ("shopper.yaml", document("shopper", "book")),
        ("asserting.yaml", asserting),
        ("boss.yaml", document("boss", "shopper")),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    Dev::start(folder, &[]).await
}

async fn stop(mut dev: Dev) {
    dev.signal("INT");
    assert_eq!(dev.ended().await, Some(0));
    dev.database().check().await;
}

/// Files are applied in any order. An agent is shown as it was written, and cannot be removed while another one names
/// it.
#[tokio::test]
async fn agents_are_applied_in_any_order_shown_and_removed() {
    let (folder, tools) = (turnstone_tests::scratch::folder(), ToolServer::start().await);
    let dev = dev(folder.path(), &tools).await;
    let applied = dev.run(&["agent", "apply", "boss.yaml", "shopper.yaml", "-o", "ids"]).await;
    assert_eq!((applied.code, applied.stdout.as_str()), (Some(0), "shopper\nboss\n"), "{applied:?}");
    let shown = dev.run(&["agent", "show", "shopper"]).await;
    assert_eq!((shown.code, shown.stdout), (Some(0), document("shopper", "book")));
    let named = dev.run(&["agent", "delete", "shopper"]).await;
    assert!(named.code == Some(5) && named.stderr.contains("boss"), "{named:?}");
    let removed = dev.run(&["agent", "delete", "boss", "shopper", "-o", "json"]).await;
    assert_eq!((removed.code, removed.lines().len()), (Some(0), 2), "{removed:?}");
    assert_eq!(removed.lines()[1], json!({"name": "shopper", "deleted": true}));
    for gone in [&["agent", "show", "shopper"], &["agent", "delete", "shopper"]] {
        assert_eq!(dev.run(gone).await.code, Some(4));
    }
    assert_eq!(dev.run(&["agent", "list", "-o", "ids"]).await.stdout, "");
    assert_eq!(
        dev.run(&["agent", "apply", "boss.yaml", "shopper.yaml"]).await.code,
        Some(0),
        "they come back"
    );
    let forced = dev.run(&["agent", "delete", "shopper", "--allow-unresolved"]).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    stop(dev).await;
}

/// OAS-33: an assertion is tested against all recorded engagements of an agent, page by page, before it is added to
/// the document.
#[tokio::test]
async fn an_assertion_is_tried_on_all_recorded_engagements() {
    let (folder, tools) = (turnstone_tests::scratch::folder(), ToolServer::start().await);
    let dev = dev(folder.path(), &tools).await;
    assert_eq!(dev.run(&["agent", "apply", "shopper.yaml", "boss.yaml"]).await.code, Some(0));
    // More than one page of the list.
    let jobs = (0..220).map(|n| {
        let says = if n % 11 == 0 { "a dear one" } else { "a cheap one" };
        json!({"type": "agent.shop", "args": [says], "meta": {"agent": "shopper"}}).to_string()
    });
    std::fs::write(folder.path().join("jobs.jsonl"), jobs.collect::<Vec<_>>().join("\n")).unwrap();
    let pushed = dev.run(&["job", "push", "jobs.jsonl", "-o", "ids"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    for id in pushed.stdout.lines() {
        dev.events(id, |name, _| name == "job.completed").await;
    }
    let listed = dev.run(&["engagement", "list", "--agent", "shopper", "-n", "1000", "-o", "ids"]).await;
    let mut ids: Vec<&str> = listed.stdout.lines().collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((listed.code, ids.len()), (Some(0), 220), "{}", listed.stderr);
    let none = dev.run(&["engagement", "list", "--since", "2999-01-01T00:00:00Z", "-o", "json"]).await;
    assert_eq!((none.code, none.json()), (Some(0), json!([])), "{none:?}");

    let tested = async |more: &[&str]| {
        let arguments = [&["policy", "test", "asserting.yaml", "-o", "json"], more].concat();
        let ran = dev.run(&arguments).await;
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.lines()
    };
    let refused =
        |found: &[Value]| -> usize { found.iter().map(|one| one["refused"].as_array().unwrap().len()).sum() };
    let all = tested(&["--all"]).await;
    assert_eq!((all.len(), refused(&all)), (220, 20));
    assert!(all.iter().all(|one| one["calls"] == 1 && one["assertions"] == 1), "{all:?}");
    assert_eq!(tested(&["--all", "--limit", "30"]).await, all[..30], "the newest");
    assert_eq!(tested(&["--agent", "boss"]).await.len(), 0);
    assert_eq!(tested(&["--all", "--since", "2999-01-01T00:00:00Z"]).await.len(), 0);
    let failing = dev.run(&["policy", "test", "asserting.yaml", "--all", "--fail-on-denied"]).await;
    assert_eq!(failing.code, Some(1));
    assert_eq!(failing.stdout.matches("recent.book.inputs.price <= 700").count(), 20, "{failing:?}");
    let wrong = dev.run(&["policy", "test", "asserting.yaml", "--all", "--since", "yesterday"]).await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("since"), "{wrong:?}");
    assert_eq!(dev.run(&["policy", "test", "asserting.yaml"]).await.code, Some(2), "without engagements");
    stop(dev).await;
}

/// OAS-26, OAS-27: credentials are stored, listed without their secrets, and deleted.
#[tokio::test]
async fn credentials_are_set_listed_and_deleted() {
    let (folder, tools) = (turnstone_tests::scratch::folder(), ToolServer::start().await);
    let dev = dev(folder.path(), &tools).await;
    let set =
        ["credential", "set", "static:desk", "book", "--header", "Authorization", "--prefix", "Bearer "];
    let kept = dev.run(&[&set[..], &["--secret", "CRM_KEY"]].concat()).await;
    assert_eq!((kept.code, kept.stdout.trim()), (Some(0), "the credential of static:desk for book is kept"));
    let other = ["credential", "set", "user:u-17", "*", "--header", "X-Key", "--secret", "U17"];
    assert_eq!(dev.run(&other).await.code, Some(0));
    let listed = dev.run(&["credential", "list", "-o", "json"]).await.json();
    let one =
        |at: usize| [&listed[at]["owner"], &listed[at]["tool"], &listed[at]["header"], &listed[at]["form"]];
    assert_eq!(one(0), [&json!("static:desk"), &json!("book"), &json!("authorization"), &json!("reference")]);
    assert_eq!(one(1), [&json!("user:u-17"), &json!("*"), &json!("x-key"), &json!("reference")]);
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hush").unwrap();
    let reference = format!("file:{}", secret.display());
    let sent = dev.run(&[&set[..], &["--value-from", &reference]].concat()).await;
    assert!(sent.code == Some(1) && sent.stderr.contains("encrypt"), "no encryption is configured: {sent:?}");
    let nowhere = dev.run(&[&set[..], &["--value-from", "file:/nowhere/at/all"]].concat()).await;
    assert!(nowhere.code == Some(2) && nowhere.stderr.contains("--value-from"), "{nowhere:?}");
    assert_eq!(dev.run(&set).await.code, Some(2), "neither --secret nor --value-from");
    let odd = ["credential", "set", "desk", "book", "--header", "X-Key", "--secret", "K"];
    let odd = dev.run(&odd).await;
    assert!(odd.code == Some(1) && odd.stderr.contains("static:"), "{odd:?}");
    let delete = ["credential", "delete", "static:desk", "book", "--header", "Authorization"];
    let gone = dev.run(&delete).await;
    assert_eq!(
        (gone.code, gone.stdout.trim()),
        (Some(0), "the credential of static:desk for book is forgotten")
    );
    assert_eq!(dev.run(&delete).await.code, Some(4), "it is gone");
    assert_eq!(dev.run(&["credential", "list", "-o", "ids"]).await.stdout, "user:u-17\n");
    stop(dev).await;
}
