//! Ids that clients choose are unique per tenant: jobs and workflows of several tenants may have the same id.

use super::Client;
use crate::ojs::on_every_store;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::ojs_server::Reply;
use turnstone_tests::{Backend, Fleet, OjsServer};

const ID: &str = "0190aaaa-0000-7000-8000-00000000000a";

fn job() -> Value {
    json!({"id": ID, "type": "a.b", "args": [], "options": {"queue": "shared"}})
}

/// Enqueues the job as alpha and as beta, and returns both.
async fn both(server: &OjsServer) -> [Client<'_>; 2] {
    let both = [Client::of(server, "alpha", "admin").await, Client::of(server, "beta", "admin").await];
    for client in &both {
        let pushed = client.post("/ojs/v1/jobs", &job()).await.expect(201);
        assert_eq!(pushed.header("location"), format!("/ojs/v1/jobs/{ID}"));
        assert_eq!(pushed.json()["job"]["id"], ID);
    }
    both
}

async fn of(server: &OjsServer, tenant: &str, method: Method, path: &str, body: &Value) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(method, path, &[("X-OJS-Tenant", tenant)], body).await
}

/// A part of a list names the next one by the id that the client knows. The fleet continues after every job.
async fn lists_continue_after_an_id_that_a_client_chose(server: &OjsServer) {
    let [alpha, _] = both(server).await;
    let mut second = job();
    second["id"] = json!("0190aaaa-0000-7000-8000-00000000000b");
    alpha.post("/ojs/v1/jobs", &second).await.expect(201);
    let part = alpha.get("/ojs/v1/jobs?limit=1").await.expect(200).json();
    assert_eq!(part["pagination"]["next_after"], second["id"], "{part}");
    let path = format!("/ojs/v1/jobs?limit=1&after={}", second["id"].as_str().unwrap());
    assert_eq!(alpha.get(&path).await.expect(200).json()["jobs"][0]["id"], ID);
    assert_eq!(server.get(&path).await.expect(200).json()["jobs"][0]["id"], ID);
    let (mut ids, mut after) = (Vec::new(), String::new());
    while ids.len() < 4 {
        let part = server.get(&format!("/ojs/v1/jobs?limit=1{after}")).await.expect(200).json();
        ids.push(part["jobs"][0]["id"].clone());
        let Some(next) = part["pagination"]["next_after"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(ids, [second["id"].clone(), json!(ID), json!(ID)]);
    server.get(&format!("/ojs/v1/jobs?limit=1&after={ID}")).await.expect(409);
}

/// Neither refuses the other, and each tenant reads and changes its own job.
async fn two_tenants_have_jobs_with_the_same_id(server: &OjsServer) {
    let [alpha, beta] = both(server).await;
    assert_eq!(server.stored_jobs().await, 2);
    for client in [&alpha, &beta] {
        let again = client.post("/ojs/v1/jobs", &job()).await.expect(409);
        assert_eq!(again.json()["error"]["details"]["existing_job_id"], ID, "{}", again.text);
        let listed = client.get("/ojs/v1/jobs").await.expect(200).json();
        assert_eq!((listed["jobs"].as_array().unwrap().len(), &listed["jobs"][0]["id"]), (1, &json!(ID)));
        let found = client.get(&format!("/ids?prefix={ID}")).await.expect(200).json();
        assert_eq!(found["ids"], json!([ID]));
    }
    let path = format!("/ojs/v1/jobs/{ID}");
    assert_eq!(alpha.post(&format!("{path}/cancel"), &Value::Null).await.expect(200).json()["job"]["id"], ID);
    for (client, state, events) in [(&alpha, "cancelled", 2), (&beta, "available", 1)] {
        let shown = client.get(&path).await.expect(200);
        assert_eq!(shown.json()["job"]["state"], state);
        assert!(!shown.text.contains('~'), "{}", shown.text);
        let listed = client.get(&format!("{path}/events")).await.expect(200);
        assert_eq!(listed.json()["events"].as_array().unwrap().len(), events, "{}", listed.text);
        assert!(!listed.text.contains('~'), "{}", listed.text);
        let feed = client.get(&format!("/ojs/v1/events?subject={ID}")).await.expect(200);
        assert_eq!(feed.json()["events"].as_array().unwrap().len(), events, "{}", feed.text);
        assert!(!feed.text.contains('~'), "{}", feed.text);
    }
}

/// An id that the server chose for a tenant's job is taken for that tenant, and free for others.
async fn an_id_of_the_server_is_taken_for_its_tenant_alone(server: &OjsServer) {
    let alpha = Client::of(server, "alpha", "submitter").await;
    let made = alpha.post("/ojs/v1/jobs", &json!({"type": "a.b", "args": []})).await.expect(201).json();
    let again = json!({"id": made["job"]["id"], "type": "a.b", "args": []});
    alpha.post("/ojs/v1/jobs", &again).await.expect(409);
    alpha.post("/ojs/v1/jobs/batch", &json!({"jobs": [again]})).await.expect(409);
    let beta = Client::of(server, "beta", "submitter").await;
    beta.post("/ojs/v1/jobs", &again).await.expect(201);
}

/// A key of the fleet that names no tenant gets both names, and with one of them its job.
async fn an_id_of_two_tenants_is_ambiguous_without_a_tenant(server: &OjsServer) {
    both(server).await;
    let path = format!("/ojs/v1/jobs/{ID}");
    for (method, rest) in [
        (Method::GET, ""),
        (Method::GET, "/events"),
        (Method::GET, "/progress"),
        (Method::POST, "/cancel"),
        (Method::DELETE, ""),
    ] {
        let refused = server.send(method.clone(), &format!("{path}{rest}"), &[], "").await.expect(409);
        let error = &refused.json()["error"];
        assert_eq!(
            (&error["code"], &error["details"]["tenants"]),
            (&json!("ambiguous_id"), &json!(["alpha", "beta"]))
        );
        assert!(error["hint"].as_str().unwrap().contains("X-OJS-Tenant"), "{error}");
    }
    for action in ["pause", "resume", "fork"] {
        server.post(&format!("/ojs/v1/agents/{ID}/{action}"), &json!({})).await.expect(409);
    }
    of(server, "beta", Method::POST, &format!("{path}/cancel"), &Value::Null).await.expect(200);
    for (tenant, state) in [("alpha", "available"), ("beta", "cancelled")] {
        let shown = of(server, tenant, Method::GET, &path, &Value::Null).await.expect(200).json();
        assert_eq!(
            (&shown["job"]["state"], &shown["job"]["meta"]["tenant_id"]),
            (&json!(state), &json!(tenant))
        );
    }
    // One alone needs no tenant.
    let other = "0190aaaa-0000-7000-8000-00000000000b";
    let mut job = job();
    job["id"] = json!(other);
    of(server, "alpha", Method::POST, "/ojs/v1/jobs", &job).await.expect(201);
    assert_eq!(server.job(other).await["meta"]["tenant_id"], "alpha");
}

/// A worker of the fleet settles the job that it holds.
async fn a_worker_settles_the_job_of_the_tenant_that_it_holds(server: &OjsServer) {
    both(server).await;
    let fetch = async |worker: &str| {
        let body = json!({"queues": ["shared"], "count": 1, "worker_id": worker});
        let jobs = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
        assert_eq!(jobs["jobs"][0]["id"], ID, "{jobs}");
        jobs["jobs"][0]["meta"]["tenant_id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (fetch("one").await, fetch("two").await);
    assert_ne!(first, second);
    let path = format!("/ojs/v1/jobs/{ID}");
    let state = async |tenant: &str| {
        let shown = of(server, tenant, Method::GET, &path, &Value::Null).await.expect(200).json();
        shown["job"]["state"].as_str().unwrap().to_owned()
    };
    let beat = json!({"worker_id": "two", "active_jobs": [ID]});
    let beat = server.post("/ojs/v1/workers/heartbeat", &beat).await.expect(200).json();
    assert_eq!(beat["jobs_extended"], json!([ID]), "{beat}");
    let done = json!({"job_id": ID, "worker_id": "two", "result": 2});
    server.post("/ojs/v1/workers/ack", &done).await.expect(200);
    assert_eq!((state(&first).await, state(&second).await), ("active".to_owned(), "completed".to_owned()));
    let failed = json!({"job_id": ID, "worker_id": "one", "error": {"code": "e", "message": "m"}});
    server.post("/ojs/v1/workers/nack", &failed).await.expect(200);
    assert_ne!(state(&first).await, "active");
}

/// A worker that holds both, and names no tenant, is refused.
async fn a_worker_that_holds_both_has_to_name_the_tenant(server: &OjsServer) {
    both(server).await;
    let body = json!({"queues": ["shared"], "count": 2, "worker_id": "one"});
    let jobs = server.post("/ojs/v1/workers/fetch", &body).await.expect(200).json();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 2, "{jobs}");
    let done = json!({"job_id": ID, "worker_id": "one", "result": 1});
    let refused = server.post("/ojs/v1/workers/ack", &done).await.expect(409).json();
    assert_eq!(refused["error"]["details"]["tenants"], json!(["alpha", "beta"]), "{refused}");
    let beat = json!({"worker_id": "one", "active_jobs": [ID]});
    let beat = server.post("/ojs/v1/workers/heartbeat", &beat).await.expect(200).json();
    assert_eq!(beat["jobs_extended"], json!([ID, ID]), "both reservations are renewed");
    for tenant in ["alpha", "beta"] {
        of(server, tenant, Method::POST, "/ojs/v1/workers/ack", &done).await.expect(200);
    }
}

/// Workflows, and the jobs of their steps.
async fn two_tenants_have_workflows_with_the_same_id(server: &OjsServer) {
    let step = |at: usize| {
        json!({"id": format!("0190aaaa-0000-7000-8000-0000000000c{at}"), "type": "a.b", "args": [at],
        "options": {"queue": "shared"}})
    };
    let chain = json!({"type": "chain", "name": "c", "steps": [step(1), step(2)], "id": ID});
    let path = format!("/ojs/v1/workflows/{ID}");
    for tenant in ["alpha", "beta"] {
        let made = of(server, tenant, Method::POST, "/ojs/v1/workflows", &chain).await.expect(201);
        assert_eq!(made.json()["workflow"]["id"], ID);
        assert!(!made.text.contains('~') && made.header("location") == path, "{}", made.text);
        of(server, tenant, Method::POST, "/ojs/v1/workflows", &chain).await.expect(409);
    }
    let refused = server.get(&path).await.expect(409).json();
    assert_eq!(refused["error"]["details"]["tenants"], json!(["alpha", "beta"]), "{refused}");
    // The fleet may choose the same id for a workflow without a tenant.
    let of_fleet = json!({"type": "a.b", "args": [], "options": {"queue": "own"}});
    let own = json!({"type": "chain", "name": "own", "steps": [of_fleet], "id": ID});
    server.post("/ojs/v1/workflows", &own).await.expect(201);
    // The second step of one of them is enqueued under its own id.
    let body = json!({"queues": ["shared"], "count": 1, "worker_id": "one"});
    let fetched = of(server, "beta", Method::POST, "/ojs/v1/workers/fetch", &body).await.expect(200).json();
    assert_eq!(fetched["jobs"][0]["workflow_id"], ID, "{fetched}");
    let done = json!({"job_id": fetched["jobs"][0]["id"], "worker_id": "one", "result": 1});
    of(server, "beta", Method::POST, "/ojs/v1/workers/ack", &done).await.expect(200);
    let second = format!("/ojs/v1/jobs/{}", step(2)["id"].as_str().unwrap());
    of(server, "beta", Method::GET, &second, &Value::Null).await.expect(200);
    of(server, "alpha", Method::GET, &second, &Value::Null).await.expect(404);
    of(server, "alpha", Method::POST, &format!("{path}/cancel"), &Value::Null).await.expect(200);
    for (tenant, state) in [("alpha", "cancelled"), ("beta", "running")] {
        let shown = of(server, tenant, Method::GET, &path, &Value::Null).await.expect(200);
        assert_eq!(shown.json()["workflow"]["state"], state, "{}", shown.text);
        assert!(!shown.text.contains('~'), "{}", shown.text);
        of(server, tenant, Method::GET, &format!("{path}/progress"), &Value::Null).await.expect(200);
    }
}

/// Agents work on the jobs of both tenants, and a job may name the parent by the id that its client chose.
async fn agents_run_jobs_of_two_tenants_with_the_same_id(backend: Backend) {
    let script = |_: &Value| turnstone_tests::Reply::text("done");
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    let [alpha, beta] =
        [Client::of(&server, "alpha", "admin").await, Client::of(&server, "beta", "admin").await];
    let ask = json!({"id": ID, "type": "agent.ask", "args": ["go"], "ext_agent_model": "test/m"});
    let path = format!("/ojs/v1/jobs/{ID}");
    let mut engagements = Vec::new();
    for client in [&alpha, &beta] {
        client.post("/ojs/v1/jobs", &ask).await.expect(201);
        let completed = async || client.get(&path).await.expect(200).json()["job"]["state"] == "completed";
        server.fleet.until("the job of the tenant completes", completed).await;
        let shown = client.get(&path).await.expect(200).json();
        let engagement = shown["job"]["ext_agent_engagement_id"].as_str().unwrap().to_owned();
        for rest in ["", "/events", "/messages", "/checkpoints", "/audit", "/export"] {
            let path = format!("/engagements/{engagement}{rest}");
            let text = client.get(&path).await.expect(200).text;
            assert!(!text.contains('~'), "{path}: {text}");
        }
        engagements.push(engagement);
    }
    alpha.get(&format!("/engagements/{}", engagements[1])).await.expect(404);
    assert_eq!(server.fleet.models.calls().len(), 2);
    // The export of one tenant is an engagement of the other with the same id of its job.
    let document = beta.get(&format!("/engagements/{}/export", engagements[1])).await.expect(200).text;
    let gamma = json!({"name": "ops", "tenant": "gamma", "roles": ["operator"], "acts_for": ["*"]});
    let gamma = Client::new(&server, &gamma).await;
    gamma.send_text(Method::POST, "/engagements/import", document.clone()).await.expect(201);
    gamma.send_text(Method::POST, "/engagements/import", document).await.expect(409);
    gamma.get(&path).await.expect(200);
    let child = json!({"type": "agent.ask", "args": ["go on"], "ext_agent_model": "test/m", "ext_agent_parent_id": ID});
    for client in [&alpha, &beta] {
        let child = client.post("/ojs/v1/jobs", &child).await.expect(201).json();
        let child_path = format!("/ojs/v1/jobs/{}", child["job"]["id"].as_str().unwrap());
        let shown = client.get(&child_path).await.expect(200).json();
        assert_eq!(shown["job"]["ext_agent_delegation_depth"], 1, "{shown}");
    }
    server.fleet.end_unchecked().await;
}

#[tokio::test]
async fn agents_run_jobs_of_two_tenants_with_the_same_id_on_sqlite() {
    agents_run_jobs_of_two_tenants_with_the_same_id(Backend::Sqlite).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn agents_run_jobs_of_two_tenants_with_the_same_id_on_postgres() {
    agents_run_jobs_of_two_tenants_with_the_same_id(Backend::Postgres).await;
}

on_every_store!(
    two_tenants_have_jobs_with_the_same_id,
    lists_continue_after_an_id_that_a_client_chose,
    an_id_of_the_server_is_taken_for_its_tenant_alone,
    an_id_of_two_tenants_is_ambiguous_without_a_tenant,
    a_worker_settles_the_job_of_the_tenant_that_it_holds,
    a_worker_that_holds_both_has_to_name_the_tenant,
    two_tenants_have_workflows_with_the_same_id,
);
