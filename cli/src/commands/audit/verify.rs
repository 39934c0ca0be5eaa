//! `turnstone audit verify`: the chain is read from its beginning, and compared with its end.

use super::{VerifyArgs, part};
use crate::commands::Session;
use crate::output::Format;
use anyhow::Context as _;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::ExitCode;
use turnstone_domain::audit::{AuditEntry, AuditHead, BrokenChain};

/// The chain as far as it was read.
struct ChainWalk {
    head: AuditHead,
    /// The end that the chain must contain, while it was not met.
    wanted: Option<AuditHead>,
}

impl ChainWalk {
    fn step(&mut self, entry: &AuditEntry) -> Result<(), BrokenChain> {
        self.head = self.head.followed_by(entry)?;
        if let Some(wanted) = self.wanted.take_if(|wanted| wanted.seq == self.head.seq)
            && wanted != self.head
        {
            return broken(wanted.seq, "does not have the hash of --contains: the chain was written anew");
        }
        Ok(())
    }

    /// Checks the end of the chain, if it is known.
    fn end(self, head: Option<AuditHead>) -> Result<AuditHead, BrokenChain> {
        if let Some(wanted) = self.wanted {
            return broken(wanted.seq, "of --contains is missing: the end of the chain was cut off");
        }
        match head.filter(|head| *head != self.head) {
            None => Ok(self.head),
            Some(head) if head.seq > self.head.seq => {
                broken(head.seq, "is the last one, and is missing: the end of the chain was cut off")
            }
            Some(_) => broken(self.head.seq, "is not the end of the chain that the server has on record"),
        }
    }
}

fn broken<T>(seq: i64, why: &str) -> Result<T, BrokenChain> {
    Err(BrokenChain { seq, why: why.to_owned() })
}

pub(super) async fn run(args: VerifyArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let walk = ChainWalk { head: AuditHead::default(), wanted: args.contains };
    let verified = match args.file {
        Some(path) => {
            let file = File::open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            of_file(walk, BufReader::new(file))?
        }
        None => of_server(walk, session).await?,
    };
    let output = &session.output;
    match (verified, output.format) {
        (Ok(head), Format::Table) => {
            output.line(&format!("{} entries, none missing, changed or reordered", head.seq))?;
            if head.seq > 0 {
                output.line(&format!("end of the chain: {}:{}", head.seq, head.hash))?;
            }
        }
        (Ok(head), _) => output.json(&json!({"ok": true, "head": head}))?,
        (Err(broken), Format::Table) => {
            output.line(&format!("the chain is broken: {broken}"))?;
            return Ok(ExitCode::FAILURE);
        }
        (Err(broken), _) => {
            output.json(&json!({"ok": false, "broken": broken}))?;
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn of_server(mut walk: ChainWalk, session: &Session) -> anyhow::Result<Result<AuditHead, BrokenChain>> {
    loop {
        let part = part(session, walk.head.seq).await?;
        if part.entries.is_empty() {
            return Ok(walk.end(Some(part.head)));
        }
        for entry in &part.entries {
            if let Err(broken) = walk.step(entry) {
                return Ok(Err(broken));
            }
        }
    }
}

fn of_file(mut walk: ChainWalk, file: BufReader<File>) -> anyhow::Result<Result<AuditHead, BrokenChain>> {
    for (at, line) in file.lines().enumerate() {
        let line = line?;
        let entry = serde_json::from_str::<AuditEntry>(&line)
            .with_context(|| format!("line {} is no entry of the audit", at + 1))?;
        if let Err(broken) = walk.step(&entry) {
            return Ok(Err(broken));
        }
    }
    Ok(walk.end(None))
}
