//! The programs that documents may start as MCP servers: `[tool_policy.allowed_commands.<name>]`.

use super::model::StdioProgram;
use crate::shape::shortened;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// The programs that documents may start, by the names that documents write as `command`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct AllowedCommands(BTreeMap<String, AllowedCommand>);

/// A program that a document may start, and the values that the document may choose.
///
/// ```toml
/// [tool_policy.allowed_commands.github-mcp-server]
/// program = "/usr/local/bin/github-mcp-server"
/// args_any_of = [["stdio"], ["stdio", "--read-only"]]
/// env = ["GITHUB_TOOLSETS"]
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedCommand {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The arguments that the program always gets. A document writes none, or the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The lists of arguments of which a document writes one, instead of `args`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args_any_of: Vec<Vec<String>>,
    /// The environment variables that a document may set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The folder in which the program starts. A document writes none, or the same. Default: the worker's own folder, and
    /// a document writes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

/// A program as it is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmittedProgram {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables that the document sets.
    pub env: BTreeMap<String, String>,
    /// Its folder; the one of the worker without it.
    pub cwd: Option<PathBuf>,
}

/// A field of a document that asks for more than the configuration allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRefusal {
    /// `command`, `args`, `env` or `cwd`.
    pub field: &'static str,
    /// The part of a sentence after the name of the transport: what is refused, and the section that decides it.
    pub why: String,
}

impl AllowedCommands {
    /// Returns the program that a document starts.
    ///
    /// # Errors
    /// Everything that the document asks for and the configuration does not allow.
    pub fn admit(&self, asked: &StdioProgram) -> Result<AdmittedProgram, Vec<ProgramRefusal>> {
        let name = shortened(&asked.command);
        let Some(allowed) = self.0.get(&asked.command) else {
            let why = format!(
                "starts the program `{name}`, which is not among `allowed_commands` of [tool_policy]; a document writes the \
                 name of a section [tool_policy.allowed_commands.NAME]"
            );
            return Err(vec![ProgramRefusal { field: "command", why }]);
        };
        let section = format!("[tool_policy.allowed_commands.{name}]");
        let mut refused = Vec::new();
        let mut refuse = |field, why| refused.push(ProgramRefusal { field, why });
        if !allowed.admits_args(&asked.args) {
            refuse("args", format!("has arguments that `args` and `args_any_of` of {section} do not list"));
        }
        for (variable, value) in &asked.env {
            let shown = shortened(variable);
            if !allowed.env.contains(variable) {
                refuse("env", format!("sets the variable `{shown}`, which is not in `env` of {section}"));
            } else if value.contains("{{") {
                let why = format!(
                    "has a placeholder in the variable `{shown}`, which is not replaced; write the value"
                );
                refuse("env", why);
            } else if value.contains('\0') {
                refuse("env", format!("has a zero byte in the variable `{shown}`; remove it"));
            }
        }
        if let Some(folder) = &asked.cwd
            && allowed.cwd.as_deref().is_none_or(|allowed| allowed.as_os_str() != folder.as_str())
        {
            let why = format!("names the folder `{}`, which is not `cwd` of {section}", shortened(folder));
            refuse("cwd", why);
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        Ok(AdmittedProgram {
            program: allowed.program.clone(),
            args: if asked.args.is_empty() { allowed.args.clone() } else { asked.args.clone() },
            env: asked.env.clone(),
            cwd: allowed.cwd.clone(),
        })
    }

    /// Checks the rules that the types do not express. Files are not searched.
    ///
    /// # Errors
    /// A sentence that names the section and the key.
    pub fn check(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|(name, allowed)| {
            let wrong = |why: String| Err(format!("[tool_policy.allowed_commands.{name}] {why}"));
            if name.is_empty() || name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
                return wrong(
                    "is no name of a program: a name has no `/` and no blank; `program` has the path"
                        .to_owned(),
                );
            }
            for (key, path) in [("program", Some(&allowed.program)), ("cwd", allowed.cwd.as_ref())] {
                if let Some(path) = path.filter(|path| !is_plain(path)) {
                    return wrong(format!(
                        "{key}: write an absolute path without `..` (got {})",
                        path.display()
                    ));
                }
            }
            if !allowed.args.is_empty() && !allowed.args_any_of.is_empty() {
                return wrong("has both `args` and `args_any_of`; keep one".to_owned());
            }
            let variables = &allowed.env;
            if let Some(bad) = variables.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
                return wrong(format!("env: `{bad}` is not the name of a variable"));
            }
            Ok(())
        })
    }

    /// Returns true if documents may start no program.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names and the programs, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AllowedCommand)> {
        self.0.iter().map(|(name, allowed)| (name.as_str(), allowed))
    }
}

impl AllowedCommand {
    fn admits_args(&self, asked: &[String]) -> bool {
        match self.args_any_of.is_empty() {
            true => asked.is_empty() || asked == self.args,
            false => self.args_any_of.iter().any(|listed| listed == asked),
        }
    }
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| matches!(part, Component::ParentDir))
}

