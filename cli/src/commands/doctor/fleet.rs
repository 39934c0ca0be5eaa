//! What a fleet needs: a database that is fit, a Redis that forgets nothing if there is one, and queues that somebody knows.

use crate::commands::serve::fleet_store::{Ground, options, redis_url};
use crate::commands::serve::worker::unknown_queue;
use crate::config::Config;
use turnstone_domain::{Clock, SystemClock, Timestamp};
use turnstone_store::{Finding, PostgresStore};

/// Clocks that differ by less are taken for equal.
const NOTICED_MS: u64 = 2_000;

/// Asks the servers.
pub async fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = match options(config) {
        Err(failure) => vec![Finding::bad(failure.message, failure.hint.unwrap_or_default())],
        Ok(options) => PostgresStore::check(&options).await,
    };
    let fit = findings.iter().all(|finding| finding.ok);
    findings.extend(redis(config).await);
    if fit {
        match Box::pin(Ground::open(config)).await {
            Err(error) => findings.push(Finding::bad("the database cannot be opened", format!("{error:#}"))),
            Ok(ground) => {
                let now = ground.clock.now();
                findings.extend([time(ground.clock.as_ref()), queues(config, &ground).await]);
                findings.push(workers(&ground, now).await);
            }
        }
    }
    findings
}

async fn redis(config: &Config) -> Vec<Finding> {
    match redis_url(config) {
        Ok(Some(url)) => turnstone_store::redis::check(&url).await,
        Ok(None) => vec![Finding::good("no Redis is configured, and none is needed")],
        Err(failure) => vec![Finding::bad(failure.message, failure.hint.unwrap_or_default())],
    }
}

/// The time of the database is the one that counts, so a machine's wrong clock is worth a remark and no trouble.
fn time(database: &dyn Clock) -> Finding {
    let apart = SystemClock.now().since(database.now());
    if apart.unsigned_abs() < NOTICED_MS {
        return Finding::good("this machine and the database agree on the time");
    }
    let (apart, way) = (apart.unsigned_abs() / 1_000, if apart > 0 { "ahead of" } else { "behind" });
    Finding {
        advice: "set the clock; leases do not suffer, since the database's time is used".to_owned(),
        ..Finding::good(format!("this machine's clock is {apart} s {way} the database's"))
    }
}

/// Who works. A fleet may be set up before its workers are, so that nobody is worth a remark and no trouble.
async fn workers(ground: &Ground, now: Timestamp) -> Finding {
    match ground.store.views.workers().await {
        Err(error) => Finding::bad("the workers of the fleet cannot be read", error.to_string()),
        Ok(known) => match known.iter().filter(|worker| worker.is_alive(now)).count() {
            0 => Finding {
                advice: "jobs wait until one is started: `turnstone worker`".to_owned(),
                ..Finding::good("no worker is alive")
            },
            1 => Finding::good("1 worker is alive"),
            alive => Finding::good(format!("{alive} workers are alive")),
        },
    }
}

async fn queues(config: &Config, ground: &Ground) -> Finding {
    let Some(wanted) = config.worker.named_queues() else {
        return Finding::good("workers of this configuration serve every queue");
    };
    match ground.store.views.queues().await {
        Err(error) => Finding::bad("the queues of the fleet cannot be read", error.to_string()),
        Ok(known) => match wanted.iter().find(|name| !known.contains(name)) {
            None => {
                Finding::good(format!("the queues of this configuration are known: {}", wanted.join(", ")))
            }
            Some(name) => {
                let failure = unknown_queue(name, &known);
                Finding::bad(failure.message, failure.hint.unwrap_or_default())
            }
        },
    }
}
