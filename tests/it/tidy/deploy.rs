//! Alerts and dashboards name existing metrics.

use crate::house::read;
use std::collections::BTreeSet;
use turnstone_telemetry::names::{self, Kind};

/// Returns the names under which Prometheus has our metrics.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for name in names::ALL {
        match name.kind {
            Kind::Metric => drop(known.insert(name.name.to_owned())),
            Kind::Instrument => {
                let dashed = name.name.replace('.', "_");
                let unit = match name.name {
                    names::LATENCY => "_milliseconds",
                    names::CALL_DURATION => "_seconds",
                    names::CALL_TOKENS => "",
                    _ => "_total",
                };
                known.insert(format!("{dashed}{unit}"));
            }
            _ => {}
        }
    }
    known
}

/// Returns the words of a text that look like names of our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = |word: &&str| {
        ["turnstone_", "ossa_", "gen_ai_"].iter().any(|beginning| word.starts_with(beginning))
            && !["ossa_agent_id", "ossa_tool_name", "gen_ai_request_model"].contains(word)
    };
    let parts = ["_bucket", "_count", "_sum"];
    let whole = |word: &str| parts.iter().find_map(|part| word.strip_suffix(part)).unwrap_or(word).to_owned();
    words.filter(ours).map(whole).collect()
}

#[test]
fn alerts_and_the_dashboard_name_existing_metrics() {
    let known = known();
    for path in ["deploy/prometheus/rules.yaml", "deploy/grafana/turnstone.json"] {
        let named = named(&read(path));
        assert!(named.len() > 5, "{path} names {named:?} only");
        let unknown: Vec<&String> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{path} names metrics that there are not: {unknown:?}");
    }
    let dashboard: serde_json::Value = serde_json::from_str(&read("deploy/grafana/turnstone.json")).unwrap();
    assert_eq!(dashboard["title"], "Turnstone");
}
