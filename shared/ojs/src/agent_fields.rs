//! The `ext_agent_*` fields of a job (agent extension §2): their names and valid values.
//!
//! Unknown `ext_agent_*` fields are kept and returned unchanged. A known field that is `null` counts as not given.

use crate::{OjsError, read, tools};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnstone_domain::agent::{AgentFields, MAX_DELEGATION_DEPTH};
use turnstone_domain::budget::Amount;
use turnstone_domain::error::FailureKind;
use turnstone_domain::schema::Allowance;
use turnstone_domain::{JobError, JobId, RawJson, RawObject};

/// No budget or answer has more tokens than this; beyond it sums could overflow.
const MAX_TOKENS: i64 = 1_000_000_000_000;

/// The least likeness at which a misspelt field is taken for a known one.
const ALIKE: f64 = 0.93;

/// The fields a client may set. One of them makes a job an agent job.
pub const SETTABLE: [&str; 14] = [
    "ext_agent_model",
    "ext_agent_fallback_models",
    "ext_agent_provider",
    "ext_agent_temperature",
    "ext_agent_max_tokens",
    "ext_agent_token_budget",
    "ext_agent_cost_budget",
    "ext_agent_tools",
    "ext_agent_tool_choice",
    "ext_agent_parent_id",
    "ext_agent_delegation_depth",
    "ext_agent_max_delegation_depth",
    "ext_agent_output_schema",
    "ext_agent_output_format",
];

/// The fields that hold schemas.
const WITH_SCHEMAS: [&str; 2] = ["ext_agent_tools", "ext_agent_output_schema"];

/// The fields that only the server writes. What a client sends in them is ignored.
pub const SYSTEM_MANAGED: [&str; 5] = [
    "ext_agent_tokens_used",
    "ext_agent_cost",
    "ext_agent_tool_results",
    "ext_agent_model_used",
    "ext_agent_engagement_id",
];

/// Returns every field that a client may set and has set. One of them makes a job an agent job.
///
/// # Errors
/// 400 `AGENT_INVALID_PARAMETER` when one of them cannot be read.
pub fn given_in(top: &RawObject) -> Result<Map<String, Value>, OjsError> {
    let given = |name: &&str| top.given(name).map(|value| ((*name).to_owned(), value));
    let parsed = |(name, value): (String, &RawJson)| match read::value(value) {
        Ok(value) => Ok((name, value)),
        Err(why) => Err(OjsError::agent_parameter(&name, why)),
    };
    SETTABLE.iter().filter_map(given).map(parsed).collect()
}

/// Returns true when a job brings schemas, which take a while to be checked.
#[must_use]
pub fn brings_schemas(top: &RawObject) -> bool {
    WITH_SCHEMAS.iter().any(|name| top.given(name).is_some())
}

/// Takes the cost of the schemas that a job brings from the allowance of its request.
///
/// # Errors
/// 400 `AGENT_INVALID_PARAMETER` when the schemas of the request cost too much together.
pub fn take_schemas(top: &RawObject, allowance: &mut Allowance) -> Result<(), OjsError> {
    for name in WITH_SCHEMAS {
        if let Some(value) = top.given(name) {
            let value = read::value(value).map_err(|why| OjsError::agent_parameter(name, why))?;
            allowance.take(&value).map_err(|why| {
                OjsError::agent_parameter(name, format!("cannot be used: {}", read::shortened(&why, 300)))
            })?;
        }
    }
    Ok(())
}

/// Reads and checks every field that a client may set.
///
/// # Errors
/// 400 `AGENT_INVALID_PARAMETER` with the field in `details`; 422 `AGENT_MAX_DELEGATION_DEPTH` for a depth above the
/// maximum (agent extension §3).
pub fn read(fields: &Map<String, Value>) -> Result<AgentFields, OjsError> {
    let max_depth = field(fields, "ext_agent_max_delegation_depth", depth)?;
    if let Some(max) = max_depth.filter(|max| *max > MAX_DELEGATION_DEPTH) {
        let why = format!("must be at most {MAX_DELEGATION_DEPTH}, not {max}");
        return Err(OjsError::agent_parameter("ext_agent_max_delegation_depth", why));
    }
    check_depth(fields, max_depth.unwrap_or(MAX_DELEGATION_DEPTH))?;
    let owned = |value| read::filled_text(value).map(str::to_owned);
    field(fields, "ext_agent_parent_id", owned)?;
    Ok(AgentFields {
        model: field(fields, "ext_agent_model", owned)?,
        fallback_models: field(fields, "ext_agent_fallback_models", read::texts)?,
        provider: field(fields, "ext_agent_provider", owned)?,
        temperature: field(fields, "ext_agent_temperature", temperature)?,
        max_tokens: field(fields, "ext_agent_max_tokens", |value| {
            read::integer_between(value, 1, MAX_TOKENS)
        })?,
        token_budget: field(fields, "ext_agent_token_budget", |value| {
            read::integer_between(value, 0, MAX_TOKENS)
        })?,
        cost_budget: field(fields, "ext_agent_cost_budget", amount)?,
        tools: field(fields, "ext_agent_tools", tools::declarations)?,
        tool_choice: field(fields, "ext_agent_tool_choice", |value| {
            word(value, "`auto`, `required` or `none`")
        })?,
        max_delegation_depth: max_depth,
        output_schema: field(fields, "ext_agent_output_schema", tools::schema)?,
        output_format: field(fields, "ext_agent_output_format", |value| {
            word(value, "`json`, `text` or `markdown`")
        })?,
    })
}

