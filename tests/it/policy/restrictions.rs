//! Assertions at the exact points of a call.

use super::{fleet, on_every_store, run, visible};
use reqwest::{Method, StatusCode};
use serde_json::json;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply};

/// OAS-28, OAS-34, OAS-36: an input assertion is evaluated before the tool is called, on the pending inputs. The
/// model receives the denial of a call and may continue (OAS-A3, OAS-A4).
#[tokio::test]
async fn an_input_assertion_sees_the_pending_inputs_only() {
    on_every_store(async |backend| {
        let replies = vec![
            Reply::call("search", json!({"q": "first"})),
            Reply::call("search", json!({"q": "again"})),
            Reply::call("book", json!({"price": 900})),
            Reply::call("book", json!({"price": 640})),
            Reply::text("done"),
        ];
        let fleet = fleet(backend, replies).await;
        let body = r#"
capabilities:
  search:
    input_restriction:
      assertion: >-
        history._total == 0 && recent._name == '' && size(history.search) == 0 && recent.search.inputs.q == 'first'
        && !has(recent.search.outputs)
        || history._total == 1 && recent.search.inputs.q == 'again' && recent.search.outputs.echo.q == 'first'
  book:
    input_restriction:
      assertion: recent["book"].inputs.price <= 800 && !("book" in history._list)
"#;
        fleet.register(oas("booker", body)).await;
        let (job, _) = run(&fleet, "booker").await;
        assert_eq!((&job["state"], &job["result"]), (&json!("completed"), &json!("done")), "{job:#}");
        let prices: Vec<_> = fleet.tools.calls().into_iter().map(|call| (call.tool, call.input)).collect();
        assert_eq!(
            prices,
            [
                ("search".to_owned(), json!({"q": "first"})),
                ("search".to_owned(), json!({"q": "again"})),
                ("book".to_owned(), json!({"price": 640})),
            ]
        );
        let prompt = fleet.models.calls()[3].request["messages"].to_string();
        assert!(prompt.contains("the input restriction of `book` does not allow this call"), "{prompt}");
        fleet.end().await;
    })
    .await;
}

/// OAS-29, OAS-35, OAS-36: an output assertion is evaluated after the call and before any other use of the result.
/// The tool is called once, and a denied output is stored and exposed nowhere.
#[tokio::test]
async fn a_denied_output_is_stored_nowhere() {
    on_every_store(async |backend| {
        let secret = json!({"q": "hunter2-secret"});
        // The model repeats the outcome, so a leak would be in the answer too.
        let script = move |request: &serde_json::Value| match turnstone_tests::model_server::outcomes(request)
        {
            0 => Reply::call("search", json!({"q": format!("hunter{}-secret", 2)})),
            _ => Reply::text(
                request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap(),
            ),
        };
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let body = r#"
capabilities:
  search:
    output_restriction:
      assertion: recent.search.outputs.tool == 'another' && history.search[0].outputs.echo.q != ''
exposes:
  found: recent.search.outputs.echo
  calls: history._total
  names: history._list
"#;
        fleet.register(oas("reader", body)).await;
        let (job, engagement) = run(&fleet, "reader").await;
        assert_eq!(fleet.tools.calls().len(), 1, "it was called, once");
        assert_eq!(job["state"], "completed", "{job:#}");
        assert_eq!(job["result"]["found"], serde_json::Value::Null);
        assert_eq!((&job["result"]["calls"], &job["result"]["names"]), (&json!(1), &json!(["search"])));
        let audit = fleet.get(&format!("/engagements/{engagement}/audit")).await;
        let call = json!({"inputs": secret, "outputs": null});
        assert_eq!(audit["engagement"]["recent"]["search"], call, "the invocation has happened (OAS-A5)");
        let request = fleet.models.calls()[1].request["messages"].clone();
        let outcome = request.as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(outcome.contains("the output restriction of `search`"), "{outcome}");
        assert!(!outcome.contains("hunter2"), "{outcome}");
        // A leak of the echo would appear twice: in the arguments, and in the output.
        let seen = visible(&fleet, job["id"].as_str().unwrap(), &engagement).await;
        assert!(!seen.contains("\"echo\":"), "{seen}");
        fleet.end().await;
    })
    .await;
}

