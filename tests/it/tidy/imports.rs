//! Which crate may import which (docs/ARCHITECTURE.md), from `cargo metadata`.

use crate::house::{none, root};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::process::Command;

/// Each of our crates, and which others of ours it may name.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("blocking", &[]),
    ("telemetry", &[]),
    ("ojs", &["domain"]),
    ("outbound", &["domain"]),
    ("specs", &["domain"]),
    ("store", &["domain", "ojs", "specs", "telemetry"]),
    ("api", &["blocking", "domain", "ojs", "outbound", "specs", "store", "telemetry"]),
    ("scheduler", &["blocking", "domain", "ojs", "outbound", "specs", "store", "telemetry"]),
    ("worker", &["blocking", "domain", "ojs", "outbound", "specs", "store", "telemetry"]),
    ("examples", &[]),
    // `turnstone bench` and the benches share what measures.
    (
        "cli",
        &[
            "domain",
            "ojs",
            "specs",
            "store",
            "telemetry",
            "api",
            "scheduler",
            "worker",
            "examples",
            "benches",
        ],
    ),
    // The bench of a whole fleet uses the servers and processes of the tests.
    ("benches", &["domain", "ojs", "specs", "store", "telemetry", "api", "scheduler", "worker", "tests"]),
    ("tests", &["domain", "ojs", "specs", "store", "telemetry", "api", "scheduler", "worker", "examples"]),
];

/// Outside crates that only these of ours may name. Unit tests may name others: the peer of a test is no part of the
/// product.
const ONLY: &[(&str, &[&str])] = &[
    // The harness reads the database as an independent witness.
    ("sqlx", &["store", "tests"]),
    ("rusqlite", &["store"]),
    ("redis", &["store"]),
    ("axum", &["api", "examples", "tests"]),
    // The scheduler posts webhooks: deliveries are due by time, and made once for the whole fleet. The API reads the
    // public keys of issuers of tokens.
    ("reqwest", &["outbound", "worker", "scheduler", "api", "cli", "tests"]),
    ("jsonwebtoken", &["api"]),
    ("apalis", &["worker"]),
    ("apalis-core", &["worker"]),
];

/// Asynchronous crates, which the domain must not use.
const ASYNC: &[&str] =
    &["tokio", "tokio-util", "tokio-stream", "futures", "futures-util", "async-trait", "smol"];

/// Features that must be off everywhere, and why.
const FORBIDDEN_FEATURES: &[(&str, &str, &str)] = &[
    ("cel", "json", "it reads numbers of serde_json as maps, and every comparison fails (docs/adr/0015)"),
    ("apalis-core", "task-context", "it panics the worker when a job comes back"),
];

/// Crates that must not be in the tree, and their replacements (docs/adr/0001).
const FORBIDDEN_CRATES: &[(&str, &str)] = &[
    ("serde_yaml", "serde-saphyr"),
    ("serde_yml", "serde-saphyr"),
    ("cel-interpreter", "cel"),
    ("backoff", "backon"),
    ("aws-lc-sys", "ring"),
    ("openssl-sys", "rustls with ring"),
];

fn short(name: &str) -> Option<&str> {
    name.strip_prefix("turnstone-")
}

/// The workspace with everything it is built from on this machine, exactly as in `Cargo.lock`.
pub fn metadata() -> Metadata {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(["--locked", "--filter-platform", host].map(str::to_owned))
        .exec()
        .unwrap()
}

fn ours(metadata: &Metadata) -> Vec<(&str, &Package)> {
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (short(package.name.as_str()).unwrap(), package))
        .collect()
}

#[test]
fn our_crates_import_only_what_they_may() {
    let metadata = metadata();
    let mut problems = Vec::new();
    for (name, package) in ours(&metadata) {
        let Some((_, may)) = MAY_IMPORT.iter().find(|(member, _)| *member == name) else {
            problems.push(format!("{name} is new: give it a line in MAY_IMPORT and in docs/ARCHITECTURE.md"));
            continue;
        };
        // The examples' own tests run them on a worker; the examples themselves import no crate of ours.
        let tested = |kind| name == "examples" && kind == DependencyKind::Development;
        for dependency in package.dependencies.iter().filter(|dependency| !tested(dependency.kind)) {
            if let Some(other) = short(&dependency.name).filter(|other| !may.contains(other)) {
                problems.push(format!("{name} must not name {other}"));
            }
        }
    }
    none("An import goes the wrong way:", &problems);
}

#[test]
fn outside_crates_are_named_only_by_their_owners() {
    let metadata = metadata();
    let mut problems = Vec::new();
    for (name, package) in ours(&metadata) {
        for dependency in &package.dependencies {
            let only = ONLY.iter().find(|(outside, _)| *outside == dependency.name);
            let product = dependency.kind != DependencyKind::Development;
            if let Some((outside, owners)) = only.filter(|(_, owners)| product && !owners.contains(&name)) {
                problems.push(format!("{name} names {outside}; only {} may", owners.join(", ")));
            }
            if name == "domain" && ASYNC.contains(&dependency.name.as_str()) {
                problems.push(format!("domain names {}; nothing in it may wait", dependency.name));
            }
        }
    }
    none("An outside crate is named where it does not belong:", &problems);
}

#[test]
fn nothing_forbidden_is_in_the_tree() {
    let metadata = metadata();
    let nodes = &metadata.resolve.as_ref().unwrap().nodes;
    let mut problems = Vec::new();
    for node in nodes {
        let name = metadata[&node.id].name.as_str();
        for (_, feature, why) in FORBIDDEN_FEATURES.iter().filter(|(package, _, _)| *package == name) {
            if node.features.iter().any(|on| on.as_str() == *feature) {
                problems.push(format!("{name} has the feature {feature}: {why}"));
            }
        }
        if let Some((_, instead)) = FORBIDDEN_CRATES.iter().find(|(package, _)| *package == name) {
            problems.push(format!("{name} is in the tree; use {instead}"));
        }
    }
    assert!(
        nodes.iter().any(|node| metadata[&node.id].name.as_str() == "serde_json"),
        "the tree was not read"
    );
    none("Something forbidden is in the tree:", &problems);
}