impl<'de> Deserialize<'de> for AllowedCommands {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Sections)
    }
}

/// Reads the sections by name, and explains them to configurations with a list of names.
struct Sections;

impl<'de> Visitor<'de> for Sections {
    type Value = AllowedCommands;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section [tool_policy.allowed_commands.NAME] for each program")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AllowedCommands, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(AllowedCommands)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AllowedCommands, A::Error> {
        let name = list.next_element::<String>().ok().flatten();
        while let Ok(Some(_)) = list.next_element::<IgnoredAny>() {}
        Err(A::Error::custom(format!(
            "a list of names allows no program; write for each one a section \
             [tool_policy.allowed_commands.{}] with `program = \"/absolute/path\"`, and with the `args`, `env` and `cwd` \
             that documents may write",
            name.as_deref().unwrap_or("NAME")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<AllowedCommands, String> {
        let allowed: AllowedCommands = serde_json::from_str(json).map_err(|error| error.to_string())?;
        allowed.check().map(|()| allowed)
    }

    fn asked(command: &str, args: &[&str]) -> StdioProgram {
        StdioProgram {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    #[test]
    fn sections_that_cannot_work_are_named() {
        for (json, word) in [
            (r#"["sh"]"#, "[tool_policy.allowed_commands.sh]"),
            ("[]", "[tool_policy.allowed_commands.NAME]"),
            (r#"{"sh": "/bin/sh"}"#, "AllowedCommand"),
            (r#"{"sh": {}}"#, "program"),
            (r#"{"sh": {"program": "sh"}}"#, "absolute path"),
            (r#"{"sh": {"program": "/usr/../bin/sh"}}"#, "absolute path"),
            (r#"{"/bin/sh": {"program": "/bin/sh"}}"#, "is no name of a program"),
            (r#"{"sh": {"program": "/bin/sh", "cwd": "here"}}"#, "cwd:"),
            (r#"{"sh": {"program": "/bin/sh", "env": ["A=B"]}}"#, "env:"),
            (r#"{"sh": {"program": "/bin/sh", "args": ["a"], "args_any_of": [["a"]]}}"#, "keep one"),
            (r#"{"sh": {"program": "/bin/sh", "arg": []}}"#, "unknown field"),
        ] {
            let problem = read(json).unwrap_err();
            assert!(problem.contains(word), "{json}: {problem}");
        }
    }

    #[test]
    fn a_document_adds_nothing_to_its_program() {
        let allowed = read(
            r#"{"fixed": {"program": "/bin/a", "args": ["x", "y"], "cwd": "/srv"},
                "chosen": {"program": "/bin/b", "args_any_of": [["x"], ["y", "z"]], "env": ["MODE"]},
                "bare": {"program": "/bin/c"}}"#,
        )
        .unwrap();
        let args = |command: &str, args: &[&str]| {
            allowed.admit(&asked(command, args)).map(|admitted| admitted.args.join(" ")).ok()
        };
        assert_eq!(args("fixed", &[]).as_deref(), Some("x y"));
        assert_eq!(args("fixed", &["x", "y"]).as_deref(), Some("x y"));
        assert_eq!(args("chosen", &["y", "z"]).as_deref(), Some("y z"));
        assert_eq!(args("bare", &[]).as_deref(), Some(""));
        for (command, given) in [
            ("fixed", &["x"][..]),
            ("fixed", &["x", "y", "z"]),
            ("chosen", &[]),
            ("chosen", &["x", "y", "z"]),
            ("bare", &["x"]),
            ("bare", &[""]),
            ("/bin/c", &[]),
            ("Bare", &[]),
        ] {
            assert_eq!(args(command, given), None, "{command} {given:?}");
        }
        let fields = |asked: &StdioProgram| match allowed.admit(asked) {
            Ok(_) => Vec::new(),
            Err(refused) => refused.into_iter().map(|refusal| refusal.field).collect(),
        };
        let with = |command: &str, env: &[(&str, &str)], cwd: Option<&str>| StdioProgram {
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cwd: cwd.map(str::to_owned),
            ..asked(command, if command == "chosen" { &["x"] } else { &[] })
        };
        assert_eq!(fields(&with("chosen", &[("MODE", "fast")], None)), [""; 0]);
        assert_eq!(fields(&with("chosen", &[("MODE", "{{mode}}")], None)), ["env"]);
        assert_eq!(
            fields(&with("chosen", &[("mode", "x"), ("PATH", "/tmp")], Some("/"))),
            ["env", "env", "cwd"]
        );
        assert_eq!(fields(&with("fixed", &[], Some("/srv"))), [""; 0]);
        assert_eq!(fields(&with("fixed", &[], Some("/srv/x"))), ["cwd"]);
        assert_eq!(fields(&with("fixed", &[], Some("/srv/."))), ["cwd"]);
    }
}
