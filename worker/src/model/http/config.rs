//! The settings that all providers over HTTP share, declared once.

/// Declares a section `[providers.<name>]` of a provider over HTTP: the shared settings, and those of its API.
macro_rules! http_config {
    (
        $(#[$doc:meta])*
        $name:ident at $base_url:literal {
            $($(#[$own:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            #[doc = concat!("The address up to and including the version. Default: `", $base_url, "`.")]
            pub base_url: String,
            /// The key; local servers need none.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub api_key: Option<turnstone_telemetry::SecretRef>,
            /// The way in which a demanded form reaches the model: through the provider's API, or in the prompt only.
            pub structured_output: crate::model::structured_output::StructuredOutput,
            $($(#[$own])* pub $field: $type,)*
            /// Headers of every call.
            #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
            pub headers: std::collections::BTreeMap<String, crate::tool::header::HeaderText>,
            /// True if the models take pictures from tools. Default: true only if `base_url` is the default.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub pictures: Option<bool>,
            /// The most calls that one worker process makes at once.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub concurrency: Option<u32>,
            /// The circuit breaker of its models.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub breaker: Option<crate::breakers::BreakerConfig>,
            /// The longest one call may take, in milliseconds, if that is less than the agent allows.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub timeout_ms: Option<u64>,
        }

        impl Default for $name {
            /// Returns the configuration of the default address, without a key.
            fn default() -> Self {
                Self {
                    base_url: $base_url.to_owned(),
                    api_key: None,
                    structured_output: Default::default(),
                    $($field: Default::default(),)*
                    headers: Default::default(),
                    pictures: None,
                    concurrency: None,
                    breaker: None,
                    timeout_ms: None,
                }
            }
        }

        impl $name {
            /// Returns the address of calls at this path, with the key in a header `Authorization: Bearer …`.
            pub(super) fn address_at(
                &self,
                path: &'static [&'static str],
            ) -> crate::model::http::ProviderAddress<'_> {
                crate::model::http::ProviderAddress {
                    base_url: &self.base_url,
                    path,
                    key_header: ("authorization", "Bearer "),
                    api_key: self.api_key.as_ref(),
                    headers: &self.headers,
                    own_headers: &[],
                    timeout_ms: self.timeout_ms,
                }
            }

            /// Returns true if the models take the pictures of tools.
            pub(super) fn shows_pictures(&self) -> bool {
                self.pictures.unwrap_or_else(|| self.base_url == $base_url)
            }
        }
    };
}

pub(in crate::model) use http_config;
