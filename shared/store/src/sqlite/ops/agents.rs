//! Registering agents.

use super::super::sql;
use super::super::statement::{as_json, failed};
use crate::{NewAgent, StoreError};
use sqlx::sqlite::SqliteConnection;
use turnstone_domain::digest;

/// Registers or replaces an agent; returns whether anything changed.
pub(in super::super) async fn register(
    conn: &mut SqliteConnection,
    agent: &NewAgent,
) -> Result<bool, StoreError> {
    let definition = as_json(&agent.definition)?;
    let digest = digest::of_text(&definition);
    let rows = as_json(&[(&digest, &definition)])?;
    sqlx::query(sql::DEFINITIONS_INSERT)
        .bind(rows)
        .execute(&mut *conn)
        .await
        .map_err(failed("write an agent definition"))?;
    let done = sqlx::query(sql::AGENT_UPSERT)
        .bind(&agent.definition.name)
        .bind(&digest)
        .bind(&agent.source)
        .bind(agent.at.0)
        .execute(conn)
        .await
        .map_err(failed("register an agent"))?;
    Ok(done.rows_affected() > 0)
}
