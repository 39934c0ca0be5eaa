//! The targets of a command: named ones, or those of a list that match a pattern, with a dry run.

use super::{Session, several};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, text};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::future::Future;
use std::process::ExitCode;
use wildmatch::WildMatch;

/// Names, or a pattern over existing names.
#[derive(Clone, Debug, Args)]
pub struct Chosen {
    /// The names; `-` reads them from standard input, one per line
    #[arg(value_name = "NAME", required_unless_present = "matching", conflicts_with = "matching")]
    pub names: Vec<String>,
    /// Every name that matches; `*` matches anything, `?` one character
    #[arg(long, value_name = "PATTERN")]
    pub matching: Option<String>,
    /// Only print their names
    #[arg(long)]
    pub dry_run: bool,
}

/// The list of names that a pattern is matched with.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// The path of the list.
    pub path: &'static [&'static str],
    /// The member that holds the list.
    pub list: &'static str,
    /// The member of an element that is its name.
    pub name: &'static str,
    /// The way in which it is read.
    pub read: Reading,
}

/// The ways in which the elements of a list are read.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// All at once.
    Whole,
    /// In slices.
    Slices,
    /// In numbered pages.
    Pages,
}

impl Listed {
    /// Reads the whole list.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn all<T: DeserializeOwned>(self, client: &Client) -> Result<Vec<T>, Failure> {
        match self.read {
            Reading::Whole => client.member(self.path, &[], self.list).await,
            Reading::Slices => Ok(client.slices(self.path, &[], self.list, usize::MAX).await?.0),
            Reading::Pages => Ok(client.list(self.path, &[], usize::MAX).await?.0),
        }
    }
}

/// The action on each.
#[derive(Clone, Copy, Debug)]
pub struct Deed {
    /// `pause`: the action.
    pub verb: &'static str,
    /// `paused`: the outcome.
    pub done: &'static str,
}

impl Chosen {
    async fn names(self, client: &Client, listed: Listed) -> anyhow::Result<Vec<String>> {
        let Some(pattern) = self.matching else { return several::ids(self.names) };
        let pattern = WildMatch::new(&pattern);
        let all: Vec<Map<String, Value>> = listed.all(client).await?;
        let names = all.iter().filter_map(|item| item.get(listed.name)?.as_str());
        Ok(names.filter(|name| pattern.matches(name)).map(str::to_owned).collect())
    }

    /// Applies an action to each of them. A failure does not keep the others from it.
    ///
    /// # Errors
    /// The names cannot be read, the request fails, or an action failed.
    pub async fn each<'a, F, D, T: Serialize>(
        self,
        session: &'a Session,
        listed: Listed,
        deed: Deed,
        act: F,
    ) -> anyhow::Result<ExitCode>
    where
        F: Fn(Client, String) -> D,
        D: Future<Output = Result<T, Failure>> + 'a,
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
                    Format::Json => output.ndjson(&answer)?,
                    Format::Ids => output.line(&shown)?,
                },
                Err(failure) => outcome.failed(&name, failure)?,
            }
        }
        outcome.finish(&format!("could not be {}", deed.done))
    }
}
