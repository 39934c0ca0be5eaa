//! Receipts: signed by the fleet's own key, verifiable by any client, and invalid after any change.

use super::on_sqlite_first;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first!(
    a_receipt_is_valid_until_a_letter_of_it_changes,
    a_receipt_is_verified_without_the_server,
    all_processes_of_a_fleet_sign_with_one_key,
    a_job_without_a_request_has_no_receipt,
    a_queue_accepts_only_jobs_that_its_policy_allows,
);

fn attested() -> Value {
    json!({"type": "pay.out", "args": [1.10, "ä"], "ext_attest": {"enabled": true, "algorithm": "ed25519"}})
}

async fn receipt_of(server: &OjsServer) -> Value {
    let id = server.fleet.push(&attested()).await;
    server.fleet.get(&format!("/ojs/v1/jobs/{id}/receipt")).await["receipt"].clone()
}

async fn verified(server: &OjsServer, receipt: &Value) -> Value {
    let (status, answer) = server.fleet.post("/ojs/v1/attest/verify", &json!({"receipt": receipt})).await;
    assert_eq!(status.as_u16(), 200, "{answer}");
    answer
}

async fn a_receipt_is_valid_until_a_letter_of_it_changes(server: &OjsServer) {
    let receipt = receipt_of(server).await;
    assert_eq!(receipt["quote"]["type"], "none");
    assert_eq!(receipt["signature"]["algorithm"], "ed25519");
    let answer = verified(server, &receipt).await;
    assert_eq!((&answer["valid"], &answer["key_id"]), (&json!(true), &receipt["signature"]["key_id"]));
    for member in [
        "/version",
        "/job_id",
        "/job_type",
        "/issued_at",
        "/args_sha256",
        "/quote/type",
        "/quote/issued_at",
        "/signature/algorithm",
        "/signature/key_id",
        "/signature/value",
    ] {
        let mut tampered = receipt.clone();
        let value = tampered.pointer_mut(member).unwrap();
        let text = value.as_str().unwrap();
        let (last, rest) = (text.chars().last().unwrap(), &text[..text.len() - 1]);
        *value = if member == "/signature/value" {
            json!(format!("{}{}", if text.starts_with('A') { 'B' } else { 'A' }, &text[1..]))
        } else {
            json!(format!("{rest}{}", if last == '0' { '1' } else { '0' }))
        };
        let answer = verified(server, &tampered).await;
        assert_eq!(answer["valid"], false, "{member}");
        assert!(answer["reason"].as_str().unwrap().len() > 10, "{answer}");
    }
    for (odd, status) in [(json!({"receipt": {}}), 200), (json!({"receipt": 3}), 400), (json!({}), 400)] {
        let (got, answer) = server.fleet.post("/ojs/v1/attest/verify", &odd).await;
        assert_eq!(got.as_u16(), status, "{answer}");
        assert_ne!(answer["valid"], true);
    }
}

async fn a_receipt_is_verified_without_the_server(server: &OjsServer) {
    let (receipt, keys) = (receipt_of(server).await, server.fleet.get("/ojs/v1/attest/keys").await);
    let text = |pointer: &str| receipt.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let key = keys["keys"].as_array().unwrap().iter().find(|k| k["key_id"] == text("/signature/key_id"));
    let key = BASE64_STANDARD.decode(key.unwrap()["public_key"].as_str().unwrap()).unwrap();
    // As docs/OJS.md describes it.
    let signed = format!(
        "turnstone-receipt-v1\nversion=1\njob_id={}\njob_type=pay.out\nissued_at={}\nargs_sha256={}\nquote_type=none\n\
         quote_issued_at={}\nalgorithm=ed25519\nkey_id={}\n",
        text("/job_id"),
        text("/issued_at"),
        text("/args_sha256"),
        text("/quote/issued_at"),
        text("/signature/key_id"),
    );
    let value = BASE64_STANDARD.decode(text("/signature/value")).unwrap();
    UnparsedPublicKey::new(&ED25519, key).verify(signed.as_bytes(), &value).unwrap();
    let args = digest(&SHA256, r#"[1.1,"ä"]"#.as_bytes());
    let hex: String = args.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, text("/args_sha256"));
}

async fn all_processes_of_a_fleet_sign_with_one_key(server: &OjsServer) {
    // Each API process makes its key on demand, concurrently with the others.
    let receipt = receipt_of(server).await;
    let store = server.fleet.place.open().await.0;
    let kept = store.control.keys("attest.").await.unwrap();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let mine = turnstone_store::ServerKey {
        name: kept[1].name.clone(),
        body: "mine".to_owned(),
        created_at: kept[0].created_at,
    };
    let (one, other) =
        tokio::join!(store.control.keep_key(mine.clone()), server.fleet.store.control.keep_key(mine));
    assert_eq!((one.unwrap(), other.unwrap()), (kept[1].clone(), kept[1].clone()));
    assert_eq!(verified(server, &receipt).await["valid"], true);
}

async fn a_job_without_a_request_has_no_receipt(server: &OjsServer) {
    let id = server.fleet.push(&json!({"type": "a.b", "args": [], "ext_attest": {"enabled": false}})).await;
    for id in [id.as_str(), "01890000-0000-7000-8000-000000000000"] {
        let path = format!("/ojs/v1/jobs/{id}/receipt");
        let (status, answer) = server.fleet.send(reqwest::Method::GET, &path, "").await;
        assert_eq!((status.as_u16(), &answer["error"]["code"]), (404, &json!("not_found")), "{answer}");
    }
    // Two reads of a receipt are equal.
    let id = server.fleet.push(&attested()).await;
    let path = format!("/ojs/v1/jobs/{id}/receipt");
    assert_eq!(server.fleet.get(&path).await, server.fleet.get(&path).await);
}

async fn a_queue_accepts_only_jobs_that_its_policy_allows(server: &OjsServer) {
    let policy =
        json!({"name": "vault", "attest_policy": {"required": true, "allowed_algorithms": ["ed25519"]}});
    let put = server.fleet.send(reqwest::Method::PUT, "/ojs/v1/queues/vault", policy.to_string()).await;
    assert!(put.0.is_success(), "{}", put.1);
    let job = |attest: Value| json!({"type": "a.b", "args": [], "ext_attest": attest, "options": {"queue": "vault"}});
    for attest in [Value::Null, json!({"enabled": false}), json!({"enabled": true, "algorithm": "ml-dsa-65"})]
    {
        let (status, answer) = server.fleet.post("/ojs/v1/jobs", &job(attest.clone())).await;
        assert_eq!(
            (status.as_u16(), &answer["error"]["type"]),
            (422, &json!("validation_error")),
            "{attest}"
        );
    }
    // A batch is accepted whole or not at all.
    let batch = json!({"jobs": [attested(), job(Value::Null)]});
    assert_eq!(server.fleet.post("/ojs/v1/jobs/batch", &batch).await.0.as_u16(), 422);
    assert_eq!(server.fleet.number("SELECT count(*) FROM jobs").await, 0);
    for attest in [json!({"enabled": true}), json!({"enabled": true, "algorithm": "ed25519"})] {
        server.fleet.push(&job(attest)).await;
    }
    // Other queues take everything.
    server.fleet.push(&json!({"type": "a.b", "args": []})).await;
}
