//! Configurations of models, and how clouds are reached.

use super::super::version::Version::{self, V25_4_1, V25_4_2, V26_1_2, V26_3_1};
use super::{ANY_MAP, COUNT, Class, Default, Family, Field, Io, Kind, SECONDS};
use crate::shape::{Object, Others, Shape};

const fn class(
    name: &'static str,
    families: &'static [Family],
    since: Version,
    fields: &'static [&'static [Field]],
) -> Class {
    Class { name, families, since, io: Io::None, fields }
}

const LLM: &[Family] = &[Family::LlmConfig];

pub(super) static CLASSES: &[Class] = &[
    class(
        "LlmConfig",
        LLM,
        V26_1_2,
        &[&[
            Field::plain("model_id", Shape::Text),
            Field::plain("provider", Shape::Text).or_null(),
            Field::plain("api_provider", Shape::Text).or_null(),
            Field::plain("api_type", Shape::Text).or_null(),
            Field::plain("url", Shape::Text).or_null(),
            Field::new("api_key", Kind::Secret(Shape::Text)).or_null(),
            generation(),
            retry_policy(),
        ]],
    ),
    class("OpenAiCompatibleConfig", LLM, V25_4_1, COMPATIBLE),
    class("VllmConfig", LLM, V25_4_1, COMPATIBLE),
    class("OllamaConfig", LLM, V25_4_1, COMPATIBLE),
    class(
        "OpenAiConfig",
        LLM,
        V25_4_1,
        &[&[
            Field::plain("model_id", Shape::Text),
            Field::plain("provider", Shape::Text).or_null().unexported(),
            Field::plain("api_provider", Shape::Text).or_null().unexported(),
            openai_api_type(),
            Field::plain("url", Shape::Text).or_null().unexported(),
            Field::new("api_key", Kind::Secret(Shape::Text)).or_null().since(V25_4_2),
            generation(),
            retry_policy(),
        ]],
    ),
    class(
        "GeminiConfig",
        LLM,
        V26_1_2,
        &[&[
            Field::plain("model_id", Shape::Text),
            Field::plain("provider", Shape::Text).or_null().unexported(),
            Field::plain("api_provider", Shape::Text).or_null(),
            Field::plain("api_type", Shape::Text).or_null(),
            Field::plain("url", Shape::Text).or_null().unexported(),
            Field::new("api_key", Kind::Secret(Shape::Text)).or_null(),
            generation(),
            retry_policy(),
            Field::new("auth", Kind::One(Family::GeminiAuthConfig)),
        ]],
    ),
    class("OciGenAiConfig", LLM, V25_4_1, &[OCI_GEN_AI]),
    class(
        "DbmsVectorChainLlmConfig",
        LLM,
        V26_3_1,
        &[&[
            Field::plain("model_id", Shape::Text),
            Field::plain("provider", Shape::Text),
            Field::plain("api_provider", Shape::Text).or_null().unexported(),
            Field::plain("api_type", Shape::Text).or_null().unexported(),
            Field::plain("url", Shape::Text),
            Field::new("api_key", Kind::Secret(Shape::Text)).or_null().unexported(),
            generation(),
            retry_policy(),
            Field::plain("host", Shape::OneOf(&["local"])).or_null(),
            Field::plain("credential_name", Shape::Text).or_null(),
            Field::plain("transfer_timeout", COUNT).or_null(),
            Field::new("connection_config", Kind::One(Family::OracleDatabaseConnectionConfig)).or_null(),
        ]],
    ),
    class(
        "GeminiAIStudioAuthConfig",
        &[Family::GeminiAuthConfig],
        V26_1_2,
        &[&[Field::new("api_key", Kind::Secret(Shape::Text)).or_null()]],
    ),
    class(
        "GeminiVertexAIAuthConfig",
        &[Family::GeminiAuthConfig],
        V26_1_2,
        &[&[
            Field::plain("project_id", Shape::Text).or_null(),
            Field::plain("location", Shape::Text).or(Default::Text("global")),
            // A path or the credentials themselves.
            Field::new("credentials", Kind::Secret(Shape::Any)).or_null(),
        ]],
    ),
    oci("OciClientConfigWithApiKey", &[ENDPOINT, &[auth_type(&["API_KEY"], "API_KEY")], PROFILE]),
    oci(
        "OciClientConfigWithSecurityToken",
        &[ENDPOINT, &[auth_type(&["SECURITY_TOKEN"], "SECURITY_TOKEN")], PROFILE],
    ),
    oci(
        "OciClientConfigWithInstancePrincipal",
        &[ENDPOINT, &[auth_type(&["INSTANCE_PRINCIPAL"], "INSTANCE_PRINCIPAL")]],
    ),
    oci(
        "OciClientConfigWithResourcePrincipal",
        &[ENDPOINT, &[auth_type(&["RESOURCE_PRINCIPAL"], "RESOURCE_PRINCIPAL")]],
    ),
];

