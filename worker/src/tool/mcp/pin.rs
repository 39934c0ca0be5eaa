//! Pins: the tools of a pinned server stay as the operator accepted them.
//!
//! A tool's description is an instruction to the model. A server that changes it after acceptance could steer
//! the agent, so a change is never adopted automatically.

use super::catalogue::Catalogue;
use super::config::Pin;
use std::sync::Arc;

/// Compares a server's current offer with its pin; returns the permitted part, and true if all of it matches.
/// `accepted` is the last matching offer that this worker saw.
pub(super) fn hold(
    server: &str,
    pin: &Pin,
    accepted: Option<&Arc<Catalogue>>,
    mut offered: Catalogue,
) -> (Catalogue, bool) {
    let in_order = match pin {
        Pin::First(false) => true,
        Pin::First(true) => accepted.is_none_or(|accepted| accepted.digest() == offered.digest()),
        Pin::Digest(digest) => digest.eq_ignore_ascii_case(offered.digest()),
    };
    if in_order {
        return (offered, true);
    }
    let how = match pin {
        Pin::Digest(_) => format!(
            "look at them with `turnstone mcp check {server}` and accept them with pin = \"{}\" in [mcp.{server}]",
            offered.digest()
        ),
        Pin::First(_) => format!(
            "look at them with `turnstone mcp check {server}`; a restarted worker accepts what it finds then"
        ),
    };
    let names: Vec<String> = offered.tools().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        let why = match accepted {
            None => Some("the tools of its server are not those that it is pinned to".to_owned()),
            Some(accepted) => changed(accepted, &offered, &name),
        };
        if let Some(why) = why {
            offered.withhold(&name, format!("{why}; {how}"));
        }
    }
    (offered, false)
}

fn changed(accepted: &Catalogue, offered: &Catalogue, name: &str) -> Option<String> {
    let now = offered.get(name)?;
    let Some(before) = accepted.get(name) else {
        return Some("the tool is new on a pinned server".to_owned());
    };
    let description = before.description() != now.description();
    let schema = before.schema_digest() != now.schema_digest();
    let what = match (description, schema) {
        (false, false) => return None,
        (true, false) => "description",
        (false, true) => "input schema",
        (true, true) => "description and input schema",
    };
    Some(format!("its {what} changed although the server is pinned"))
}
