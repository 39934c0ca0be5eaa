//! Schedulers as processes: one leads, and another one takes over when it is killed or drained.

use super::Site;
use crate::program::Program;
use serde_json::{Value, json};
use turnstone_tests::{Place, Reply};

/// The term in a fleet, in milliseconds.
const TERM: i64 = 1_200;

/// Records every state of the row of leaders.
const REIGNS: &str = "
    CREATE TABLE reigns (seq BIGSERIAL, holder TEXT, expires_at BIGINT);
    CREATE FUNCTION reign() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO reigns (holder, expires_at) VALUES (NEW.holder, NEW.expires_at); RETURN NULL; END $$;
    CREATE TRIGGER reign AFTER INSERT OR UPDATE ON leaders FOR EACH ROW EXECUTE FUNCTION reign();";

/// Returns the holders so far, in order, each with the end of its first and of its last term. A row without a name is
/// the end of a leader that resigned.
async fn reigns(place: &Place) -> Vec<(String, i64, i64)> {
    let rows: Vec<(String, i64)> = place.rows("SELECT holder, expires_at FROM reigns ORDER BY seq").await;
    let mut reigns: Vec<(String, i64, i64)> = Vec::new();
    for (holder, expires_at) in rows {
        match reigns.last_mut().filter(|last| last.0 == holder) {
            Some(last) => last.2 = expires_at,
            None => reigns.push((holder, expires_at, expires_at)),
        }
    }
    reigns
}

/// Waits until one of these schedulers leads, and removes it from the list.
async fn leader(place: &Place, schedulers: &mut Vec<Program>) -> Program {
    let mut at = None;
    turnstone_tests::wait::until("one of the schedulers leads", async || {
        let last = reigns(place).await.pop().map(|(holder, ..)| holder).unwrap_or_default();
        at = schedulers.iter().position(|program| last.contains(&format!("-{}-", program.pid())));
        at.is_some()
    })
    .await;
    schedulers.remove(at.unwrap())
}

/// Enqueues a job for later and waits until the scheduler makes it available.
async fn acts(place: &Place, url: &str) {
    let http = turnstone_tests::http::client();
    let job =
        json!({"type": "email.send", "args": [], "queue": "mail", "options": {"delay_until": "+PT0.1S"}});
    let sent = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap();
    let pushed: Value = sent.json().await.unwrap();
    let id = pushed["job"]["id"].as_str().unwrap_or_else(|| panic!("{pushed:#}"));
    let sql = format!("SELECT count(*) FROM jobs WHERE id = '{id}' AND state = 'available'");
    turnstone_tests::wait::until("the job is available", async || place.number(&sql).await == 1).await;
}

/// Of three real schedulers the leader is killed, and then the next one is drained. No scheduler leads before the
/// earlier term has expired or was returned. When a machine is paused for a whole term, the leader may change more
/// often.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn another_scheduler_leads_when_the_leader_is_killed_or_drained() {
    let site = Site::migrated(|_| Reply::text("done")).await;
    let place = Place::from(&site.database);
    place.change(REIGNS).await;
    let api = site.api().await;
    let mut schedulers = Vec::new();
    for _ in 0..3 {
        schedulers.push(site.scheduler().await);
    }
    let mut first = leader(&place, &mut schedulers).await;
    acts(&place, &api.url).await;
    first.signal("KILL");
    assert_eq!(first.ended().await, None);
    let second = leader(&place, &mut schedulers).await;
    acts(&place, &api.url).await;
    second.stop().await;
    let third = leader(&place, &mut schedulers).await;
    acts(&place, &api.url).await;
    third.stop().await;
    let reigns = reigns(&place).await;
    for pair in reigns.windows(2) {
        let [before, after] = pair else { panic!("a pair: {pair:?}") };
        let given_back = before.0.is_empty() || after.0.is_empty();
        assert!(given_back || after.1 - TERM >= before.2, "two led at once: {reigns:?}");
    }
    api.program.stop().await;
}
