//! `PUT /credentials/{owner}/{tool}`: stores a header that is sent with the calls of a tool.

use super::{ShownCredential, place};
use crate::api::{Api, Shared};
use crate::audit::Operator;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segments, Tenant};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use turnstone_domain::agent::credential::{ANY_TOOL, Content, Credential};
use turnstone_ojs::OjsError;
use turnstone_telemetry::Secret;
use utoipa::ToSchema;

/// Headers that belong to the call itself.
const OWN: [&str; 11] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "te",
    "transfer-encoding",
    "turnstone-delegation-depth",
    "turnstone-token-budget",
    "turnstone-user",
    "turnstone-user-email",
];
/// The longest name of a secret, and the longest header.
const MOST_BYTES: usize = 8 * 1024;

/// A header: with the name of a secret, or with the secret.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"header": "Authorization", "prefix": "Bearer ", "secret": "CRM_KEY"}))]
pub(crate) struct CredentialRequest {
    /// The header's name.
    header: String,
    /// Put before the secret, such as `Bearer ` with its blank.
    #[serde(default)]
    prefix: String,
    /// The name of a secret among `secrets` of the workers' `[tool_policy]`.
    secret: Option<String>,
    /// The secret itself; refused unless stored data is encrypted.
    value: Option<String>,
}

/// A credential that is stored, without the secret.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct KeptCredential {
    /// The credential.
    #[serde(flatten)]
    pub kept: ShownCredential,
    /// Remarks, such as that no tool of this name is known.
    pub remarks: Vec<String>,
}

impl CredentialRequest {
    fn content(self, seals: bool) -> Result<(String, String, Content), Failure> {
        let wrong = |field: &str, why: &str| Failure::from(OjsError::invalid_request(field, why));
        let header = HeaderName::try_from(self.header.as_str()).map_err(|_| {
            let why = "must be the name of an HTTP header: letters, digits and -, as in X-Api-Key";
            wrong("header", why)
        })?;
        if OWN.contains(&header.as_str()) {
            return Err(wrong("header", "belongs to the call itself and cannot be set"));
        }
        let content = match (self.secret, self.value) {
            (Some(name), None) if !name.is_empty() => Content::Reference(name),
            (None, Some(value)) if !value.is_empty() => {
                // From here on it is struck out of logs and errors.
                Content::Value(Secret::given(value).expose().to_owned())
            }
            _ => {
                return Err(wrong(
                    "the body",
                    "must have either `secret`, a name, or `value`, the secret itself",
                ));
            }
        };
        let (Content::Reference(text) | Content::Value(text)) = &content;
        if HeaderValue::try_from(format!("{}{text}", self.prefix)).is_err()
            || text.len() + self.prefix.len() > MOST_BYTES
        {
            return Err(wrong("the body", "has characters that cannot be sent in a header"));
        }
        if matches!(content, Content::Value(_)) && !seals {
            let hint = "Configure [encryption] key, or put the secret into the workers' [tool_policy] secrets and name it here.";
            let message =
                "A secret is not stored in the clear, and this server encrypts nothing; nothing was stored.";
            return Err(OjsError::new(422, "encryption_required", message, hint).into());
        }
        Ok((header.as_str().to_owned(), self.prefix, content))
    }
}

/// Returns remarks on a credential that is stored all the same: workers may have tools that this server does not know
/// of.
fn remarks(api: &Api, tool: &str) -> Vec<String> {
    let options = &api.options;
    let of_server =
        |server: &String| tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.starts_with('.'));
    if options.keyless_tools.iter().any(|known| known == tool) {
        vec![format!("`{tool}` takes no credentials: nothing is called with this one")]
    } else if tool == ANY_TOOL
        || api.tools.iter().any(|known| known.name == tool)
        || options.mcp_servers.iter().any(of_server)
    {
        Vec::new()
    } else {
        vec![format!("this server knows no tool `{tool}`; a worker that has it calls it with this")]
    }
}

/// Stores a credential in place of the one for the same owner, tool and header.
#[utoipa::path(
    put, path = "/credentials/{owner}/{tool}", operation_id = "put_credential", tag = "credentials",
    security(("fleet" = ["operator"])),
    params(
        ("owner" = String, Path, description = "user:ID, member:TENANT:ID or static:NAME.", example = "static:desk"),
        ("tool" = String, Path, description = "The tool, or `*` for every tool."),
    ),
    request_body = CredentialRequest,
    responses((status = 200, description = "It is kept.", body = KeptCredential)),
)]
pub(crate) async fn put(
    State(app): State<Shared>,
    Segments(owner, tool): Segments,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let (owner, tool) = place(&owner, &tool, &tenant)?;
    // The message of a reader could repeat the secret.
    let requested: CredentialRequest = serde_json::from_slice(&body).map_err(|_| {
        OjsError::invalid_request("the body", "must be an object with header, prefix, and secret or value")
    })?;
    let keeper = &app.api.store.credentials;
    let (header, prefix, content) = requested.content(keeper.seals())?;
    let updated_at = app.api.clock.now();
    let form = content.form();
    let shown = KeptCredential {
        remarks: remarks(&app.api, &tool),
        kept: ShownCredential {
            owner: owner.to_string(),
            tool: tool.clone(),
            header: header.clone(),
            form: form.to_owned(),
            updated_at: updated_at.to_rfc3339(),
        },
    };
    let name = format!("{owner} {tool} {header}");
    keeper.keep(Credential { owner, tool, header, prefix, content, updated_at }).await?;
    operator.did("credential.set", &name, form);
    Ok(reply::ok(&shown))
}
