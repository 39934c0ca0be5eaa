//! Delegates work for the tenant of their caller (OJS multi-tenancy §8; D11).

use super::{answers, ask, calls, may_ask, oas, ossa, who};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Reply};

/// Two tenants have a user with the same id. The state that a delegate keeps for one of them is not visible to the
/// other.
#[tokio::test]
async fn state_of_a_delegate_stays_with_its_tenant() {
    let script = |request: &Value| match (who(request), answers(request).first()) {
        (_, Some(answer)) => Reply::text(answer.clone()),
        ("lead", None) => calls(&[("keeper", newest(request))]),
        (_, None) if newest(request) == "write" => {
            Reply::call("state_set", json!({"key": "k", "value": "secret of acme"}))
        }
        (_, None) => Reply::call("state_get", json!({"key": "k"})),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[ossa("keeper", "state: {mode: long_running}"), oas("lead", &["keeper"])]).await;
    let said_to = async |tenant: &str, what: &str| {
        let meta = json!({"agent": "lead", "user": {"id": "u-7"}, "tenant_id": tenant});
        let id = ask(&fleet, "lead", &json!({"args": [what], "meta": meta})).await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        done["result"].to_string()
    };
    said_to("acme", "write").await;
    let own = said_to("acme", "read").await;
    assert!(own.contains("secret of acme"), "{own}");
    let other = said_to("other", "read").await;
    assert!(!other.contains("secret of acme"), "{other}");
    fleet.end().await;
}

/// A tenant at its limit of enqueued jobs: the delegates of its running agent belong to the accepted job.
#[tokio::test]
async fn limits_of_a_tenant_do_not_refuse_an_agents_own_children() {
    let script = |request: &Value| match (who(request), answers(request).len()) {
        ("lead", 0) => calls(&[("a", "x"), ("b", "y")]),
        ("lead", _) => Reply::text(answers(request).concat()),
        (name, _) => Reply::text(name),
    };
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let lead = ossa("lead", &may_ask("a, b", "type: parallel"));
        fleet.register_all(&[oas("a", &[]), oas("b", &[]), lead]).await;
        let limits = json!({"max_queue_depth": 1, "max_enqueue_rate": {"limit": 1, "period": "PT1M"}});
        let path = "/ojs/v1/admin/tenants/acme/limits";
        let (status, body) = fleet.send(Method::PUT, path, limits.to_string()).await;
        assert!(status.is_success(), "{body:#}");
        let more = json!({"meta": {"agent": "lead", "tenant_id": "acme"}});
        let id = ask(&fleet, "lead", &more).await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["result"], "{\"text\":\"a\"}{\"text\":\"b\"}", "{done:#}");
        let (status, refused) = fleet
            .post("/ojs/v1/jobs", &json!({"type": "a.b", "args": [], "meta": {"tenant_id": "acme"}}))
            .await;
        assert_eq!(status, 429, "the children are counted all the same: {refused:#}");
        fleet.end().await;
    }
}

/// An agent that is kept to one tenant is no delegate, fallback, handoff or reviewer for the jobs of another. The job of
/// the own tenant calls it.
#[tokio::test]
async fn an_agent_of_other_tenants_is_no_delegate() {
    for backend in Backend::ALL {
        let script = |request: &Value| match (who(request), answers(request).first()) {
            (_, Some(answer)) => Reply::text(answer.clone()),
            ("lead", None) => calls(&[("vault", "open")]),
            (_, None) => Reply::text("gold"),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        fleet.register_all(&[oas("vault", &[]), oas("lead", &["vault"])]).await;
        let (status, kept) = fleet.send(Method::PUT, "/agents/vault?tenants=acme", oas("vault", &[])).await;
        assert_eq!((status.as_u16(), &kept["tenants"]), (200, &json!(["acme"])), "{kept:#}");
        for (tenant, finds) in [("globex", false), ("acme", true)] {
            let meta = json!({"agent": "lead", "user": {"id": "u-7"}, "tenant_id": tenant});
            let id = ask(&fleet, "lead", &json!({"meta": meta})).await;
            let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
            assert_eq!(done["result"].to_string().contains("gold"), finds, "{tenant}: {done:#}");
            let began = fleet.events_named(&id, "delegation.started").await;
            assert_eq!(!began.is_empty(), finds, "{tenant}: {began:?}");
            let engagement = fleet.engagement_of(&id).await;
            let export = fleet.get(&format!("/engagements/{engagement}/export")).await.to_string();
            assert_eq!(export.contains("You are vault"), finds, "{tenant}: {export}");
        }
        fleet.end().await;
    }
}

/// Jobs that began before an agent was kept to other tenants continue; no new one begins.
#[tokio::test]
async fn jobs_that_began_continue_when_their_agent_is_kept_to_other_tenants() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(turnstone_tests::model_server::booking).start().await;
        let document = turnstone_tests::documents::oas(
            "booker",
            "capabilities: {book: {user_identity: false, input_restriction: {require_review: ann}}}\n",
        );
        fleet.register(document.clone()).await;
        let job =
            json!({"type": "agent.book", "args": ["it"], "meta": {"agent": "booker", "tenant_id": "globex"}});
        let id = fleet.push(&job).await;
        fleet.wait_for(&id, &[JobState::Pending]).await;
        let (status, _) = fleet.send(Method::PUT, "/agents/booker?tenants=acme", document).await;
        assert_eq!(status.as_u16(), 200);
        assert!(fleet.post("/ojs/v1/jobs", &job).await.0.is_client_error());
        let review = crate::review::review_of(&fleet).await;
        let path = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
        assert_eq!(fleet.post(&path, &json!({"by": "ann"})).await.0.as_u16(), 200);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
        fleet.end().await;
    }
}
