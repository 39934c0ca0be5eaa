//! `POST /engagements/import`: an engagement that another server exported.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Document, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tokio::task::spawn_blocking;
use turnstone_domain::record::EngagementRecord;
use turnstone_ojs::OjsError;
use turnstone_store::ImportRefusal;
use utoipa::ToSchema;

/// The imported engagement.
#[derive(Serialize, ToSchema)]
pub(super) struct Imported {
    engagement_id: String,
    job_id: String,
    turns: i64,
    checkpoints: usize,
    messages: usize,
}

/// The document for clients that are generated without NDJSON.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct BinaryDocument(Vec<u8>);

/// Imports an engagement that another server exported, whole or not at all. It keeps its ids. Its cost was paid on the
/// other server: shared budgets of this server do not count it.
#[utoipa::path(
    post, path = "/engagements/import", tag = "engagements",
    security(("tenant" = ["operator"])),
    request_body(description = "The document of an export, of any media type.", content(
        (String = "application/x-ndjson"),
        (BinaryDocument = "application/octet-stream"),
    )),
    responses((status = 201, description = "It is here.", body = Imported, content_type = "application/json")),
)]
pub(crate) async fn import(State(app): State<Shared>, tenant: Tenant, Document(body): Document) -> Answer {
    let refused = |why: String| {
        OjsError::new(
            422,
            "unreadable_export",
            format!("The document cannot be taken in: {why}."),
            "Export it anew.",
        )
    };
    let parse = move || {
        let text = std::str::from_utf8(&body).map_err(|_| "it is not UTF-8".to_owned())?;
        EngagementRecord::read(text)
    };
    let read = spawn_blocking(parse).await;
    let mut record =
        read.map_err(|_| OjsError::internal("Reading the document failed."))?.map_err(refused)?;
    record.belongs_to(tenant.into_name());
    let reported = Imported {
        engagement_id: record.engagement_id().0,
        job_id: record.job.id.0.clone(),
        turns: record.checkpoints.iter().map(|done| done.turn).max().unwrap_or(0),
        checkpoints: record.checkpoints.len(),
        messages: record.messages.len(),
    };
    match app.api.store.transfers.import(record, app.api.clock.now()).await? {
        Ok(()) => Ok(reply::json(StatusCode::CREATED, &json!(reported))),
        Err(ImportRefusal::Known(what)) => {
            Err(OjsError::conflict(format!("{what} is here already; nothing was taken in.")).into())
        }
    }
}
