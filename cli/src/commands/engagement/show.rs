//! `turnstone engagement show`: the state of an engagement, and the tree of its delegates.

use crate::commands::Session;
use crate::commands::agent::tree;
use crate::commands::job::question::Question;
use crate::failure::Failure;
use crate::output::table::{plain, time};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

/// The most columns that a result or an error takes.
const SHOWN: usize = 400;

/// Prints the engagement, or the tree of its Agent Spec document with a mark at the current node.
///
/// # Errors
/// The request fails, or there is no such engagement.
pub async fn run(id: &str, tree: bool, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let engagement = client.get(&["engagements", id], &[]).await?;
    if tree {
        let query = [("format", "agent-spec".to_owned())];
        let document = client.get(&["agents", &plain(&engagement["agent"])], &query).await?.to_string();
        for line in tree::lines(&document, engagement["node"].as_str()).map_err(Failure::usage)? {
            output.line(&text::line(&line))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match output.format {
        Format::Json => output.json(&engagement)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            // The first messages of an engagement are those that it recalled.
            let messages =
                client.get(&["engagements", id, "messages"], &[("limit", "1000".to_owned())]).await?;
            for line in lines(&engagement, recalled(&messages)) {
                output.line(&text::line(&line))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns how many exchanges of earlier engagements were recalled: each begins with an input.
fn recalled(messages: &Value) -> i64 {
    let messages = messages["messages"].as_array().into_iter().flatten();
    let inputs = messages.filter(|one| one["recalled_from"].is_string() && one["role"] == "user");
    i64::try_from(inputs.count()).unwrap_or(i64::MAX)
}

/// Returns the turns in words.
fn turns(of: &Value) -> String {
    of["turns"].as_i64().map_or_else(|| plain(&of["turns"]), |turns| text::counted(turns, "turn"))
}

/// Returns the engagement on its own lines, then one line for each delegate, indented by depth.
fn lines(engagement: &Value, recalled: i64) -> Vec<String> {
    let tokens = &engagement["tokens"];
    let limit = tokens["limit"].as_i64().map(|limit| format!(" of {limit}")).unwrap_or_default();
    let mut lines = vec![
        format!(
            "{}: {} after {} (started {})",
            plain(&engagement["agent"]),
            plain(&engagement["status"]),
            turns(engagement),
            time(&engagement["started_at"])
        ),
        format!("job     {}", plain(&engagement["job_id"])),
        format!("tokens  {} used{limit}, {} reserved", plain(&tokens["used"]), plain(&tokens["reserved"])),
    ];
    lines.extend((recalled > 0).then(|| format!("memory  {} recalled", text::counted(recalled, "exchange"))));
    lines.extend(standing(engagement));
    if let Some(origin) = engagement["forked_from"].as_object() {
        let part = |name: &str| origin.get(name).map(plain).unwrap_or_default();
        let (from, turn, phase) = (part("engagement_id"), part("at_turn"), part("phase"));
        lines.push(format!("forked  from {from} at turn {turn}, phase {phase}"));
    }
    if let Some(parent) = engagement["parent"].as_object() {
        lines.push(format!("parent  {}", parent.get("engagement_id").map(plain).unwrap_or_default()));
    }
    let tree = &engagement["tree"];
    let below = engagement["children"].as_array().map(Vec::as_slice).unwrap_or_default();
    if below.is_empty() {
        return lines;
    }
    lines.push(format!(
        "tree    {} engagements, {} tokens",
        plain(&tree["engagements"]),
        plain(&tree["tokens_used"])
    ));
    branch(&mut lines, below, &engagement["job_id"], 1);
    lines
}

/// Returns the user, and the reason for waiting, the result or the error.
fn standing(engagement: &Value) -> Vec<String> {
    let awaiting = &engagement["awaiting"];
    let whom = match (awaiting["review_id"].as_str(), awaiting["call_id"].as_str()) {
        (Some(review), _) => {
            format!("review {review} by {}: {}", plain(&awaiting["reviewer"]), plain(&awaiting["prompt"]))
        }
        (None, Some(_)) => format!("its user: {}", plain(&awaiting["prompt"])),
        (None, None) => String::new(),
    };
    let answer =
        Question::read(&plain(&engagement["engagement_id"]), awaiting).map(|requested| requested.command());
    let error = match engagement["error"]["code"].as_str() {
        Some(code) => format!("{code}: {}", plain(&engagement["error"]["message"])),
        None => String::new(),
    };
    let results = &engagement["results"];
    let result =
        if results.is_null() { String::new() } else { plain(results.get("text").unwrap_or(results)) };
    let parts = [
        ("user", plain(&engagement["user"]["id"])),
        ("node", plain(&engagement["node"])),
        ("awaits", whom),
        ("error", error),
        ("result", result),
    ];
    let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
    let mut lines: Vec<String> =
        parts.map(|(label, value)| format!("{label:<8}{}", text::fit(&text::line(&value), SHOWN))).collect();
    lines.extend(answer.map(|command| format!("{:<8}{command}", "answer")));
    lines
}

/// The delegates of one job, each with those below it.
fn branch(lines: &mut Vec<String>, below: &[Value], parent: &Value, depth: usize) {
    for link in below.iter().filter(|link| link["parent_job_id"] == *parent) {
        lines.push(format!(
            "{}{} {} ({}): {}, {} tokens, engagement {}",
            "  ".repeat(depth),
            plain(&link["agent"]),
            plain(&link["status"]),
            plain(&link["mode"]),
            turns(link),
            plain(&link["tokens_used"]),
            plain(&link["engagement_id"])
        ));
        branch(lines, below, &link["job_id"], depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use serde_json::json;

    #[test]
    fn the_wait_or_failure_of_a_job_is_reported() {
        let engagement = |rest: serde_json::Value| {
            let mut all = json!({"agent": "desk", "status": "failed", "turns": 0, "started_at": null, "job_id": "a",
                                 "user": {"id": "ada"}, "tokens": {"used": 0, "reserved": 0, "limit": null}});
            all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            lines(&all, 0)[3..].to_vec()
        };
        let error = json!({"error": {"code": "OSSA_POLICY_VIOLATION", "message": "no"}});
        assert_eq!(engagement(error), ["user    ada", "error   OSSA_POLICY_VIOLATION: no"]);
        let review =
            json!({"awaiting": {"kind": "review", "review_id": "r", "reviewer": "ann", "prompt": "May it?"}});
        assert_eq!(engagement(review), ["user    ada", "awaits  review r by ann: May it?"]);
        let done = json!({"results": {"text": "all is well", "n": 1}, "awaiting": null, "error": null});
        assert_eq!(engagement(done), ["user    ada", "result  all is well"]);
    }

    #[test]
    fn children_stand_below_their_parents() {
        let link = |job: &str, parent: &str, agent: &str| {
            json!({"job_id": job, "parent_job_id": parent, "agent": agent, "status": "success", "mode": "parallel",
                   "turns": 1, "tokens_used": 15, "engagement_id": format!("e-{job}")})
        };
        let engagement = json!({"agent": "lead", "status": "completed", "turns": 2, "started_at": null, "job_id": "a",
            "tokens": {"used": 60, "reserved": 0, "limit": 100}, "parent": null,
            "children": [link("b", "a", "scout"), link("c", "a", "scribe"), link("d", "b", "clerk")],
            "tree": {"engagements": 4, "tokens_used": 60}});
        let shown = lines(&engagement, 0);
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
