//! The OpenAPI document: it contains every endpoint.

use super::server::Server;
use serde_json::Value;
use std::collections::BTreeSet;

#[tokio::test]
async fn every_endpoint_that_is_served_is_described() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    for (path, method) in [
        ("/agents", "post"),
        ("/engagements/{id}/audit", "get"),
        ("/health", "get"),
        ("/livez", "get"),
        ("/ojs/manifest", "get"),
        ("/ojs/v1/health", "get"),
        ("/ojs/v1/jobs", "post"),
        ("/ojs/v1/jobs/{id}", "delete"),
        ("/ojs/v1/jobs/{id}", "get"),
        ("/ojs/v1/jobs/{id}/cancel", "post"),
        ("/ojs/v1/jobs/{id}/events", "get"),
        ("/openapi.json", "get"),
        ("/ready", "get"),
        ("/readyz", "get"),
        ("/reviews/{id}/approve", "post"),
        ("/workers", "get"),
    ] {
        assert!(document["paths"][path][method].is_object(), "{method} {path}");
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_operation_has_a_success() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    let mut references = Vec::new();
    collect(&document, &mut references);
    for reference in references {
        let place = document.pointer(reference.trim_start_matches('#'));
        assert!(place.is_some(), "{reference} leads nowhere");
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{method} {path}");
            assert!(responses.contains_key("default"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn every_operation_can_be_generated_as_a_function_of_a_client() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap_or_default();
            assert!(!name.is_empty(), "{method} {path} has no operationId");
            assert!(names.insert(name), "{method} {path}: the operationId `{name}` is taken");
            let declared: BTreeSet<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let named: BTreeSet<&str> =
                path.split('{').skip(1).map(|rest| rest.split_once('}').unwrap().0).collect();
            assert_eq!(declared, named, "{method} {path}");
        }
    }
    assert!(names.len() > 190, "{}", names.len());
}

fn collect<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}
