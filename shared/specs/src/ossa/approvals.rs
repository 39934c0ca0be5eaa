//! The approvals that a manifest demands: `approval_required` of a tool, `autonomy.approval_required`, and
//! the triggers of `safety.human_in_loop` (D16).
//!
//! All of them ask the same contact, `autonomy.escalation_policy` or an operator, so a call with several
//! reasons for approval is one question. A tool's review precedes its call, as `require_review` of
//! OpenAgentSpec does.

use super::tools::Tools;
use crate::problem::Problems;
use crate::tree::Node;
use turnstone_domain::agent::errors::{Contact, ErrorHandler, ErrorPolicy};
use turnstone_domain::agent::{Actions, Approvals, Capability, Restriction};
use turnstone_domain::error::{ErrorClass, Strategy};

/// The contact of a manifest that names none.
const OPERATOR: &str = "operator";

/// Returns true if the calls of a tool need an approval.
fn of_tool(tool: &Node) -> bool {
    tool.get("approval_required").and_then(Node::flag) == Some(true)
}

/// Puts a review before the calls that need an approval, and reads the triggers.
pub(super) fn read(
    root: &Node,
    tools: &mut Tools,
    errors: &mut ErrorPolicy,
    problems: &mut Problems,
) -> Approvals {
    let Some(spec) = root.get("spec") else { return Approvals::default() };
    let contact = contact(spec, errors);
    let every = spec.at_path(&["autonomy", "approval_required"]).and_then(Node::flag) == Some(true);
    let listed = spec.get("tools").map(Node::items).unwrap_or_default();
    let requested = |capability: &Capability| {
        let at = capability.origin.as_ref().and_then(|origin| usize::try_from(origin.tool_index).ok());
        every || at.and_then(|at| listed.get(at)).is_some_and(of_tool)
    };
    let own = tools.capabilities.iter_mut().chain(tools.toolsets.iter_mut().map(|set| &mut set.like));
    for capability in own.filter(|capability| requested(capability)) {
        capability.input_restriction = Restriction {
            require_review: Some(contact.target.clone()),
            answer_within_ms: contact.timeout_ms,
            ..Restriction::default()
        };
    }
    triggers(spec, &contact, errors, problems)
}

/// Returns the contact, with the time to answer.
fn contact(spec: &Node, errors: &ErrorPolicy) -> Contact {
    let named = errors.escalation.clone().unwrap_or_default();
    let seconds = spec.at_path(&["safety", "human_in_loop", "timeout_seconds"]).and_then(Node::number);
    let waited = seconds.filter(|seconds| *seconds > 0.0).map(super::limits::milliseconds);
    let target = if named.target.is_empty() { OPERATOR.to_owned() } else { named.target };
    Contact { target, timeout_ms: named.timeout_ms.or(waited), ..named }
}

/// Returns the calls that the manifest allows and blocks.
pub(super) fn actions(root: &Node, problems: &mut Problems) -> Actions {
    let listed = |key: &str| {
        let node = root.at_path(&["spec", "autonomy", key])?;
        Some((node, node.items().iter().filter_map(Node::text).map(str::to_owned).collect::<Vec<_>>()))
    };
    let allowed = listed("allowed_actions");
    if let Some((node, _)) = allowed.as_ref().filter(|(_, names)| names.is_empty()) {
        let message = "`spec.autonomy.allowed_actions` is empty: no tool and no agent may be called";
        problems.warning(node.at, "OSSA-autonomy", message);
    }
    let blocked = listed("blocked_actions").map(|(_, names)| names).unwrap_or_default();
    Actions { allowed: allowed.map(|(_, names)| names), blocked }
}

