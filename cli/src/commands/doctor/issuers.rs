//! Findings about the issuers of tokens: whether their public keys can be read.

use crate::commands::serve::listening::issuers;
use crate::config::Config;
use turnstone_store::Finding;

/// Reads the keys of every issuer. A section that cannot work is reported with the configuration.
pub async fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for issuer in issuers(config).unwrap_or_default() {
        let name = issuer.name().to_owned();
        findings.push(match issuer.usable_keys().await {
            Ok(0) => Finding::bad(
                format!("the issuer {name} has no key for its algorithms: every token is refused"),
                format!("compare `server.issuers.{name}.algorithms` with the key set of the issuer"),
            ),
            Ok(keys) => Finding::good(format!("the issuer {name} has usable keys ({keys})")),
            Err(why) => Finding::bad(
                format!("the public keys of the issuer {name} cannot be read: {why}"),
                format!("check `issuer` and `jwks_uri` of [server.issuers.{name}], and the network of this machine"),
            ),
        });
    }
    findings
}
