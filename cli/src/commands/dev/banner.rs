//! The banner of a starting `dev`. The first line is for programs too: `turnstone listens on URL`.

use crate::output::{Format, Output, text};
use serde::Serialize;
use std::io;
use std::path::PathBuf;

/// Columns of the labels.
const LABEL: usize = 10;

/// The banner of a starting `dev`.
#[derive(Clone, Debug, Serialize)]
pub struct Banner {
    /// Its address for clients on this machine.
    pub url: String,
    /// The data directory.
    pub data: PathBuf,
    /// True if clients must present a key.
    pub needs_key: bool,
    /// The worker's name.
    pub worker_id: String,
    /// The most turns in flight at once.
    pub slots: u32,
    /// The queues by name; `None` is every queue.
    pub queues: Option<Vec<String>>,
    /// The configured providers.
    pub providers: Vec<String>,
    /// True if a script answers for every other provider.
    pub scripted: bool,
    /// The registered agents.
    pub agents: Vec<String>,
    /// The tools.
    pub tools: Vec<String>,
    /// Where the example tools answer.
    pub example_tools: Option<String>,
    /// The number of jobs of an earlier process that continue.
    pub unfinished: u64,
}

impl Banner {
    /// Prints it: for people a few lines, with `-o json` one object on one line.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&self, output: &Output) -> io::Result<()> {
        if output.format == Format::Json {
            return output.ndjson(self);
        }
        output.line(&format!("turnstone listens on {}", self.url))?;
        if output.quiet || output.format == Format::Ids {
            return Ok(());
        }
        let mut lines = String::new();
        for (label, value) in self.lines() {
            let label = format!("{label:<LABEL$}");
            let label = if output.color { format!("\u{1b}[2m{label}\u{1b}[0m") } else { label };
            lines.push_str(&format!("\n  {label} {}", text::line(&value)));
        }
        output.colored(&(lines + "\n"))
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let access = if self.needs_key {
            "clients must show an API key; a configured one is admin of the whole fleet and acts for everyone"
        } else {
            "no API key is needed: every user of this machine is admin of the whole fleet and acts for everyone; other machines cannot reach it"
        };
        let queues = self.queues.as_ref().map_or("every queue".to_owned(), |queues| queues.join(", "));
        let mut lines = vec![
            ("data", self.data.display().to_string()),
            ("access", access.to_owned()),
            ("worker", format!("{} with {} slots for {queues}", self.worker_id, self.slots)),
            ("models", self.models()),
            ("tools", self.tools.join(", ")),
        ];
        if let Some(url) = &self.example_tools {
            lines.push(("", format!("the example tools answer at {url}; what they were asked: {url}/log")));
        }
        if !self.agents.is_empty() {
            lines.push(("agents", self.agents.join(", ")));
        }
        if self.unfinished > 0 {
            let (jobs, resume) = if self.unfinished == 1 { ("job", "resumes") } else { ("jobs", "resume") };
            let count = self.unfinished;
            lines.push((
                "unfinished",
                format!("{count} {jobs} of an earlier run {resume} from the last checkpoint"),
            ));
        }
        if cfg!(debug_assertions) {
            let build = "debug, which compiles quickly and runs slowly; `cargo install --path cli` builds the release";
            lines.push(("build", build.to_owned()));
        }
        let pid = std::process::id();
        lines.push((
            "stop",
            format!("Ctrl-C; or kill -9 {pid} at any moment: the next start resumes every job"),
        ));
        lines
    }

    fn models(&self) -> String {
        const SCRIPT: &str =
            "a script and no model: its answers are written down in examples/scripts/demo.yaml";
        let configured = self.providers.join(", ");
        match (self.providers.is_empty(), self.scripted) {
            (true, true) => SCRIPT.to_owned(),
            (false, true) => format!("{configured}; for every other provider {SCRIPT}"),
            (false, false) => configured,
            (true, false) => {
                "none, so agent jobs will fail: add [providers.openai] to turnstone.toml, or try --demo"
                    .to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner() -> Banner {
        Banner {
            url: "http://127.0.0.1:1".into(),
            data: "/d".into(),
            needs_key: false,
            worker_id: "dev-1-a".into(),
            slots: 64,
            queues: None,
            providers: Vec::new(),
            scripted: true,
            agents: Vec::new(),
            tools: vec!["clock".into()],
            example_tools: None,
            unfinished: 0,
        }
    }

    #[test]
    fn a_script_is_never_taken_for_a_model() {
        let mut banner = banner();
        assert!(banner.models().starts_with("a script and no model"));
        banner.providers = vec!["openai".into()];
        assert!(banner.models().starts_with("openai; for every other provider a script and no model"));
        banner.scripted = false;
        assert_eq!(banner.models(), "openai");
        banner.providers.clear();
        assert!(banner.models().contains("agent jobs will fail"));
    }

    #[test]
    fn jobs_of_an_earlier_run_are_reported() {
        let reported = |unfinished| {
            let lines = Banner { unfinished, ..banner() }.lines();
            lines.into_iter().find(|(label, _)| *label == "unfinished").map(|(_, words)| words)
        };
        assert_eq!(reported(0), None);
        assert!(reported(1).unwrap().starts_with("1 job of an earlier run resumes"));
        assert!(reported(7).unwrap().starts_with("7 jobs of an earlier run resume"));
    }
}
