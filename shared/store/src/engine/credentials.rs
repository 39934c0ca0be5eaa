//! Credentials: the calls.

use super::Engine;
use super::ops::credentials::Request as Asked;
use super::rows::{Fields, Inconsistency, get, time, wrong};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::credentials::{Credentials, ListedCredential};
use crate::{StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::agent::credential::{ANY_TOOL, Content, Credential, Owner};

fn owner(row: &impl Fields) -> Result<Owner, Inconsistency> {
    let kind: String = get(row, "kind")?;
    Owner::of(&kind, get::<String>(row, "subject")?)
        .ok_or_else(|| wrong("kind", format!("`{kind}` is no kind of owner")))
}

fn listed(row: &impl Fields) -> Result<ListedCredential, Inconsistency> {
    Ok(ListedCredential {
        owner: owner(row)?,
        tool: get(row, "tool")?,
        header: get(row, "header")?,
        form: get(row, "form")?,
        updated_at: time(row, "updated_at")?,
    })
}

fn credential(row: &impl Fields) -> Result<Credential, Inconsistency> {
    let (form, content): (String, String) = (get(row, "form")?, get(row, "content")?);
    Ok(Credential {
        owner: owner(row)?,
        tool: get(row, "tool")?,
        header: get(row, "header")?,
        prefix: get(row, "prefix")?,
        content: if form == "value" { Content::Value(content) } else { Content::Reference(content) },
        updated_at: time(row, "updated_at")?,
    })
}

impl<R: Reader> Engine<R> {
    async fn of_credentials(&self, asked: Asked) -> Result<bool, StoreError> {
        match self.request(Request::Credentials(Box::new(asked))).await? {
            Answer::Changed(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Credentials for Engine<R> {
    fn seals(&self) -> bool {
        self.readers.seals()
    }

    async fn keep(&self, credential: Credential) -> Result<(), StoreError> {
        if matches!(credential.content, Content::Value(_)) && !self.seals() {
            let why =
                "a secret is not stored in the clear: configure [encryption] key, or name the secret instead";
            return Err(StoreError::Unfit(why.to_owned()));
        }
        self.of_credentials(Asked::Keep(credential)).await.map(|_| ())
    }

    async fn forget(&self, owner: &Owner, tool: &str, header: Option<&str>) -> Result<bool, StoreError> {
        let (tool, header) = (tool.to_owned(), header.map(str::to_owned));
        self.of_credentials(Asked::Forget { owner: owner.clone(), tool, header }).await
    }

    async fn listed(&self) -> Result<Vec<ListedCredential>, StoreError> {
        let (action, text) = ("list credentials", &sql::SELECT_CREDENTIALS);
        decode_all(&self.readers.read(action, text, Args::Values(&[])).await?, listed)
    }

    async fn of_call(&self, owner: &Owner, tool: &str) -> Result<Vec<Credential>, StoreError> {
        let values = [owner.kind().into(), owner.subject().into(), tool.into(), ANY_TOOL.into()];
        let (action, text) = ("read credentials", &sql::SELECT_CREDENTIALS_OF_CALL);
        let mut found =
            decode_all(&self.readers.read(action, text, Args::Values(&values)).await?, credential)?;
        let own: Vec<String> =
            found.iter().filter(|one| one.tool == tool).map(|one| one.header.clone()).collect();
        found.retain(|one| one.tool == tool || !own.contains(&one.header));
        Ok(found)
    }
}
