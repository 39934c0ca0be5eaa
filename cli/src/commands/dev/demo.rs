//! `turnstone dev --demo`: the example tools, the example agents, and the example job as any client would run it.

use super::next::NextCommands;
use super::timeline::{Detail, grouped};
use crate::client::Client;
use crate::commands::Session;
use crate::commands::job::watch;
use crate::commands::serve::agents::Document;
use crate::commands::serve::equipment::Beneath;
use crate::failure::Failure;
use crate::output::{Format, text};
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::JobState;
use turnstone_examples::{AGENTS, DEMO_SCRIPT, RESEARCH_JOB, tool_server, tools_toml};
use turnstone_ojs::JobBody;
use turnstone_worker::model::ScriptedModel;
use turnstone_worker::tool::ToolConfig;

/// How many jobs of the demo's type are searched for an unfinished one.
const LOOKED_THROUGH: usize = 1_000;

/// The model of example agents that name none, while only the script answers.
pub const DEMO_MODEL: &str = "demo";

/// The example tool server, in this process. It stops when it is dropped.
#[derive(Debug)]
pub struct ExampleTools {
    address: SocketAddr,
    _serving: AbortOnDropHandle<std::io::Result<()>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolSections {
    tools: BTreeMap<String, ToolConfig>,
}

impl ExampleTools {
    /// Starts the server on a free port of this machine.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.await.context("the example tool server finds no free port")?;
        let address = listener.local_addr().context("the example tool server has no address")?;
        let limits = turnstone_api::ServeLimits::default();
        let serving = turnstone_api::serve(listener, None, tool_server(), limits, CancellationToken::new());
        Ok(Self { address, _serving: AbortOnDropHandle::new(tokio::spawn(serving)) })
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the demo's script and the example tools, bound to this server.
    ///
    /// # Errors
    /// The script or the example configuration is not well-formed.
    pub fn beneath(&self) -> anyhow::Result<Beneath> {
        let script = ScriptedModel::from_yaml(DEMO_SCRIPT)
            .map_err(|problem| Failure::failed(format!("the demo's script is not well-formed: {problem}")))?;
        Ok(Beneath { script, model: DEMO_MODEL, tools: self.tools()? })
    }

    fn tools(&self) -> anyhow::Result<BTreeMap<String, ToolConfig>> {
        let sections: ToolSections = toml::from_str(&tools_toml(self.address.port()))
            .context("the example configuration is not well-formed")?;
        Ok(sections.tools)
    }
}

/// Returns the example agents, when they are wanted.
#[must_use]
pub fn agents(wanted: bool) -> Vec<Document> {
    let all = AGENTS.iter().map(|(file, source)| (format!("examples/agents/{file}"), (*source).to_owned()));
    all.filter(|_| wanted).collect()
}

/// Enqueues the example job, or finds the unfinished one of a killed demo. Prints its timeline as it happens, its
/// result, and the next steps.
///
/// # Errors
/// The server, which is this process, failed.
pub async fn show(client: &Client, session: &Session, next: &NextCommands) -> anyhow::Result<()> {
    let job: Value = serde_json::from_str(RESEARCH_JOB).context("the example job is not well-formed")?;
    let people = session.output.format == Format::Table;
    let id = match unfinished(client, &job).await? {
        Some(id) => {
            if people {
                session.output.line(&format!("The demo's job {id} was left unfinished and resumes:\n"))?;
            }
            id
        }
        None => {
            let JobBody { id, .. } = client.part(&client.post(&["ojs", "v1", "jobs"], &job).await?, "job")?;
            if people {
                let requested = text::line(job["args"][0].as_str().unwrap_or_default());
                session.output.line(&format!("The demo asks \u{201c}{requested}\u{201d}, job {id}:\n"))?;
            }
            id
        }
    };
    // The timeline shows the outcome; the server stays up either way.
    watch::run(&id, client, session, Detail::Phases).await?;
    if people {
        let job: JobBody = client.member(&["ojs", "v1", "jobs", &id], &[], "job").await?;
        session.output.line(&format!("\n{}\n\n{}", cost(&job), next.text(&id)))?;
    }
    Ok(())
}

/// Returns the newest unfinished job with the demo's input.
async fn unfinished(client: &Client, job: &Value) -> anyhow::Result<Option<String>> {
    let wanted = job["type"].as_str().unwrap_or_default().to_owned();
    let path = ["ojs", "v1", "admin", "jobs"];
    let (jobs, _) = client.list::<JobBody>(&path, &[("type", wanted)], LOOKED_THROUGH).await?;
    let asks_the_same = |found: &JobBody| found.args.parse::<Value>().is_ok_and(|args| args == job["args"]);
    let found =
        jobs.into_iter().find(|found| found.state.known().is_some_and(continues) && asks_the_same(found));
    Ok(found.map(|found| found.id))
}

fn continues(state: JobState) -> bool {
    !state.is_terminal() && state != JobState::Scheduled
}

/// Returns the cost of the job, in one line.
fn cost(job: &JobBody) -> String {
    let model = text::line(job.model_used.as_deref().unwrap_or("no model"));
    let tools = job.tool_results.as_ref().map_or(0, Vec::len);
    let script = if model.starts_with("scripted:") { " (a script, not a model)" } else { "" };
    let budget = job.extra.get("ext_agent_token_budget").and_then(|budget| budget.parse().ok());
    format!(
        "{} of {} tokens used · {tools} tool calls · attempt {} · answered by {model}{script}",
        grouped(job.tokens_used.unwrap_or_default()),
        grouped(budget.unwrap_or_default()),
        grouped(job.attempt),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use serde_json::json;

    #[test]
    fn only_a_job_that_can_still_run_resumes() {
        use JobState::{Active, Available, Cancelled, Completed, Discarded, Pending, Retryable, Scheduled};
        assert!([Available, Active, Retryable, Pending].into_iter().all(continues));
        assert!(![Scheduled, Completed, Discarded, Cancelled].into_iter().any(continues));
    }

    #[test]
    fn a_script_is_said_to_be_one() {
        let job =
            sample(&json!({ "ext_agent_tokens_used": 1234, "ext_agent_token_budget": 50000, "attempt": 2,
            "ext_agent_tool_results": [1, 2], "ext_agent_model_used": "scripted:gpt-4o" }));
        let words = "1,234 of 50,000 tokens used · 2 tool calls · attempt 2 · answered by scripted:gpt-4o (a script, not a model)";
        assert_eq!(cost(&job), words);
    }
}
