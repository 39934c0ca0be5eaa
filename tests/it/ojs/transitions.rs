//! The closed table of states, by requests. Each request about a job in each state takes an edge of the table, or is
//! refused and changes nothing. `conformance/transitions.rs` does the same with the operations of the store.

use super::on_every_store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnstone_domain::JobState;
use turnstone_domain::state::{TRANSITIONS, Trigger};
use turnstone_tests::OjsServer;

on_every_store![every_request_in_every_state_takes_an_edge_of_the_table_or_is_refused];

/// A request about a job, or the passing of time.
#[derive(Clone, Copy, Debug)]
enum Request {
    Fetch,
    Ack,
    Nack,
    NackForGood,
    GiveBack,
    Cancel,
    Activate,
    TryAgain,
    TryDeadLetterAgain,
    /// A second passes without a request.
    WaitForItsTime,
}

/// Every request with the edges that it may take.
const REQUESTS: &[(Request, &[Trigger])] = {
    use Request as R;
    use Trigger as T;
    &[
        (R::Fetch, &[T::Claim]),
        (R::Ack, &[T::Complete]),
        (R::Nack, &[T::Retry]),
        (R::NackForGood, &[T::Discard]),
        (R::GiveBack, &[T::Yield]),
        (R::Cancel, &[T::Cancel]),
        (R::Activate, &[T::Activate]),
        (R::TryAgain, &[T::Revive, T::RetryDue]),
        (R::TryDeadLetterAgain, &[T::Revive]),
        (R::WaitForItsTime, &[T::Promote, T::RetryDue]),
    ]
};

/// Applies a request and returns whether it was accepted.
async fn apply(server: &OjsServer, request: Request, id: &str, queue: &str) -> bool {
    let post = async |path: String, body: Value| server.post(&path, &body).await.status;
    let status = match request {
        Request::Fetch => {
            let body = json!({"queues": [queue], "worker_id": "w"});
            let reply = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
            return reply["jobs"].as_array().unwrap().iter().any(|job| job["id"] == id);
        }
        Request::WaitForItsTime => {
            let before = server.job(id).await["state"].clone();
            server.pass_ms(1_000).await;
            return server.job(id).await["state"] != before;
        }
        Request::Ack => post(format!("/ojs/v1/jobs/{id}/ack"), json!({})).await,
        Request::Nack => post(format!("/ojs/v1/jobs/{id}/nack"), json!({"error": {"code": "e"}})).await,
        Request::NackForGood => {
            let error = json!({"code": "e", "retryable": false});
            post(format!("/ojs/v1/jobs/{id}/nack"), json!({"error": error})).await
        }
        Request::GiveBack => post(format!("/ojs/v1/jobs/{id}/nack"), json!({"requeue": true})).await,
        Request::Cancel => server.delete(&format!("/ojs/v1/jobs/{id}")).await.status,
        Request::Activate => post(format!("/ojs/v1/jobs/{id}/activate"), json!({})).await,
        Request::TryAgain => post(format!("/ojs/v1/admin/jobs/{id}/retry"), json!({})).await,
        Request::TryDeadLetterAgain => post(format!("/ojs/v1/dead-letter/{id}/retry"), json!({})).await,
    };
    assert!(matches!(status, 200 | 404 | 409), "{request:?}: {status}");
    status == 200
}

/// Brings a job into this state, alone in its queue.
async fn bring(server: &OjsServer, state: JobState, queue: &str) -> String {
    let retry = json!({"max_attempts": 5, "initial_interval": "PT1S", "jitter": false, "on_exhaustion": "dead_letter"});
    let mut options = json!({"queue": queue, "retry": retry});
    match state {
        JobState::Scheduled => options["delay_until"] = json!("+PT1S"),
        JobState::Pending => options["pending"] = json!(true),
        _ => {}
    }
    let id = server.push(&json!({"type": "mail.send", "args": [], "options": options})).await;
    let path: &[Request] = match state {
        JobState::Scheduled | JobState::Available | JobState::Pending => &[],
        JobState::Active => &[Request::Fetch],
        JobState::Completed => &[Request::Fetch, Request::Ack],
        JobState::Retryable => &[Request::Fetch, Request::Nack],
        JobState::Cancelled => &[Request::Cancel],
        JobState::Discarded => &[Request::Fetch, Request::NackForGood],
    };
    for step in path {
        assert!(apply(server, *step, &id, queue).await, "{step:?} on the way to {state}");
    }
    assert_eq!(server.job(&id).await["state"], state.as_str());
    id
}

async fn every_request_in_every_state_takes_an_edge_of_the_table_or_is_refused(server: &OjsServer) {
    let mut walked = BTreeSet::new();
    for (request, triggers) in REQUESTS {
        for state in JobState::ALL {
            let queue = format!("{request:?}-{state}").to_lowercase();
            let id = bring(server, state, &queue).await;
            let before = server.job(&id).await;
            let is_accepted = apply(server, *request, &id, &queue).await;
            let after = server.job(&id).await;
            match triggers.iter().find_map(|by| Some((by, state.after(*by)?))) {
                Some((by, to)) => {
                    assert!(is_accepted, "{request:?} in {state} is refused");
                    assert_eq!(after["state"], to.as_str(), "{request:?} in {state}");
                    walked.insert(format!("{state} {by:?}"));
                }
                None => {
                    assert!(!is_accepted, "{request:?} in {state} is accepted");
                    assert_eq!(after, before, "{request:?} in {state} is refused and changes the job");
                }
            }
        }
    }
    let requested: Vec<Trigger> =
        REQUESTS.iter().flat_map(|(_, triggers)| triggers.iter().copied()).collect();
    let of_table = TRANSITIONS.iter().filter(|(_, by, _)| requested.contains(by));
    let of_table: BTreeSet<_> = of_table.map(|(from, by, _)| format!("{from} {by:?}")).collect();
    assert_eq!(walked, of_table, "an edge that no request takes, or one too many");
}
