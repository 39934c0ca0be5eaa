//! The inbox of reviews: list, show, approve, reject.

mod decide;
mod list;
mod show;

use crate::api::{App, Shared};
use crate::reply::Failure;
use turnstone_domain::principal::{Principal, SUBMITTED_BY};
use turnstone_domain::review::Review;
use turnstone_ojs::OjsError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list::list))
        .routes(routes!(show::show))
        .routes(routes!(decide::approve))
        .routes(routes!(decide::reject))
}

/// Refuses an answer by the principal that submitted the reviewed job, where duties are separate.
///
/// # Errors
/// 403; the error of the store.
pub(crate) async fn check_duties(app: &App, review: &Review, principal: &Principal) -> Result<(), Failure> {
    let Some(identity) = principal.identity.as_deref().filter(|_| app.api.options.separate_duties) else {
        return Ok(());
    };
    let job = app.api.store.views.job(&review.job_id).await?;
    let submitted = job.and_then(|job| job.envelope.meta.get(SUBMITTED_BY)?.parse::<String>().ok());
    if submitted.as_deref() != Some(identity) {
        return Ok(());
    }
    let message = format!("{identity} submitted the job of review {}, and may not answer it.", review.id);
    let hint = "Let another principal answer: [reviews] separate_duties is set.";
    Err(OjsError::new(403, "forbidden", message, hint).into())
}