const COMPATIBLE: &[&[Field]] = &[&[
    Field::plain("model_id", Shape::Text),
    Field::plain("provider", Shape::Text).or_null().since(V26_1_2),
    // It may repeat the name of the class; exports leave it out.
    Field::plain("api_provider", Shape::Text).or_null().unexported(),
    openai_api_type(),
    Field::plain("url", Shape::Text),
    Field::new("api_key", Kind::Secret(Shape::Text)).or_null().since(V25_4_2),
    generation(),
    retry_policy(),
    Field::new("key_file", Kind::Secret(Shape::Text)).or_null().since(V26_1_2),
    Field::new("cert_file", Kind::Secret(Shape::Text)).or_null().since(V26_1_2),
    Field::new("ca_file", Kind::Secret(Shape::Text)).or_null().since(V26_1_2),
]];

const OCI_GEN_AI: &[Field] = &[
    Field::plain("model_id", Shape::Text),
    Field::plain("provider", Shape::OneOf(&["META", "GROK", "XAI", "COHERE", "OTHER"])).or_null(),
    Field::plain("api_provider", Shape::Text).or_null().unexported(),
    Field::plain("api_type", Shape::OneOf(&["oci", "openai_chat_completions", "openai_responses"]))
        .or(Default::Text("oci"))
        .since(V25_4_2),
    Field::plain("url", Shape::Text).or_null().unexported(),
    Field::new("api_key", Kind::Secret(Shape::Text)).or_null().unexported(),
    generation(),
    retry_policy(),
    Field::plain("compartment_id", Shape::Text),
    Field::plain("serving_mode", Shape::OneOf(&["ON_DEMAND", "DEDICATED"])).or(Default::Text("ON_DEMAND")),
    Field::new("client_config", Kind::One(Family::OciClientConfig)),
    Field::plain("conversation_store_id", Shape::Text).or_null().since(V25_4_2),
];

const ENDPOINT: &[Field] = &[Field::plain("service_endpoint", Shape::Text)];

const PROFILE: &[Field] =
    &[Field::plain("auth_profile", Shape::Text), Field::new("auth_file_location", Kind::Secret(Shape::Text))];

const fn auth_type(words: &'static [&'static str], word: &'static str) -> Field {
    Field::plain("auth_type", Shape::OneOf(words)).or(Default::Text(word))
}

const fn oci(name: &'static str, fields: &'static [&'static [Field]]) -> Class {
    class(name, &[Family::OciClientConfig], V25_4_1, fields)
}

const fn openai_api_type() -> Field {
    Field::plain("api_type", Shape::OneOf(&["chat_completions", "responses"]))
        .or(Default::Text("chat_completions"))
        .since(V25_4_2)
}

const fn generation() -> Field {
    // Models accept parameters that no specification lists.
    Field::plain("default_generation_parameters", ANY_MAP).or_null()
}

/// The retries of requests.
pub(super) const fn retry_policy() -> Field {
    Field::plain("retry_policy", Shape::Object(&RETRY_POLICY)).or_null().since(V26_1_2)
}

static RETRY_POLICY: Object = Object {
    rule: "AS-56",
    others: Others::Refused,
    fields: &[
        crate::shape::Field::new("max_attempts", COUNT),
        crate::shape::Field::new("request_timeout", Shape::Number(f64::MIN_POSITIVE, f64::MAX)).or_null(),
        crate::shape::Field::new("initial_retry_delay", SECONDS),
        crate::shape::Field::new("max_retry_delay", SECONDS),
        crate::shape::Field::new("backoff_factor", Shape::Number(f64::MIN_POSITIVE, f64::MAX)),
        crate::shape::Field::new(
            "jitter",
            Shape::OneOf(&["equal", "full", "full_and_equal_for_throttle", "decorrelated"]),
        )
        .or_null(),
        crate::shape::Field::new("service_error_retry_on_any_5xx", Shape::Flag),
        crate::shape::Field::new("recoverable_statuses", Shape::Table(&Shape::List(&Shape::Text))),
    ],
};
