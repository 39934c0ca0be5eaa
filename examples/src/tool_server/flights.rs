//! `/flights/search` and `/flights/book`: a travel desk without an airline. A booking is an effect that one does not
//! want twice: the same `Idempotency-Key` gets the same answer.

use crate::tool_server::Memory;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

struct Flight {
    number: &'static str,
    departs: &'static str,
    arrives: &'static str,
    stops: u8,
    /// In euros.
    price: u32,
}

const FLIGHTS: [Flight; 3] = [
    Flight { number: "TS204", departs: "09:15", arrives: "12:05", stops: 0, price: 640 },
    Flight { number: "TS118", departs: "06:40", arrives: "12:50", stops: 1, price: 385 },
    Flight { number: "TS330", departs: "17:30", arrives: "23:55", stops: 1, price: 210 },
];

/// The bookings made so far.
#[derive(Debug, Default)]
pub(crate) struct Bookings(Mutex<Vec<Booking>>);

#[derive(Clone, Debug)]
struct Booking {
    key: Option<String>,
    asked: Value,
    answer: Value,
}

impl Bookings {
    /// Every booking, oldest first.
    pub(crate) fn list(&self) -> Vec<Value> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|booking| booking.answer.clone())
            .collect()
    }

    /// Books, unless this key has booked before: then it is answered again. `None` when it asked for something else then.
    fn book(&self, key: Option<String>, requested: &Value) -> Option<Value> {
        let mut bookings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = bookings.iter().find(|booking| key.is_some() && booking.key == key) {
            return (before.asked == *requested).then(|| before.answer.clone());
        }
        let reference = format!("TS-{:04}", bookings.len() + 1);
        let answer = json!({"reference": reference, "status": "booked", "booking": requested});
        bookings.push(Booking { key, asked: requested.clone(), answer: answer.clone() });
        Some(answer)
    }
}

/// `POST /flights/search` with `{"from", "to", "date"}`: the same three flights between any two places.
pub(crate) async fn search(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    memory.calls.note("/flights/search", &headers, &body);
    let (Some(from), Some(to)) = (body["from"].as_str(), body["to"].as_str()) else {
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"error": "`from` and `to` must be strings"})));
    };
    let flight = |flight: &Flight| {
        json!({
            "flight": flight.number,
            "from": from,
            "to": to,
            "date": body["date"],
            "departs": flight.departs,
            "arrives": flight.arrives,
            "stops": flight.stops,
            "price": flight.price,
            "currency": "EUR",
        })
    };
    (StatusCode::OK, Json(json!({"flights": FLIGHTS.iter().map(flight).collect::<Value>()})))
}

/// `POST /flights/book` with at least `{"flight": "TS204"}`.
pub(crate) async fn book(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let key = memory.calls.note("/flights/book", &headers, &body);
    let number = body["flight"].as_str().unwrap_or_default();
    if !FLIGHTS.iter().any(|flight| flight.number == number) {
        return (StatusCode::NOT_FOUND, Json(json!({"error": format!("there is no flight {number:?}")})));
    }
    match memory.bookings.book(key, &body) {
        Some(answer) => (StatusCode::CREATED, Json(answer)),
        None => {
            let error = "this Idempotency-Key was used for another booking";
            (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"error": error})))
        }
    }
}
