//! CEL in a document: compiles it, so that a mistake is found at registration (OAS-33, OAS-48), and warns
//! about expressions that can never hold.

use crate::problem::Problems;
use crate::tree::Node;
use turnstone_domain::policy::lint::{About, ExpressionPlace, Surroundings};
use turnstone_domain::policy::{Expression, PolicyError};

/// The capabilities of a document, by the names that its expressions use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capabilities {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// Those whose results are not collected.
    pub(crate) dropped: Vec<String>,
}

/// Compiles an expression over the Engagement object and returns its source.
pub(crate) fn over_engagement(
    node: &Node,
    (own, place): (&Capabilities, ExpressionPlace),
    what: &str,
    rule: &'static str,
    problems: &mut Problems,
) -> Option<String> {
    let source = filled(node)?;
    let names: Vec<&str> = own.names.iter().map(String::as_str).collect();
    match Expression::compile(source, &names) {
        Ok(expression) => {
            doubt(node, &expression, own, place, what, problems);
            Some(source.to_owned())
        }
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

/// Compiles an expression over the output of a guardrail's tool and returns its source (OAS-40).
pub(crate) fn over_output(
    node: &Node,
    what: &str,
    rule: &'static str,
    problems: &mut Problems,
) -> Option<String> {
    let source = filled(node)?;
    match Expression::compile_over_output(source) {
        Ok(expression) => {
            doubt(node, &expression, &Capabilities::default(), ExpressionPlace::Guardrail, what, problems);
            Some(source.to_owned())
        }
        Err(e) => {
            problems.error(node.at, rule, format!("`{what}`: {e}"));
            None
        }
    }
}

/// Returns the text of an expression. An empty one was refused by its shape, and is not reported as a faulty
/// expression.
fn filled(node: &Node) -> Option<&str> {
    node.text().filter(|source| !source.trim().is_empty())
}

/// Warns about an expression that can never hold.
fn doubt(
    node: &Node,
    expression: &Expression,
    own: &Capabilities,
    place: ExpressionPlace,
    what: &str,
    problems: &mut Problems,
) {
    let around = Surroundings { names: own.names.clone(), dropped: own.dropped.clone(), place };
    for doubt in expression.doubts(around) {
        let rule = match doubt.about {
            About::Name => "OAS-33_name",
            About::Member => "OAS-33_member",
            About::Own => "OAS-33_own",
            About::Dropped => "OAS-24_dropped",
            About::Type => "OAS-33_type",
            About::Never => "OAS-33_never",
            About::Pattern => "OAS-33_pattern",
            About::Scope => "OAS-45",
        };
        problems.warning(node.at, rule, format!("`{what}`: {}", doubt.message));
    }
}
