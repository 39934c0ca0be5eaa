//! Batches: jobs found by their tag and other filters, keyset pages, and the end of a closed batch.

use super::on_sqlite_first;
use super::operate::{dead, ids, mortal};
use super::webhooks::{deliveries, settled_deliveries, subscribe};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::{OjsServer, Receiver};

on_sqlite_first![
    jobs_are_found_by_tag_agent_tenant_time_and_error_code,
    jobs_that_arrive_meanwhile_do_not_move_the_pages,
    a_wrong_filter_or_tag_is_refused,
    only_tagged_jobs_write_rows_of_tags,
    bulk_operations_choose_by_tag,
    dead_letters_are_found_and_retried_by_tag,
    a_closed_batch_ends_with_an_event_and_a_webhook,
    a_tenant_sees_and_closes_its_own_jobs_of_a_batch,
];

fn tagged(tags: &[&str]) -> Value {
    json!({"type": "mail.send", "args": [], "options": {"queue": "mail", "tags": tags}})
}

async fn found(server: &OjsServer, query: &str) -> Vec<String> {
    let list = server.get(&format!("/ojs/v1/jobs?{query}")).await.expect(200).json();
    let admin = server.get(&format!("/ojs/v1/admin/jobs?{query}")).await.expect(200).json();
    assert_eq!(ids(&list["jobs"]), ids(&admin["items"]), "{query}");
    assert_eq!(list["pagination"]["total"], admin["pagination"]["total"], "{query}");
    ids(&list["jobs"])
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn jobs_are_found_by_tag_agent_tenant_time_and_error_code(server: &OjsServer) {
    let began = server.fleet.now().to_rfc3339();
    let both = server.push(&tagged(&["run=7", "eu", "run=7"])).await;
    server.pass_ms(60_000).await;
    let later = server.fleet.now().to_rfc3339();
    let one = server.push(&tagged(&["run=7"])).await;
    let failed = dead(server, "mail", "email.send").await;
    let agent = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "tags": ["run=7"]});
    let agents = server.push(&agent).await;
    let alpha = [("x-ojs-tenant", "alpha")];
    let sent = server.send(Method::POST, "/ojs/v1/jobs", &alpha, tagged(&["run=7"]).to_string()).await;
    let alphas = sent.expect(201).json()["job"]["id"].as_str().unwrap().to_owned();

    let [both, one, agents, alphas, failed] = [&both, &one, &agents, &alphas, &failed].map(String::as_str);
    assert_eq!(found(server, "tag=eu").await, [both]);
    assert_eq!(found(server, "tag=run%3D7").await, [alphas, agents, one, both]);
    assert_eq!(found(server, "tag=run%3D7&order=asc").await, [both, one, agents, alphas]);
    assert_eq!(found(server, "tag=run%3D7&sort=priority&type=mail.send").await, [alphas, one, both]);
    assert_eq!(found(server, "tag=none").await, Vec::<String>::new(), "an unknown tag is no error");
    assert_eq!(found(server, "tag=run%3D7&tenant=alpha").await, [alphas]);
    assert_eq!(found(server, &format!("tag=run%3D7&until={later}")).await, [both]);
    assert_eq!(
        found(server, &format!("since={began}&queue=mail&state=available")).await,
        [alphas, one, both]
    );
    assert_eq!(found(server, "tag=run%3D7&state=completed").await, Vec::<String>::new());
    let code = server.job(failed).await["error"]["code"].as_str().unwrap().to_owned();
    assert_eq!(found(server, &format!("error_code={code}")).await, [failed]);
    assert_eq!(found(server, "error_code=NONE").await, Vec::<String>::new());
    let name = server.job(agents).await["ext_agent_engagement_id"].as_str().unwrap().to_owned();
    let name = server.get(&format!("/engagements/{name}")).await.expect(200).json()["agent"].clone();
    let name = name["name"].as_str().or(name.as_str()).unwrap().to_owned();
    assert_eq!(found(server, &format!("agent={name}")).await, [agents]);
    assert_eq!(server.job(both).await["tags"], json!(["run=7", "eu", "run=7"]), "as they were sent");
}

