//! A system prompt in a file beside the manifest (OSSA `spec.prompts.system.template`).

use crate::problem::Problems;
use crate::tree::{self, Node};

/// Returns the manifest with the content of its template's file in place of the file's name; `None` when
/// `load` has no such file. Only a client with the manifest as a file has the files beside it, so a server
/// never calls this.
#[must_use]
pub fn with_template(source: &str, load: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let root = tree::parse(source, &mut Problems::default())?;
    let node = root.at_path(&["spec", "prompts", "system", "template"])?;
    let name = node.text().filter(|name| !name.is_empty() && !name.contains(char::is_control))?;
    let content = serde_json::to_string(&load(name)?).ok()?;
    let start = offset(source, node)?;
    let quoted = [format!("\"{name}\""), format!("'{name}'"), name.to_owned()];
    let written = quoted.iter().find(|written| source[start..].starts_with(written.as_str()))?;
    // A JSON string is a YAML string.
    Some(format!("{}{content}{}", &source[..start], &source[start + written.len()..]))
}

/// Returns the position of a value in the text, in bytes.
fn offset(source: &str, node: &Node) -> Option<usize> {
    let (line, column) = (usize::try_from(node.at.line).ok()?, usize::try_from(node.at.column).ok()?);
    let before: usize = source.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let within = source[before..].char_indices().nth(column.checked_sub(1)?)?.0;
    Some(before + within)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk}\nspec:\n  role: Ünique.\n  prompts:\n    system:\n";

    /// RS-16: a template is a file beside the manifest, if there is one.
    #[test]
    fn the_file_takes_the_place_of_its_name() {
        let load = |name: &str| (name == "prompts/desk.md").then(|| "Be \"kind\".\nAlways.".to_owned());
        for written in ["prompts/desk.md", "'prompts/desk.md'", "\"prompts/desk.md\""] {
            let source = format!("{HEAD}      template: {written} # the prompt\n      version: 1.0.0\n");
            let whole = with_template(&source, &load).unwrap();
            let (agent, warnings) = crate::read(&whole, None).unwrap();
            assert_eq!(agent.prompts.system.as_deref(), Some("Be \"kind\".\nAlways."));
            assert!(warnings.is_empty() && whole.contains("# the prompt"), "{warnings:?}");
        }
        let other = format!("{HEAD}      template: Be kind.\n");
        assert_eq!(with_template(&other, &load), None);
        assert_eq!(with_template("kind: [", &load), None);
    }
}
