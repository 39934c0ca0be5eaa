//! Jobs by a member of their `meta`, ids by their first characters, and what ended within an hour.

use super::on_every_store;
use super::operate::{dead, ids};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![
    jobs_are_found_by_their_meta,
    a_list_by_meta_comes_in_parts,
    a_wrong_filter_of_meta_is_refused,
    ids_are_found_by_their_first_characters,
    queues_count_what_ended_within_an_hour,
];

fn with_meta(meta: &Value) -> Value {
    json!({"type": "mail.send", "args": [], "meta": meta, "options": {"queue": "mail"}})
}

async fn found(server: &OjsServer, query: &str) -> Vec<String> {
    let list = server.get(&format!("/ojs/v1/jobs?{query}")).await.expect(200).json();
    let admin = server.get(&format!("/ojs/v1/admin/jobs?{query}")).await.expect(200).json();
    assert_eq!(ids(&list["jobs"]), ids(&admin["items"]), "{query}");
    ids(&list["jobs"])
}

async fn jobs_are_found_by_their_meta(server: &OjsServer) {
    let number = server.push(&with_meta(&json!({"customer": 42, "user": {"id": "ada"}}))).await;
    let text = server.push(&with_meta(&json!({"customer": "42", "note": "a=b"}))).await;
    let other = server.push(&with_meta(&json!({"customer": 420}))).await;
    let [number, text, other] = [&number, &text, &other].map(String::as_str);
    assert_eq!(found(server, "meta=customer%3D42").await, [text, number]);
    assert_eq!(found(server, "meta=customer%3D42&order=asc").await, [number, text]);
    assert_eq!(found(server, "meta=user.id%3Dada").await, [number]);
    assert_eq!(found(server, "meta=note%3Da%3Db").await, [text], "a value may have an equals sign");
    assert_eq!(found(server, "meta=customer%3D420&queue=mail").await, [other]);
    assert_eq!(found(server, "meta=customer%3D420&queue=none").await, Vec::<String>::new());
    assert_eq!(found(server, "meta=missing%3D1").await, Vec::<String>::new());
    let alpha = [("x-ojs-tenant", "alpha")];
    let none = server.send(Method::GET, "/ojs/v1/jobs?meta=customer%3D42", &alpha, "").await.expect(200);
    assert_eq!(none.json()["jobs"], json!([]), "another tenant has none");
}

/// 1,200 jobs, of which every fourth matches: more than are read at once.
async fn a_list_by_meta_comes_in_parts(server: &OjsServer) {
    let mut wanted = Vec::new();
    for part in 0..12 {
        let jobs: Vec<Value> = (0..100).map(|at| with_meta(&json!({"part": part % 4, "at": at}))).collect();
        let pushed = server.post("/ojs/v1/jobs/batch", &json!({"jobs": jobs})).await.expect(201).json();
        if part % 4 == 1 {
            wanted.extend(ids(&pushed["jobs"]));
        }
    }
    wanted.reverse();
    let (mut listed, mut after, mut requests) = (Vec::new(), String::new(), 0);
    loop {
        let page =
            server.get(&format!("/ojs/v1/jobs?meta=part%3D1&limit=70{after}")).await.expect(200).json();
        requests += 1;
        listed.extend(ids(&page["jobs"]));
        assert!(page["pagination"].get("total").is_none(), "{}", page["pagination"]);
        let Some(next) = page["pagination"]["next_after"].as_str() else { break };
        assert_eq!(page["pagination"]["has_more"], true);
        after = format!("&after={next}");
    }
    assert_eq!((listed.len(), requests), (300, 5));
    assert_eq!(listed, wanted);
}

async fn a_wrong_filter_of_meta_is_refused(server: &OjsServer) {
    for (query, says) in [
        ("meta=customer", "customer=42"),
        ("meta=%3D42", "customer=42"),
        ("meta=a%3Db&sort=priority", "created_at only"),
        ("meta=a%3Db&offset=5", "next_after"),
        ("metas=a%3Db", "did you mean `meta`"),
    ] {
        let reply = server.get(&format!("/ojs/v1/jobs?{query}")).await.expect(400);
        assert!(reply.text.contains(says), "{query}: {}", reply.text);
    }
}

async fn ids_are_found_by_their_first_characters(server: &OjsServer) {
    let agent = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"});
    let id = server.push(&agent).await;
    let engagement = server.job(&id).await["ext_agent_engagement_id"].as_str().unwrap().to_owned();
    let alphas =
        server.send(Method::POST, "/ojs/v1/jobs", &[("x-ojs-tenant", "alpha")], agent.to_string()).await;
    let alphas = alphas.expect(201).json()["job"]["id"].as_str().unwrap().to_owned();
    let find = async |query: &str| server.get(&format!("/ids?{query}")).await.expect(200).json();
    let upper = id[..34].to_ascii_uppercase();
    for (query, whole) in [
        (format!("prefix={}", &id[..34]), &id),
        (format!("prefix={upper}&kind=job"), &id),
        (format!("prefix={id}"), &id),
        (format!("prefix={}&kind=engagement", &engagement[..34]), &engagement),
    ] {
        assert_eq!(find(&query).await, json!({"ids": [whole], "has_more": false}), "{query}");
    }
    let mut both = vec![id.clone(), alphas.clone()];
    both.sort_unstable();
    assert_eq!(find("prefix=0").await["ids"], json!(both));
    let own = server.send(Method::GET, "/ids?prefix=0", &[("x-ojs-tenant", "alpha")], "").await.expect(200);
    assert_eq!(own.json()["ids"], json!([alphas]), "a tenant finds its own");
    assert_eq!(find("prefix=ffff").await["ids"], json!([]));
    for wrong in ["prefix=", "prefix=xyz", "prefix=0123456789", "kind=job", "prefix=0&kind=agent"] {
        server.get(&format!("/ids?{wrong}")).await.expect(400);
    }
    for _ in 0..10 {
        server.push(&agent).await;
    }
    let many = find("prefix=0&kind=job").await;
    assert_eq!((many["ids"].as_array().map(Vec::len), &many["has_more"]), (Some(10), &json!(true)));
}

async fn queues_count_what_ended_within_an_hour(server: &OjsServer) {
    dead(server, "mail", "email.send").await;
    let cancelled =
        server.push(&json!({"type": "mail.send", "args": [], "options": {"queue": "mail"}})).await;
    server.delete(&format!("/ojs/v1/jobs/{cancelled}")).await.expect(200);
    let last_hour = async || {
        let queues = server.get("/ojs/v1/admin/queues").await.expect(200).json();
        let mail = queues["items"].as_array().unwrap().iter().find(|queue| queue["name"] == "mail").cloned();
        mail.unwrap()["last_hour"].clone()
    };
    let ended = last_hour().await;
    assert_eq!((&ended["completed"], &ended["discarded"]), (&json!(0), &json!(1)), "{ended}");
    server.fleet.clock.advance_ms(30 * 60_000);
    dead(server, "mail", "email.send").await;
    assert_eq!(last_hour().await["discarded"], 2);
    server.fleet.clock.advance_ms(31 * 60_000);
    assert_eq!(last_hour().await["discarded"], 1, "the first one is older than an hour");
}
