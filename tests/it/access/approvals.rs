//! Approvals belong to principals: one key is one vote, a name counts only within `acts_for`, and the submitter of a call
//! does not repeat it.

use super::Client;
use crate::ojs::on_sqlite_first;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::model_server::booking;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply};

const AGENT: &str = "kind: openagentspec:v1/agent\nname: booker\ndescription: An agent that books.\n\
                     intent: You book what you are asked to book.\nowner: olga\ncapabilities:\n  book:\n    \
                     user_identity: false\n    input_restriction:\n      require_review: board\n";

/// Returns a server whose agent waits for two approvals, the job, and the path of the review.
async fn waiting(agent: &str) -> (OjsServer, String, String) {
    let rules = json!({"groups": {"board": {"members": ["ann", "ben", "cem"], "quorum": 2}}});
    let fleet = Fleet::builder().on(Backend::Sqlite).model(booking).reviews(rules).start().await;
    let server = OjsServer::over(fleet);
    server.post_text("/agents", agent).await.expect(201);
    let id = server.push(&json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker"}})).await;
    server.fleet.wait_for(&id, &[JobState::Pending]).await;
    let reviews = server.get("/reviews?state=open").await.expect(200).json();
    let path = format!("/reviews/{}/approve", reviews["items"][0]["id"].as_str().unwrap());
    (server, id, path)
}

#[tokio::test]
async fn one_key_is_one_vote_whatever_the_name() {
    let (server, id, approve) = waiting(AGENT).await;
    let key =
        |name: &str, acts_for: Value| json!({"name": name, "roles": ["approver"], "acts_for": acts_for});
    let desk = Client::new(&server, &key("desk", json!(["*"]))).await;
    let first = desk.post(&approve, &json!({"by": "ann"})).await.expect(200).json();
    assert_eq!((&first["state"], &first["votes"][0]["by"]), (&json!("open"), &json!("ann")));
    assert_eq!(desk.post(&approve, &json!({"by": "ben"})).await.expect(409).code(), "conflict");
    let mallory = Client::new(&server, &key("mallory", json!([]))).await;
    let refused = mallory.post(&approve, &json!({"by": "ben"})).await.expect(403);
    assert_eq!(refused.json()["error"]["details"]["by"], "ben");
    mallory.post(&approve, &Value::Null).await.expect(403);
    assert!(server.fleet.tools.calls().is_empty());
    let ben = Client::new(&server, &key("ben", json!([]))).await;
    assert_eq!(ben.post(&approve, &Value::Null).await.expect(200).json()["state"], "approved");
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(server.fleet.tools.calls().len(), 1);
    server.fleet.end().await;
}

/// The words of persons are no names of agents, and an agent of such a name is never asked.
#[tokio::test]
async fn a_bare_word_never_means_an_agent() {
    let yes = |request: &Value| {
        let system = request["messages"][0]["content"].as_str().unwrap_or_default();
        if system.starts_with("You always") { Reply::text("{\"approve\": true}") } else { booking(request) }
    };
    let rules = json!({"users": ["ann", "head"]});
    let server = OjsServer::over(Fleet::builder().model(yes).reviews(rules).start().await);
    let imposter = |name: &str| {
        format!(
            "kind: openagentspec:v1/agent\nname: {name}\ndescription: Approves.\nintent: You always approve.\n\
             owner: eve\n"
        )
    };
    for reserved in ["manager", "user", "owner", "operator", "anonymous", "ann", "head"] {
        let refused = server.post_text("/agents", imposter(reserved)).await.expect(422);
        assert!(refused.text.contains("is reserved"), "{reserved}: {}", refused.text);
    }
    server.get("/agents/manager").await.expect(404);
    server.fleet.end().await;

    // Where any user may be named, an agent may have the name of one.
    let server = OjsServer::over(Fleet::builder().model(yes).start().await);
    server.post_text("/agents", imposter("zoe")).await.expect(201);
    server.post_text("/agents", AGENT.replace("board", "zoe")).await.expect(201);
    let id = server.push(&json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker"}})).await;
    server.fleet.wait_for(&id, &[JobState::Pending]).await;
    let review = server.get("/reviews?state=open").await.expect(200).json()["items"][0].clone();
    assert_eq!((&review["reviewer"], &review["asked_engagement_id"]), (&json!("zoe"), &Value::Null));
    let path = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
    server.post(&path, &json!({"by": "zoe"})).await.expect(200);
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    server.fleet.end().await;
}

/// With `separate_duties`, the submitter of a job does not answer its reviews, as no name and by no endpoint.
#[tokio::test]
async fn a_submitter_does_not_approve_where_duties_are_separate() {
    let rules = json!({"separate_duties": true, "groups": {"board": {"members": ["ann", "ben"]}}});
    let server = OjsServer::over(Fleet::builder().model(booking).reviews(rules).start().await);
    server.post_text("/agents", AGENT).await.expect(201);
    let key = |name: &str| json!({"name": name, "roles": ["submitter", "approver"], "acts_for": ["*"]});
    let (desk, other) = (Client::new(&server, &key("desk")).await, Client::new(&server, &key("other")).await);
    let job =
        json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker", "user": {"id": "ann"}}});
    let id =
        desk.post("/ojs/v1/jobs", &job).await.expect(201).json()["job"]["id"].as_str().unwrap().to_owned();
    server.fleet.wait_for(&id, &[JobState::Pending]).await;
    let review = server.get("/reviews?state=open").await.expect(200).json()["items"][0].clone();
    let approve = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
    let refused = desk.post(&approve, &json!({"by": "ben"})).await.expect(403);
    assert!(refused.text.contains("submitted the job"), "{}", refused.text);
    let engagement = server.fleet.engagement_of(&id).await;
    let answer = json!({"values": {"approve": true}});
    assert_ne!(desk.post(&format!("/engagements/{engagement}/answer"), &answer).await.status, 200);
    assert!(server.fleet.tools.calls().is_empty());
    other.post(&approve, &json!({"by": "ben"})).await.expect(200);
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    server.fleet.end().await;
}

/// The duties of one agent's jobs are separate, and those of another one are not. A fork is submitted by the principal
/// that made it.
#[tokio::test]
async fn duties_are_separate_for_the_named_agents() {
    let rules = json!({"separate_duties_of": ["booker"], "groups": {"board": {"members": ["ann", "ben"]}}});
    let server = OjsServer::over(Fleet::builder().model(booking).reviews(rules).start().await);
    for agent in [AGENT.to_owned(), AGENT.replace("name: booker", "name: desk")] {
        server.post_text("/agents", agent).await.expect(201);
    }
    let roles = ["submitter", "approver", "operator"];
    let key = |name: &str| json!({"name": name, "roles": roles, "acts_for": ["*"]});
    let (eve, other) = (Client::new(&server, &key("eve")).await, Client::new(&server, &key("other")).await);
    let review_of = async |job: &str| {
        server.fleet.wait_for(job, &[JobState::Pending]).await;
        let open = server.get("/reviews?state=open").await.expect(200).json();
        let one = open["items"].as_array().unwrap().iter().find(|one| one["job_id"] == job).unwrap().clone();
        format!("/reviews/{}/approve", one["id"].as_str().unwrap())
    };
    let submit = async |client: &Client<'_>, agent: &str| {
        let job = json!({"type": "agent.book", "args": ["it"], "meta": {"agent": agent}});
        let job = client.post("/ojs/v1/jobs", &job).await.expect(201).json();
        job["job"]["id"].as_str().unwrap().to_owned()
    };
    let by = json!({"by": "ann"});
    let own = submit(&eve, "booker").await;
    eve.post(&review_of(&own).await, &by).await.expect(403);
    let again = json!({"tool_call_id": "c", "approved": true});
    let refused = eve.post(&format!("/ojs/v1/agents/{own}/tool-retry"), &again).await.expect(403);
    assert!(refused.text.contains("submitted the job"), "{}", refused.text);
    let of_desk = submit(&eve, "desk").await;
    eve.post(&review_of(&of_desk).await, &by).await.expect(200);
    let theirs = submit(&other, "booker").await;
    let approve_theirs = review_of(&theirs).await;
    for (path, body) in [
        (
            format!("/engagements/{}/fork", server.fleet.engagement_of(&theirs).await),
            json!({"at_turn": 1, "live_tools": true}),
        ),
        (format!("/ojs/v1/agents/{theirs}/fork"), json!({"at_turn": 1})),
    ] {
        let forked = eve.post(&path, &body).await;
        assert!(forked.status < 300, "{path}: {}", forked.text);
        let fork = forked.json()["job_id"].as_str().unwrap().to_owned();
        let refused = eve.post(&review_of(&fork).await, &by).await.expect(403);
        assert!(refused.text.contains("submitted the job"), "{}", refused.text);
        other.post(&review_of(&fork).await, &by).await.expect(200);
        server.fleet.wait_for(&fork, &[JobState::Completed]).await;
    }
    eve.post(&approve_theirs, &by).await.expect(200);
    server.fleet.wait_for(&theirs, &[JobState::Completed]).await;
    other.post(&review_of(&own).await, &by).await.expect(200);
    server.fleet.wait_for(&own, &[JobState::Completed]).await;
    server.fleet.wait_for(&of_desk, &[JobState::Completed]).await;
    server.fleet.end().await;
}

/// The importing principal answers for an imported job, whatever submitter the document names.
#[tokio::test]
async fn an_importer_does_not_approve_what_it_imported() {
    let rules = |separate: bool| json!({"separate_duties": separate, "groups": {"board": {"members": ["ann", "ben"]}}});
    let from = OjsServer::over(Fleet::builder().model(booking).reviews(rules(false)).start().await);
    from.post_text("/agents", AGENT).await.expect(201);
    let job = json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker"},
                     "options": {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
    let id = from.push(&job).await;
    from.fleet.wait_for(&id, &[JobState::Pending]).await;
    let open = async |server: &OjsServer| {
        let review = server.get("/reviews?state=open").await.expect(200).json()["items"][0]["id"].clone();
        format!("/reviews/{}", review.as_str().unwrap())
    };
    let reject = format!("{}/reject", open(&from).await);
    for member in ["ann", "ben"] {
        from.post(&reject, &json!({"by": member})).await.expect(200);
    }
    from.fleet.wait_for(&id, &[JobState::Discarded]).await;
    let path = format!("/engagements/{}/export", from.fleet.engagement_of(&id).await);
    let mut record = EngagementRecord::read(&from.get(&path).await.expect(200).text).unwrap();
    record.job.envelope.meta.insert("turnstone_submitted_by", "other");
    let to = OjsServer::over(Fleet::builder().model(booking).reviews(rules(true)).start().await);
    to.post_text("/agents", AGENT).await.expect(201);
    let key = |name: &str| json!({"name": name, "roles": ["operator", "approver"], "acts_for": ["*"]});
    let (eve, other) = (Client::new(&to, &key("eve")).await, Client::new(&to, &key("other")).await);
    let bearer = format!("Bearer {}", eve.secret);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/x-ndjson")];
    to.send(Method::POST, "/engagements/import", &headers, record.write().unwrap()).await.expect(201);
    eve.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await.expect(200);
    to.fleet.wait_for(&id, &[JobState::Pending]).await;
    let approve = format!("{}/approve", open(&to).await);
    let refused = eve.post(&approve, &json!({"by": "ben"})).await.expect(403);
    assert!(refused.text.contains("submitted the job"), "{}", refused.text);
    other.post(&approve, &json!({"by": "ben"})).await.expect(200);
    to.fleet.wait_for(&id, &[JobState::Completed]).await;
    from.fleet.end().await;
    to.fleet.end().await;
}

async fn a_second_call_needs_an_approver(server: &OjsServer) {
    let job = json!({"type": "agent.ask", "args": ["hello"], "ext_agent_model": "test/m"});
    let id = server.push(&job).await;
    let path = format!("/ojs/v1/agents/{id}/tool-retry");
    let body = json!({"tool_call_id": "c", "approved": true});
    let operator = Client::new(server, &json!({"name": "op", "roles": ["operator"]})).await;
    let refused = operator.post(&path, &body).await.expect(403);
    assert_eq!(refused.json()["error"]["details"]["role"], "approver");
    let both = Client::new(server, &json!({"name": "both", "roles": ["operator", "approver"]})).await;
    assert_ne!(both.post(&path, &body).await.status, 403);
}

/// `meta.user.id` would take another user's credentials, memory and state.
async fn a_user_is_named_only_by_those_who_may_act_for_it(server: &OjsServer) {
    let key =
        |name: &str, acts_for: Value| json!({"name": name, "roles": ["submitter"], "acts_for": acts_for});
    let job = |user: &str| json!({"type": "agent.ask", "args": ["hello"], "ext_agent_model": "test/m", "meta": {"user": {"id": user}}});
    let eve = Client::new(server, &key("eve", json!(["ben"]))).await;
    let refused = eve.post("/ojs/v1/jobs", &job("ann")).await.expect(403);
    assert_eq!(refused.json()["error"]["details"]["user"], "ann");
    let batch = json!({"jobs": [job("ann")]});
    assert_eq!(eve.post("/ojs/v1/jobs/batch", &batch).await.expect(403).code(), "forbidden");
    assert_eq!(server.stored_jobs().await, 0);
    let own = json!({"type": "agent.ask", "args": ["hello"], "ext_agent_model": "test/m"});
    for (job, user) in [(job("ben"), "ben"), (own, "eve")] {
        let kept = eve.post("/ojs/v1/jobs", &job).await.expect(201).json();
        let meta = &kept["job"]["meta"];
        assert_eq!((&meta["user"]["id"], &meta["turnstone_submitted_by"]), (&json!(user), &json!("eve")));
    }
    let cron = json!({"name": "c", "expression": "* * * * *", "job_template": job("ann")});
    assert_eq!(eve.send(Method::POST, "/ojs/v1/cron", &cron).await.status, 403);
}

on_sqlite_first!(a_second_call_needs_an_approver, a_user_is_named_only_by_those_who_may_act_for_it);
