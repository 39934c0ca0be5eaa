//! `POST /engagements/import`: an engagement that another server exported.

use crate::api::{App, Shared};
use crate::ojs::attest::public_keys;
use crate::ojs::jobs::accept::accept;
use crate::principals::work;
use crate::reply::{self, Answer, Failure};
use crate::request::{Document, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use turnstone_domain::agent::{Admission, AgentFormat};

use turnstone_domain::RawObject;
use turnstone_domain::attest::{ALGORITHM, Signature};
use turnstone_domain::engagement::User;
use turnstone_domain::principal::{SUBMITTED_BY, WorkKind};
use turnstone_domain::record::{EngagementRecord, signature_of};
use turnstone_ojs::OjsError;
use turnstone_store::ImportRefusal;
use utoipa::ToSchema;

/// The state of a signature that holds.
const VALID: &str = "valid";

/// The imported engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// Its id.
    pub engagement_id: String,
    job_id: String,
    /// Turns that are complete.
    pub turns: i64,
    checkpoints: usize,
    /// Its messages.
    pub messages: usize,
    /// The signature of the document.
    pub signature: ImportedSignature,
}

/// The signature of the document.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct ImportedSignature {
    /// `valid`; `missing`; or `unknown_key`, which nothing can verify here.
    #[schema(example = "valid")]
    pub state: String,
    /// The key that it names.
    pub key_id: Option<String>,
}

/// Imports an engagement that another server exported, whole or not at all. It keeps its ids. Its cost was paid on the
/// other server: shared budgets of this server do not count it. It can be read, compared, exported and replayed. It runs
/// again only if its agent is registered here with the same definition, or if a known key signed the document.
#[utoipa::path(
    post, path = "/engagements/import", tag = "engagements",
    security(("tenant" = ["operator"])),
    request_body(description = "The document of an export, of any media type.", content(
        (String = "application/x-ndjson"),
        (Document = "application/octet-stream"),
    )),
    responses((status = 201, description = "It is here.", body = Imported)),
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
        Ok((EngagementRecord::read(text)?, signature_of(text)))
    };
    let read = spawn_blocking(parse).await;
    let (mut record, signature) =
        read.map_err(|_| OjsError::internal("Reading the document failed."))?.map_err(refused)?;
    let signature = checked(&app, signature).await?;
    if let Some(new) = &record.job.engagement {
        // The document is the content of the importing principal, and a retry continues it.
        let user = &new.user;
        work::check_user(&tenant.principal, WorkKind::Chosen, user)?;
        work::check_email(&tenant.principal, &user.id, user.email.as_deref())?;
    }
    restate_user(&mut record);
    if let Some(identity) = &tenant.principal.identity {
        // The importing principal answers for the document, whatever it says.
        record.job.envelope.meta.insert(SUBMITTED_BY, identity.as_str());
    }
    record.belongs_to(tenant.name().map(str::to_owned));
    let admitted = admission(&app, &record, signature.state == VALID, &tenant).await?;
    let mut reported = Imported {
        engagement_id: record.engagement_id().0,
        job_id: record.job.id.to_string(),
        turns: record.checkpoints.iter().map(|done| done.turn).max().unwrap_or(0),
        checkpoints: record.checkpoints.len(),
        messages: record.messages.len(),
        signature,
    };
    match app.api.store.transfers.import(record, admitted, app.api.clock.now()).await? {
        Ok(id) => {
            reported.engagement_id = id.0;
            Ok(reply::json(StatusCode::CREATED, &reported))
        }
        Err(ImportRefusal::Known(what)) => {
            Err(OjsError::conflict(format!("{what} is here already; nothing was taken in.")).into())
        }
    }
}

/// Makes the job of a record name the user of its engagement: no other user, and no other address.
fn restate_user(record: &mut EngagementRecord) {
    let Some(user) = record.job.engagement.as_ref().map(|new| new.user.clone()) else { return };
    let meta = &mut record.job.envelope.meta;
    let named = meta.given("user").and_then(|named| named.parse::<User>().ok());
    if !meta.contains("user") || named.as_ref() == Some(&user) {
        return;
    }
    meta.remove("user");
    if user.is_known() {
        let mut own = RawObject::new();
        own.insert("id", user.id.as_str());
        if let Some(email) = user.email.as_deref() {
            own.insert("email", email);
        }
        meta.insert("user", own);
    }
}

/// Returns the reason why the agent of a document may run here before any agent is registered; `None` without one.
///
/// An agent that the job itself defines has to be the one that the importer gets when it enqueues this job.
async fn admission(
    app: &App,
    record: &EngagementRecord,
    is_signed: bool,
    tenant: &Tenant,
) -> Result<Option<Admission>, Failure> {
    let signed = is_signed.then_some(Admission::Signed);
    let Some(new) = &record.job.engagement else { return Ok(None) };
    if new.agent.format != AgentFormat::AdHoc {
        return Ok(signed);
    }
    let sent = &record.job.envelope;
    let mut fields = sent.extra.clone();
    fields.insert("type", record.job.job_type.as_str());
    fields.insert("args", sent.args.clone());
    fields.insert("meta", sent.meta.clone());
    let pushed = match accept(app, fields, tenant, app.api.clock.now()).await {
        Ok(pushed) => pushed.engagement.map(|new| new.agent),
        Err(refused) if refused.0.status < 500 => None,
        Err(failed) => return Err(failed),
    };
    let Some(mut pushed) = pushed else { return Ok(None) };
    if is_signed {
        // A fork may have changed it where it ran.
        pushed.instructions.clone_from(&new.agent.instructions);
    }
    Ok(new.agent.is_narrowed_from(&pushed).then_some(signed.unwrap_or(Admission::Checked)))
}

/// Checks a signature with the keys of this server and those that it trusts.
///
/// # Errors
/// 422 when it is one of a known key and does not hold.
async fn checked(app: &Shared, signature: Option<(String, Signature)>) -> Result<ImportedSignature, Failure> {
    let Some((text, signature)) = signature else {
        return Ok(ImportedSignature { state: "missing".to_owned(), key_id: None });
    };
    let key_id = Some(signature.key_id.clone());
    let own = public_keys(app).await?;
    let known = own.iter().chain(&app.api.options.trusted_keys).find(|key| key.id == signature.key_id);
    let Some(key) = known else { return Ok(ImportedSignature { state: "unknown_key".to_owned(), key_id }) };
    if signature.algorithm == ALGORITHM && key.verify(&text, &signature).is_ok() {
        return Ok(ImportedSignature { state: VALID.to_owned(), key_id });
    }
    let message = format!("The document is not the one that key {} signed.", signature.key_id);
    let hint = "Export it anew, or remove the signature from its last line to import it unsigned.";
    Err(OjsError::new(422, "forged_export", message, hint).with("key_id", signature.key_id).into())
}
