//! `turnstone webhook add`: subscribe a URL to events.

use crate::client::Received;
use crate::commands::Session;
use crate::config::suggestion;
use crate::failure::Failure;
use crate::output::table::plain;
use crate::output::{Format, text};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use turnstone_domain::EventName;
use turnstone_ojs::SubscriptionBody;

/// `turnstone webhook add`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: turnstone webhook add https://example.com/hook --events job.completed,job.discarded"
)]
pub struct AddArgs {
    /// The URL that events are posted to
    #[arg(value_name = "URL")]
    pub target: String,
    /// The events; `*` matches every one, `job.*` every one of jobs
    #[arg(long, value_delimiter = ',', required = true, value_name = "NAMES")]
    pub events: Vec<String>,
    /// Only events of jobs in these queues, and of workflows with such jobs
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queues: Vec<String>,
}

/// Subscribes it and prints its id and its secret.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn run(args: &AddArgs, session: &Session) -> anyhow::Result<ExitCode> {
    args.events.iter().try_for_each(|event| known(event))?;
    let mut body = json!({ "url": args.target, "events": args.events });
    if !args.queues.is_empty() {
        body["filter"] = json!({ "queues": args.queues });
    }
    let (client, output) = (session.client()?, session.output);
    let answer = client.post(super::SUBSCRIPTIONS.path, &body).await?;
    let webhook: Received<SubscriptionBody> = client.part(&answer, "subscription")?;
    match output.format {
        Format::Json => output.json(&webhook)?,
        Format::Ids => output.line(&text::line(&webhook.id))?,
        Format::Table => {
            output.line(&format!("id      {}", text::line(&webhook.id)))?;
            output.line(&format!("secret  {}", text::line(&plain(&webhook.secret))))?;
            output.remark("the secret is shown only now; receivers check the signatures with it");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a name that no event has: it would match nothing.
fn known(event: &str) -> Result<(), Failure> {
    let names: Vec<&str> = EventName::ALL.iter().map(|name| name.as_str()).collect();
    let is_known = match event.strip_suffix('*') {
        Some(beginning) => names.iter().any(|name| name.starts_with(beginning)),
        None => names.contains(&event),
    };
    if is_known {
        return Ok(());
    }
    let meant = suggestion(event, &names).map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    let failure = Failure::usage(format!("there is no event {event}"));
    Err(failure.hint(format!("{meant}known are *, job.*, and: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_event_has_is_refused() {
        for event in ["*", "job.*", "job.completed"] {
            assert_eq!(known(event), Ok(()), "{event}");
        }
        let refused = known("job.complet").unwrap_err();
        assert!(refused.hint.unwrap().starts_with("did you mean job.completed?"));
        assert!(known("jobs.*").is_err());
    }
}
