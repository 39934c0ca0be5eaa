//! `POST /reviews/{id}/approve` and `/reject` with `{"by", "reason"?, "result"?}` (OAS-30 … OAS-32): the first answer
//! counts, and each of several reviewers has one vote.

use super::check_duties;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use crate::rows;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;
use turnstone_domain::principal::Principal;
use turnstone_domain::review::{Review, ReviewKind, ReviewState};
use turnstone_domain::schema::{MAX_VALUE_DEPTH, deeper_than};
use turnstone_domain::{RawJson, ReviewId, Timestamp};
use turnstone_ojs::{Fields, OjsError};
use turnstone_store::{Decision, DecisionOutcome};
use utoipa::ToSchema;

/// An answer to a review.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"by": "ada", "reason": "the price is fine"}))]
struct ReviewAnswer {
    /// The reviewer; left out, the principal, unless it may answer for anyone.
    by: Option<String>,
    /// Why.
    reason: Option<String>,
    /// Only with an approval of the kind `unknown_outcome`: the result of the call, which was made. It is not repeated.
    result: Option<Value>,
}

/// Approves a review. The first answer counts.
#[utoipa::path(
    post, path = "/reviews/{id}/approve", tag = "reviews",
    security(("tenant" = ["approver"])),
    params(("id" = String, Path, description = "The review.")),
    request_body = ReviewAnswer,
    responses(
        (status = 200, description = "The answer counts; the parked job resumes, unless others have to approve.", body = rows::Review),
        (status = 400, description = "It is not said whose answer it is, or the review takes no `result`.", body = docs::ErrorReply),
        (status = 403, description = "Another reviewer has to answer, or an agent.", body = docs::ErrorReply),
        (status = 409, description = "The review can no longer be answered, or this reviewer has voted.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn approve(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    decide(&app, &id, &tenant, (true, &body)).await
}

/// Rejects a review. The first answer counts.
#[utoipa::path(
    post, path = "/reviews/{id}/reject", tag = "reviews",
    security(("tenant" = ["approver"])),
    params(("id" = String, Path, description = "The review.")),
    request_body = ReviewAnswer,
    responses(
        (status = 200, description = "The answer counts; the parked job resumes, unless others have to approve.", body = rows::Review),
        (status = 400, description = "It is not said whose answer it is.", body = docs::ErrorReply),
        (status = 403, description = "Another reviewer has to answer, or an agent.", body = docs::ErrorReply),
        (status = 409, description = "The review can no longer be answered, or this reviewer has voted.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn reject(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    decide(&app, &id, &tenant, (false, &body)).await
}

async fn decide(app: &Shared, id: &str, tenant: &Tenant, (approve, body): (bool, &[u8])) -> Answer {
    let review = app.api.store.views.review_of(&ReviewId::from(id), tenant.name()).await?;
    let review = review.ok_or_else(|| OjsError::not_found("review", id))?;
    check_duties(app, &review, &tenant.principal).await?;
    let decision = decision(approve, body, &tenant.principal, app.api.clock.now())?;
    if decision.reported.is_some() && !(approve && review.kind == ReviewKind::UnknownOutcome) {
        let why = "is only for the approval of a review of the kind `unknown_outcome`: the call was made, with this result";
        return Err(OjsError::invalid_request("result", why).into());
    }
    let by = decision.by.clone();
    match app.api.store.intake.decide_review(&ReviewId::from(id), decision).await? {
        DecisionOutcome::Decided(review) | DecisionOutcome::Counted(review) => {
            Ok(reply::ok(&rows::Review::from(*review)))
        }
        DecisionOutcome::NotAsked(review) => Err(not_asked(&review, &by).into()),
        DecisionOutcome::VotedAlready => {
            let message = format!("{by} has answered review {id} already; each reviewer has one vote.");
            Err(OjsError::conflict(message).with("state", ReviewState::Open.as_str()).into())
        }
        DecisionOutcome::TooLate(state) => {
            let message =
                format!("Review {id} can no longer be answered; its state is `{}`.", state.as_str());
            Err(OjsError::conflict(message).with("state", state.as_str()).into())
        }
        DecisionOutcome::NotFound => Err(OjsError::not_found("review", id).into()),
    }
}

/// Only the reviewers that the document names may confirm a call or its result (OAS-32). A caller with a key of this
/// server may answer for any user, but not for an agent: agents answer in engagements of their own.
fn not_asked(review: &Review, by: &str) -> OjsError {
    if let Some(engagement) = &review.asked {
        let message = format!(
            "Review {} is agent {}'s to answer, in engagement {engagement}.",
            review.id, review.reviewer
        );
        let hint = "Wait for the agent, or cancel the job.";
        return OjsError::new(403, "forbidden", message, hint);
    }
    let whose = review.members().join(", ");
    let message = format!("Review {} is {whose}'s to answer, and not {by}'s.", review.id);
    let hint = "Send the answer of one of the review's reviewers, with the name as `by` (on the command line: --by NAME).";
    OjsError::new(403, "forbidden", message, hint)
}

/// Reads an answer. A name counts only within what the principal may act for; left out, it is the principal's.
fn decision(approve: bool, bytes: &[u8], principal: &Principal, at: Timestamp) -> Result<Decision, OjsError> {
    let fields = Fields::read_if_any(bytes)?;
    if let Some(unknown) = fields.0.names().find(|name| !matches!(*name, "by" | "reason" | "result")) {
        let why = "is not known here; an answer has `by`, `reason` and `result`";
        return Err(OjsError::invalid_request(unknown, why));
    }
    let is_null = fields.raw("result").is_some_and(RawJson::is_null);
    let ReviewAnswer { by, reason, result } = fields.typed()?;
    // `null` is a result.
    let result = result.or_else(|| is_null.then_some(Value::Null));
    let reported = result.map(result_within).transpose()?;
    let by = match by.filter(|by| !by.trim().is_empty()) {
        Some(by) if !principal.may_act_for(&by) => {
            let message = format!("{} may not answer for {by}.", principal.name);
            let hint = "Leave `by` out, or use a key that acts for this reviewer: `turnstone key create --acts-for`.";
            return Err(OjsError::new(403, "forbidden", message, hint).with("by", by));
        }
        Some(by) => by,
        // It may be anyone's.
        None if principal.acts_for_anyone() => {
            return Err(OjsError::invalid_request("by", "is missing: say whose answer it is"));
        }
        None => principal.name.clone(),
    };
    Ok(Decision { approve, by, principal: principal.identity.clone(), reason, reported, at })
}

/// Returns the result of a call that was made, if it does not nest too deeply.
fn result_within(result: Value) -> Result<Value, OjsError> {
    match deeper_than(&result, MAX_VALUE_DEPTH) {
        true => {
            Err(OjsError::invalid_request("result", format!("nests deeper than {MAX_VALUE_DEPTH} levels")))
        }
        false => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::principal::ANYONE;

    #[test]
    fn answers_are_read_strictly() {
        let mut principal = Principal {
            name: "eve".to_owned(),
            key: None,
            tenant: None,
            roles: Vec::new(),
            acts_for: vec![ANYONE.to_owned()],
            email: None,
            identity: Some("eve".to_owned()),
        };
        let read = |text: &str| decision(true, text.as_bytes(), &principal, Timestamp(5));
        let full = read(r#"{"by":"ann","reason":"fine"}"#).unwrap();
        assert_eq!((full.by.as_str(), full.reason.as_deref(), full.at), ("ann", Some("fine"), Timestamp(5)));
        assert_eq!(full.reported, None);
        let made = read(r#"{"by":"ann","result":null}"#).unwrap();
        assert_eq!(made.reported, Some(Value::Null), "null is a result");
        for nobody in ["", "{}", r#"{"by":" "}"#, r#"{"reason":"fine"}"#] {
            let refused = read(nobody).unwrap_err();
            assert_eq!((refused.status, refused.message.contains("by is missing")), (400, true), "{nobody}");
        }
        for bad in [r#"{"by":1}"#, r#"{"who":"ann"}"#, "[]", "{"] {
            assert_eq!(read(bad).unwrap_err().status, 400, "{bad}");
        }
        principal.acts_for = vec!["ann".to_owned()];
        let read = |text: &str| decision(true, text.as_bytes(), &principal, Timestamp(5));
        assert_eq!(read("").unwrap().by, "eve");
        assert_eq!(read(r#"{"by":"ann"}"#).unwrap().by, "ann");
        assert_eq!(read(r#"{"by":"ben"}"#).unwrap_err().status, 403);
    }
}
