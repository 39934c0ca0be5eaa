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
