//! `turnstone engagement fork`: a new engagement that continues from a turn of another one, with something changed.

use crate::client::Received;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::text;
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use turnstone_api::answers::Forked;

/// `turnstone engagement fork`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: turnstone engagement fork ID --at-turn 3 --phase infer --set model=small --set prompt=@brief.txt\n\
                  A tool result replaces the outcome of a recorded call: --set tool-result=CALL=JSON"
)]
pub struct ForkArgs {
    /// The engagement's id, or its first characters
    pub id: String,
    /// The turn of the fork point; turns before it are shared
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    pub at_turn: i64,
    /// The first phase of that turn that is run anew: init, norm, resol, infer, exec, persist or emit
    #[arg(long, value_name = "PHASE", default_value = "init")]
    pub phase: String,
    /// A change: prompt=TEXT, model=NAME, provider=NAME or tool-result=CALL=JSON; a value @FILE is read from the file
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Call tools and delegates, instead of using recorded outcomes
    #[arg(long)]
    pub live_tools: bool,
}

/// Reads `NAME=VALUE`; `tool-result CALL=JSON` in one word is the same as `tool-result=CALL=JSON`.
fn setting(text: &str) -> Result<(String, String), String> {
    let parted = match text.strip_prefix("tool-result ") {
        Some(rest) => Some(("tool-result", rest.trim_start())),
        None => text.split_once('='),
    };
    let (name, value) = parted.ok_or("write NAME=VALUE")?;
    match name {
        "prompt" | "model" | "provider" => Ok((name.to_owned(), value.to_owned())),
        "tool-result" if value.contains('=') => Ok((name.to_owned(), value.to_owned())),
        "tool-result" => Err("write tool-result=CALL=JSON".to_owned()),
        _ => Err("prompt, model, provider and tool-result can be set".to_owned()),
    }
}

/// Returns a value: itself, or the content of the file that it names.
fn content(value: &str) -> Result<String, Failure> {
    let Some(path) = value.strip_prefix('@') else { return Ok(value.to_owned()) };
    std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{path} cannot be read: {error}")))
}

/// Returns the settings in the form of the API.
fn set(settings: &[(String, String)]) -> Result<Value, Failure> {
    let (mut set, mut results) = (Map::new(), Map::new());
    for (name, value) in settings {
        let Some((call, output)) = value.split_once('=').filter(|_| name == "tool-result") else {
            set.insert(name.clone(), content(value)?.into());
            continue;
        };
        let output = serde_json::from_str(&content(output)?)
            .map_err(|error| Failure::usage(format!("the result of {call} is not JSON: {error}")))?;
        results.insert(call.to_owned(), output);
    }
    if !results.is_empty() {
        set.insert("tool_results".to_owned(), results.into());
    }
    Ok(set.into())
}

/// Makes the fork.
///
/// # Errors
/// A setting cannot be read, or the server refused.
pub async fn run(args: ForkArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let body = json!({"at_turn": args.at_turn, "phase": args.phase, "live_tools": args.live_tools,
                      "set": set(&args.set)?});
    let fork: Received<Forked> = session.client()?.post(&["engagements", &args.id, "fork"], &body).await?;
    let (id, job) = (&fork.engagement_id, &fork.job_id);
    let (turn, phase) = (args.at_turn, args.phase);
    let words = format!("{id} resumes from turn {turn}, phase {phase}, of {} (job {job})", args.id);
    session.output.answer(&fork, id, &text::line(&words))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_names_and_values() {
        let read = |text: &str| setting(text).map(|one| set(&[one]).unwrap_or_default());
        assert_eq!(read("prompt=a=b").ok(), Some(json!({"prompt": "a=b"})));
        let result = json!({"tool_results": {"c-1": {"hits": [1]}}});
        assert_eq!(read(r#"tool-result=c-1={"hits": [1]}"#).ok(), Some(result.clone()));
        assert_eq!(read(r#"tool-result c-1={"hits": [1]}"#).ok(), Some(result));
        for bad in ["prompt", "tool-result=c-1", "temperature=1"] {
            assert!(setting(bad).is_err(), "{bad}");
        }
        assert!(set(&[("tool-result".to_owned(), "c={".to_owned())]).is_err());
    }
}
