//! Exports are signed, and an import notes whether the signature holds.

use super::{exported, imported, job, ran, runs_again, trip};
use serde_json::{Value, json};
use turnstone_domain::digest;
use turnstone_domain::record::EngagementRecord;
use turnstone_ojs::attest::PublicKey;
use turnstone_tests::Fleet;

/// Returns the document with another word in it, whole again, with the signature of the original.
fn forged(document: &str) -> String {
    let (body, foot) = document.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{}\n", body.replace("booked", "cooked"));
    let mut foot: Value = serde_json::from_str(foot).unwrap();
    foot["sha256"] = json!(digest::of_text(&body));
    format!("{body}{foot}\n")
}

#[tokio::test]
async fn a_document_with_a_forged_signature_is_refused() {
    let from = Fleet::builder().model(trip).start().await;
    let document = exported(&from, &ran(&from, &job("go")).await).await;
    runs_again(&document).await;
    let key = from.get("/ojs/v1/attest/keys").await["keys"][0]["public_key"].as_str().unwrap().to_owned();
    let key = PublicKey::read(&key).unwrap();
    let trusting = Fleet::builder().workers(0).trusts(key.clone()).start().await;
    let (status, refused) = imported(&trusting, &forged(&document)).await;
    assert_eq!((status, &refused["error"]["code"]), (422, &json!("forged_export")), "{refused:#}");
    assert_eq!(trusting.number("SELECT count(*) FROM jobs").await, 0);
    let (status, taken) = imported(&trusting, &document).await;
    let valid = json!({"state": "valid", "key_id": key.id});
    assert_eq!((status, &taken["signature"]), (201, &valid));
    // A server that does not know the key takes it in, and says so. So does one that receives no signature.
    let other = Fleet::builder().workers(0).start().await;
    let (status, taken) = imported(&other, &forged(&document)).await;
    let unknown = json!({"state": "unknown_key", "key_id": key.id});
    assert_eq!((status, &taken["signature"]), (201, &unknown));
    let third = Fleet::builder().workers(0).start().await;
    let unsigned = EngagementRecord::read(&document).unwrap().write().unwrap();
    let (status, taken) = imported(&third, &unsigned).await;
    assert_eq!((status, &taken["signature"]), (201, &json!({"state": "missing", "key_id": null})));
    for fleet in [from, trusting, other, third] {
        fleet.end().await;
    }
}
