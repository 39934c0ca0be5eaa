use super::*;
use crate::model::ToolOffer;
use crate::model::http::fixture;
use serde_json::json;
use std::sync::Arc;
use turnstone_domain::message::{Message, Role};

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "gpt-4o".into(),
        system: "You plan trips.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![ToolOffer { name: "search".into(), description: "d".into(), input_schema: json!({}) }],
        timeout: Duration::from_secs(5),
        ..fixture::request()
    }
}

fn conversation() -> Vec<Message> {
    vec![
        Message::text(Role::User, "an older question"),
        Message::tool("c0".into(), "an older result"),
        Message::text(Role::User, "find a bird"),
        Message::text(Role::Assistant, ""),
        Message::tool("c1".into(), r#"{"results": [{"title": "Turnstone", "score": 2}]}"#),
    ]
}

async fn answer(yaml: &str, messages: Vec<Message>) -> Result<ModelAnswer, ModelError> {
    ScriptedModel::from_yaml(yaml).unwrap().answer(&request(messages)).await
}

#[tokio::test]
async fn the_first_rule_whose_conditions_hold_answers() {
    let yaml = r#"
rules:
  - {when: {model: other}, answer: {text: "wrong model"}}
  - {when: {system_contains: cook}, answer: {text: "wrong prompt"}}
  - {when: {last_role: user}, answer: {text: "wrong role"}}
  - {when: {last_contains: Ruff}, answer: {text: "wrong last"}}
  - {when: {user_contains: Turnstone}, answer: {text: "wrong user"}}
  - {when: {tool_results: 2}, answer: {text: "wrong count"}}
  - {when: {tools_include: [search, fly]}, answer: {text: "wrong tools"}}
  - when: {model: gpt-4o, system_contains: trips, last_role: tool, last_contains: Turnstone, user_contains: older, tool_results: 1, tools_include: [search]}
    answer: {text: "right"}
"#;
    let said = answer(yaml, conversation()).await.unwrap();
    assert_eq!((said.content.as_deref(), said.model.as_str()), (Some("right"), "scripted:gpt-4o"));
    let none =
        answer("rules: [{when: {model: other}, answer: {text: x}}]", conversation()).await.unwrap_err();
    assert!(
        matches!(&none, ModelError::Refused(text) if text.contains("no rule") && text.contains("gpt-4o")),
        "{none:?}"
    );
}

#[tokio::test]
async fn templates_take_text_and_values_from_the_conversation() {
    let yaml = r#"
rules:
  - answer:
      json: {title: "${last_tool/results/0/title}", score: "${tool_1/results/0/score}", text: "You asked: ${last_user}!", plain: 3}
      tool_calls: [{name: search, arguments: {query: "more about ${last_tool/results/0/title}"}}]
"#;
    let said = answer(yaml, conversation()).await.unwrap();
    let content: Value = serde_json::from_str(said.content.as_deref().unwrap()).unwrap();
    assert_eq!(
        content,
        json!({"title": "Turnstone", "score": 2, "text": "You asked: find a bird!", "plain": 3})
    );
    assert_eq!(said.tool_calls[0].arguments, json!({"query": "more about Turnstone"}));
    assert_eq!(said.finish_reason, FinishReason::ToolUse);
    for missing in ["${tool_2}", "${last_tool/results/7}", "${last_user/x}"] {
        let error = answer(&format!("rules: [{{answer: {{text: \"{missing}\"}}}}]"), conversation())
            .await
            .unwrap_err();
        assert!(
            matches!(&error, ModelError::Refused(text) if text.contains("template")),
            "{missing}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_rule_is_used_up_after_its_times() {
    let model =
        ScriptedModel::from_yaml("rules: [{times: 1, answer: {text: a}}, {answer: {text: b}}]").unwrap();
    let mut said = Vec::new();
    for _ in 0..3 {
        said.push(model.answer(&request(conversation())).await.unwrap().content.unwrap());
    }
    assert_eq!(said, ["a", "b", "b"]);
}

#[tokio::test]
async fn usage_is_what_the_script_says_or_counted() {
    let odd = answer(
        "rules: [{answer: {text: x, usage: {input: -5, output: 9000}, finish_reason: length}}]",
        conversation(),
    )
    .await
    .unwrap();
    assert_eq!((odd.usage, odd.finish_reason), (Some(Usage::of(-5, 9000)), FinishReason::Length));
    let counted =
        answer("rules: [{answer: {text: 12345678}}]", vec![Message::text(Role::User, "x".repeat(400))])
            .await
            .unwrap();
    let usage = counted.usage.unwrap();
    assert!((100..120).contains(&usage.input) && usage.output == 2, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn delays_and_failures_are_those_of_the_script() {
    let yaml = |answer: &str| format!("rules: [{{answer: {{{answer}}}}}]");
    let limited =
        answer(&yaml("error: {kind: rate_limited, message: slow, retry_after_ms: 7}"), conversation()).await;
    assert_eq!(
        limited,
        Err(ModelError::RateLimited { message: "script: slow".into(), retry_after_ms: Some(7) })
    );
    let down = answer(&yaml("error: {kind: unavailable}"), conversation()).await;
    assert!(matches!(down, Err(ModelError::Unavailable(_))));
    let began = tokio::time::Instant::now();
    assert!(answer(&yaml("text: x, delay_ms: 400"), conversation()).await.is_ok());
    assert_eq!(began.elapsed().as_millis(), 400);
    assert!(matches!(
        answer(&yaml("text: x, delay_ms: 60000"), conversation()).await,
        Err(ModelError::Timeout(_))
    ));
    assert_eq!(began.elapsed().as_millis(), 5400);
}

#[test]
fn mistakes_are_reported_when_the_script_is_read() {
    for (yaml, word) in [
        ("rules: []", "no rules"),
        ("rule: []", "rule"),
        ("rules: [{answer: {txt: x}}]", "txt"),
        ("rules: [{when: {lastcontains: x}, answer: {text: x}}]", "lastcontains"),
        ("rules: [{answer: {}}]", "rule 1"),
        ("rules: [{answer: {text: a}}, {answer: {text: a, json: {}}}]", "rule 2"),
        ("rules: [{answer: {text: \"${nobody}\"}}]", "nobody"),
        ("rules: [{answer: {json: [{a: \"${tool_0}\"}]}}]", "tool_0"),
        ("rules: [{answer: {text: \"${last_user\"}}]", "not closed"),
        ("rules: [{answer: {text: a, text: b}}]", "duplicate"),
        ("rules: [{answer: {error: {kind: tired}}}]", "tired"),
        ("rules: [{answer: {text: a, usage: {input: 1}}}]", "output"),
    ] {
        let problem = ScriptedModel::from_yaml(yaml).unwrap_err();
        assert!(problem.contains(word), "{yaml}: {problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_no_op_model_takes_its_time_and_no_more() {
    let began = tokio::time::Instant::now();
    let said = NoopModel { delay: Duration::from_millis(50) }.answer(&request(conversation())).await.unwrap();
    assert_eq!((said.content.as_deref(), began.elapsed().as_millis()), (Some("ok"), 50));
}

/// The example of the page is a script, and its rules answer as the page says.
#[test]
fn the_script_of_the_page_is_read() {
    let page = include_str!("../../../../docs/SCRIPTED-MODEL.md");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    Script::from_yaml(example).unwrap();
}
