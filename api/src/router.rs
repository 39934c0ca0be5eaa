//! The router: every endpoint, behind the layers that a request passes.
//!
//! A request passes these layers, in this order, and its response passes them back:
//!
//! 1. `stamp`: the id of the request, the headers of each response, metrics and the log;
//! 2. the catch of panics, which become errors of the API;
//! 3. `check_version` and `check_encoding`: the version of OJS that the client asks for, and no compressed body;
//! 4. `auth`: the principal of the key, and the role and scope that the operation declares;
//! 5. `query`: unknown query parameters are refused;
//! 6. the endpoint.

use crate::access::{Access, AccessTable, UndeclaredAccess};
use crate::api::{Api, App};
use crate::auth::Guarded;
use crate::{
    a2a, agent_protocol, agents, artifacts, audit_chain, auth, batches, budgets, credentials, docs,
    engagements, fleet, freeze, ids, keys, ojs, probes, query, reply, reviews, stamp,
};
use axum::Router;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

impl Api {
    /// Returns the router with all endpoints. Every response has the headers of the OJS HTTP binding, and every error has its
    /// shape; this includes unknown routes and panics.
    ///
    /// # Errors
    /// [`UndeclaredAccess`] when an operation does not declare its roles and scope: a defect, because of which the process does
    /// not start.
    pub fn router(self) -> Result<Router, UndeclaredAccess> {
        let reset = if self.options.enable_reset { ojs::reset() } else { Router::new() };
        let app = Arc::new(App::new(self));
        let (routes, document) = OpenApiRouter::with_openapi(docs::frame())
            .merge(ojs::routes::all())
            .merge(a2a::routes::all())
            .merge(agents::routes::all())
            .merge(agent_protocol::routes::all())
            .merge(artifacts::routes::all())
            .merge(engagements::routes::all())
            .merge(batches::routes::all())
            .merge(budgets::routes::all())
            .merge(credentials::routes::all())
            .merge(keys::routes::all())
            .merge(audit_chain::routes::all())
            .merge(reviews::routes::all())
            .merge(fleet::routes::all())
            .merge(freeze::routes::all())
            .merge(ids::routes())
            .merge(probes::routes::all())
            .split_for_parts();
        // One description serves three purposes: `/openapi.json`, the access of each operation, and its query parameters.
        let document = Arc::new(docs::finish(document));
        let access = AccessTable::of(&document)?.with(Method::POST, ojs::RESET, Access::FLEET_ADMIN);
        let described = query::Described::by(&document);
        let guarded = Guarded { app: Arc::clone(&app), access: Arc::new(access) };
        // Layers that are added later surround the earlier ones, so the request passes them from the bottom up.
        Ok(routes
            .merge(reset)
            .route("/openapi.json", get(move || async move { docs::answer(&document) }))
            .route_layer(from_fn_with_state(described, query::check))
            .fallback(reply::unknown_route)
            .method_not_allowed_fallback(reply::wrong_method)
            .with_state(app.clone())
            .layer(from_fn_with_state(guarded, auth::guard))
            .layer(from_fn(stamp::check_encoding))
            .layer(from_fn(stamp::check_version))
            .layer(CatchPanicLayer::custom(reply::panicked))
            .layer(from_fn_with_state(app, stamp::stamp)))
    }
}