/// Returns the warning about a field that looks like one of an agent but is none that a client may set; `None` for all
/// others. Such fields are kept and returned, and have no effect.
#[must_use]
pub fn remark(name: &str) -> Option<String> {
    if !name.starts_with("ext_agent_") || SETTABLE.contains(&name) {
        return None;
    }
    if SYSTEM_MANAGED.contains(&name) {
        return Some(format!("{name} is written by the server alone; what a client sends in it is ignored"));
    }
    let likeness = |known: &&&str| strsim::jaro_winkler(name, known);
    let best = SETTABLE.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let meant = best.filter(|best| likeness(best) >= ALIKE).map(|best| format!("; did you mean `{best}`?"));
    Some(format!("{name} means nothing here: it is kept and does nothing{}", meant.unwrap_or_default()))
}

/// Returns the job that this one works for, by its own field.
#[must_use]
pub fn works_for(top: &RawObject) -> Option<JobId> {
    top.given("ext_agent_parent_id")?.parse::<String>().ok().map(JobId)
}

/// Returns the depth that a client claims for a job (agent extension §2.3), 0 when it claims none.
///
/// # Errors
/// 422 `AGENT_MAX_DELEGATION_DEPTH` when it is deeper than `max`, the maximum of the job's agent.
pub fn claimed_depth(top: &RawObject, max: u32) -> Result<i64, OjsError> {
    let claimed = top.given("ext_agent_delegation_depth").and_then(|value| value.parse().ok()).unwrap_or(0);
    if claimed > i64::from(max) { Err(too_deep(claimed, max)) } else { Ok(claimed) }
}

fn too_deep(claimed: i64, max: u32) -> OjsError {
    let message = format!(
        "ext_agent_delegation_depth is {claimed}, deeper than the maximum of {max}; the job was not stored"
    );
    let error = JobError::new(FailureKind::DelegationDepth, message);
    OjsError::agent(
        error.with("field", "ext_agent_delegation_depth").with("depth", claimed).with("max_depth", max),
    )
}

fn given<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn field<'a, T>(
    fields: &'a Map<String, Value>,
    name: &str,
    reader: impl FnOnce(&'a Value) -> Result<T, String>,
) -> Result<Option<T>, OjsError> {
    given(fields, name).map(reader).transpose().map_err(|why| OjsError::agent_parameter(name, why))
}

fn temperature(value: &Value) -> Result<f64, String> {
    let Value::Number(number) = value else {
        return Err(format!("must be a number, not {}", read::kind(value)));
    };
    let within = number.as_f64().filter(|float| (0.0..=2.0).contains(float));
    within.ok_or_else(|| format!("must be from 0 to 2, not {number}"))
}

fn amount(value: &Value) -> Result<i64, String> {
    Amount::deserialize(value).map(|amount| amount.0).map_err(|why| format!("must be an amount: {why}"))
}

fn word<T: DeserializeOwned>(value: &Value, words: &str) -> Result<T, String> {
    let text = read::text(value)?;
    T::deserialize(value).map_err(|_| format!("must be {words}, not `{}`", read::shortened(text, 40)))
}

fn depth(value: &Value) -> Result<u32, String> {
    let number = read::integer_from(value, 0)?;
    u32::try_from(number).map_err(|_| format!("must be at most {MAX_DELEGATION_DEPTH}, not {number}"))
}

