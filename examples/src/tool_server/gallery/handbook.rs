//! `/handbook/search`: the company's handbook, whose pages are for all employees or for some.

use crate::tool_server::Memory;
use crate::tool_server::library::{Page, found};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

const HANDBOOK: [Page; 5] = [
    Page {
        path: "people/parental-leave",
        title: "Parental leave",
        text: "Both parents may take up to fourteen months between them. Tell your lead seven weeks ahead, in writing.",
    },
    Page {
        path: "people/holidays",
        title: "Holidays",
        text: "Thirty days a year. Five of them may be carried over, and must be taken by the end of March.",
    },
    Page {
        path: "people/training",
        title: "Training and conferences",
        text: "Ten days and 2,000 euros a year, agreed with your lead.",
    },
    Page {
        path: "finance/salary-bands",
        title: "Salary bands by role",
        text: "For the finance team only: bands A to F with their limits.",
    },
    Page {
        path: "finance/travel-costs",
        title: "Accounting for travel",
        text: "For the finance team only: cost centres of journeys.",
    },
];

/// `POST /handbook/search` with `{"query", "shelf"}`.
pub(super) async fn search(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    memory.calls.note("/handbook/search", &headers, &body);
    match (body["query"].as_str(), body["shelf"].as_str()) {
        (Some(query), Some(shelf)) => (StatusCode::OK, Json(found(&HANDBOOK, query, shelf))),
        _ => {
            let error = "`query` and `shelf` must be strings";
            (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"error": error})))
        }
    }
}
