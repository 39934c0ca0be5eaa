//! `POST /keys`: creates a key.

use super::{NewKey, ShownKey, new_secret};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use turnstone_domain::Timestamp;
use turnstone_domain::principal::{ApiKey, Principal, Role};
use turnstone_ojs::OjsError;
use turnstone_store::NewKeyOutcome;
use utoipa::ToSchema;

/// A key to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "batch-backend", "tenant": "acme", "roles": ["submitter"], "acts_for": ["*"]}))]
struct KeyRequest {
    /// The principal; unique among the living keys of its tenant.
    name: String,
    /// The tenant; left out for a key of the fleet. A tenant creates its own keys only.
    tenant: Option<String>,
    /// viewer, submitter, worker, approver, operator, admin.
    roles: Vec<String>,
    /// The users and reviewers whose names it may use beside its own; `*` means all.
    #[serde(default)]
    acts_for: Vec<String>,
    /// RFC 3339; left out, it does not expire.
    expires_at: Option<String>,
    /// The most requests per minute; no limit by default.
    rate_per_minute: Option<i64>,
}

/// Creates a key. Only this response contains the secret.
#[utoipa::path(
    post, path = "/keys", operation_id = "create_key", tag = "access",
    security(("tenant" = ["admin"])),
    request_body = KeyRequest,
    responses(
        (status = 201, description = "The key, with its secret.", body = NewKey),
        (status = 409, description = "A living key has the name.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn create(State(app): State<Shared>, tenant: Tenant, body: JsonBytes) -> Answer {
    let asked: KeyRequest = body.read()?;
    let now = app.api.clock.now();
    let (secret, hash) = new_secret()?;
    let key = key(asked, &tenant.principal, (app.api.ids.next(), hash), now)?;
    let created = app.api.store.keys.create(key.clone()).await?;
    match created {
        NewKeyOutcome::Created => {}
        NewKeyOutcome::NameTaken => {
            let message = format!("A living key has the name `{}`.", key.name);
            return Err(OjsError::conflict(message).with("name", key.name).into());
        }
        NewKeyOutcome::TooMany { most } => {
            let hint = "Revoke keys that are no longer used: `turnstone key list`.";
            let message = format!("There are {most} living keys, and no more are allowed.");
            return Err(OjsError::new(409, "too_many_keys", message, hint).with("maximum", most).into());
        }
    }
    app.principals.keyring.refresh().await?;
    Ok(reply::json(StatusCode::CREATED, &NewKey { key: ShownKey::of(&key, now), secret }))
}

/// Reads a key. Its tenant is that of the principal, unless the principal is of the fleet.
fn key(
    asked: KeyRequest,
    by: &Principal,
    (id, hash): (String, String),
    now: Timestamp,
) -> Result<ApiKey, Failure> {
    if let (Some(own), Some(named)) = (&by.tenant, &asked.tenant)
        && own != named
    {
        let message = format!("{} creates keys of tenant {own} only.", by.name);
        let hint = "Leave `tenant` out, or use a key of the fleet.";
        return Err(OjsError::new(403, "forbidden", message, hint).with("field", "tenant").into());
    }
    let role = |word: &String| {
        let all = Role::ALL.map(Role::as_str).join(", ");
        Role::parse(word)
            .ok_or_else(|| OjsError::invalid_request("roles", format!("may have {all}, and has `{word}`")))
    };
    let mut roles = asked.roles.iter().map(role).collect::<Result<Vec<_>, _>>()?;
    roles.sort_unstable();
    roles.dedup();
    let time = |text: &str| {
        let why = "must be a time with a zone, such as 2026-01-31T12:00:00Z";
        Timestamp::parse_rfc3339(text).ok_or_else(|| OjsError::invalid_request("expires_at", why))
    };
    let key = ApiKey {
        id,
        hash,
        old_hash: None,
        name: asked.name,
        tenant: by.tenant.clone().or(asked.tenant),
        roles,
        acts_for: asked.acts_for,
        rate_per_minute: asked.rate_per_minute,
        created_at: now,
        created_by: by.identity.clone().unwrap_or_else(|| by.name.clone()),
        expires_at: asked.expires_at.as_deref().map(time).transpose()?,
        revoked_at: None,
        last_used_at: None,
    };
    key.check().map_err(|(field, why)| OjsError::invalid_request(field, why))?;
    Ok(key)
}
