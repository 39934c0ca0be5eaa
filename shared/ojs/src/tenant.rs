//! The tenant of a job (OJS multi-tenancy): from the header of the request, or from the body.

use crate::{OjsError, read};
use turnstone_domain::{RawJson, RawObject};

/// The member of `meta` that names a job's tenant.
pub(crate) const META_MEMBER: &str = "tenant_id";
/// A tenant's name has at most this many characters.
const CHARACTERS: usize = 128;

/// Returns the tenant of a job: `header` and body must not differ.
///
/// # Errors
/// 400 when they differ, or when a name is invalid.
pub(crate) fn tenant(
    header: Option<&str>,
    top: &RawObject,
    meta: &RawObject,
) -> Result<Option<String>, OjsError> {
    let sent = [("tenant_id", top.given("tenant_id")), ("meta.tenant_id", meta.given(META_MEMBER))];
    let mut known = header.map(|name| ("the header X-OJS-Tenant", name.to_owned()));
    for (field, value) in sent {
        let Some(value) = value else { continue };
        let name = name(value).map_err(|why| OjsError::invalid_request(field, why))?;
        match &known {
            Some((other, before)) if *before != name => {
                let why = format!("names another tenant than {other}; send one of them, or the same in both");
                return Err(OjsError::invalid_request(field, why));
            }
            _ => known = Some((field, name)),
        }
    }
    Ok(known.map(|(_, name)| name))
}

fn name(value: &RawJson) -> Result<String, String> {
    let value = read::value(value)?;
    let name = read::text(&value)?;
    check_tenant(name)?;
    Ok(name.to_owned())
}

/// Checks the name of a tenant.
///
/// # Errors
/// Words that complete a sentence that begins with the field.
pub fn check_tenant(name: &str) -> Result<(), String> {
    if (1..=CHARACTERS).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(format!("must have 1 to {CHARACTERS} visible ASCII characters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(header: Option<&str>, top: Value, meta: Value) -> Result<Option<String>, OjsError> {
        let raw = |object: Value| RawObject::of(object.as_object().unwrap());
        tenant(header, &raw(top), &raw(meta))
    }

    #[test]
    fn header_and_body_agree() {
        let acme = Some("acme".to_owned());
        let named = || json!({"tenant_id": "acme"});
        assert_eq!(of(None, json!({}), json!({})), Ok(None));
        assert_eq!(of(Some("acme"), json!({}), json!({})), Ok(acme.clone()));
        assert_eq!(of(None, named(), json!({})), Ok(acme.clone()));
        assert_eq!(of(None, json!({}), named()), Ok(acme.clone()));
        assert_eq!(of(Some("acme"), named(), named()), Ok(acme));
        for (header, top, meta, field) in [
            (Some("other"), named(), json!({}), "tenant_id"),
            (Some("other"), json!({}), named(), "meta.tenant_id"),
            (None, named(), json!({"tenant_id": "other"}), "meta.tenant_id"),
            (None, json!({"tenant_id": 5}), json!({}), "tenant_id"),
            (None, json!({}), json!({"tenant_id": "a b"}), "meta.tenant_id"),
        ] {
            let error = of(header, top, meta).unwrap_err();
            assert_eq!((error.status, &error.details["field"]), (400, &json!(field)), "{error}");
        }
    }
}
