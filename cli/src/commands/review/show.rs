//! `turnstone review show`: the question, in full.

use crate::client::unwrapped;
use crate::commands::Session;
use crate::output::table::{plain, time};
use crate::output::{Format, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

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
    let mut review = unwrapped(client.get(&["reviews", &args.id], &[]).await?, "review");
    let engagement = plain(&review["engagement_id"]);
    if session.output.format == Format::Table
        && review["question"]["agent"].is_null()
        && let Ok(engagement) = client.get(&["engagements", &engagement], &[]).await
    {
        // A question about an error, or of an older worker, has no agent; the engagement has it.
        review["agent"] = engagement["agent"].clone();
    }
    let output = session.output;
    match output.format {
        Format::Json => output.json(&review)?,
        Format::Ids => output.line(&text::line(&plain(&review["id"])))?,
        Format::Table => output.line(&lines(&review))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the votes, in words.
pub(super) fn votes(review: &Value) -> String {
    let quorum = &review["quorum"];
    let (yes, no) = (plain(&quorum["approvals"]), plain(&quorum["rejections"]));
    format!("{yes} yes, {no} no; {} of {} have to agree", plain(&quorum["needed"]), plain(&quorum["of"]))
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
fn lines(review: &Value) -> String {
    let (question, id) = (&review["question"], text::line(&plain(&review["id"])));
    let members = review["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    let members: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
    let several = members.len() > 1;
    let facts = [
        ("review", id.clone()),
        ("state", plain(&review["state"])),
        ("kind", plain(&review["kind"])),
        ("reviewer", plain(&review["reviewer"])),
        ("votes", if several { votes(review) } else { String::new() }),
        ("asked of", if several { members.join(", ") } else { String::new() }),
        ("agent's", plain(&review["asked_engagement_id"])),
        ("then", plain(&review["escalates_to"])),
        ("reminders", Some(plain(&review["reminders"])).filter(|count| count != "0").unwrap_or_default()),
        ("reminded", time(&review["remind_at"])),
        ("agent", plain(if question["agent"].is_null() { &review["agent"] } else { &question["agent"] })),
        ("user", user(&question["engagement"]["user"])),
        ("job", plain(&review["job_id"])),
        ("engagement", plain(&review["engagement_id"])),
        ("turn", plain(&review["turn"])),
        ("asked", time(&review["created_at"])),
        ("deadline", time(&review["deadline_at"])),
        ("decided", time(&review["decided_at"])),
        ("decided by", plain(&review["decided_by"])),
        ("reason", plain(&review["reason"])),
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
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let mut lines: Vec<String> =
        facts.map(|(label, value)| format!("{label:<LABEL$}{}", text::line(&value))).collect();
    for vote in review["votes"].as_array().into_iter().flatten() {
        let word = if vote["approve"] == true { "yes" } else { "no" };
        let (at, by, reason) = (time(&vote["at"]), plain(&vote["by"]), plain(&vote["reason"]));
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
    for (part, value) in parts {
        let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
        lines.push(format!("{part}:\n{}", text::json(&pretty)));
    }
    if review["state"] == "open" && review["asked_engagement_id"].is_null() {
        let who = if several { "NAME".to_owned() } else { text::line(&plain(&review["reviewer"])) };
        let answer = |verb: &str| format!("turnstone review {verb} {id} --by {who} --reason TEXT");
        lines.push(format!("{}\n{}", answer("approve"), answer("reject")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_inputs_that_one_approves_are_readable() {
        let shown = lines(&json!({
            "id": "r", "state": "open", "kind": "unknown_outcome", "reviewer": "boss", "job_id": "j",
            "deadline_at": null,
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
        let shown = lines(&json!({
            "id": "r", "state": "open", "kind": "output", "reviewer": "boss", "job_id": "j", "members": ["boss"],
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
