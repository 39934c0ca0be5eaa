//! Processes are killed: inputs keep their order, and questions their answers.

use super::post;
use crate::crash;
use futures::future::join_all;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

fn script(request: &Value) -> Reply {
    match (newest(request), model_server::outcomes(request)) {
        ("ask", 0) => Reply::call("ask_user", json!({"question": "Well?"})),
        (text, _) => Reply::text(format!("re {text}")),
    }
}

fn job(text: &str) -> Value {
    json!({"type": "agent.killed", "args": [text], "ext_agent_model": "m", "ext_agent_tools": [{"name": "ask_user"}]})
}

/// A worker process is killed in the second of three inputs. Another one runs it and the third one, each after the
/// input before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_keep_their_order_when_workers_are_killed() {
    join_all(Backend::ALL.map(async |backend| {
        let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
        let first = fleet.push(&job("one")).await;
        let id = fleet.engagement_of(&first).await;
        let mut jobs = vec![first];
        for text in ["two", "three"] {
            let (status, taken) = post(&fleet, &format!("/engagements/{id}"), &json!(text), &[]).await;
            assert_eq!((status, &taken["state"]), (303, &json!("pending")), "{taken:#}");
            jobs.push(taken["job_id"].as_str().unwrap().to_owned());
        }
        // The first input is answered, and the worker dies before the answer to the second one is committed.
        crash::killed(crash::spawn(&fleet, 4, Some("2:infer:before"))).await;
        assert_eq!(fleet.job(&jobs[2]).await["state"], "pending", "the second one has not ended");
        fleet.release_all().await;
        fleet.add_worker(4);
        for (job, answer) in jobs.iter().zip(["re one", "re two", "re three"]) {
            let done = fleet.wait_for(job, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!(answer)), "{done:#}");
        }
        let order = "SELECT j.id, v.turn FROM journal AS v JOIN jobs AS j ON j.seq = v.job_seq WHERE v.phase + v.phases = 7 ORDER BY v.turn";
        let turns: Vec<(String, i64)> = fleet.place.rows(order).await;
        let expected: Vec<(String, i64)> = jobs.iter().cloned().zip(1..).collect();
        assert_eq!(turns, expected, "each input has a turn of its own, in order, on {backend:?}");
        fleet.end().await;
    }))
    .await;
}

/// The answer is stored while no worker runs. The worker that resumes is killed, and another one resumes again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_a_killed_process_is_answered_in_another() {
    join_all(Backend::ALL.map(async |backend| {
        let mut fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
        let asking = fleet.push(&job("ask")).await;
        let id = fleet.engagement_of(&asking).await;
        fleet.add_worker(4);
        fleet.wait_for(&asking, &[JobState::Pending]).await;
        fleet.stop_workers().await;
        let body = json!({"answers": {"answer": "fine"}});
        let (status, taken) = post(&fleet, &format!("/engagements/{id}/answer"), &body, &[]).await;
        assert_eq!(status, 200, "{taken:#}");
        // The first worker is killed before the model receives the answer; the next one sends it once.
        crash::killed(crash::spawn(&fleet, 4, Some("1:exec:after"))).await;
        fleet.release_all().await;
        fleet.add_worker(4);
        let done = fleet.wait_for(&asking, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("re ask")), "{done:#}");
        let reported = fleet.models.calls().pop().unwrap().request;
        let outcomes: Vec<&Value> =
            reported["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").collect();
        assert_eq!(
            (outcomes.len(), &outcomes[0]["content"]),
            (1, &json!("{\"answer\":\"fine\"}")),
            "{reported:#}"
        );
        assert_eq!(fleet.models.calls().len(), 2, "no question was repeated");
        fleet.end().await;
    }))
    .await;
}
