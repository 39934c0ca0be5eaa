//! The first pass over a document: which ids it defines, and which it refers to.

use super::class::{Class, Kind};
use super::registry::Registry;
use crate::problem::{Place, Problems};
use crate::tree::{Content, Node};
use std::collections::HashMap;

pub(super) const REFERENCED: &str = "$referenced_components";
pub(super) const REFERENCE: &str = "$component_ref";

/// The ids of a document.
#[derive(Default)]
pub(super) struct Survey<'a> {
    /// The definitions of `$referenced_components` of any level.
    pub(super) definitions: HashMap<&'a str, &'a Node>,
    /// The ids of all components, wherever they are defined.
    ids: HashMap<&'a str, Place>,
    /// Every reference, and whether it may stay open: a secret is looked up when it is used.
    used: Vec<(&'a str, Place, bool)>,
}

impl<'a> Survey<'a> {
    /// Surveys a document, and reports ids that are defined twice (AS-12, AS-13) or nowhere (AS-11).
    pub(super) fn of(root: &'a Node, registry: &'a Registry, problems: &mut Problems) -> Self {
        let mut survey = Self::default();
        survey.walk(root, false, problems);
        let own = (survey.ids.clone(), survey.used.len());
        for part in registry.nodes() {
            survey.walk(part, false, &mut Problems::default());
        }
        // Components of the registry that this document does not use are not checked.
        survey.ids = own.0;
        survey.used.truncate(own.1);
        let known: Vec<&str> = survey.definitions.keys().copied().collect();
        let mut missing = 0_usize;
        for (id, at, may_be_open) in &survey.used {
            if !(*may_be_open || survey.definitions.contains_key(id) || registry.get(id).is_some()) {
                missing += 1;
                // A suggestion costs a look at every id.
                let hint = if known.len() <= 1000 && missing <= 20 {
                    crate::suggest::hint(id, known.iter().copied())
                } else {
                    String::new()
                };
                let message = format!(
                    "no component has the id `{}`: neither `$referenced_components` of this document nor a registry defines it{hint}",
                    crate::shape::shortened(id)
                );
                problems.error(*at, "AS-11", message);
            }
        }
        survey
    }

    /// Returns whether a component of this id is defined anywhere.
    pub(super) fn has_id(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    fn walk(&mut self, node: &'a Node, is_secret: bool, problems: &mut Problems) {
        for item in node.items() {
            self.walk(item, is_secret, problems);
        }
        if node.entries().is_empty() {
            return;
        }
        if let Some(reference) = node.get(REFERENCE) {
            match reference.text() {
                Some(id) => self.used.push((id, node.at, is_secret)),
                None => {
                    problems.error(reference.at, "AS-11", "`$component_ref` must be the id of a component")
                }
            }
        }
        let class = node.get("component_type").and_then(Node::text);
        if let Some((class, id)) = class.zip(node.get("id")) {
            self.identify(class, id, problems);
        }
        let class = class.and_then(Class::of);
        for entry in node.entries() {
            match entry.key.as_str() {
                // Free text of the author's tools.
                "metadata" => {}
                REFERENCED => self.define(&entry.value, problems),
                key => {
                    let of_secret = |class: &'static Class| {
                        class.fields().any(|field| field.name == key && matches!(field.kind, Kind::Secret(_)))
                    };
                    self.walk(&entry.value, class.is_some_and(of_secret), problems);
                }
            }
        }
    }

    /// Two components of one id are an error even when they are equal: what is used twice is written as a reference.
    fn identify(&mut self, class: &str, id: &'a Node, problems: &mut Problems) {
        let Some(text) = id.text() else { return };
        if let Some(first) = self.ids.get(text) {
            let message = format!(
                "the id `{}` of this {class} is taken by the component of line {}; write `{{\"$component_ref\": …}}` \
                 for the same component, or another id",
                crate::shape::shortened(text),
                first.line
            );
            problems.error(id.at, "AS-12", message);
        } else {
            self.ids.insert(text, id.at);
        }
    }

    fn define(&mut self, held: &'a Node, problems: &mut Problems) {
        if !matches!(held.content, Content::Map(_)) {
            let message = "`$referenced_components` must be a map of ids to components";
            problems.error(held.at, "AS-06", message);
        }
        for entry in held.entries() {
            if let Some(first) = self.definitions.get(entry.key.as_str()) {
                let message = format!(
                    "`{}` is in `$referenced_components` of line {} too; an id is defined at one level",
                    crate::shape::shortened(&entry.key),
                    first.at.line
                );
                problems.error(entry.at, "AS-13", message);
            } else {
                self.definitions.insert(&entry.key, &entry.value);
            }
            self.walk(&entry.value, false, problems);
        }
    }
}
