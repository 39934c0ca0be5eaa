//! The routes of the endpoints beside this file.

use super::{
    answer, audit, checkpoints, diff, events, export, fork, import, list, messages, send, session_state,
    show, tool_calls,
};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list::list))
        .routes(routes!(show::show, send::send))
        .routes(routes!(answer::answer_question))
        .routes(routes!(fork::fork))
        .routes(routes!(diff::diff))
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(messages::messages))
        .routes(routes!(checkpoints::checkpoints))
        .routes(routes!(session_state::session_state))
        .routes(routes!(tool_calls::tool_calls))
        .routes(routes!(audit::audit))
        .routes(routes!(events::events))
}
