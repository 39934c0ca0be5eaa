//! `turnstone policy test FILE --against ENGAGEMENT…` or `--all`: an agent's assertions over recorded engagements.

use crate::client::Client;
use crate::commands::engagement::list;
use crate::commands::{Session, several};
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::output::text;
use anyhow::{Context, bail};
use clap::Args;
use futures::StreamExt;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::engagement::{Engagement, User};
use turnstone_domain::policy::Expression;
use turnstone_domain::policy::backtest::{Backtest, Found, Recorded, Refused};
use turnstone_domain::{AgentDefinition, Timestamp};

/// Audits that are read at once.
const AT_ONCE: usize = 16;

/// `turnstone policy test`.
#[derive(Clone, Debug, Args)]
pub struct TestArgs {
    /// The agent's document
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The engagements' ids; `-` reads them from standard input, one per line
    #[arg(long, required_unless_present_any = ["all", "agent"], num_args = 1.., value_name = "ENGAGEMENT")]
    pub against: Vec<String>,
    /// All recorded engagements of the agent that the document names, newest first
    #[arg(long, conflicts_with = "against")]
    pub all: bool,
    /// All recorded engagements of this agent instead
    #[arg(long, value_name = "NAME", conflicts_with = "against")]
    pub agent: Option<String>,
    /// Of those, the ones that began at this time or later, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "against")]
    pub since: Option<String>,
    /// Of those, at most this many of the newest
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "against")]
    pub limit: Option<usize>,
    /// Exit with 1 when something would have been refused
    #[arg(long)]
    pub fail_on_denied: bool,
}

/// Reads the document and the engagements, and prints the calls that would have been refused.
///
/// # Errors
/// The document is wrong, or an engagement cannot be read.
pub async fn run(args: TestArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let source = std::fs::read_to_string(&args.file)
        .with_context(|| format!("{} cannot be read", args.file.display()))?;
    let agent = match turnstone_specs::read(&source, None) {
        Ok((agent, _)) => agent,
        Err(problems) => {
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            bail!("{} is no valid document; see `turnstone agent lint`: {first}", args.file.display())
        }
    };
    let (client, output) = (session.client()?, session.output);
    let backtest = Backtest::of(&agent);
    let ids = match args.against.is_empty() {
        true => recorded_ids(&client, &args, &agent.name).await?,
        false => several::ids(args.against)?,
    };
    let mut audits = futures::stream::iter(ids)
        .map(|id| {
            let client = &client;
            async move {
                let audit = audit(client, &id).await;
                (id, audit)
            }
        })
        .buffered(AT_ONCE);
    let (mut engagements, mut assertions, mut refused, mut of_others) = (0, 0, 0, 0);
    while let Some((id, audit)) = audits.next().await {
        let audit = audit?;
        let mut found = over(&backtest, &id, &audit)?;
        guarded(&agent, &audit, &mut found);
        engagements += 1;
        of_others += usize::from(args.agent.is_none() && audit["agent"] != agent.name.as_str());
        assertions += found.assertions;
        refused += found.refused.len();
        match output.format {
            Format::Json => output.ndjson(&json!({"engagement_id": id, "calls": found.calls,
                "assertions": found.assertions, "unknown": found.unknown, "refused": found.refused}))?,
            Format::Ids if !found.refused.is_empty() => output.line(&text::line(&id))?,
            Format::Ids => {}
            Format::Table => {
                for one in &found.refused {
                    output.line(&format!(
                        "{} call {} of {} ({}): {}",
                        text::line(&id),
                        one.call,
                        text::line(&one.name),
                        one.restriction,
                        text::line(&one.why)
                    ))?;
                }
            }
        }
    }
    output.remark(&format!(
        "{engagements} engagements, {assertions} assertions evaluated, {refused} would have refused"
    ));
    if of_others > 0 {
        output.remark(&format!("{of_others} of them are of other agents than `{}`", text::line(&agent.name)));
    }
    if !asserts(&agent) {
        output.remark(
            "the document asserts nothing: it has no restriction with an assertion, and no guardrail",
        );
    }
    Ok(if refused > 0 && args.fail_on_denied { Exit::Failed.into() } else { Exit::Ok.into() })
}

/// Returns true if a document contains an assertion.
fn asserts(agent: &AgentDefinition) -> bool {
    let restrictions =
        agent.capabilities.iter().flat_map(|own| [&own.input_restriction, &own.output_restriction]);
    let mut assertions = restrictions.filter(|restriction| restriction.assertion.is_some());
    assertions.next().is_some() || agent.guardrails.input.is_some() || agent.guardrails.output.is_some()
}

