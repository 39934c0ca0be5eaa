//! `turnstone engagement show`: the state of an engagement, and the tree of its delegates.

use crate::client::Received;
use crate::commands::Session;
use crate::commands::agent::tree;
use crate::commands::budget::raise_command;
use crate::commands::job::question::Question;
use crate::failure::Failure;
use crate::output::table::{plain, time};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;
use turnstone_api::answers::{Messages, State, StateChild};
use turnstone_domain::message::Role;

/// The most columns that a result or an error takes.
const SHOWN: usize = 400;

/// Prints the engagement, or the tree of its Agent Spec document with a mark at the current node.
///
/// # Errors
/// The request fails, or there is no such engagement.
pub async fn run(id: &str, tree: bool, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let engagement: Received<State> = client.get(&["engagements", id], &[]).await?;
    if tree {
        let query = [("format", "agent-spec".to_owned())];
        let document: Value = client.get(&["agents", &engagement.agent], &query).await?;
        let node = engagement.node.as_deref();
        for line in tree::lines(&document.to_string(), node).map_err(Failure::usage)? {
            output.line(&text::line(&line))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match output.format {
        Format::Json => output.json(&engagement)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            // The first messages of an engagement are those that it recalled.
            let query = [("limit", "1000".to_owned())];
            let messages = client.get(&["engagements", id, "messages"], &query).await?;
            for line in lines(&engagement, recalled(&messages)) {
                output.line(&text::line(&line))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns how many exchanges of earlier engagements were recalled: each begins with an input.
fn recalled(messages: &Messages) -> i64 {
    let inputs = messages.messages.iter().filter(|one| one.recalled_from.is_some() && one.role == Role::User);
    i64::try_from(inputs.count()).unwrap_or(i64::MAX)
}

/// Returns the engagement on its own lines, then one line for each delegate, indented by depth.
fn lines(engagement: &State, recalled: i64) -> Vec<String> {
    let tokens = &engagement.tokens;
    let limit = tokens.limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    let mut lines = vec![
        format!(
            "{}: {} after {} (started {})",
            engagement.agent,
            engagement.status,
            text::counted(engagement.turns, "turn"),
            time(&engagement.started_at)
        ),
        format!("job     {}", engagement.job_id),
        format!("tokens  {} used{limit}, {} reserved", tokens.used, tokens.reserved),
    ];
    lines.extend((recalled > 0).then(|| format!("memory  {} recalled", text::counted(recalled, "exchange"))));
    lines.extend(standing(engagement));
    if let Some(origin) = &engagement.forked_from {
        let (from, turn, phase) = (&origin.engagement_id, origin.at_turn, &origin.phase);
        lines.push(format!("forked  from {from} at turn {turn}, phase {phase}"));
    }
    if let Some(parent) = &engagement.parent {
        lines.push(format!("parent  {}", parent.engagement_id));
    }
    let tree = &engagement.tree;
    if !engagement.children.is_empty() {
        lines.push(format!("tree    {} engagements, {} tokens", tree.engagements, tree.tokens_used));
        branch(&mut lines, &engagement.children, &engagement.job_id, 1);
    }
    lines
}

/// Returns the user, and the reason for waiting, the result or the error.
fn standing(engagement: &State) -> Vec<String> {
    let whom = engagement.awaiting.as_ref().map(|awaiting| match (&awaiting.review_id, &awaiting.call_id) {
        (Some(review), _) => {
            format!("review {review} by {}: {}", plain(&awaiting.reviewer), awaiting.prompt)
        }
        (None, Some(_)) => format!("its user: {}", awaiting.prompt),
        (None, None) => match &awaiting.provider {
            Some(wait) => wait.sentence(&time(&wait.next_retry_at)),
            None => awaiting.prompt.clone(),
        },
    });
    let error = engagement.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
    let result = engagement.results.as_ref().map(|results| plain(results.get("text").unwrap_or(results)));
    let parts = [
        ("user", Some(engagement.user.id.clone())),
        ("node", engagement.node.clone()),
        ("awaits", whom),
        ("error", error),
        ("result", result),
    ];
    let parts =
        parts.into_iter().filter_map(|(label, value)| Some((label, value.filter(|it| !it.is_empty())?)));
    let mut lines: Vec<String> =
        parts.map(|(label, value)| format!("{label:<8}{}", text::fit(&text::line(&value), SHOWN))).collect();
    let awaited = engagement.awaiting.as_ref().and_then(|awaiting| awaiting.budget.as_ref());
    lines.extend(awaited.and_then(raise_command).map(|command| format!("{:<8}{command}", "raise")));
    lines.extend(Question::of(engagement).map(|asked| format!("{:<8}{}", "answer", asked.command())));
    lines
}

/// The delegates of one job, each with those below it.
fn branch(lines: &mut Vec<String>, below: &[StateChild], parent: &str, depth: usize) {
    for link in below.iter().filter(|link| link.parent_job_id == parent) {
        lines.push(format!(
            "{}{} {} ({}): {}, {} tokens, engagement {}",
            "  ".repeat(depth),
            link.agent,
            link.status,
            link.mode,
            text::counted(link.turns, "turn"),
            link.tokens_used,
            link.engagement_id
        ));
        branch(lines, below, &link.job_id, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::filled;
    use serde_json::json;

    fn shown(members: &Value) -> Vec<String> {
        let at = "2026-01-31T12:00:00Z";
        let base = json!({
            "engagement_id": "e", "agent": "desk", "user": {"id": "ada", "email": null}, "status": "failed",
            "started_at": at, "updated_at": at, "warnings": [], "job_id": "a", "turns": 0, "depth": 0, "children": [],
            "tokens": {"used": 0, "reserved": 0, "limit": null, "left": null}, "tree": {"engagements": 1, "tokens_used": 0},
            "cost": {"used": "0", "reserved": "0", "limit": null, "left": null},
        });
        lines(&filled(base, members), 0)
    }

    #[test]
    fn the_wait_or_failure_of_a_job_is_reported() {
        let engagement = |rest: Value| shown(&rest)[3..].to_vec();
        let error = json!({"error": {"code": "OSSA_POLICY_VIOLATION", "message": "no"}});
        assert_eq!(engagement(error), ["user    ada", "error   OSSA_POLICY_VIOLATION: no"]);
        let review =
            json!({"awaiting": {"kind": "review", "review_id": "r", "reviewer": "ann", "prompt": "May it?"}});
        assert_eq!(engagement(review), ["user    ada", "awaits  review r by ann: May it?"]);
        let budget = json!({"status": "budget_reached", "awaiting": {"kind": "budget", "prompt": "It has 80 tokens left",
            "budget": {"name": "engagement", "unit": "tokens", "needed": 520, "left": 80, "short": 440, "resets_at": null,
                       "engagement_id": "e"}}});
        let raise = "raise   turnstone budget raise --engagement e --tokens 440";
        assert_eq!(engagement(budget), ["user    ada", "awaits  It has 80 tokens left", raise]);
        let done = json!({"results": {"text": "all is well", "n": 1}, "awaiting": null, "error": null});
        assert_eq!(engagement(done), ["user    ada", "result  all is well"]);
    }

    #[test]
    fn children_stand_below_their_parents() {
        let link = |job: &str, parent: &str, agent: &str| {
            json!({"job_id": job, "parent_job_id": parent, "agent": agent, "status": "success", "mode": "parallel",
                   "state": "completed", "depth": 1, "turns": 1, "tokens_used": 15, "engagement_id": format!("e-{job}")})
        };
        let shown = shown(
            &json!({"agent": "lead", "status": "completed", "turns": 2, "user": {"id": "", "email": null},
            "tokens": {"used": 60, "reserved": 0, "limit": 100, "left": 40}, "parent": null,
            "children": [link("b", "a", "scout"), link("c", "a", "scribe"), link("d", "b", "clerk")],
            "tree": {"engagements": 4, "tokens_used": 60}}),
        );
        assert!(
            shown[0].contains(" after 2 turns ") && shown[4].contains(": 1 turn, 15 tokens"),
            "{shown:?}"
        );
        assert_eq!(shown[2], "tokens  60 used of 100, 0 reserved");
        assert_eq!(shown[3], "tree    4 engagements, 60 tokens");
        let names: Vec<&str> = shown[4..].iter().map(|line| line.split(" success").next().unwrap()).collect();
        assert_eq!(names, ["  scout", "    clerk", "  scribe"]);
    }
}
