//! `turnstone review show`: the question, in full.

use crate::client::Received;
use crate::commands::Session;
use crate::output::table::{plain, time};
use crate::output::{Format, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;
use turnstone_api::answers::{Quorum, Review, State};

/// Columns of the labels.
const LABEL: usize = 12;
/// The most calls of the history that are named: the newest.
const CALLS: usize = 10;

/// `turnstone review show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The review's id
    pub id: String,
}

/// Prints the review.
///
/// # Errors
/// There is no such review, or the request fails.
pub async fn run(args: &ShowArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let review: Received<Review> = client.get(&["reviews", &args.id], &[]).await?;
    let mut agent = plain(&review.question["agent"]);
    if session.output.format == Format::Table
        && agent.is_empty()
        && let Ok(engagement) = client.get::<State>(&["engagements", &review.engagement_id], &[]).await
    {
        // A question about an error, or of an older worker, has no agent; the engagement has it.
        agent = engagement.agent;
    }
    session.output.answer(&review, &review.id, &lines(&review, agent))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the votes, in words.
pub(super) fn votes(review: &Review) -> String {
    let Quorum { needed, of, approvals, rejections } = review.quorum;
    format!("{approvals} yes, {rejections} no; {needed} of {of} have to agree")
}

/// Returns the user with the address, if there is one.
fn user(user: &Value) -> String {
    match (plain(&user["id"]), plain(&user["email"])) {
        (id, email) if email.is_empty() => id,
        (id, email) => format!("{id} <{email}>"),
    }
}

/// Returns earlier calls, in short.
fn history(history: &Value) -> String {
    let Some(calls) = history["_list"].as_array() else { return String::new() };
    let skipped = calls.len().saturating_sub(CALLS);
    let names: Vec<String> = calls[skipped..].iter().map(plain).collect();
    let more = if skipped > 0 { "…, " } else { "" };
    match calls.len() {
        0 => "no calls".to_owned(),
        1 => format!("1 call: {more}{}", names.join(", ")),
        count => format!("{count} calls: {more}{}", names.join(", ")),
    }
}

/// Returns one fact per line, the question below, and the commands that answer it.
fn lines(review: &Review, agent: String) -> String {
    let (question, id) = (&review.question, text::line(&review.id));
    let several = review.members.len() > 1;
    let facts = [
        ("review", id.clone()),
        ("state", plain(&review.state)),
        ("kind", plain(&review.kind)),
        ("reviewer", plain(&review.reviewer)),
        ("votes", if several { votes(review) } else { String::new() }),
        ("asked of", if several { review.members.join(", ") } else { String::new() }),
        ("agent's", plain(&review.asked_engagement_id)),
        ("then", plain(&review.escalates_to)),
        ("reminders", if review.reminders > 0 { review.reminders.to_string() } else { String::new() }),
        ("reminded", time(&review.remind_at)),
        ("agent", agent),
        ("user", user(&question["engagement"]["user"])),
        ("job", plain(&review.job_id)),
        ("engagement", plain(&review.engagement_id)),
        ("turn", plain(&review.turn)),
        ("asked", time(&review.created_at)),
        ("deadline", time(&review.deadline_at)),
        ("decided", time(&review.decided_at)),
        ("decided by", plain(&review.decided_by)),
        ("reason", plain(&review.reason)),
        ("tool", plain(&question["name"])),
        (
            "assertion",
            Some(plain(&question["assertion"]))
                .filter(|text| !text.is_empty())
                .map(|text| format!("{text} (holds)"))
                .unwrap_or_default(),
        ),
        ("before it", history(&question["engagement"]["history"])),
        ("why", plain(&question["what_happened"])),
        ("approve", plain(&question["approve_means"])),
        ("reject", plain(&question["reject_means"])),
        ("answer", plain(&question["result_means"])),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let mut lines: Vec<String> =
        facts.map(|(label, value)| format!("{label:<LABEL$}{}", text::line(&value))).collect();
    for vote in &review.votes {
        let word = if vote.approve { "yes" } else { "no" };
        let (at, by, reason) = (time(&vote.at), &vote.by, plain(&vote.reason));
        lines.push(
            text::line(&format!("{:<LABEL$}{at} {by} said {word} {reason}", "vote")).trim_end().to_owned(),
        );
    }
    let known = ["inputs", "outputs", "result", "error"];
    let parts = known.into_iter().filter_map(|part| Some((part, question.get(part)?)));
    let mut parts: Vec<(&str, &Value)> = parts.collect();
    if parts.is_empty() {
        parts.push(("question", question));
    }
    if let Some(result) = &review.result {
        parts.push(("result", result));
    }
    for (part, value) in parts {
        let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
        lines.push(format!("{part}:\n{}", text::json(&pretty)));
    }
    if review.state == "open" && review.asked_engagement_id.is_none() {
        let who = if several { "NAME".to_owned() } else { text::line(&review.reviewer) };
        let answer = |verb: &str| format!("turnstone review {verb} {id} --by {who} --reason TEXT");
        lines.push(format!("{}\n{}", answer("approve"), answer("reject")));
        if question["result_means"].is_string() {
            lines.push(format!("turnstone review answer {id} --by {who} --result JSON"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::filled;
    use serde_json::json;

    fn shown(members: &Value) -> String {
        let base = json!({
            "id": "r", "engagement_id": "e", "job_id": "j", "turn": 1, "call_id": "c", "kind": "output", "reviewer": "boss",
            "arguments_hash": "h", "state": "open", "created_at": "2026-01-31T12:00:00Z", "members": [], "votes": [],
            "quorum": {"needed": 1, "of": 1, "approvals": 0, "rejections": 0}, "step": 0, "reminders": 0,
        });
        let review: Received<Review> = filled(base, members);
        let agent = plain(&review.question["agent"]);
        lines(&review, agent)
    }

    #[test]
    fn the_inputs_that_one_approves_are_readable() {
        let shown = shown(&json!({
            "kind": "unknown_outcome", "deadline_at": null,
            "question": {"name": "pay", "inputs": {"amount": 100}, "call_id": "c", "approve_means": "call it once more"},
        }));
        for part in [
            "tool        pay",
            "inputs:\n{\n  \"amount\": 100\n}",
            "approve     call it once more",
            "turnstone review approve r",
        ] {
            assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
        }
        assert!(!shown.contains("deadline"), "{shown}");
    }

    /// OAS-31: the reviewer of a result sees the result, its user, and the earlier calls.
    #[test]
    fn the_result_that_one_approves_is_shown() {
        let engagement = json!({"user": {"id": "u-17", "email": "u@example.org"},
                                "history": {"_list": ["search", "search", "pay"], "_total": 3}});
        let shown = shown(&json!({
            "members": ["boss"],
            "question": {"name": "pay", "inputs": {"amount": 100}, "outputs": {"receipt": "r-1"}, "call_id": "c",
                         "agent": "cashier", "assertion": "recent.pay.outputs.ok", "engagement": engagement},
        }));
        for part in [
            "agent       cashier",
            "user        u-17 <u@example.org>",
            "assertion   recent.pay.outputs.ok (holds)",
            "before it   3 calls: search, search, pay",
            "outputs:\n{\n  \"receipt\": \"r-1\"\n}",
            "turnstone review approve r --by boss --reason TEXT",
        ] {
            assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
        }
    }
}
