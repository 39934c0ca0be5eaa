//! The ids of jobs that clients name themselves: by a request's id, an idempotency key, or a message's id. The same
//! name always determines the same id, so a repeated request is one job.
//!
//! The id is a digest with a secret of the installation, which all its processes find in the store. Without the secret
//! the id of a name cannot be computed. So no other client can enqueue a job of that id first. Names from before the
//! secret existed are found for the tenant that used them.

use ring::rand::SystemRandom;
use serde_json::{Value, json};
use turnstone_domain::{Job, JobId, Timestamp, digest};
use turnstone_ojs::attest::new_seed;
use turnstone_store::{Control, ServerKey, StoreError, Views};

/// The secret, among the keys of the fleet.
const SECRET: &str = "names.secret";

/// Makes ids of names.
pub(crate) struct Names {
    secret: String,
}

impl Names {
    /// Returns the names of this installation; the first process makes their secret.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn made_or_found(control: &Control, now: Timestamp) -> Result<Self, StoreError> {
        let broken = |message| StoreError::Unavailable { action: "make the secret of names", message };
        let body = new_seed(&SystemRandom::new()).map_err(broken)?;
        let key = ServerKey { name: SECRET.to_owned(), body, created_at: now };
        let kept = control.keep_key(key).await?;
        Ok(Self { secret: kept.body })
    }

    /// Returns the id of a name. The names of different kinds of things are different JSON.
    pub(crate) fn id(&self, name: &Value) -> JobId {
        as_id(&json!([self.secret, name]))
    }

    /// Returns true if a name determines this id, or determined it before there was a secret.
    pub(crate) fn makes(&self, name: &Value, id: &JobId) -> bool {
        self.id(name).shown() == id.shown() || as_id(name).shown() == id.shown()
    }

    /// Returns the job of a name, if there is one that this tenant may see.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn find(
        &self,
        views: &Views,
        name: &Value,
        tenant: Option<&str>,
    ) -> Result<Option<Job>, StoreError> {
        match views.job_of(&self.id(name), tenant).await? {
            Some(job) => Ok(Some(job)),
            // Any client can make an id of this form: only a job of the same tenant is accepted.
            None => {
                let older = views.job_of(&as_id(name), tenant).await?;
                Ok(older.filter(|job| job.tenant.as_deref() == tenant))
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn with(secret: &str) -> Self {
        Self { secret: secret.to_owned() }
    }
}

/// Returns an id in the form of a UUIDv7.
fn as_id(name: &Value) -> JobId {
    let hex = digest::of_json(name);
    JobId(format!("{}-{}-7{}-8{}-{}", &hex[..8], &hex[8..12], &hex[12..15], &hex[15..18], &hex[18..30]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_one_id_that_only_this_installation_knows() {
        let (one, other) = (Names::with("a"), Names::with("b"));
        let name = json!(["agent protocol", "lead", "acme", "r"]);
        assert_eq!(one.id(&name), one.id(&name));
        assert_ne!(one.id(&name), other.id(&name));
        assert_ne!(one.id(&name), one.id(&json!(["agent protocol", "lead", null, "r"])));
        // Without the secret.
        let older = JobId("95dd3a87-3849-73f2-8c83-d71707c5ed8d".into());
        assert!(one.makes(&name, &one.id(&name)) && one.makes(&name, &older));
        assert!(!one.makes(&name, &other.id(&name)));
    }
}
