//! Tools, tool boxes, and the transports to MCP servers.

use super::super::version::Version::{self, V25_4_1, V25_4_2, V26_1_2, V26_3_1};
use super::llms::retry_policy;
use super::{ANY_MAP, Class, Default, Family, Field, Io, Kind, SECONDS, TEXT_MAP, TEXTS};
use crate::shape::{Object, Others, Shape};

const fn tool(name: &'static str, since: Version, fields: &'static [&'static [Field]]) -> Class {
    Class { name, families: &[Family::Tool], since, io: Io::Properties, fields }
}

const fn plain(
    name: &'static str,
    families: &'static [Family],
    since: Version,
    fields: &'static [&'static [Field]],
) -> Class {
    Class { name, families, since, io: Io::None, fields }
}

const TRANSPORT: &[Family] = &[Family::ClientTransport];

pub(super) static CLASSES: &[Class] = &[
    tool("ServerTool", V25_4_1, &[CONFIRMED]),
    tool("ClientTool", V25_4_1, &[CONFIRMED]),
    tool("RemoteTool", V25_4_1, &[CONFIRMED, REQUEST]),
    tool("MCPTool", V25_4_1, &[CONFIRMED, SERVER]),
    tool(
        "BuiltinTool",
        V25_4_2,
        &[
            CONFIRMED,
            &[
                Field::plain("tool_type", Shape::Text),
                Field::plain("configuration", ANY_MAP).or_null(),
                // A text or a list of texts.
                Field::plain("executor_name", Shape::Any).or_null(),
                Field::plain("tool_version", Shape::Text).or_null(),
            ],
        ],
    ),
    plain(
        "MCPToolBox",
        &[Family::ToolBox],
        V25_4_1,
        &[
            &[Field::plain("requires_confirmation", Shape::Flag).or(Default::Flag(false)).since(V26_1_2)],
            SERVER,
            &[Field::new("tool_filter", Kind::ToolFilter).or_null()],
        ],
    ),
    Class {
        name: "MCPToolSpec",
        families: &[Family::MCPToolSpec],
        since: V25_4_1,
        io: Io::Properties,
        fields: &[CONFIRMED],
    },
    plain(
        "StdioTransport",
        TRANSPORT,
        V25_4_1,
        &[
            SESSION,
            &[
                Field::plain("command", Shape::Text),
                Field::plain("args", TEXTS).or(Default::List),
                Field::plain("env", TEXT_MAP).or_null(),
                Field::plain("cwd", Shape::Text).or_null(),
            ],
        ],
    ),
    plain("SSETransport", TRANSPORT, V25_4_1, &[SESSION, REMOTE]),
    plain("StreamableHTTPTransport", TRANSPORT, V25_4_1, &[SESSION, REMOTE]),
    plain("SSEmTLSTransport", TRANSPORT, V25_4_1, &[SESSION, REMOTE, MUTUAL_TLS]),
    plain("StreamableHTTPmTLSTransport", TRANSPORT, V25_4_1, &[SESSION, REMOTE, MUTUAL_TLS]),
    plain(
        "OAuthConfig",
        &[Family::AuthConfig],
        V26_1_2,
        &[&[
            Field::plain("issuer", Shape::Text).or_null(),
            Field::plain("endpoints", Shape::Object(&OAUTH_ENDPOINTS)).or_null(),
            Field::new("client", Kind::One(Family::OAuthClientConfig)),
            Field::plain("redirect_uri", Shape::Text),
            // A text or a list of texts.
            Field::plain("scopes", Shape::Any).or_null(),
            Field::plain("scope_policy", Shape::OneOf(&["use_challenge_or_supported", "fixed"])).or_null(),
            Field::plain("pkce", Shape::Object(&PKCE)).or_null(),
            Field::plain("resource", Shape::Text).or_null(),
        ]],
    ),
    plain(
        "OAuthClientConfig",
        &[Family::OAuthClientConfig],
        V26_1_2,
        &[&[
            Field::plain(
                "type",
                Shape::OneOf(&["pre_registered", "client_id_metadata_document", "dynamic_registration"]),
            ),
            Field::new("client_id", Kind::Secret(Shape::Text)).or_null(),
            Field::new("client_secret", Kind::Secret(Shape::Text)).or_null(),
            Field::plain("token_endpoint_auth_method", Shape::Text).or_null(),
            Field::new("client_id_metadata_url", Kind::Secret(Shape::Text)).or_null(),
            Field::plain("registration_endpoint", Shape::Text).or_null(),
        ]],
    ),
];

const CONFIRMED: &[Field] =
    &[Field::plain("requires_confirmation", Shape::Flag).or(Default::Flag(false)).since(V25_4_2)];

/// An HTTP request, as `RemoteTool` and `ApiNode` make it.
pub(super) const REQUEST: &[Field] = &[
    Field::plain("url", Shape::Text),
    Field::plain("http_method", Shape::Text),
    Field::plain("api_spec_uri", Shape::Text).or_null(),
    Field::plain("data", Shape::Any).or(Default::Map),
    Field::plain("query_params", ANY_MAP).or(Default::Map),
    Field::plain("headers", ANY_MAP).or(Default::Map),
    Field::new("sensitive_headers", Kind::Secret(ANY_MAP)).or(Default::Map).since(V25_4_2),
    Field::plain("url_allow_list", TEXTS).or_null().since(V26_1_2),
    retry_policy(),
];

const SERVER: &[Field] =
    &[Field::new("client_transport", Kind::One(Family::ClientTransport)), retry_policy().since(V26_3_1)];

const SESSION: &[Field] = &[Field::plain("session_parameters", Shape::Object(&MCP_SESSION)).or(Default::Map)];

const REMOTE: &[Field] = &[
    Field::plain("url", Shape::Text),
    Field::new("auth", Kind::One(Family::AuthConfig)).or_null().since(V26_1_2),
    Field::plain("headers", TEXT_MAP).or_null(),
    Field::new("sensitive_headers", Kind::Secret(TEXT_MAP)).or_null().since(V25_4_2),
    retry_policy(),
];

const MUTUAL_TLS: &[Field] = &[
    Field::new("key_file", Kind::Secret(Shape::Text)),
    Field::new("cert_file", Kind::Secret(Shape::Text)),
    Field::new("ca_file", Kind::Secret(Shape::Text)),
];

static MCP_SESSION: Object = Object {
    rule: "AS-06",
    others: Others::Warned,
    fields: &[crate::shape::Field::new("read_timeout_seconds", SECONDS)],
};

static OAUTH_ENDPOINTS: Object = Object {
    rule: "AS-06",
    others: Others::Warned,
    fields: &[
        crate::shape::Field::new("authorization_endpoint", Shape::Text).required(),
        crate::shape::Field::new("token_endpoint", Shape::Text).required(),
        crate::shape::Field::new("refresh_endpoint", Shape::Text).or_null(),
        crate::shape::Field::new("revocation_endpoint", Shape::Text).or_null(),
        crate::shape::Field::new("userinfo_endpoint", Shape::Text).or_null(),
    ],
};

static PKCE: Object = Object {
    rule: "AS-06",
    others: Others::Warned,
    fields: &[
        crate::shape::Field::new("required", Shape::Flag),
        crate::shape::Field::new("method", Shape::OneOf(&["S256", "plain"])),
    ],
};
