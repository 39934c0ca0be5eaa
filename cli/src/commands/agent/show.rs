//! `turnstone agent show`: a registered document.

use crate::client::Received;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::{Format, text};
use serde_json::{Value, json};
use std::process::ExitCode;
use turnstone_api::answers::ListedAgent;

/// The form of the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownAs {
    /// As it was written.
    Document,
    /// Nodes, agents and tools, line by line.
    Tree,
    /// Nodes and edges as an SVG picture.
    Svg,
}

/// Returns the tenants that an agent is kept to; `None` for all.
async fn tenants(name: &str, session: &Session) -> anyhow::Result<Option<Vec<String>>> {
    let agents: Vec<Received<ListedAgent>> = session.client()?.get(&["agents"], &[]).await?;
    Ok(agents.iter().find(|agent| agent.name == name).and_then(|agent| agent.tenants.clone()))
}

/// Prints the document as it was written, or an Agent Spec document as a tree or a drawing; `-o json` has the document as
/// one text.
///
/// # Errors
/// The request fails, or there is no such agent.
pub async fn run(name: &str, form: ShownAs, session: &Session) -> anyhow::Result<ExitCode> {
    if form != ShownAs::Document {
        let query = [("format", "agent-spec".to_owned())];
        let document = session.client()?.get::<Value>(&["agents", name], &query).await?.to_string();
        let lines = match form {
            ShownAs::Svg => super::svg::drawing(&document),
            ShownAs::Tree | ShownAs::Document => super::tree::lines(&document, None),
        };
        for line in lines.map_err(Failure::usage)? {
            session.output.line(&text::line(&line))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let document = session.client()?.get_text(&["agents", name]).await?;
    let output = session.output;
    match output.format {
        Format::Table => output.document(document.trim_end())?,
        Format::Json => {
            let tenants = tenants(name, session).await?;
            output.json(&json!({"name": name, "document": document, "tenants": tenants}))?;
        }
        Format::Ids => output.line(&text::line(name))?,
    }
    Ok(ExitCode::SUCCESS)
}
