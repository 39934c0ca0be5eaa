//! The completeness of records, as the API shows them.

use crate::faults::load::client;
use reqwest::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use turnstone_domain::Phase;
use turnstone_tests::insist::insist;

async fn get(url: &str) -> Value {
    let (status, body) = insist(&client(), Method::GET, url, &Value::Null).await;
    assert_eq!(status, 200, "{url}: {body:#}");
    body
}

/// Returns the ids of all engagements.
async fn engagements(url: &str) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = get(&format!("{url}/engagements?limit=100{after}")).await;
        let items = page["items"].as_array().unwrap_or_else(|| panic!("engagements: {page:#}"));
        ids.extend(items.iter().map(|item| item["engagement_id"].as_str().expect("an id").to_owned()));
        match page["pagination"]["next_cursor"].as_str() {
            Some(next) => after = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

/// Returns the holes of every job that ended: turns that are not 1 to n, and turns without each phase once, in order.
pub(super) async fn holes(url: &str) -> Vec<String> {
    let mut holes = Vec::new();
    for engagement in engagements(url).await {
        let mut jobs: BTreeMap<String, BTreeMap<i64, Vec<String>>> = BTreeMap::new();
        for page in 1.. {
            let path = format!("{url}/engagements/{engagement}/checkpoints?per_page=100&page={page}");
            let answer = get(&path).await;
            for done in answer["checkpoints"].as_array().expect("checkpoints") {
                let text = |name: &str| done[name].as_str().expect("a text").to_owned();
                let turns = jobs.entry(text("job_id")).or_default();
                turns.entry(done["turn"].as_i64().expect("a turn")).or_default().push(text("phase"));
            }
            if answer["pagination"]["has_more"] != true {
                break;
            }
        }
        for (job, turns) in jobs {
            let numbers: Vec<i64> = turns.keys().copied().collect();
            if !numbers.iter().copied().eq(1..=i64::try_from(turns.len()).expect("a few")) {
                holes.push(format!("{job} has the turns {numbers:?}"));
            }
            for (turn, phases) in turns {
                if !phases.iter().map(String::as_str).eq(Phase::ALL.map(Phase::as_str)) {
                    holes.push(format!("{job} has in turn {turn} the phases {phases:?}"));
                }
            }
        }
    }
    holes
}
