//! `turnstone conformance`: the cases pass against the program itself, and the report says which one fails.

use crate::program::{Program, run};
use serde_json::Value;

/// A server for the cases, in a folder that `conformance setup` wrote.
async fn server(folder: &std::path::Path) -> (Program, String) {
    let made = run(folder, &["conformance", "setup", "there"], &[]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let there = folder.join("there");
    let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
    let mut server = Program::start(&there, &arguments, &[]);
    let url = server.first_line("turnstone listens on ").await;
    (server, url)
}

#[tokio::test]
async fn the_cases_of_every_specification_pass() {
    let folder = turnstone_tests::scratch::folder();
    let (server, url) = server(folder.path()).await;
    let arguments = ["conformance", "run", "all", "--url", &url, "-o", "json", "--junit", "report.xml"];
    let ran = run(folder.path(), &arguments, &[]).await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let of = report["specifications"].as_array().unwrap();
    let names: Vec<&str> = of.iter().map(|one| one["specification"].as_str().unwrap()).collect();
    assert_eq!(names, ["ojs", "openagentspec", "ossa", "agent-protocol", "agent-spec"]);
    let failed: Vec<&Value> = of
        .iter()
        .flat_map(|one| one["cases"].as_array().unwrap())
        .filter(|case| case["passed"] != true)
        .collect();
    assert!(failed.is_empty() && ran.code == Some(0), "{failed:#?}");
    let xml = std::fs::read_to_string(folder.path().join("report.xml")).unwrap();
    assert_eq!(xml.matches("<testsuite ").count(), 5);
    server.stop().await;
}

/// A server with another model does not pass.
#[tokio::test]
async fn a_case_that_fails_is_named_and_is_the_exit_code() {
    let folder = turnstone_tests::scratch::folder();
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let (server, url) = {
        let (server, _) = server(folder.path()).await;
        server.stop().await;
        let there = folder.path().join("there");
        std::fs::write(there.join("script.yaml"), "rules:\n  - answer: {text: goodbye}\n").unwrap();
        let mut server = Program::start(&there, &["dev", "--data", "data", "--bind", "127.0.0.1:0"], &[]);
        let url = server.first_line("turnstone listens on ").await;
        (server, url)
    };
    let ran = run(folder.path(), &["conformance", "run", "ossa", "--url", &url, "-o", "ids"], &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("ossa: a manifest is registered and its agent answers"), "{ran:?}");
    server.stop().await;
}
