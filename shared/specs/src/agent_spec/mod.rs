//! Agent Spec documents, 25.4.1 to 26.3.1: agents, flows, and everything that they are made of.
//!
//! A document is one component. [`read`] resolves its references, infers what it leaves out, checks it as a whole and
//! returns it as a [`Specification`]. [`agent()`] takes those that can be run. Nothing here runs one.

mod cast;
mod class;
mod component;
mod export;
pub mod model;
mod program;
mod property;
mod reader;
mod registry;
mod rules;
mod runnable;
mod secret;
mod survey;
mod types;
mod version;

pub use cast::misfit;
pub use export::export;
pub use program::{AdmittedProgram, AllowedCommand, AllowedCommands, ProgramRefusal};
pub use property::{Property, placeholders};
pub use registry::Registry;
pub use runnable::{Flows, HAND_OVER, MAX_NODE_RUNS, SEND, SUBMIT, agent, shown};
pub use secret::Secret;
pub use types::{ObjectType, Type};
pub use version::Version;

use crate::Reach;
use crate::problem::{Problem, Problems};
use crate::tree::{self, Node};
use class::Family;
use component::Component;
use std::fmt;
use std::sync::Arc;
use turnstone_domain::schema::Allowance;

/// A document that was read: a component, and everything that it holds.
#[derive(Clone)]
pub struct Specification {
    version: Version,
    root: Arc<Component>,
    component: model::Component,
}

impl Specification {
    /// Returns the version that the document is written for.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the component that the document is.
    #[must_use]
    pub const fn component(&self) -> &model::Component {
        &self.component
    }
}

impl fmt::Debug for Specification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Specification({} {}, {})", self.root.class.name, self.root.id, self.version.as_str())
    }
}

/// Reads one document to run it. The registry holds what the document refers to and does not define.
///
/// # Errors
/// Every problem found, in document order, when at least one of them is an error. These are the problems of
/// [`lint`], and those of a run alone, such as an input without a value. A specification is returned with its
/// warnings.
pub fn read(source: &str, registry: &Registry) -> Result<(Specification, Vec<Problem>), Vec<Problem>> {
    let mut problems = Problems::for_running();
    let read = parse(source, &mut problems).and_then(|root| {
        if registry::is_disaggregated(&root) {
            let message = "the document holds parts of others and is no component itself; read it together with the \
                           document that refers to them";
            problems.error(root.at, "AS-16", message);
            return None;
        }
        whole(&root, registry, &mut problems)
    });
    finish(read, problems)
}

/// Checks a document: a component, or the parts of a disaggregated one. With `reach`, it also checks that a component
/// uses no other programs and private addresses (AS-60).
///
/// # Errors
/// Every problem found, in document order, when at least one of them is an error; otherwise the warnings are returned.
pub fn lint(source: &str, registry: &Registry, reach: Option<&Reach>) -> Result<Vec<Problem>, Vec<Problem>> {
    let mut problems = Problems::default();
    let Some(root) = parse(source, &mut problems) else { return Err(problems.in_order()) };
    if registry::is_disaggregated(&root) {
        parts(&root, &mut problems);
        return finish(Some(()), problems).map(|(_, warnings)| warnings);
    }
    let read = whole(&root, registry, &mut problems);
    if let (Some(read), Some(reach)) = (&read, reach) {
        runnable::check_reached(&read.root, reach, &mut problems);
    }
    finish(read, problems).map(|(_, warnings)| warnings)
}

/// Returns whether a document is one of Agent Spec, or the parts of one.
#[must_use]
pub fn is_agent_spec(source: &str) -> bool {
    looks_like_one(source) && parse(source, &mut Problems::default()).is_some_and(|root| is_one(&root))
}

/// Returns whether a document holds the parts of others and is no component itself.
#[must_use]
pub fn is_disaggregated(source: &str) -> bool {
    looks_like_one(source)
        && parse(source, &mut Problems::default()).is_some_and(|root| registry::is_disaggregated(&root))
}

/// The keys of which a document of Agent Spec has one.
const KEYS: [&str; 5] =
    ["component_type", "agentspec_version", "air_version", survey::REFERENCED, survey::REFERENCE];

/// A first look at the text, which decides how much of it is read.
pub(crate) fn looks_like_one(source: &str) -> bool {
    KEYS.iter().any(|key| source.contains(key))
}

/// A document of the other formats has `kind` or `apiVersion`.
pub(crate) fn is_one(root: &Node) -> bool {
    root.get("kind").is_none()
        && root.get("apiVersion").is_none()
        && KEYS.iter().any(|key| root.get(key).is_some())
}

fn parse(source: &str, problems: &mut Problems) -> Option<Node> {
    let root = tree::parse_within(source, &tree::LARGE, problems)?;
    if let Err(why) = Allowance::default().take(&root.to_json()) {
        problems.error(root.at, "patterns", why);
        return None;
    }
    Some(root)
}

fn whole(root: &Node, registry: &Registry, problems: &mut Problems) -> Option<Specification> {
    let version = version::read(root, problems);
    let mut reader = reader::Reader::new(root, registry, problems);
    let component = reader.component(root, Family::Any, "the document")?;
    reader.check_version(version);
    if problems.any_error() {
        return None;
    }
    let Some(built) = model::Builder::default().root(&component) else {
        problems.error(root.at, "AS-05", "the document lacks a part that is required");
        return None;
    };
    Some(Specification { version, root: component, component: built })
}

/// Checks the parts of a disaggregated document one by one.
fn parts(root: &Node, problems: &mut Problems) {
    registry::check_form(root, problems);
    let registry = Registry::default();
    let mut reader = reader::Reader::new(root, &registry, problems);
    for entry in root.get(survey::REFERENCED).map(Node::entries).unwrap_or_default() {
        // A part may be a plain value as well, which has not both an id and a name.
        let is_component = entry.value.get("id").is_some() && entry.value.get("name").is_some();
        if is_component || entry.value.get("component_type").is_some() {
            let what = format!("the part `{}`", crate::shape::shortened(&entry.key));
            reader.component(&entry.value, Family::Any, &what);
        }
    }
}

fn finish<T>(read: Option<T>, problems: Problems) -> Result<(T, Vec<Problem>), Vec<Problem>> {
    let failed = problems.any_error();
    match read {
        Some(read) if !failed => Ok((read, problems.in_order())),
        _ => Err(problems.in_order()),
    }
}
