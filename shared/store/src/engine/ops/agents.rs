//! Registering agents.

use super::super::session::{Args, Session};
use super::super::statement::{Writes, as_json};
use super::super::unit::Unit;
use super::budgets;
use crate::{NewAgent, StoreError, sql};
use turnstone_domain::digest;

/// Registers or replaces an agent; returns whether anything changed.
pub(in super::super) async fn register<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    agent: &NewAgent,
) -> Result<bool, StoreError> {
    let definition = as_json(&agent.definition)?;
    let digest = digest::of_text(&definition);
    let rows = vec![(digest.clone(), definition)];
    let mut writes = Writes::default();
    writes.if_new("write an agent definition", &sql::DEFINITIONS_INSERT, rows);
    writes.run(session).await?;
    let source_digest = digest::of_text(&agent.source);
    let values = [
        agent.definition.name.as_str().into(),
        digest.as_str().into(),
        agent.source.as_str().into(),
        agent.at.0.into(),
        source_digest.as_str().into(),
    ];
    let written = session.execute("register an agent", &sql::AGENT_UPSERT, Args::Values(&values)).await?;
    if written > 0 {
        budgets::of_manifest(session, unit, agent).await?;
    }
    Ok(written > 0)
}
