//! The principal that the claims of a verified token make.

use super::issuer::Issuer;
use super::verify::Claims;
use serde_json::Value;
use turnstone_domain::principal::{NAMES, Principal, check_name, identity};

/// The claim that says if the issuer has verified the e-mail address (OpenID Connect Core §5.1).
const VERIFIED: &str = "email_verified";
/// The longest e-mail address of a principal.
const EMAIL_CHARACTERS: usize = 320;

/// Returns the principal.
///
/// # Errors
/// The rest of a sentence that begins with the token: which claim is missing or cannot be used.
pub(super) fn principal(issuer: &Issuer, claims: &Claims) -> Result<Principal, String> {
    let config = &issuer.config;
    let name = name(claims, &config.name_claim)?
        .ok_or_else(|| format!("its claim `{}` has no name", config.name_claim))?;
    let tenant = match (&config.tenant, &config.tenant_claim) {
        (Some(tenant), _) => Some(tenant.clone()),
        (None, Some(claim)) => self::name(claims, claim)?,
        (None, None) => None,
    };
    if tenant.is_none() && !config.fleet {
        let claim = config.tenant_claim.as_deref().unwrap_or_default();
        return Err(format!("its claim `{claim}` names no tenant"));
    }
    let mut roles: Vec<_> = values(claims, &config.roles_claim)
        .into_iter()
        .filter_map(|value| config.roles.get(value))
        .flatten()
        .copied()
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let acts_for: Vec<String> = match &config.acts_for_claim {
        Some(claim) => values(claims, claim).into_iter().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    if acts_for.len() > NAMES {
        return Err(format!("it may use more than {NAMES} names"));
    }
    acts_for
        .iter()
        .try_for_each(|name| check_name(name))
        .map_err(|why| format!("a name that it may use {why}"))?;
    // No name has a blank, so no key and no token of another issuer has the same identity.
    let identity = format!("{} via {}", identity(tenant.as_deref(), &name), issuer.name);
    let email = email(claims, &config.email_claim);
    Ok(Principal { name, key: None, tenant, roles, acts_for, email, identity: Some(identity) })
}

/// Returns the e-mail address, unless the issuer says that it has not verified it.
fn email(claims: &Claims, path: &str) -> Option<String> {
    let is_unverified = match claim(claims, VERIFIED) {
        Some(Value::Bool(verified)) => !verified,
        // Some issuers send it as a text.
        Some(verified) => verified.as_str() != Some("true"),
        None => false,
    };
    let email = claim(claims, path)?.as_str().filter(|email| email.contains('@'))?;
    let fits = email.chars().count() <= EMAIL_CHARACTERS && !email.chars().any(char::is_control);
    (fits && !is_unverified).then(|| email.to_owned())
}

/// Returns the claim of this name, or at this path of names with dots between them.
fn claim<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    let whole = claims.get(path);
    let nested = || {
        let mut names = path.split('.');
        let first = claims.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    };
    whole.or_else(nested).filter(|value| !value.is_null())
}

/// Reads a name; `None` when the claim is missing.
fn name(claims: &Claims, path: &str) -> Result<Option<String>, String> {
    let Some(value) = claim(claims, path) else { return Ok(None) };
    let name = value.as_str().ok_or_else(|| format!("its claim `{path}` is no text"))?;
    check_name(name).map_err(|why| format!("its claim `{path}` {why}"))?;
    Ok(Some(name.to_owned()))
}

/// Reads a list of texts, or a text with blanks between the values.
fn values<'a>(claims: &'a Claims, path: &str) -> Vec<&'a str> {
    match claim(claims, path) {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::issuer::IssuerConfig;
    use super::*;
    use serde_json::json;
    use turnstone_domain::principal::Role;

    fn made(claims: Value) -> Result<Principal, String> {
        let config: IssuerConfig = serde_json::from_value(json!({
            "issuer": "https://login.example.com",
            "audience": ["turnstone"],
            "tenant_claim": "https://example.com/org",
            "roles_claim": "realm.roles",
            "acts_for_claim": "for",
            "roles": {"users": ["submitter", "viewer"], "bosses": ["approver"]},
        }))
        .unwrap();
        let issuer = Issuer::from_config("corp", &config).unwrap();
        let Value::Object(claims) = claims else { panic!("an object") };
        principal(&issuer, &claims)
    }

    #[test]
    fn claims_make_a_principal() {
        let made = made(json!({
            "sub": "ann",
            "https://example.com/org": "acme",
            "realm": {"roles": ["bosses", "users", "others", 7]},
            "for": "ben cid",
            "email": "ann@corp.example",
        }))
        .unwrap();
        let expected = Principal {
            name: "ann".to_owned(),
            key: None,
            tenant: Some("acme".to_owned()),
            roles: vec![Role::Viewer, Role::Submitter, Role::Approver],
            acts_for: vec!["ben".to_owned(), "cid".to_owned()],
            email: Some("ann@corp.example".to_owned()),
            identity: Some("acme/ann via corp".to_owned()),
        };
        assert_eq!(made, expected);
    }

    #[test]
    fn an_email_counts_unless_it_is_not_verified() {
        let email = "ann@corp.example";
        for (more, expected) in [
            (json!({"email": email}), Some(email)),
            (json!({"email": email, "email_verified": true}), Some(email)),
            (json!({"email": email, "email_verified": "true"}), Some(email)),
            (json!({"email": email, "email_verified": false}), None),
            (json!({"email": email, "email_verified": "false"}), None),
            (json!({"email": email, "email_verified": 0}), None),
            (json!({"email": [email]}), None),
            (json!({"email": "ann"}), None),
            (json!({"mail": email}), None),
        ] {
            let mut claims = json!({"sub": "ann", "https://example.com/org": "acme"});
            claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(made(claims).unwrap().email.as_deref(), expected, "{more}");
        }
    }

    #[test]
    fn a_claim_that_cannot_be_used_is_named() {
        let org = "https://example.com/org";
        for (claims, named) in [
            (json!({org: "acme"}), "`sub`"),
            (json!({"sub": 7, org: "acme"}), "`sub`"),
            (json!({"sub": "a b", org: "acme"}), "`sub`"),
            (json!({"sub": "ann"}), org),
            (json!({"sub": "ann", org: null}), org),
            (json!({"sub": "ann", org: ""}), org),
            (json!({"sub": "ann", org: ["acme"]}), org),
            (json!({"sub": "ann", org: "acme", "for": ["a b"]}), "may use"),
        ] {
            let why = made(claims.clone()).unwrap_err();
            assert!(why.contains(named), "{claims}: {why}");
        }
    }
}