async fn jobs_that_arrive_meanwhile_do_not_move_the_pages(server: &OjsServer) {
    let mut pushed = Vec::new();
    for _ in 0..5 {
        pushed.push(server.push(&tagged(&["run=7"])).await);
    }
    pushed.reverse();
    let (mut listed, mut after) = (Vec::new(), String::new());
    loop {
        let page = format!("/ojs/v1/jobs?tag=run%3D7&limit=2{after}");
        let page = server.get(&page).await.expect(200).json();
        listed.extend(ids(&page["jobs"]));
        server.push(&tagged(&["run=7"])).await;
        let Some(next) = page["pagination"]["next_after"].as_str() else {
            assert_eq!(page["pagination"]["has_more"], false);
            break;
        };
        assert_eq!(page["pagination"]["has_more"], true);
        after = format!("&after={next}");
    }
    assert_eq!(listed, pushed);
    let ascending = format!("/ojs/v1/admin/jobs?tag=run%3D7&order=asc&per_page=100&after={}", pushed[0]);
    let rest = server.get(&ascending).await.expect(200).json();
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(3), "those that arrived meanwhile");
}

async fn a_wrong_filter_or_tag_is_refused(server: &OjsServer) {
    let id = server.push(&tagged(&["x"])).await;
    for (path, says) in [
        ("/ojs/v1/jobs?tags=x".to_owned(), "did you mean `tag`"),
        ("/ojs/v1/jobs?error=x".to_owned(), "error_code"),
        ("/ojs/v1/jobs?after=none".to_owned(), "no job that is stored"),
        (format!("/ojs/v1/jobs?after={id}&sort=priority"), "created_at only"),
        (format!("/ojs/v1/jobs?after={id}&offset=5"), "replaces"),
        ("/costs?tags=x".to_owned(), "did you mean `tag`"),
    ] {
        let reply = server.get(&path).await.expect(400);
        assert!(reply.text.contains(says), "{path}: {}", reply.text);
    }
    let mixed = server.send(Method::GET, "/ojs/v1/jobs?tenant=beta", &[("x-ojs-tenant", "alpha")], "").await;
    assert!(mixed.expect(400).text.contains("differs from the tenant"));
    let long = "x".repeat(256);
    let many: Vec<String> = (0..33).map(|at| at.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for tags in [&[""][..], &[long.as_str()], &["a\0b"], &many] {
        let refused = server.post("/ojs/v1/jobs", &tagged(tags)).await;
        let field = refused.expect(400).json()["error"]["details"]["field"].clone();
        assert!(field.as_str().unwrap().starts_with("options.tags"), "{field}");
    }
}

async fn only_tagged_jobs_write_rows_of_tags(server: &OjsServer) {
    let rows = async || server.fleet.number("SELECT count(*) FROM job_tags").await;
    server.push(&mortal("mail", "email.send")).await;
    server.push(&tagged(&[])).await;
    assert_eq!(rows().await, 0);
    server.push(&tagged(&["a", "b", "a"])).await;
    assert_eq!(rows().await, 2);
    let body = json!({"confirm": true, "filter": {"tag": "a", "states": ["available"]}});
    server.post("/ojs/v1/admin/jobs/bulk/delete", &body).await.expect(200);
    assert_eq!(rows().await, 0, "they go with their job");
}

async fn bulk_operations_choose_by_tag(server: &OjsServer) {
    let ours = server.push(&tagged(&["run=7"])).await;
    let other = server.push(&tagged(&["run=8"])).await;
    let body = json!({"confirm": true, "filter": {"tag": "run=7"}});
    let reply = server.post("/ojs/v1/admin/jobs/bulk/cancel", &body).await.expect(200).json();
    assert_eq!((&reply["matched"], &reply["ids"]), (&json!(1), &json!([ours])));
    assert_eq!(server.job(&other).await["state"], "available");
}

async fn batch(server: &OjsServer, tag: &str) -> Value {
    server.get(&format!("/batches/{tag}")).await.expect(200).json()
}

async fn cancel(server: &OjsServer, id: &str) {
    server.delete(&format!("/ojs/v1/jobs/{id}")).await.expect(200);
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_closed_batch_ends_with_an_event_and_a_webhook(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let made = subscribe(server, &receiver.url, &json!({"events": ["batch.*"]})).await;
    server.post_text("/batches/run%3D7/close", "").await.expect(404);
    let unknown = batch(server, "run%3D7").await;
    assert_eq!((&unknown["jobs"], &unknown["closed_at"]), (&json!(0), &Value::Null));

    let first = server.push(&tagged(&["run=7"])).await;
    let second = server.push(&tagged(&["run=7"])).await;
    let closed = server.post_text("/batches/run%3D7/close", "").await.expect(200).json();
    assert_eq!((&closed["jobs"], &closed["open"]), (&json!(2), &json!(2)));
    assert!(closed["closed_at"].is_string() && closed["ended_at"].is_null(), "{closed}");
    cancel(server, &first).await;
    server.pass_ms(10_000).await;
    assert_eq!(batch(server, "run%3D7").await["ended_at"], Value::Null, "one job is open");
    cancel(server, &second).await;
    server.pass_ms(10_000).await;
    let delivered = settled_deliveries(server, &made, 1).await;
    assert_eq!(delivered.len(), 1);
    let ended = batch(server, "run%3D7").await;
    assert!(ended["ended_at"].is_string() && ended["open"] == 0, "{ended}");
    let event = receiver.received()[0].json();
    assert_eq!((&event["type"], &event["subject"]), (&json!("batch.ended"), &json!("run=7")));
    let data = &event["data"];
    assert_eq!((&data["jobs"], &data["cancelled"], &data["completed"]), (&json!(2), &json!(2), &json!(0)));

    // Closing it again changes nothing, until further jobs arrive.
    server.post_text("/batches/run%3D7/close", "").await.expect(200);
    server.pass_ms(10_000).await;
    assert_eq!(deliveries(server, &made).await.len(), 1);
    let third = server.push(&tagged(&["run=7"])).await;
    server.post_text("/batches/run%3D7/close", "").await.expect(200);
    cancel(server, &third).await;
    server.pass_ms(10_000).await;
    assert_eq!(settled_deliveries(server, &made, 2).await.len(), 2);
}

async fn a_tenant_sees_and_closes_its_own_jobs_of_a_batch(server: &OjsServer) {
    let receiver = Receiver::start().await;
    let (alpha, beta) = ([("x-ojs-tenant", "alpha")], [("x-ojs-tenant", "beta")]);
    let body = json!({"url": receiver.url, "events": ["batch.ended"]}).to_string();
    let subscribed =
        |tenant| server.send(Method::POST, "/ojs/v1/webhooks/subscriptions", tenant, body.clone());
    let alphas = subscribed(&alpha).await.expect(201).json()["subscription"].clone();
    let betas = subscribed(&beta).await.expect(201).json()["subscription"].clone();
    for tenant in [&alpha, &beta] {
        server.send(Method::POST, "/ojs/v1/jobs", tenant, tagged(&["nightly"]).to_string()).await.expect(201);
    }
    let own = server.send(Method::GET, "/batches/nightly", &alpha, "").await.expect(200).json();
    assert_eq!(own["jobs"], 1);
    assert_eq!(batch(server, "nightly").await["jobs"], 2);
    server.send(Method::POST, "/batches/nightly/close", &alpha, "").await.expect(200);
    for id in found(server, "tag=nightly&tenant=alpha").await {
        cancel(server, &id).await;
    }
    server.pass_ms(10_000).await;
    assert_eq!(settled_deliveries(server, &alphas, 1).await.len(), 1);
    assert_eq!(deliveries(server, &betas).await.len(), 0, "no other tenant is notified");
}

async fn dead_letters_are_found_and_retried_by_tag(server: &OjsServer) {
    let mut job = mortal("mail", "email.send");
    job["options"]["tags"] = json!(["run=7"]);
    let tagged = server.push(&job).await;
    super::operate::fail(server, &tagged).await;
    let other = dead(server, "mail", "email.send").await;
    for (path, list) in [("/ojs/v1/dead-letter", "jobs"), ("/ojs/v1/admin/dead-letter", "items")] {
        let found = server.get(&format!("{path}?tag=run%3D7")).await.expect(200).json();
        assert_eq!((ids(&found[list]), &found["pagination"]["total"]), (vec![tagged.clone()], &json!(1)));
        let none = server.get(&format!("{path}?tag=none")).await.expect(200).json();
        assert_eq!(none[list], json!([]));
        server.get(&format!("{path}?tags=run%3D7")).await.expect(400);
    }
    let filter = json!({"filter": {"tag": "run=7"}, "confirm": true});
    let retried = server.post("/ojs/v1/dead-letter/retry", &filter).await.expect(200).json();
    assert_eq!(retried["ids"], json!([tagged]), "{retried}");
    let rest = server.get("/ojs/v1/dead-letter").await.expect(200).json();
    assert_eq!(ids(&rest["jobs"]), [other]);
}