/// Evaluates the assertions of guardrails over the recorded answers of their tools; other texts are not known.
fn guarded(agent: &AgentDefinition, audit: &Value, found: &mut Found) {
    let checks = audit["guardrails"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (check, call) in checks.iter().zip(1..) {
        let Some(side) = check["side"].as_str().and_then(Side::parse) else { continue };
        let Some(guardrail) = agent.guardrails.of(side) else { continue };
        let Some(said) = check.get("output") else {
            found.unknown += 1;
            continue;
        };
        found.assertions += 1;
        let expression = Expression::compile_over_output(&guardrail.assertion).map_err(|why| why.to_string());
        let holds = expression
            .and_then(|expression| expression.assert_over_output(said).map_err(|denial| denial.to_string()));
        if let Err(why) = holds {
            let restriction = match side {
                Side::Input => "guardrails.input",
                Side::Output => "guardrails.output",
            };
            found.refused.push(Refused { call, name: guardrail.tool_name.clone(), restriction, why });
        }
    }
}

/// Returns the ids of the engagements that match the filters, newest first.
async fn recorded_ids(client: &Client, args: &TestArgs, own: &str) -> anyhow::Result<Vec<String>> {
    let filters = list::filters(Some(args.agent.as_deref().unwrap_or(own)), args.since.as_deref());
    let found = list::newest(client, &filters, args.limit.unwrap_or(usize::MAX)).await?;
    Ok(found.into_iter().map(|one| one.into_value().engagement_id).collect())
}

/// Returns the audit of an engagement with all of its attempts, which come in parts.
async fn audit(client: &Client, id: &str) -> Result<Value, Failure> {
    let path = ["engagements", id, "audit"];
    let mut audit: Value = client.get(&path, &[]).await?;
    while audit["has_more"] == true {
        let next: Value = client.get(&path, &[("after", audit["cursor"].to_string())]).await?;
        if let (Some(all), Some(part)) = (audit["attempts"].as_array_mut(), next["attempts"].as_array()) {
            all.extend(part.iter().cloned());
        }
        audit["has_more"] = next["has_more"].clone();
        audit["cursor"] = next["cursor"].clone();
    }
    Ok(audit)
}

/// Evaluates the assertions over one audit.
fn over(backtest: &Backtest<'_>, id: &str, audit: &Value) -> anyhow::Result<Found> {
    let object = &audit["engagement"];
    let began = object["started_at"].as_str().and_then(Timestamp::parse_rfc3339);
    let engagement = Engagement {
        id: id.into(),
        agent: audit["agent"].as_str().unwrap_or_default().to_owned(),
        user: serde_json::from_value::<User>(object["user"].clone()).unwrap_or_default(),
        started_at: began.with_context(|| format!("the audit of {id} has no time of its beginning"))?,
        turns: 0,
    };
    let attempts = audit["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calls: Vec<Recorded> = attempts.iter().filter_map(recorded).collect();
    Ok(backtest.over(&engagement, &calls))
}

/// Returns a call of the audit; `None` for one whose outcome is not known yet.
fn recorded(attempt: &Value) -> Option<Recorded> {
    let outcome = attempt.get("outcome").filter(|outcome| !outcome.is_null())?;
    let failed = outcome.get("code").is_some();
    let outputs = match failed {
        true => Some(json!({"error": {"code": outcome["code"], "message": outcome["message"]}})),
        false => outcome.get("output").cloned(),
    };
    Some(Recorded {
        name: attempt["name"].as_str()?.to_owned(),
        inputs: attempt["input"].clone(),
        was_made: !failed || outcome["invoked"] == true,
        outputs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAS-45: a guardrail's assertion is evaluated over its tool's answer.
    #[test]
    fn guardrails_are_tried_on_what_their_tools_said() {
        let source = "kind: \"openagentspec:v1/agent\"\nname: a\ndescription: An agent.\nintent: You are a.\nowner: o\n\
                      guardrails: {input: {tool_name: judge, assertion: score < 3}}\n";
        let (agent, _) = turnstone_specs::read(source, None).unwrap();
        let audit = json!({"guardrails": [
            {"side": "input", "output": {"score": 1}}, {"side": "input", "output": {"score": 5}},
            {"side": "input", "error": "away"}, {"side": "output", "output": {"score": 9}},
        ]});
        let mut found = Found::default();
        guarded(&agent, &audit, &mut found);
        assert_eq!((found.assertions, found.unknown), (2, 1));
        let refused: Vec<_> = found.refused.iter().map(|one| (one.call, one.restriction)).collect();
        assert_eq!(refused, [(2, "guardrails.input")]);
        assert!(asserts(&agent) && !asserts(&AgentDefinition::default()));
    }

    #[test]
    fn what_is_withheld_is_unknown_and_a_refusal_was_no_call() {
        let call = |outcome: Value| recorded(&json!({"name": "t", "input": {"a": 1}, "outcome": outcome}));
        assert_eq!(call(Value::Null), None);
        assert_eq!(call(json!({"status": "success"})).unwrap().outputs, None);
        let made = call(json!({"status": "success", "output": {"x": 1}})).unwrap();
        assert_eq!((made.was_made, made.outputs), (true, Some(json!({"x": 1}))));
        let refused =
            call(json!({"status": "error", "code": "C", "message": "m", "invoked": false})).unwrap();
        assert!(!refused.was_made);
        let failed = call(json!({"status": "error", "code": "C", "message": "m", "invoked": true})).unwrap();
        assert_eq!(failed.outputs, Some(json!({"error": {"code": "C", "message": "m"}})));
    }
}
