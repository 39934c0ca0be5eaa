//! The roles and the scope that each operation needs, as declared in its `security(…)` for the OpenAPI document.
//!
//! `security(("tenant" = ["submitter"]))` needs the role `submitter`, and concerns the data of the principal's tenant.
//! `("fleet" = […])` concerns data that tenants share, and needs a principal of the fleet. Several pairs are
//! alternatives, an empty list is any role, and `security(())` needs no principal. The role `admin` includes all others.

use axum::http::Method;
use serde_json::Value;
use std::collections::HashMap;
use turnstone_domain::principal::{Principal, Role, Scope};
use turnstone_ojs::OjsError;
use utoipa::openapi::OpenApi;

/// The methods of operations, as the document spells them.
const METHODS: [(&str, Method); 5] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("patch", Method::PATCH),
];

/// The needs of one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    /// None for an operation that is open to every client.
    scope: Option<Scope>,
    /// One of them is needed; empty for any role.
    roles: Vec<Role>,
}

/// An operation that does not declare its roles and its scope, or declares them in another form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the operation {method} {path} {why}; declare `security((\"tenant\" = [\"viewer\"]))` or similar beside its path"
)]
pub struct UndeclaredAccess {
    method: String,
    path: String,
    why: String,
}

impl Access {
    /// An operation of the fleet's admins.
    pub(crate) const FLEET_ADMIN: Self = Self { scope: Some(Scope::Fleet), roles: Vec::new() };

    /// Returns true if it needs no principal.
    pub(crate) fn is_open(&self) -> bool {
        self.scope.is_none()
    }

    /// Returns true if changes by the operation are audited. The calls of workers over HTTP are not: events of jobs
    /// record them.
    pub(crate) fn is_audited(&self) -> bool {
        self.roles != [Role::Worker]
    }

    fn read(declared: &Value) -> Result<Self, String> {
        let Some(pairs) = declared.as_array().filter(|pairs| !pairs.is_empty()) else {
            return Err("declares no security".to_owned());
        };
        let mut access = Self { scope: None, roles: Vec::new() };
        for pair in pairs {
            let pair = pair.as_object().filter(|pair| pair.len() <= 1);
            let pair = pair.ok_or_else(|| "has a pair with several schemes".to_owned())?;
            let Some((scheme, roles)) = pair.iter().next() else { continue };
            let scope = match scheme.as_str() {
                "tenant" => Scope::Tenant,
                "fleet" => Scope::Fleet,
                other => return Err(format!("has the scheme `{other}`")),
            };
            if access.scope.is_some_and(|other| other != scope) {
                return Err("has two scopes".to_owned());
            }
            access.scope = Some(scope);
            for role in roles.as_array().into_iter().flatten().filter_map(Value::as_str) {
                access.roles.push(Role::parse(role).ok_or_else(|| format!("has the role `{role}`"))?);
            }
        }
        Ok(access)
    }

    /// Checks a principal.
    ///
    /// # Errors
    /// 403, with the missing role or scope.
    pub(crate) fn check(&self, principal: &Principal) -> Result<(), OjsError> {
        let Some(scope) = self.scope else { return Ok(()) };
        let has = self.roles.iter().any(|role| principal.has(*role));
        let is_admin_only = *self == Self::FLEET_ADMIN;
        if !(has || (self.roles.is_empty() && !is_admin_only) || principal.has(Role::Admin)) {
            let needed = if is_admin_only { vec![Role::Admin] } else { self.roles.clone() };
            let needed = needed.into_iter().map(Role::as_str).collect::<Vec<_>>().join(" or ");
            let message =
                format!("This operation needs the role {needed}, which {} does not have.", principal.name);
            let hint = "Use a key with the role, or ask an admin for one: `turnstone key create`.";
            return Err(OjsError::new(403, "forbidden", message, hint).with("role", needed));
        }
        match &principal.tenant {
            Some(tenant) if scope == Scope::Fleet => {
                let message =
                    format!("This operation concerns the whole fleet, and not tenant {tenant} alone.");
                let hint = "Use a key of the fleet, without the header X-OJS-Tenant.";
                Err(OjsError::new(403, "forbidden", message, hint).with("scope", scope.as_str()))
            }
            _ => Ok(()),
        }
    }
}

/// The needs of every operation.
#[derive(Debug)]
pub(crate) struct AccessTable(HashMap<String, Vec<(Method, Access)>>);

impl AccessTable {
    /// Reads the declarations.
    ///
    /// # Errors
    /// The first operation without a declaration that can be read.
    pub(crate) fn of(document: &OpenApi) -> Result<Self, UndeclaredAccess> {
        let document = serde_json::to_value(document).unwrap_or_default();
        let mut table: HashMap<String, Vec<(Method, Access)>> = HashMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (name, method) in METHODS {
                let Some(operation) = item.get(name) else { continue };
                let access = Access::read(&operation["security"]).map_err(|why| UndeclaredAccess {
                    method: name.to_ascii_uppercase(),
                    path: path.clone(),
                    why,
                })?;
                table.entry(path.clone()).or_default().push((method, access));
            }
        }
        Ok(Self(table))
    }

    /// Adds an operation that the document does not contain.
    pub(crate) fn with(mut self, method: Method, path: &str, access: Access) -> Self {
        self.0.entry(path.to_owned()).or_default().push((method, access));
        self
    }

    /// Returns the needs of an operation; `None` if there is no such operation.
    pub(crate) fn of_operation(&self, method: &Method, path: &str) -> Option<&Access> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.0.get(path)?.iter().find(|(own, _)| own == method).map(|(_, access)| access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn principal(roles: &[Role], tenant: Option<&str>) -> Principal {
        Principal {
            name: "ann".to_owned(),
            key: None,
            tenant: tenant.map(str::to_owned),
            roles: roles.to_vec(),
            acts_for: Vec::new(),
            email: None,
            identity: None,
        }
    }

    #[test]
    fn a_declaration_is_read_strictly() {
        let read = |declared: Value| Access::read(&declared);
        for undeclared in [
            json!(null),
            json!([]),
            json!([{"api_key": []}]),
            json!([{"tenant": ["root"]}]),
            json!([{"tenant": ["viewer"]}, {"fleet": ["viewer"]}]),
        ] {
            assert!(read(undeclared.clone()).is_err(), "{undeclared}");
        }
        assert!(read(json!([{}])).unwrap().is_open());
        let two = read(json!([{"tenant": ["submitter"]}, {"tenant": ["operator"]}])).unwrap();
        assert_eq!(two, Access { scope: Some(Scope::Tenant), roles: vec![Role::Submitter, Role::Operator] });
    }

    #[test]
    fn a_role_and_the_scope_are_needed() {
        let fleet = Access { scope: Some(Scope::Fleet), roles: vec![Role::Operator] };
        let any = Access { scope: Some(Scope::Tenant), roles: Vec::new() };
        for (access, roles, tenant, passes) in [
            (&fleet, &[Role::Operator][..], None, true),
            (&fleet, &[Role::Admin], None, true),
            (&fleet, &[Role::Admin], Some("acme"), false),
            (&fleet, &[Role::Submitter, Role::Viewer], None, false),
            (&any, &[Role::Worker], Some("acme"), true),
            (&Access::FLEET_ADMIN, &[Role::Operator], None, false),
            (&Access::FLEET_ADMIN, &[Role::Admin], None, true),
        ] {
            let checked = access.check(&principal(roles, tenant));
            assert_eq!(checked.is_ok(), passes, "{access:?} {roles:?} {tenant:?}");
        }
    }
}
