//! The check before work is made of a definition that came with an imported engagement.
//!
//! Retries, forks, branches, merges and further inputs call it in the transaction that makes the work. A claim discards a job
//! whose definition it did not admit.

use super::super::rows::{DefinitionRow, get, json};
use super::super::session::{Args, Row, Session};
use super::super::statement::{Writes, as_json, read};
use super::prune;
use crate::views::serves;
use crate::{StoreError, sql};
use std::collections::BTreeSet;
use turnstone_domain::agent::Admission;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{AgentDefinition, JobError, digest};

/// Returns the definition of a new job of this tenant that is made of this one. One that was not imported stays as it is.
///
/// # Errors
/// [`StoreError::NotRegistered`] when it was imported, and neither its document nor an agent that is registered for the
/// tenant admits it.
pub(super) async fn admit(
    session: &mut Session,
    mut agent: AgentDefinition,
    tenant: Option<&str>,
) -> Result<AgentDefinition, StoreError> {
    if must_be_registered(&agent) {
        check_registered(session, &mut agent, tenant).await?;
        agent.admitted = Some(Admission::Registered);
    } else if agent.imported {
        check_tenants(session, &agent, tenant).await?;
    }
    Ok(agent)
}

/// Admits the definition of an engagement whose job, of this tenant, is to be tried again.
///
/// # Errors
/// As [`admit`].
pub(super) async fn admit_again(
    session: &mut Session,
    (engagement_seq, digest): (i64, &str),
    tenant: Option<&str>,
) -> Result<(), StoreError> {
    let Some(mut agent) = by_digest(session, digest).await?.filter(|agent| agent.imported) else {
        return Ok(());
    };
    if !must_be_registered(&agent) {
        return check_tenants(session, &agent, tenant).await;
    }
    check_registered(session, &mut agent, tenant).await?;
    agent.admitted = Some(Admission::Registered);
    let definition = as_json(&agent)?;
    let admitted = digest::of_text(&definition);
    if admitted == digest {
        return Ok(());
    }
    let mut writes = Writes::default();
    let row = DefinitionRow { digest: admitted.clone(), definition };
    writes.some("write an agent definition", &sql::INSERT_DEFINITIONS, vec![row]);
    writes.run(session).await?;
    let values = [engagement_seq.into(), admitted.as_str().into()];
    let (action, text) = ("admit an agent", &sql::UPDATE_ADMITTED_ENGAGEMENT);
    session.execute(action, text, Args::Values(&values)).await?;
    prune::forget_definitions(session, BTreeSet::from([digest.to_owned()])).await
}

/// Returns the definition with this digest.
pub(super) async fn by_digest(
    session: &mut Session,
    digest: &str,
) -> Result<Option<AgentDefinition>, StoreError> {
    let (action, text) = ("read an agent definition", &sql::SELECT_DEFINITION_BY_DIGEST);
    Ok(read(session, action, text, &[digest.into()], |row| json(row, "definition")).await?.pop())
}

/// Returns the error of a claimed job whose definition was not admitted.
pub(super) fn refusal(agent: &str) -> JobError {
    let message = format!(
        "agent `{agent}` came with an imported engagement, and this server has not admitted it; register the agent and try \
         the job again"
    );
    JobError { retryable: false, ..JobError::new(FailureKind::Policy, message) }
}

/// Checks that a registered agent of this name, if there is one, serves the tenant.
async fn check_tenants(
    session: &mut Session,
    agent: &AgentDefinition,
    tenant: Option<&str>,
) -> Result<(), StoreError> {
    let (action, text) = ("read an agent", &sql::SELECT_AGENTS);
    let tenants = |row: &Row| get::<Option<Vec<String>>>(row, "tenants");
    match read(session, action, text, &[agent.name.as_str().into()], tenants).await?.pop() {
        Some(tenants) if !serves(tenants.as_deref(), tenant) => {
            Err(StoreError::NotRegistered { agent: agent.name.clone(), is_other: false })
        }
        _ => Ok(()),
    }
}

fn must_be_registered(agent: &AgentDefinition) -> bool {
    agent.imported && matches!(agent.admitted, None | Some(Admission::Registered))
}

/// Checks that the agent serves the tenant and is registered with this definition now, or was before and has not been
/// removed since. One that is registered now gives it the secrets that its document refers to.
async fn check_registered(
    session: &mut Session,
    agent: &mut AgentDefinition,
    tenant: Option<&str>,
) -> Result<(), StoreError> {
    let name = agent.name.clone();
    let (action, text) = ("read an agent", &sql::SELECT_AGENTS);
    let values = [name.as_str().into()];
    let found = read(session, action, text, &values, |row| {
        Ok((get::<Option<Vec<String>>>(row, "tenants")?, json::<AgentDefinition>(row, "definition")?))
    });
    // For the other tenants the agent does not exist.
    let registered = found.await?.pop().filter(|(tenants, _)| serves(tenants.as_deref(), tenant));
    let Some((_, registered)) = registered else {
        return Err(StoreError::NotRegistered { agent: name, is_other: false });
    };
    if agent.is_narrowed_from(&registered) {
        if let (Some(own), Some(known)) = (agent.flow.take(), &registered.flow) {
            agent.flow = Some(own.with_values(known.values().clone()));
        }
        return Ok(());
    }
    let digest = agent.portable_digest().map_err(|error| StoreError::Database {
        action: "encode an agent definition",
        message: error.to_string(),
    })?;
    let (action, text) = ("look for a registration", &sql::SELECT_REGISTERED_DIGEST);
    let values = [name.as_str().into(), digest.as_str().into()];
    let earlier = read(session, action, text, &values, |row| get::<String>(row, "digest")).await?;
    if earlier.is_empty() {
        return Err(StoreError::NotRegistered { agent: name, is_other: true });
    }
    Ok(())
}
