//! `/ojs/v1/crons`: the paths of OJS's admin page; an entry's id is its name.

use super::{ChangeCron, CronList, CronReply, ForgottenCron, PutCron};
use crate::api::Shared;
use crate::docs;
use crate::reply::Answer;
use crate::request::{JsonBytes, Params, Segment, Tenant};
use axum::extract::State;

/// Lists cron entries by name.
#[utoipa::path(
    get, path = "/ojs/v1/crons", operation_id = "list_crons_alias", tag = "cron",
    security(("tenant" = ["viewer"])),
    params(("enabled" = Option<bool>, Query, description = "Only those that are, or that are not.")),
    responses((status = 200, description = "The entries.", body = CronList)),
)]
pub(crate) async fn list(app: State<Shared>, tenant: Tenant, params: Params) -> Answer {
    super::list_crons::list_crons(app, tenant, params).await
}

/// Makes a cron entry, or replaces the one of its name.
#[utoipa::path(
    post, path = "/ojs/v1/crons", operation_id = "put_cron_alias", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    request_body = PutCron,
    responses(
        (status = 200, description = "An entry of this name is replaced; its counts stay.", body = CronReply),
        (status = 201, description = "The entry is new.", body = CronReply),
        (status = 400, description = "Something cannot be read; the message says what.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn put(app: State<Shared>, tenant: Tenant, body: JsonBytes) -> Answer {
    super::put_cron::put_cron(app, tenant, body).await
}

/// One cron entry.
#[utoipa::path(
    get, path = "/ojs/v1/crons/{id}", operation_id = "show_cron_alias", tag = "cron",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The name of the entry.")),
    responses((status = 200, description = "The entry.", body = CronReply)),
)]
pub(crate) async fn show(app: State<Shared>, name: Segment, tenant: Tenant) -> Answer {
    super::show_cron::show_cron(app, name, tenant).await
}

/// Changes a cron entry. Members that are not sent stay as they are.
#[utoipa::path(
    patch, path = "/ojs/v1/crons/{id}", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The name of the entry.")),
    request_body = ChangeCron,
    responses((status = 200, description = "The entry as it is now.", body = CronReply)),
)]
pub(crate) async fn change(app: State<Shared>, name: Segment, tenant: Tenant, body: JsonBytes) -> Answer {
    super::change_cron::change_cron(app, name, tenant, body).await
}

/// Deletes a cron entry and its history. The jobs that it made stay.
#[utoipa::path(
    delete, path = "/ojs/v1/crons/{id}", operation_id = "delete_cron_alias", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The name of the entry.")),
    responses((status = 200, description = "The entry as it was.", body = ForgottenCron)),
)]
pub(crate) async fn forget(app: State<Shared>, name: Segment, tenant: Tenant) -> Answer {
    super::forget_cron::forget_cron(app, name, tenant).await
}
