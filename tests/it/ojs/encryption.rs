//! Content that clients encrypt: codec fields in `meta` and opaque arguments are returned unchanged.

use super::on_every_store;
use reqwest::Method;
use serde_json::Value;
use turnstone_tests::OjsServer;

on_every_store!(a_codecs_content_is_returned_unchanged);

/// A job from a client's codec: dots in names have no meaning here.
const SENT: &str = r#"{"type":"secret.thing","args":["hQEMA5vJ+/=="],"meta":{"ojs.codec.encodings":["binary/encrypted"],"ojs.codec.key_id":"k-2026","z":{"b":1.50,"a":null},"ojs.codec.nonce":"AA=="},"options":{"queue":"sealed"}}"#;

async fn a_codecs_content_is_returned_unchanged(server: &OjsServer) {
    let meta = SENT.split_once("\"meta\":").unwrap().1.split_once(",\"options\"").unwrap().0;
    let pushed = server.send(Method::POST, "/ojs/v1/jobs", &[], SENT).await.expect(201);
    let id = pushed.json()["job"]["id"].as_str().unwrap().to_owned();
    let path = format!("/ojs/v1/jobs/{id}");
    let shown = server.send(Method::GET, &path, &[], "").await.expect(200);
    let fetch = r#"{"queues":["sealed"],"worker_id":"w"}"#;
    let fetched = server.send(Method::POST, "/ojs/v1/workers/fetch", &[], fetch).await.expect(200);
    for reply in [&pushed, &shown, &fetched] {
        assert!(reply.text.contains(&format!("\"meta\":{meta}")), "{}", reply.text);
        assert!(reply.text.contains(r#""args":["hQEMA5vJ+/=="]"#), "{}", reply.text);
    }
    let result = r#"{"result":{"ojs.codec.key_id":"k-2026","ciphertext":"9Zx0=="}}"#;
    server.send(Method::POST, &format!("{path}/ack"), &[], result).await.expect(200);
    let done: Value = server.send(Method::GET, &path, &[], "").await.expect(200).json();
    assert_eq!(done["result"]["ciphertext"], "9Zx0==");
    assert_eq!(done["job"]["meta"]["ojs.codec.key_id"], "k-2026");
}
