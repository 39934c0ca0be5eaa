//! The HTTP tool against a real server.

use super::*;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::CallId;

/// Starts a server that echoes its requests, and has a few paths that misbehave.
async fn serve() -> (String, AbortOnDropHandle<()>) {
    let echo = |headers: HeaderMap, uri: Uri, body: Bytes| async move {
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        Json(json!({
            "uri": uri.to_string(),
            "key": header("idempotency-key"),
            "accept_language": header("accept-language"),
            "token": header("x-token"),
            "body": serde_json::from_slice::<Value>(&body).ok(),
        }))
    };
    let app = Router::new()
        .route("/echo", any(echo))
        .route("/items/{id}", any(echo))
        .route("/text", get(|| async { "plain" }))
        .route("/none", post(|| async { StatusCode::NO_CONTENT }))
        .route("/large", get(|| async { "x".repeat(2000) }))
        .route("/broken", get(|| async { ([("content-type", "application/json")], "{") }))
        .route(
            "/halves",
            get(|| async {
                ([("content-type", "application/json")], r#"{"a\ud83d":["\ud83d\ude00","\ude00"]}"#)
            }),
        )
        .route(
            "/twice",
            get(|| async { ([("content-type", "application/json")], "{\"ok\":false,\"ok\":true}") }),
        )
        .route("/flood", get(flood))
        .route("/latin", get(|| async { ([("content-type", "text/plain")], vec![b'a', 0xff, 0xfe]) }))
        .route(
            "/body/{kind}/{bytes}",
            get(|Path((kind, bytes)): Path<(String, String)>| async move {
                let bytes = bytes.split('-').map(|byte| u8::from_str_radix(byte, 16).unwrap());
                ([("content-type", kind)], bytes.collect::<Vec<u8>>())
            }),
        )
        .route("/files/plan.png", get(|| async { ([("content-type", "image/png")], vec![0_u8, 0xff]) }))
        .route(
            "/named",
            get(|| async {
                let named = [
                    ("content-type", "application/pdf"),
                    ("content-disposition", "attachment; filename=\"a.pdf\""),
                ];
                (named, vec![0_u8, 0xff])
            }),
        )
        .route(
            "/metadata",
            get(|| async { (StatusCode::FOUND, [("location", "http://169.254.169.254/latest")]) }),
        )
        .route("/moved", get(|| async { (StatusCode::FOUND, [("location", "/text")]) }))
        .route(
            "/status/{code}",
            any(|Path(code): Path<u16>, headers: HeaderMap| async move {
                let token = headers
                    .get("x-token")
                    .map(|value| value.to_str().unwrap().to_owned())
                    .unwrap_or_default();
                (StatusCode::from_u16(code).unwrap(), format!("no\nluck with {token} {}", "y".repeat(1000)))
            }),
        )
        .route(
            "/answer/{code}",
            any(|Path(code): Path<u16>| async move {
                (StatusCode::from_u16(code).unwrap(), Json(json!({"error": "x".repeat(2000)})))
            }),
        )
        .route(
            "/page",
            any(|| async {
                (StatusCode::INTERNAL_SERVER_ERROR, [("content-type", "application/json")], "<html>")
            }),
        )
        .route("/never", any(|| async { std::future::pending::<()>().await }));
    let (address, serving) = crate::served::serve(app).await;
    (format!("http://{address}"), serving)
}

/// Returns 100 MB that were not requested.
async fn flood() -> axum::body::Body {
    let megabyte = || Ok::<_, std::io::Error>(vec![b'x'; 1_000_000]);
    axum::body::Body::from_stream(futures::stream::iter(std::iter::repeat_with(megabyte).take(100)))
}

fn tool(method: &str, url: &str, more: Value) -> Result<HttpTool, String> {
    let mut config = json!({"description": "d", "method": method, "url": url, "allow_private": true});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    HttpTool::new("t", serde_json::from_value(config).unwrap(), outbound::open_client().unwrap())
}

async fn call(tool: &HttpTool, input: Value) -> Result<Value, ToolError> {
    let call_id = CallId::from("call-7");
    tool.call(Invocation {
        call_id: &call_id,
        input: &input,
        timeout: Duration::from_secs(20),
        identity: &crate::tool::Identity::default(),
    })
    .await
}

#[tokio::test]
async fn a_body_carries_the_arguments_and_a_header_the_call_id() {
    let (base, _serving) = serve().await;
    let headers = json!({"headers": {"Accept-Language": "en"}});
    let out =
        call(&tool("POST", &format!("{base}/echo"), headers).unwrap(), json!({"query": "x"})).await.unwrap();
    assert_eq!(out["body"], json!({"query": "x"}));
    assert_eq!((&out["key"], &out["accept_language"]), (&json!("call-7"), &json!("en")));
    let out = call(&tool("PUT", &format!("{base}/echo"), json!({})).unwrap(), json!([1, 2])).await.unwrap();
    assert_eq!(out["body"], json!([1, 2]));
}

#[tokio::test]
async fn a_query_carries_what_the_path_does_not() {
    let (base, _serving) = serve().await;
    let schema = json!({"input_schema": {"type": "object", "required": ["id"]}});
    let get = tool("GET", &format!("{base}/items/{{id}}?fixed=1"), schema.clone()).unwrap();
    assert!(get.spec().idempotent);
    let out =
        call(&get, json!({"id": "a/b", "q": "x y&z", "n": 2, "list": [1, "b"], "none": null})).await.unwrap();
    assert_eq!(out["uri"], "/items/a%2Fb?fixed=1&q=x+y%26z&n=2&list=1&list=b");
    assert_eq!(out["body"], Value::Null);
    let put = tool("PUT", &format!("{base}/items/{{id}}"), schema).unwrap();
    assert!(!put.spec().idempotent);
    let out = call(&put, json!({"id": 7, "title": "t"})).await.unwrap();
    assert_eq!((&out["uri"], &out["body"]), (&json!("/items/7"), &json!({"title": "t"})));
    assert!(matches!(call(&get, json!({"id": ".."})).await, Err(ToolError::Refused(_))));
    assert!(matches!(call(&get, json!("x")).await, Err(ToolError::Refused(_))));
}

#[tokio::test]
async fn answers_are_json_text_or_nothing() {
    let (base, _serving) = serve().await;
    let get =
        |path: &str| tool("GET", &format!("{base}{path}"), json!({"max_response_bytes": 1000})).unwrap();
    assert_eq!(call(&get("/text"), json!({})).await, Ok(json!("plain")));
    assert_eq!(
        call(&tool("POST", &format!("{base}/none"), json!({})).unwrap(), json!({})).await,
        Ok(Value::Null)
    );
    for (path, word) in [
        ("/large", "max_response_bytes"),
        ("/broken", "not JSON"),
        ("/twice", "`ok` stands twice"),
        ("/moved", "302"),
        ("/absent", "404"),
    ] {
        let error = call(&get(path), json!({})).await.unwrap_err();
        assert!(matches!(&error, ToolError::Final(text) if text.contains(word)), "{path}: {error:?}");
    }
}

/// Issue 7, artifacts: an answer that is a file becomes one, and the model receives its name.
#[tokio::test]
async fn an_answer_of_bytes_is_a_file() {
    let (base, _serving) = serve().await;
    for (path, name, media_type) in
        [("/files/plan.png", "plan.png", "image/png"), ("/named", "a.pdf", "application/pdf")]
    {
        let tool = tool("GET", &format!("{base}{path}"), json!({})).unwrap();
        let (call_id, identity) = (CallId::from("call-7"), crate::tool::Identity::default());
        let timeout = Duration::from_secs(20);
        let invocation = Invocation { call_id: &call_id, input: &json!({}), timeout, identity: &identity };
        let answer = tool.answer(invocation).await.unwrap();
        let file = &answer.artifacts[0];
        assert_eq!(
            (file.name.as_str(), file.media_type.as_str(), &*file.content),
            (name, media_type, &[0, 0xff][..])
        );
        assert_eq!(answer.output["artifact_id"], file.id.as_str());
    }
}

/// RS-22, and hostile answers: too large, no text, a redirect to the machine's metadata.
#[tokio::test]
async fn a_hostile_answer_is_a_failure_for_the_model_and_costs_no_memory() {
    let (base, _serving) = serve().await;
    let get = |path: &str| tool("GET", &format!("{base}{path}"), json!({})).unwrap();
    for (path, word) in [("/flood", "larger than 1048576 bytes"), ("/metadata", "not followed")] {
        let error = call(&get(path), json!({})).await.unwrap_err();
        assert!(matches!(&error, ToolError::Final(text) if text.contains(word)), "{path}: {error:?}");
    }
}

/// A body is read in the charset that it names. Bytes that fit none, and numbers that JSON does not have, lose no result:
/// the answer says how they were read.
#[tokio::test]
async fn a_body_is_kept_whatever_its_charset_and_numbers() {
    let (base, _serving) = serve().await;
    let (call_id, identity) = (CallId::from("call-7"), crate::tool::Identity::default());
    for (path, output, word) in [
        ("/body/application%2Fjson;charset=Shift_JIS/22-93-fa-96-7b-22", json!("日本"), None),
        ("/body/text%2Fhtml;charset=latin1/63-61-66-e9", json!("café"), None),
        ("/body/application%2Fxml;charset=latin1/3c-e9-2f-3e", json!("<é/>"), None),
        ("/body/application%2Fjson/22-e9-22", json!("é"), Some("windows-1252")),
        ("/body/application%2Fjson/5b-4e-61-4e-5d", json!("[NaN]"), Some("NaN or Infinity")),
        ("/latin", json!("aÿþ"), Some("windows-1252")),
    ] {
        let tool = tool("GET", &format!("{base}{path}"), json!({})).unwrap();
        let timeout = Duration::from_secs(20);
        let invocation = Invocation { call_id: &call_id, input: &json!({}), timeout, identity: &identity };
        let answer = tool.answer(invocation).await.unwrap();
        assert_eq!(answer.output, output, "{path}");
        let note = answer.notes.join("; ");
        assert!(word.map_or(note.is_empty(), |word| note.contains(word)), "{path}: {note}");
    }
}

/// A gateway that timed out does not know if the tool behind it ran.
#[tokio::test]
async fn what_a_gateway_gave_up_on_may_have_happened() {
    let (base, _serving) = serve().await;
    for status in [408, 502, 504, 524] {
        let one = tool("POST", &format!("{base}/status/{status}"), json!({})).unwrap();
        let error = call(&one, json!({})).await.unwrap_err();
        assert!(matches!(error, ToolError::Lost(_)), "{status}: {error:?}");
    }
    let one = tool("POST", &format!("{base}/status/500"), json!({})).unwrap();
    assert!(matches!(call(&one, json!({})).await, Err(ToolError::Failed(_))));
}

/// Issue 16: an error in JSON is the tool's own, even when its body is longer than the excerpt. A page, or
/// nothing, comes from the service.
#[tokio::test]
async fn an_error_in_json_is_an_answer_of_the_tool() {
    let (base, _serving) = serve().await;
    let error = async |path: &str| {
        let one = tool("POST", &format!("{base}{path}"), json!({})).unwrap();
        call(&one, json!({})).await.unwrap_err()
    };
    for path in ["/answer/500", "/answer/503", "/status/425"] {
        let error = error(path).await;
        assert!(matches!(error, ToolError::Answered(_)), "{path}: {error:?}");
    }
    for path in ["/status/500", "/page"] {
        let error = error(path).await;
        assert!(matches!(error, ToolError::Failed(_)), "{path}: {error:?}");
    }
}

#[tokio::test]
async fn failures_tell_the_status_and_no_secret() {
    let (base, _serving) = serve().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "wren-4711-secret").unwrap();
    let headers = json!({"headers": {"X-Token": {"secret": format!("file:{}", file.display())}}});
    let error = call(&tool("POST", &format!("{base}/status/503"), headers.clone()).unwrap(), json!({}))
        .await
        .unwrap_err();
    let ToolError::Failed(text) = &error else { panic!("{error:?}") };
    assert!(
        text.contains("503") && text.contains("no luck with ***") && text.chars().count() < 400,
        "{text}"
    );
    // A tool that echoes the credential does not carry it into the conversation either.
    let echo = tool("POST", &format!("{base}/echo"), headers.clone()).unwrap();
    assert_eq!(call(&echo, json!({})).await.unwrap()["token"], "***");
    assert!(!format!("{echo:?}").contains("wren-4711"));
    // Rotation: the secret is read at call time; without it no request is sent.
    std::fs::remove_file(&file).unwrap();
    let error = call(&echo, json!({})).await.unwrap_err();
    assert!(matches!(&error, ToolError::Refused(text) if text.contains("X-Token")), "{error:?}");
}

