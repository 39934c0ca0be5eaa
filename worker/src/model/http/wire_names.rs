//! Tool names in the form of providers, which allow 64 characters of `a-z A-Z 0-9 _ -`. Ours may be longer
//! and hold dots.

use std::collections::BTreeMap;

/// The longest name that providers accept.
const LONGEST: usize = 64;

/// Our names and the provider's, for one request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WireNames {
    by_own: BTreeMap<String, String>,
}

impl WireNames {
    /// Returns names for the offered tools: the tool's own if the provider accepts it, else the nearest free
    /// one.
    pub fn of<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut by_own: BTreeMap<String, String> = names
            .clone()
            .filter(|name| tamed(name) == *name)
            .map(|name| (name.to_owned(), name.to_owned()))
            .collect();
        for name in names.filter(|name| tamed(name) != *name) {
            let near = tamed(name);
            let taken = |wire: &String| by_own.values().any(|known| known == wire);
            let wire = std::iter::once(near.clone())
                .chain((2_usize..).map(|n| {
                    let suffix = format!("_{n}");
                    format!("{}{suffix}", &near[..near.len().min(LONGEST - suffix.len())])
                }))
                .find(|wire| !taken(wire))
                .unwrap_or(near);
            by_own.insert(name.to_owned(), wire);
        }
        Self { by_own }
    }

    /// Returns the provider's name for our tool. It works as well for a tool of the conversation that is no
    /// longer offered.
    pub fn wire(&self, own: &str) -> String {
        self.by_own.get(own).cloned().unwrap_or_else(|| tamed(own))
    }

    /// Returns our name for the provider's name `wire`. An unknown name is returned unchanged, so that the
    /// refusal can quote it.
    pub fn own(&self, wire: &str) -> String {
        self.by_own.iter().find(|(_, known)| *known == wire).map_or(wire, |(own, _)| own).to_owned()
    }
}

fn tamed(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().map(allowed).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_get_distinct_wire_names_and_come_back() {
        let long = "x".repeat(100);
        let longer = "x".repeat(101);
        let own = ["a.b", "a_b", "a/b", "plain-1", long.as_str(), longer.as_str()];
        let names = WireNames::of(own.into_iter());
        assert_eq!(names.wire("plain-1"), "plain-1");
        assert_eq!(names.wire("a_b"), "a_b");
        let mut wires: Vec<String> = own.iter().map(|name| names.wire(name)).collect();
        assert!(wires.iter().all(|wire| wire.len() <= 64 && tamed(wire) == *wire));
        assert!(own.iter().zip(&wires).all(|(own, wire)| names.own(wire) == *own));
        wires.sort();
        wires.dedup();
        assert_eq!(wires.len(), own.len());
        assert_eq!(
            (names.own("unknown"), names.wire("gone.now")),
            ("unknown".to_owned(), "gone_now".to_owned())
        );
    }
}