/// Checks the depth that a client claims against the job's own maximum.
fn check_depth(fields: &Map<String, Value>, max: u32) -> Result<(), OjsError> {
    let claimed =
        field(fields, "ext_agent_delegation_depth", |value| read::integer_from(value, 0))?.unwrap_or(0);
    if claimed > i64::from(max) { Err(too_deep(claimed, max)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::agent::{OutputFormat, ToolChoice};

    fn read_json(fields: Value) -> Result<AgentFields, OjsError> {
        read(fields.as_object().unwrap())
    }

    #[test]
    fn bounds_are_inclusive_and_integers_are_numbers() {
        for temperature in [json!(0), json!(1), json!(2.0)] {
            assert!(read_json(json!({"ext_agent_temperature": temperature})).is_ok());
        }
        let fields = read_json(json!({
            "ext_agent_token_budget": 0, "ext_agent_max_tokens": 1, "ext_agent_tool_choice": "none",
            "ext_agent_output_format": "markdown", "ext_agent_max_delegation_depth": 10,
            "ext_agent_delegation_depth": 10, "ext_agent_model": null,
        }))
        .unwrap();
        assert_eq!((fields.token_budget, fields.max_tokens), (Some(0), Some(1)));
        assert_eq!(
            (fields.tool_choice, fields.output_format),
            (Some(ToolChoice::None), Some(OutputFormat::Markdown))
        );
        assert_eq!((fields.max_delegation_depth, fields.model), (Some(10), None));
    }

    #[test]
    fn wrong_fields_are_named() {
        for (name, value) in [
            ("ext_agent_model", json!("")),
            ("ext_agent_model", json!(4)),
            ("ext_agent_provider", json!([])),
            ("ext_agent_fallback_models", json!("gpt")),
            ("ext_agent_fallback_models", json!(["a", ""])),
            ("ext_agent_fallback_models", json!([1])),
            ("ext_agent_temperature", json!(3)),
            ("ext_agent_temperature", json!(2.01)),
            ("ext_agent_temperature", json!(-0.1)),
            ("ext_agent_temperature", json!("0.7")),
            ("ext_agent_max_tokens", json!(0)),
            ("ext_agent_max_tokens", json!(1.5)),
            ("ext_agent_token_budget", json!(-1)),
            ("ext_agent_cost_budget", json!(-1)),
            ("ext_agent_cost_budget", json!("1.0000001")),
            ("ext_agent_token_budget", json!("50000")),
            ("ext_agent_token_budget", json!(u64::MAX)),
            ("ext_agent_tools", json!([{"name": "a"}, {"name": "a"}])),
            ("ext_agent_tool_choice", json!("any")),
            ("ext_agent_tool_choice", json!(true)),
            ("ext_agent_parent_id", json!(1)),
            ("ext_agent_delegation_depth", json!(-1)),
            ("ext_agent_delegation_depth", json!("1")),
            ("ext_agent_max_delegation_depth", json!(11)),
            ("ext_agent_max_delegation_depth", json!(i64::MAX)),
            ("ext_agent_output_schema", json!(true)),
            ("ext_agent_output_schema", json!({"type": 5})),
            ("ext_agent_output_schema", json!({"$ref": "https://example.com/schema.json"})),
            ("ext_agent_output_format", json!("xml")),
        ] {
            let error = read_json(json!({ name: value })).unwrap_err();
            assert_eq!((error.status, error.code), (400, "AGENT_INVALID_PARAMETER"), "{name}: {error}");
            assert_eq!(error.details["field"], name, "{error}");
            assert!(error.message.starts_with(name) && error.message.len() < 500, "{error}");
        }
    }

    #[test]
    fn a_chain_that_is_too_deep_is_refused_with_its_own_code() {
        for fields in [
            json!({"ext_agent_delegation_depth": 11}),
            json!({"ext_agent_delegation_depth": 3, "ext_agent_max_delegation_depth": 2}),
            json!({"ext_agent_delegation_depth": 1, "ext_agent_max_delegation_depth": 0}),
        ] {
            let error = read_json(fields).unwrap_err();
            assert_eq!((error.status, error.code), (422, "AGENT_MAX_DELEGATION_DEPTH"));
        }
    }

    #[test]
    fn fields_that_do_nothing_are_remarked() {
        assert_eq!(remark("ext_agent_model"), None);
        assert_eq!(remark("ext_mail_model"), None);
        assert!(remark("ext_agent_tokenbudget").unwrap().ends_with("did you mean `ext_agent_token_budget`?"));
        assert!(remark("ext_agent_engagement_id").unwrap().contains("written by the server alone"));
        assert!(!remark("ext_agent_v2").unwrap().contains("did you mean"));
    }

    #[test]
    fn fields_of_others_make_no_agent() {
        for (fields, agent) in [
            (json!({"ext_agent_v2": {"state": "running"}, "ext_agent_tokens_used": 5}), false),
            (json!({"ext_agent_model": null}), false),
            (json!({"ext_agent_tools": []}), true),
        ] {
            let given = given_in(&RawObject::of(fields.as_object().unwrap())).unwrap();
            assert_eq!(!given.is_empty(), agent, "{fields}");
        }
    }

    #[test]
    fn numbers_are_read_where_they_mean_something() {
        let top: RawObject = serde_json::from_str(r#"{"x":1e400,"ext_agent_max_tokens":1e400}"#).unwrap();
        let given = given_in(&top).unwrap();
        assert_eq!(given["ext_agent_max_tokens"].to_string(), "1e+400");
        let number = &given["ext_agent_max_tokens"];
        assert_eq!(temperature(number).unwrap_err(), "must be from 0 to 2, not 1e+400");
        let whole = "must be a whole number of at most 64 bits, not 1e+400";
        assert_eq!(read::integer_from(number, 1).unwrap_err(), whole);
    }
}
