//! `[server.issuers.<name>]`: an issuer of tokens, and the meaning of its claims.

use super::fetch::KeySource;
use super::keyset::usable;
use jsonwebtoken::Algorithm;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr as _;
use turnstone_domain::principal::{Role, check_name};

/// The algorithms of an issuer that names none.
const USUAL: [&str; 2] = ["RS256", "ES256"];

/// `[server.issuers.<name>]`: an issuer whose JSON web tokens are accepted.
///
/// ```toml
/// [server.issuers.corp]
/// issuer = "https://login.example.com/realms/agents"
/// audience = ["turnstone"]
/// tenant_claim = "org"
/// roles_claim = "realm_access.roles"
/// roles = { "agent-users" = ["submitter"], "agent-admins" = ["admin"] }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// The exact value of the claim `iss`; its discovery document is below this address.
    pub issuer: String,
    /// The audiences of this server; a token names one of them in `aud`.
    pub audience: Vec<String>,
    /// The algorithms of its signatures: RS256 to RS512, PS256 to PS512, ES256, ES384 or EdDSA.
    #[serde(default = "usual_algorithms")]
    pub algorithms: Vec<String>,
    /// The address of its public keys; by default the one of its discovery document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The claim with the principal's name. Choose one that users cannot change themselves.
    #[serde(default = "subject")]
    pub name_claim: String,
    /// The tenant of all its principals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The claim with the principal's tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_claim: Option<String>,
    /// True if a token without a tenant belongs to the fleet; by default such a token is refused.
    #[serde(default)]
    pub fleet: bool,
    /// The claim with the values that `roles` maps: a list, or a text with blanks between the values.
    #[serde(default = "roles_claim")]
    pub roles_claim: String,
    /// The roles of each value; other values give none.
    pub roles: BTreeMap<String, Vec<Role>>,
    /// The claim with the names that the principal may use beside its own; `*` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acts_for_claim: Option<String>,
    /// The claim with the principal's e-mail address, which policies read as `user.email`. It does not count when the
    /// claim `email_verified` is false. Choose one that users cannot change themselves.
    #[serde(default = "email_claim")]
    pub email_claim: String,
    /// The most requests per minute of one principal; no limit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_minute: Option<i64>,
    /// True if its addresses may be private ones, or use plain HTTP.
    #[serde(default)]
    pub allow_private: bool,
}

fn usual_algorithms() -> Vec<String> {
    USUAL.map(str::to_owned).to_vec()
}

fn subject() -> String {
    "sub".to_owned()
}

fn email_claim() -> String {
    "email".to_owned()
}

fn roles_claim() -> String {
    "roles".to_owned()
}

/// An issuer whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// Its name in the configuration.
    pub(crate) name: String,
    pub(super) config: IssuerConfig,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) rate_per_minute: Option<i64>,
    pub(super) key_source: KeySource,
}

