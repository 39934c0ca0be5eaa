//! `/people/find`, `/calendar/read` and `/calendar/create`: people, their busy hours, and meetings with them. Every
//! employee may read; a meeting has an organizer, so making one needs that person's own token.

use crate::tool_server::Memory;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

struct Person {
    name: &'static str,
    email: &'static str,
    /// The token of the person's calendar.
    token: &'static str,
    busy: [(&'static str, &'static str); 2],
}

const PEOPLE: [Person; 3] = [
    Person {
        name: "Ada Wren",
        email: "ada@shoreline.example",
        token: "calendar-of-ada",
        busy: [("09:00", "10:00"), ("13:00", "15:00")],
    },
    Person {
        name: "Bo Plover",
        email: "bo@shoreline.example",
        token: "calendar-of-bo",
        busy: [("08:00", "09:30"), ("14:00", "16:00")],
    },
    Person {
        name: "Cleo Sanderling",
        email: "cleo@shoreline.example",
        token: "calendar-of-cleo",
        busy: [("10:00", "11:00"), ("16:00", "17:00")],
    },
];

type CalendarReply = (StatusCode, Json<Value>);

fn refused(status: StatusCode, why: &str) -> CalendarReply {
    (status, Json(json!({"error": why})))
}

/// `POST /people/find` with `{"name": "Bo"}`: the first whose name holds it.
pub(super) async fn find_person(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> CalendarReply {
    memory.calls.note("/people/find", &headers, &body);
    let requested = body["name"].as_str().unwrap_or_default().to_lowercase();
    let person =
        PEOPLE.iter().find(|person| !requested.is_empty() && person.name.to_lowercase().contains(&requested));
    match person {
        Some(person) => (StatusCode::OK, Json(json!({"name": person.name, "email": person.email}))),
        None => refused(StatusCode::NOT_FOUND, "no colleague has that name"),
    }
}

/// `POST /calendar/read` with `{"email", "day"}`: when that person is busy.
pub(super) async fn read(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> CalendarReply {
    memory.calls.note("/calendar/read", &headers, &body);
    let Some(person) = PEOPLE.iter().find(|person| body["email"] == person.email) else {
        return refused(StatusCode::NOT_FOUND, "there is no calendar of that address");
    };
    let busy: Value = person.busy.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
    (StatusCode::OK, Json(json!({"email": person.email, "day": body["day"], "busy": busy})))
}

/// `POST /calendar/create` with `{"attendees", "day", "at", "title"}`, in the name of the token's owner.
pub(super) async fn create(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> CalendarReply {
    memory.calls.note("/calendar/create", &headers, &body);
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(organiser) = PEOPLE.iter().find(|person| token.strip_prefix("Bearer ") == Some(person.token))
    else {
        return refused(
            StatusCode::UNAUTHORIZED,
            "a meeting is made in a user's name: send that user's token",
        );
    };
    let event = json!({
        "event": format!("{} {}", body["day"].as_str().unwrap_or_default(), body["at"].as_str().unwrap_or_default()),
        "title": body["title"],
        "organiser": organiser.email,
        "attendees": body["attendees"],
    });
    (StatusCode::CREATED, Json(event))
}
