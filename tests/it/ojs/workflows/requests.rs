//! Requests about workflows: answers and refusals.

use super::super::on_sqlite_first;
use super::{PATH, ack, fetched, job, made, one, shown};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_workflow_is_returned_with_its_current_state,
    wrong_requests_store_nothing,
    an_id_of_the_clients_own_is_taken_once,
    a_list_is_filtered_and_paged,
    a_cancelled_workflow_cannot_be_cancelled_again,
    another_tenants_workflow_is_not_found,
];

async fn a_workflow_is_returned_with_its_current_state(server: &OjsServer) {
    let reply =
        server.post(PATH, &json!({"type": "chain", "name": "n", "steps": [job("a"), job("b")]})).await;
    let location = reply.header("location").to_owned();
    let reply = reply.expect(201).json();
    let workflow = &reply["workflow"];
    assert_eq!((&reply["id"], &reply["state"]), (&workflow["id"], &workflow["state"]), "flat and wrapped");
    assert_eq!(location, format!("{PATH}/{}", workflow["id"].as_str().unwrap()));
    assert_eq!((&workflow["steps_total"], &workflow["steps_completed"]), (&json!(2), &json!(0)));
    assert_eq!((&workflow["type"], &workflow["name"]), (&json!("chain"), &json!("n")));
    assert_eq!(workflow["steps"][1]["state"], "waiting");
    assert_eq!(server.get(&location).await.expect(200).json(), reply, "three reads of the same are equal");
    let batch = json!({"type": "batch", "jobs": [job("a")], "callbacks": {"on_success": job("c")}});
    let id = made(server, &batch).await;
    let workflow = shown(server, &id).await;
    assert_eq!((&workflow["jobs_total"], &workflow["jobs_completed"]), (&json!(1), &json!(0)));
    assert_eq!(workflow["callbacks"]["on_success"]["type"], "c");
    for job in fetched(server).await {
        ack(server, &job, Value::Null).await;
    }
    let progress = server.get(&format!("{PATH}/{id}/progress")).await.expect(200).json();
    assert_eq!((&progress["state"], &progress["progress"]), (&json!("completed"), &json!(1.0)));
    server.get(&format!("{PATH}/nobody")).await.expect(404);
    server.get(&format!("{PATH}/nobody/progress")).await.expect(404);
}

async fn wrong_requests_store_nothing(server: &OjsServer) {
    for (body, status, field) in [
        (json!({"type": "ring", "steps": [job("a")]}), 400, json!("type")),
        (json!({"type": "chain", "steps": []}), 400, json!("steps")),
        (json!({"type": "group"}), 400, json!("jobs")),
        (json!({"type": "group", "jobs": [job("a"), {"type": "b"}]}), 400, json!("args")),
        (
            json!({"type": "batch", "jobs": [job("a")], "callbacks": {"on_success": {"args": []}}}),
            400,
            json!("type"),
        ),
        (
            json!({"steps": [{"id": "a", "type": "a", "args": [], "depends_on": ["a"]}]}),
            400,
            json!("steps[0].depends_on"),
        ),
        (
            json!({"type": "chain", "steps": [{"type": "a", "args": [], "options": {"retry": {"max_attempts": -1}}}]}),
            422,
            json!("options.retry.max_attempts"),
        ),
    ] {
        let refused = server.post(PATH, &body).await.expect(status).json();
        assert_eq!(refused["error"]["details"]["field"], field, "{refused}");
    }
    let number = |sql: &'static str| server.fleet.number(sql);
    assert_eq!(number("SELECT count(*) FROM workflows").await + server.stored_jobs().await, 0);
}

async fn an_id_of_the_clients_own_is_taken_once(server: &OjsServer) {
    let id = "0190a7b2-0000-7000-8000-000000000001";
    let body = json!({"id": id, "type": "group", "jobs": [job("a")]});
    assert_eq!(made(server, &body).await, id);
    let refused = server.post(PATH, &body).await.expect(409);
    assert_eq!((refused.code().as_str(), server.stored_jobs().await), ("duplicate", 1));
    let taken = fetched(server).await[0]["id"].clone();
    let mut second = job("b");
    second["id"] = taken;
    let refused = server.post(PATH, &json!({"type": "chain", "steps": [job("a"), second]})).await.expect(409);
    assert_eq!(refused.json()["error"]["details"]["index"], 1, "a step that waits is checked, too");
    assert_eq!(server.stored_jobs().await, 1);
}

async fn a_list_is_filtered_and_paged(server: &OjsServer) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.insert(0, made(server, &json!({"type": "group", "jobs": [job("a")]})).await);
    }
    server.delete(&format!("{PATH}/{}", ids[0])).await.expect(200);
    let list = async |query: &str| server.get(&format!("{PATH}{query}")).await.expect(200).json();
    let all = list("?limit=2").await;
    assert_eq!((&all["workflows"][0]["id"], &all["workflows"][1]["id"]), (&json!(ids[0]), &json!(ids[1])));
    let place = json!({"total": 3, "limit": 2, "offset": 0, "has_more": true, "next_after": ids[1]});
    assert_eq!(all["pagination"], place);
    assert_eq!(list("?limit=2&offset=2").await["pagination"]["has_more"], false);
    assert_eq!(list("?state=cancelled").await["pagination"]["total"], 1);
    assert_eq!(list("?state=failed").await["workflows"], json!([]));
    server.get(&format!("{PATH}?state=done")).await.expect(400);
}

async fn a_cancelled_workflow_cannot_be_cancelled_again(server: &OjsServer) {
    let id = made(server, &json!({"type": "chain", "steps": [job("a"), job("b")]})).await;
    let reply = server.post(&format!("{PATH}/{id}/cancel"), &json!({})).await.expect(200).json();
    assert_eq!((&reply["workflow"]["state"], &reply["workflow"]["id"]), (&json!("cancelled"), &json!(id)));
    assert!(fetched(server).await.is_empty());
    assert_eq!(server.delete(&format!("{PATH}/{id}")).await.expect(409).code(), "conflict");
    server.delete(&format!("{PATH}/nobody")).await.expect(404);
    let id = made(server, &json!({"type": "group", "jobs": [job("a")]})).await;
    ack(server, &one(server).await, Value::Null).await;
    assert_eq!(server.delete(&format!("{PATH}/{id}")).await.expect(409).code(), "conflict");
}

async fn another_tenants_workflow_is_not_found(server: &OjsServer) {
    let of = |tenant: &'static str| [("X-OJS-Tenant", tenant)];
    let post = reqwest::Method::POST;
    let body = json!({"type": "group", "jobs": [job("a")]}).to_string();
    let made = server.send(post, PATH, &of("alpha"), body).await.expect(201).json();
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        server.send(method, &path, &of("beta"), "").await.expect(404);
    }
    let list = server.send(reqwest::Method::GET, PATH, &of("beta"), "").await.expect(200).json();
    assert_eq!(list["pagination"]["total"], 0);
    server.send(reqwest::Method::GET, &path, &of("alpha"), "").await.expect(200);
}
