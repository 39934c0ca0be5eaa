//! Registering and removing agents.

use super::super::rows::{AgentRow, DefinitionRow, RegisteredDigest, get, json};
use super::super::session::{Args, Row, Session};
use super::super::statement::{Writes, as_json, decode_readable, execute, read};
use super::super::unit::Unit;
use super::budgets;
use crate::{AgentRemoval, AgentRemoved, NewAgent, NewTenants, StoreError, sql};
use turnstone_domain::agent::delegation;
use turnstone_domain::{AgentDefinition, digest};

/// Registers or replaces an agent; returns whether anything changed. `before` receives the digest of the replaced one.
pub(in super::super) async fn register(
    session: &mut Session,
    unit: &mut Unit,
    (agent, before): (&NewAgent, &mut Option<String>),
) -> Result<bool, StoreError> {
    let known = known(session, &agent.definition.name).await?;
    let (replaced, tenants) = known.unzip();
    *before = replaced;
    let tenants = match &agent.tenants {
        NewTenants::Unchanged => tenants.flatten(),
        NewTenants::All => None,
        NewTenants::Only(names) => Some(names.clone()),
    };
    let definition = as_json(&agent.definition)?;
    let digest = digest::of_text(&definition);
    let rows = vec![DefinitionRow { digest: digest.clone(), definition }];
    let mut writes = Writes::default();
    writes.some("write an agent definition", &sql::INSERT_DEFINITIONS, rows);
    let portable = digest::of_text(&as_json(&agent.definition.portable())?);
    let known = RegisteredDigest { name: agent.definition.name.clone(), digest: portable };
    writes.insert_missing("remember a registration", vec![known]);
    writes.run(session).await?;
    let row = AgentRow {
        name: agent.definition.name.clone(),
        digest,
        source: agent.source.clone(),
        updated_at: agent.at,
        source_digest: digest::of_text(&agent.source),
        tenants,
    };
    let written = execute(session, "register an agent", &sql::INSERT_AGENT, vec![row], &[]).await?;
    if written > 0 {
        budgets::of_manifest(session, unit, agent).await?;
    }
    Ok(written > 0)
}

/// Returns the digest of a registered agent, and the tenants that it serves.
async fn known(
    session: &mut Session,
    name: &str,
) -> Result<Option<(String, Option<Vec<String>>)>, StoreError> {
    let row = |row: &Row| Ok((get::<String>(row, "digest")?, get(row, "tenants")?));
    Ok(read(session, "read an agent", &sql::SELECT_AGENTS, &[name.into()], row).await?.pop())
}

/// Removes an agent, with the budget that its manifest gave it. Definitions stay: engagements have begun with them.
/// `before` receives the digest of the removed one.
pub(in super::super) async fn remove(
    session: &mut Session,
    unit: &mut Unit,
    (removal, before): (&AgentRemoval, &mut Option<String>),
) -> Result<AgentRemoved, StoreError> {
    *before = known(session, &removal.name).await?.map(|(digest, _)| digest);
    let any_name = [None::<&str>.into()];
    let rows = session.rows("read agents", &sql::SELECT_AGENTS, Args::Values(&any_name)).await?;
    let agents: Vec<AgentDefinition> = decode_readable("read agents", &rows, |row| json(row, "definition"));
    let named_by = delegation::named_by(&removal.name, &agents);
    if !removal.even_if_named && !named_by.is_empty() {
        return Ok(AgentRemoved::NamedBy(named_by));
    }
    let name = [removal.name.as_str().into()];
    if session.execute("remove an agent", &sql::DELETE_AGENT, Args::Values(&name)).await? == 0 {
        return Ok(AgentRemoved::Unknown);
    }
    session.execute("forget registrations", &sql::DELETE_REGISTERED_DIGESTS, Args::Values(&name)).await?;
    budgets::without_manifest(session, unit, &removal.name, removal.at).await?;
    Ok(AgentRemoved::Gone)
}
