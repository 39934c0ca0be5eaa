//! CEL inside of a document, compiled so that a mistake is found when it is registered (OAS-33, OAS-48).

use crate::problem::Problems;
use crate::tree::Node;
use turnstone_domain::policy::{Expression, PolicyError};

/// Compiles an expression over the Engagement object and gives back its source.
pub(crate) fn over_engagement(
    node: &Node,
    names: &[&str],
    what: &str,
    rule: &'static str,
    problems: &mut Problems,
) -> Option<String> {
    let source = node.text()?;
    match Expression::compile(source, names) {
        Ok(_) => Some(source.to_owned()),
        Err(e) => {
            // `recent.create-ticket.outputs` is a subtraction unless `create-ticket` is declared.
            let hint = match &e {
                PolicyError::UnknownVariable(_)
                    if source.contains("recent.") || source.contains("history.") =>
                {
                    "; if it is part of a capability's name, declare that capability in this document"
                }
                _ => "",
            };
            problems.error(node.at, rule, format!("`{what}`: {e}{hint}"));
            None
        }
    }
}

/// Compiles an expression over the output of a guardrail's tool and gives back its source (OAS-40).
pub(crate) fn over_output(
    node: &Node,
    what: &str,
    rule: &'static str,
    problems: &mut Problems,
) -> Option<String> {
    let source = node.text()?;
    match Expression::compile_over_output(source) {
        Ok(_) => Some(source.to_owned()),
        Err(e) => {
            problems.error(node.at, rule, format!("`{what}`: {e}"));
            None
        }
    }
}