impl Issuer {
    /// Checks a section of the configuration.
    ///
    /// # Errors
    /// A sentence with the key of the section that cannot work.
    pub fn from_config(name: &str, config: &IssuerConfig) -> Result<Self, String> {
        let wrong = |key: &str, why: &str| Err(format!("`server.issuers.{name}.{key}` {why}"));
        if let Err(why) = check_name(name) {
            return Err(format!("`server.issuers.{name}`: the name {why}"));
        }
        if config.audience.is_empty() || config.audience.iter().any(String::is_empty) {
            return wrong(
                "audience",
                "must name at least one audience, so that tokens for others are refused",
            );
        }
        let mut algorithms = Vec::new();
        for text in &config.algorithms {
            match Algorithm::from_str(text) {
                Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) => {
                    return wrong(
                        "algorithms",
                        "must not contain HS256, HS384 or HS512: every client can know the public key",
                    );
                }
                Ok(algorithm) => algorithms.push(algorithm),
                Err(_) => {
                    return wrong("algorithms", &format!("has `{text}`, which is no supported algorithm"));
                }
            }
        }
        if algorithms.is_empty() {
            return wrong("algorithms", "must name at least one algorithm");
        }
        if config.roles.is_empty() || config.roles.values().any(Vec::is_empty) {
            return wrong(
                "roles",
                "must map values of the claim to roles, such as { users = [\"submitter\"] }",
            );
        }
        match (&config.tenant, &config.tenant_claim, config.fleet) {
            (None, None, false) => {
                return wrong("tenant", "is missing: name `tenant`, `tenant_claim`, or `fleet = true`");
            }
            (Some(_), Some(_), _) | (Some(_), _, true) => {
                return wrong("tenant", "excludes `tenant_claim` and `fleet`");
            }
            (Some(tenant), None, false) => {
                if let Err(why) = check_name(tenant) {
                    return wrong("tenant", &why);
                }
            }
            (None, ..) => {}
        }
        if config.rate_per_minute.is_some_and(|rate| rate < 1) {
            return wrong("rate_per_minute", "must be at least 1");
        }
        let key_source = KeySource::of(config).map_err(|why| format!("`server.issuers.{name}`: {why}"))?;
        Ok(Self {
            name: name.to_owned(),
            config: config.clone(),
            algorithms,
            rate_per_minute: config.rate_per_minute,
            key_source,
        })
    }

    /// Returns its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads its public keys, and returns the number of those that fit its algorithms.
    ///
    /// # Errors
    /// A sentence that says which document cannot be read, and why.
    pub async fn usable_keys(&self) -> Result<usize, String> {
        usable(&self.key_source.key_set().await?, &self.algorithms)
    }

    /// Returns the value of the claim `iss`.
    pub(super) fn name_of_issuer(&self) -> &str {
        &self.config.issuer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn section(change: &Value) -> Result<Issuer, String> {
        let mut section = json!({
            "issuer": "https://login.example.com",
            "audience": ["turnstone"],
            "tenant": "acme",
            "roles": {"users": ["submitter"]},
        });
        for (key, value) in change.as_object().unwrap() {
            section[key] = value.clone();
        }
        let config: IssuerConfig = serde_json::from_value(section).map_err(|error| error.to_string())?;
        Issuer::from_config("corp", &config)
    }

    #[test]
    fn a_section_that_cannot_work_names_its_key() {
        let issuer = section(&json!({})).unwrap();
        assert_eq!(issuer.algorithms, [Algorithm::RS256, Algorithm::ES256]);
        assert_eq!((issuer.config.name_claim.as_str(), issuer.config.roles_claim.as_str()), ("sub", "roles"));
        for (change, key) in [
            (json!({"audience": []}), "audience"),
            (json!({"audience": [""]}), "audience"),
            (json!({"algorithms": []}), "algorithms"),
            (json!({"algorithms": ["RS256", "HS256"]}), "HS256"),
            (json!({"algorithms": ["none"]}), "algorithms"),
            (json!({"roles": {}}), "roles"),
            (json!({"roles": {"users": []}}), "roles"),
            (json!({"roles": {"users": ["root"]}}), "root"),
            (json!({"tenant": null}), "tenant"),
            (json!({"tenant_claim": "org"}), "tenant"),
            (json!({"fleet": true}), "tenant"),
            (json!({"tenant": "a b"}), "tenant"),
            (json!({"rate_per_minute": 0}), "rate_per_minute"),
            (json!({"issuer": "login"}), "corp"),
            (json!({"issuer": "http://login.example.com"}), "https"),
            (json!({"issuer": "https://10.0.0.1"}), "allow_private"),
            (json!({"jwks_uri": "ftp://login.example.com/keys"}), "ftp"),
            (json!({"secret": "x"}), "secret"),
        ] {
            let why = section(&change).unwrap_err();
            assert!(why.contains(key), "{change}: {why}");
        }
        let private =
            json!({"issuer": "http://10.0.0.1", "allow_private": true, "tenant": null, "fleet": true});
        assert!(section(&private).is_ok());
    }
}