#[tokio::test]
async fn a_slow_tool_times_out_and_an_absent_one_fails() {
    let (base, _serving) = serve().await;
    let slow = tool("GET", &format!("{base}/never"), json!({})).unwrap();
    let (call_id, input) = (CallId::from("c"), json!({}));
    let invocation = Invocation {
        call_id: &call_id,
        input: &input,
        timeout: Duration::from_millis(50),
        identity: &crate::tool::Identity::default(),
    };
    assert!(matches!(slow.call(invocation).await, Err(ToolError::Timeout(text)) if text.contains("50 ms")));
    // A bound socket that does not listen: no other process takes the port, and a connection is refused.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let error = call(&tool("GET", &format!("http://127.0.0.1:{port}/"), json!({})).unwrap(), json!({}))
        .await
        .unwrap_err();
    assert!(matches!(&error, ToolError::Unreached(text) if text.contains("cannot connect")), "{error:?}");
}

#[tokio::test]
async fn the_guard_stands_unless_it_is_turned_off() {
    let (base, _serving) = serve().await;
    let port = base.rsplit(':').next().unwrap();
    let error = tool("GET", &format!("{base}/text"), json!({"allow_private": false})).unwrap_err();
    assert!(error.contains("allow_private"), "{error}");
    // The name passes the check of the URL; the guarded client's resolver refuses its loopback address.
    let config = json!({"description": "d", "method": "GET", "url": format!("http://turnstone-home.localdomain:{port}/text")});
    let guarded =
        HttpTool::new("t", serde_json::from_value(config).unwrap(), outbound::guarded_client().unwrap())
            .unwrap();
    assert!(matches!(call(&guarded, json!({})).await, Err(ToolError::Unreached(_))));
}

/// A server that cuts its texts between UTF-16 units sends halves of pairs, as `JSON.stringify` writes them.
#[tokio::test]
async fn halves_of_surrogate_pairs_lose_no_answer() {
    let (base, _serving) = serve().await;
    let out = call(&tool("GET", &format!("{base}/halves"), json!({})).unwrap(), json!({})).await.unwrap();
    assert_eq!(out, json!({"a\u{FFFD}": ["😀", "\u{FFFD}"]}));
}
