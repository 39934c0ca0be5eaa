//! The envelope on the wire: what is carried, what is read, what is refused.

use super::on_both;
use turnstone_tests::OjsServer;

on_both![an_unknown_member_is_given_back];

async fn an_unknown_member_is_given_back(server: &OjsServer) {
    let id = server.push(&serde_json::json!({"type": "a.b", "args": [], "x_note": {"b": 1, "a": [2]}})).await;
    assert_eq!(server.job(&id).await["x_note"], serde_json::json!({"b": 1, "a": [2]}));
}
