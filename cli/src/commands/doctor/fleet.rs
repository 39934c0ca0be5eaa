//! The requirements of a fleet: a usable database, a Redis that evicts nothing if there is one, and known queues.

use crate::commands::serve::fleet_store::{Ground, options, redis_url};
use crate::commands::serve::worker::unknown_queue;
use crate::config::Config;
use turnstone_domain::agent::credential::{ANY_TOOL, Owner};
use turnstone_domain::{Clock, SystemClock, Timestamp};
use turnstone_store::credentials::ListedCredential;
use turnstone_store::{AgentRecord, Finding, PostgresStore};

/// Clocks that differ by less count as equal.
const NOTICED_MS: u64 = 2_000;

/// Queries the servers.
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
                findings.push(identities(&ground).await);
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

/// Checks this machine's clock. The time of the database is the one that counts, so a wrong clock is a remark and no
/// problem.
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

/// Checks for workers. A fleet may be set up before its workers are, so their absence is a remark and no problem.
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

/// Checks that each static identity that an agent names has a credential (OAS-27): without one its calls are refused.
async fn identities(ground: &Ground) -> Finding {
    let known = match (ground.store.views.agents(None).await, ground.store.credentials.listed().await) {
        (Ok(agents), Ok(credentials)) => missing(&agents, &credentials),
        (Err(error), _) | (_, Err(error)) => {
            return Finding::bad("the credentials of agents cannot be read", error.to_string());
        }
    };
    match known.split_first() {
        None => Finding::good("every static identity of an agent has a credential"),
        Some((first, _)) => Finding {
            advice: format!("calls as {} are refused: turnstone credential set {} TOOL …", first.1, first.1),
            ..Finding::good(format!(
                "agents name static identities without a credential: {}",
                known
                    .iter()
                    .map(|(agent, owner)| format!("{agent} ({owner})"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
        },
    }
}

/// Returns the agents and their static identities without a credential for their tools.
fn missing(agents: &[AgentRecord], kept: &[ListedCredential]) -> Vec<(String, String)> {
    let mut missing = Vec::new();
    for agent in agents.iter().map(|record| &record.definition) {
        for capability in &agent.capabilities {
            let Some(name) = &capability.static_identity else { continue };
            let owner = Owner::Static(name.clone()).to_string();
            let serves = |one: &&ListedCredential| {
                one.owner.to_string() == owner && (one.tool == ANY_TOOL || one.tool == capability.name)
            };
            if !kept.iter().any(|one| serves(&one)) {
                missing.push((agent.name.clone(), owner));
            }
        }
    }
    missing.dedup();
    missing
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

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::AgentDefinition;
    use turnstone_domain::agent::Capability;

    /// OAS-27: a credential for the tool, or for every tool, counts; one for another tool does not.
    #[test]
    fn static_identities_without_a_credential_are_named() {
        let capability =
            Capability { static_identity: Some("key".to_owned()), ..Capability::named("search") };
        let definition = AgentDefinition {
            name: "desk".to_owned(),
            capabilities: vec![capability],
            ..AgentDefinition::default()
        };
        let agents =
            [AgentRecord { definition, source: String::new(), updated_at: Timestamp(0), tenants: None }];
        let kept = |tool: &str| ListedCredential {
            owner: Owner::Static("key".to_owned()),
            tool: tool.to_owned(),
            header: "x-key".to_owned(),
            form: "reference".to_owned(),
            updated_at: Timestamp(0),
        };
        let named = [("desk".to_owned(), "static:key".to_owned())];
        assert_eq!(missing(&agents, &[]), named);
        assert_eq!(missing(&agents, &[kept("book")]), named);
        assert!(missing(&agents, &[kept("search")]).is_empty());
        assert!(missing(&agents, &[kept(ANY_TOOL)]).is_empty());
    }
}
