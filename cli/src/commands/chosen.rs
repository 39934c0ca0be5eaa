//! Which things a command is about: those named, or those of a list that match, and a look before the leap.

use super::{Session, several};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, text};
use clap::Args;
use serde_json::Value;
use std::future::Future;
use std::process::ExitCode;
use wildmatch::WildMatch;

/// Names, or a pattern over the names that there are.
#[derive(Clone, Debug, Args)]
pub struct Chosen {
    /// Which; `-` reads them from standard input, one per line
    #[arg(value_name = "NAME", required_unless_present = "matching", conflicts_with = "matching")]
    pub names: Vec<String>,
    /// All whose name matches; `*` stands for anything, `?` for one character
    #[arg(long, value_name = "PATTERN")]
    pub matching: Option<String>,
    /// Only say which they are
    #[arg(long)]
    pub dry_run: bool,
}

/// Where the names are, when a pattern is given.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The path of the list.
    pub path: &'static [&'static str],
    /// The member that holds the list.
    pub list: &'static str,
    /// The member of an element that is its name.
    pub name: &'static str,
}

/// What is done to each.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    /// `pause`: what would be done.
    pub verb: &'static str,
    /// `paused`: what was done.
    pub done: &'static str,
    /// The member of the answer that holds the thing.
    pub inside: &'static str,
}

impl Chosen {
    async fn names(self, client: &Client, listed: Listed) -> anyhow::Result<Vec<String>> {
        let Some(pattern) = self.matching else { return several::ids(self.names) };
        let pattern = WildMatch::new(&pattern);
        let (all, _) = client.pages(listed.path, &[], listed.list, usize::MAX).await?;
        let names = all.iter().filter_map(|item| item[listed.name].as_str());
        Ok(names.filter(|name| pattern.matches(name)).map(str::to_owned).collect())
    }

    /// Does something to each of them. One that fails does not keep the others from it.
    ///
    /// # Errors
    /// The names cannot be read, the server cannot be asked, or something failed.
    pub async fn each<'a, F, D>(
        self,
        session: &'a Session,
        listed: Listed,
        deed: Deed,
        act: F,
    ) -> anyhow::Result<ExitCode>
    where
        F: Fn(Client, String) -> D,
        D: Future<Output = Result<Value, Failure>> + 'a,
    {
        let (client, output, dry_run) = (session.client()?, session.output, self.dry_run);
        let mut outcome = several::Outcome::new(output);
        for name in self.names(&client, listed).await? {
            let shown = text::line(&name);
            if dry_run {
                match output.format {
                    Format::Table => output.line(&format!("would {} {shown}", deed.verb))?,
                    Format::Json => output.ndjson(&serde_json::json!({ listed.name: name }))?,
                    Format::Ids => output.line(&shown)?,
                }
                continue;
            }
            match act(client.clone(), name.clone()).await {
                Ok(answer) => match output.format {
                    Format::Table => output.line(&format!("{shown} {}", deed.done))?,
                    Format::Json => output.ndjson(&crate::client::unwrapped(answer, deed.inside))?,
                    Format::Ids => output.line(&shown)?,
                },
                Err(failure) => outcome.failed(&name, failure)?,
            }
        }
        outcome.finish(&format!("could not be {}", deed.done))
    }
}