/// OAS-35: with `collect_results: false` only the output's own restriction sees it (OAS-A11).
#[tokio::test]
async fn an_uncollected_output_is_still_checked() {
    for (holds, prompt) in [("== 'x'", true), ("!= 'x'", false)] {
        let replies = vec![Reply::call("search", json!({"q": "x"})), Reply::text("done")];
        let fleet = fleet(Backend::Sqlite, replies).await;
        let body = format!(
            "capabilities:\n  search:\n    collect_results: false\n    output_restriction:\n      assertion: \
             recent.search.outputs.echo.q {holds}\nexposes:\n  found: recent.search.outputs\n"
        );
        fleet.register(oas("forgetful", &body)).await;
        let (job, _) = run(&fleet, "forgetful").await;
        assert_eq!(job["result"]["found"], serde_json::Value::Null, "{job:#}");
        let request = fleet.models.calls()[1].request["messages"].to_string();
        assert_eq!(request.contains("\\\"echo\\\""), prompt, "{request}");
        fleet.end().await;
    }
}

/// OAS-33, OAS-54: an assertion sees the Engagement object and nothing else; any value but `true` denies (OAS-36). A
/// missing key, another type and an error deny; an error beside a `true` does not.
#[tokio::test]
async fn any_value_but_true_denies() {
    let cases = [
        ("true", true),
        ("1 == 1 || recent['nobody'].outputs.x == 1", true),
        (
            "started_at <= timestamp('2999-01-01T00:00:00Z') && user.id == 'u-17' && user.email.contains('@')",
            true,
        ),
        ("false", false),
        ("1", false),
        ("'yes'", false),
        ("recent['nobody'].outputs.x == 1", false),
        ("recent.search.inputs.q > 3", false),
        ("history.search[0].inputs.q == 'x'", false),
    ];
    let fleet =
        fleet(Backend::Sqlite, vec![Reply::call("search", json!({"q": "x"})), Reply::text("done")]).await;
    let mut made = 0;
    for (n, (assertion, allowed)) in cases.into_iter().enumerate() {
        let body =
            format!("capabilities:\n  search:\n    input_restriction:\n      assertion: \"{assertion}\"\n");
        fleet.register(oas(&format!("case-{n}"), &body)).await;
        let (job, _) = run(&fleet, &format!("case-{n}")).await;
        assert_eq!(job["state"], "completed", "{assertion}: {job:#}");
        made += usize::from(allowed);
        assert_eq!(fleet.tools.calls().len(), made, "{assertion}");
    }
    for variable in ["inputs.q == 'x'", "outputs == null", "now > started_at", "q == 'x'", "echo != null"] {
        let body =
            format!("capabilities:\n  search:\n    output_restriction:\n      assertion: \"{variable}\"\n");
        let (status, refusal) = fleet.send(Method::POST, "/agents", oas("more", &body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{variable}: {refusal:#}");
        assert!(refusal.to_string().contains("OAS-33"), "{refusal:#}");
    }
    fleet.end().await;
}

/// OAS-33: hostile expressions are refused in bounded time and memory, and nothing is registered.
#[tokio::test]
async fn hostile_expressions_are_refused() {
    let fleet = fleet(Backend::Sqlite, vec![Reply::text("done")]).await;
    let mut bomb = "[1, 1]".to_owned();
    for _ in 0..20 {
        bomb = format!("[{bomb}].map(z, z + z)[0]");
    }
    for hostile in [
        format!("1{} == 1", "+1".repeat(512 * 1024)),
        format!("{}1{}", "(".repeat(500), ")".repeat(500)),
        format!("{bomb} == 1"),
        "history._list.all(a, history._list.all(b, history._list.all(c, a == b)))".to_owned(),
        "history._list.exists(name, name.matches('(a+)+$'))".to_owned(),
    ] {
        let body =
            format!("capabilities:\n  search:\n    input_restriction:\n      assertion: \"{hostile}\"\n");
        let (status, refusal) = fleet.send(Method::POST, "/agents", oas("hostile", &body)).await;
        assert!(status.is_client_error(), "{}…: {status} {refusal:#}", &hostile[..40]);
    }
    let (status, _) = fleet.send(Method::GET, "/agents/hostile", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND, "no agent is registered in part");
    fleet.end().await;
}