fn triggers(spec: &Node, contact: &Contact, errors: &mut ErrorPolicy, problems: &mut Problems) -> Approvals {
    let mut approvals = Approvals::default();
    let Some(human) = spec.at_path(&["safety", "human_in_loop"]) else { return approvals };
    let off = human.get("enabled").and_then(Node::flag) == Some(false);
    for trigger in human.get("triggers").map(Node::items).unwrap_or_default().iter().filter(|_| !off) {
        match trigger.text() {
            Some("high_risk_action") => approvals.high_risk = Some(contact.clone()),
            Some("policy_violation") => {
                // A handler of the document itself takes precedence.
                errors.handlers.push(ErrorHandler {
                    codes: vec![ErrorClass::PolicyViolation],
                    escalation_target: Some(contact.target.clone()),
                    ..ErrorHandler::of(Strategy::Escalate)
                });
                errors.escalation.get_or_insert_with(|| contact.clone());
            }
            Some(word @ ("low_confidence" | "user_request")) => {
                let message = format!(
                    "`spec.safety.human_in_loop.triggers`: `{word}` cannot be enforced, as no model reports it reliably; name the \
                     calls with `approval_required` instead"
                );
                problems.error(trigger.at, "OSSA-safety", message);
            }
            other => {
                let word = other.unwrap_or("something that is no word");
                let message = format!(
                    "`spec.safety.human_in_loop.triggers` has `{}`; known are high_risk_action, low_confidence, policy_violation, \
                     user_request",
                    crate::shape::shortened(word)
                );
                problems.error(trigger.at, "OSSA-safety", message);
            }
        }
    }
    approvals
}

#[cfg(test)]
mod tests {
    use crate::read;
    use turnstone_domain::AgentDefinition;
    use turnstone_domain::error::{ErrorClass, Strategy};

    fn agent(rest: &str) -> (AgentDefinition, Vec<Option<String>>) {
        let source = format!(
            "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: desk}}\nspec:\n  role: You find things.\n  \
             tools: [{{type: http, name: find, approval_required: true}}, {{type: http, name: look}}]\n  {rest}\n"
        );
        let (agent, _) = read(&source, None).unwrap_or_else(|problems| panic!("{rest}: {problems:?}"));
        let requested = agent.capabilities.iter().map(|own| own.input_restriction.require_review.clone());
        let requested = requested.collect();
        (agent, requested)
    }

    fn someone(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    /// D16: `approval_required` of a tool and of the agent put a review before calls.
    #[test]
    fn approvals_are_reviews() {
        assert_eq!(agent("reasoning: {strategy: react}").1, [someone("operator"), None]);
        let (desk, requested) = agent(
            "autonomy: {approval_required: true, escalation_policy: {target: ann, timeout_seconds: 5}}",
        );
        assert_eq!(requested, [someone("ann"), someone("ann")]);
        assert_eq!(desk.capabilities[0].input_restriction.answer_within_ms, Some(5000));
    }

    /// D16: triggers are read, unless they are off; a misspelt one is refused.
    #[test]
    fn triggers_are_read() {
        let both = "timeout_seconds: 7, triggers: [high_risk_action, policy_violation]";
        let (desk, requested) = agent(&format!("safety: {{human_in_loop: {{enabled: true, {both}}}}}"));
        assert_eq!(requested, [someone("operator"), None]);
        let violation = desk.errors.handler(ErrorClass::PolicyViolation).unwrap();
        assert_eq!(violation.strategy, Strategy::Escalate);
        let risky = desk.approvals.high_risk.unwrap();
        assert_eq!((risky.target.as_str(), risky.timeout_ms), ("operator", Some(7000)));
        let (off, _) = agent(&format!("safety: {{human_in_loop: {{enabled: false, {both}}}}}"));
        assert!(off.approvals.is_default() && off.errors.handlers.is_empty());
        let source = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk}\nspec:\n  role: You find.\n  \
                      safety: {human_in_loop: {triggers: [high_risk]}}\n";
        let problems = read(source, None).unwrap_err();
        assert_eq!((problems[0].rule, problems.len()), ("OSSA-safety", 1), "{problems:?}");
    }
}
