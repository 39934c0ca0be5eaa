//! Models of clouds that a document of Agent Spec names: Oracle's, whose requests are signed, and Google's Vertex AI, whose
//! requests carry a token of a service account.

use super::declared::parameters;
use super::http::{Api, HttpModel, HttpProviderConfig};
use super::openai::{ChatCompletions, OciChat};
use super::responses::Responses;
use super::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::oci::{OciSigner, private_key, signed};
use crate::tool::header::HeaderText;
use crate::tool::outbound;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use ring::signature::RsaKeyPair;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use turnstone_domain::{Clock, Timestamp};
use turnstone_specs::agent_spec::model::{LlmConfig, LlmKind};
use turnstone_telemetry::Secret;
use url::Url;

/// The path of the API in the form of OpenAI's, below a service endpoint of Oracle's cloud.
const OCI_OPENAI: &str = "20231130/actions/v1";
/// The most that tokens may do.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The lifetime that is asked for, in seconds, which is the longest.
const LIFETIME: i64 = 3_600;
/// A token is replaced this long before its end, in milliseconds.
const SPARE_MS: i64 = 60_000;
/// The longest answer to a request for a token, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Returns a model of Oracle's cloud; `name` is the name of its provider.
///
/// # Errors
/// A sentence: the configuration is none of that cloud, or its address is unusable.
pub fn oci(
    name: &str,
    config: &LlmConfig,
    signer: Arc<OciSigner>,
    client: Client,
) -> Result<Arc<dyn Model>, String> {
    let more = parameters(config);
    let LlmKind::OciGenAiConfig { compartment_id, serving_mode, client_config, .. } = &config.kind else {
        return Err(format!("the model `{}` is none of Oracle's cloud", config.head.name));
    };
    let endpoint = client_config.service_endpoint.trim_end_matches('/');
    let compartment = HeaderText::Literal(compartment_id.clone());
    let headers = BTreeMap::from([
        ("CompartmentId".to_owned(), compartment.clone()),
        ("opc-compartment-id".to_owned(), compartment),
    ]);
    let in_form_of_openai = (format!("{endpoint}/{OCI_OPENAI}"), headers);
    let (api, (base_url, headers)): (Box<dyn Api>, _) = match config.api_type.as_deref() {
        Some("openai_chat_completions") => (Box::new(ChatCompletions::default()), in_form_of_openai),
        Some("openai_responses") => (Box::new(Responses), in_form_of_openai),
        _ => {
            let cohere = match config.provider.as_deref() {
                Some(provider) => provider == "COHERE",
                None => config.model_id.starts_with("cohere."),
            };
            let dedicated = serving_mode == "DEDICATED";
            let chat = OciChat { compartment_id: compartment_id.clone(), dedicated, cohere };
            (Box::new(chat), (endpoint.to_owned(), BTreeMap::new()))
        }
    };
    let settings = HttpProviderConfig { base_url: Some(base_url), headers, ..Default::default() };
    Ok(Arc::new(HttpModel::new(name, api, settings, client)?.with(None, more).signed_by(signer)))
}

/// A service account of Google's cloud.
pub struct ServiceAccount {
    email: String,
    key_id: Option<String>,
    key: RsaKeyPair,
    /// The project of the account.
    pub project: Option<String>,
    /// The address at which it gets tokens.
    pub token_uri: Url,
}

impl ServiceAccount {
    /// Reads the credentials of a service account.
    ///
    /// # Errors
    /// A sentence without secrets: a member is missing or unusable.
    pub fn read(credentials: &Value) -> Result<Self, String> {
        let text = |name: &str| {
            let found = credentials[name].as_str();
            found.ok_or_else(|| {
                format!("the credentials of Vertex AI have no `{name}`; use those of a service account")
            })
        };
        let uri = credentials["token_uri"].as_str().unwrap_or("https://oauth2.googleapis.com/token");
        Ok(Self {
            email: text("client_email")?.to_owned(),
            key_id: credentials["private_key_id"].as_str().map(str::to_owned),
            key: private_key(text("private_key")?)?,
            project: credentials["project_id"].as_str().map(str::to_owned),
            token_uri: Url::parse(uri).map_err(|error| format!("`token_uri` is no URL: {error}"))?,
        })
    }

    /// Returns the signed request for a token (RFC 7523).
    fn assertion(&self, now: Timestamp) -> Result<String, String> {
        let begins = now.0 / 1_000;
        let head = json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id});
        let claims = json!({"iss": self.email, "scope": SCOPE, "aud": self.token_uri.as_str(), "iat": begins,
                            "exp": begins + LIFETIME});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&head), part(&claims));
        let signature = signed(&self.key, text.as_bytes())?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// A model of Vertex AI, by its API in the form of OpenAI's.
pub struct VertexModel {
    name: String,
    base_url: String,
    account: ServiceAccount,
    client: Client,
    more: Map<String, Value>,
    clock: Arc<dyn Clock>,
    /// The model with its token, and the end of the token.
    known: Mutex<Option<(Timestamp, Arc<HttpModel>)>>,
}

impl VertexModel {
    /// Returns the models behind an address, with these parameters in every call.
    pub fn new(
        name: &str,
        base_url: String,
        account: ServiceAccount,
        client: Client,
        more: Map<String, Value>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { name: name.to_owned(), base_url, account, client, more, clock, known: Mutex::default() }
    }

    async fn model(&self) -> Result<Arc<HttpModel>, ModelError> {
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        if let Some((ends, model)) = &*known
            && ends.since(now) > SPARE_MS
        {
            return Ok(Arc::clone(model));
        }
        let (token, seconds) = self.token(now).await?;
        let settings = HttpProviderConfig { base_url: Some(self.base_url.clone()), ..Default::default() };
        let api = Box::new(ChatCompletions::default());
        let model = HttpModel::new(&self.name, api, settings, self.client.clone());
        let model = model.map_err(ModelError::Refused)?;
        let model = Arc::new(model.with(Some(token), self.more.clone()));
        *known = Some((now.plus_ms(seconds.saturating_mul(1_000)), Arc::clone(&model)));
        Ok(model)
    }

    /// Gets a token, and its lifetime in seconds.
    async fn token(&self, now: Timestamp) -> Result<(Secret, i64), ModelError> {
        let about = |why: &str| format!("provider {}: a token of the service account: {why}", self.name);
        let assertion = self.account.assertion(now).map_err(|why| ModelError::Refused(about(&why)))?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
            .append_pair("assertion", &assertion)
            .finish();
        let request = self.client.post(self.account.token_uri.clone());
        let sent = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form).send().await;
        let response = sent.map_err(|error| ModelError::Unavailable(about(&outbound::describe(&error))))?;
        let status = response.status();
        let refused = |why: String| match status.is_client_error() {
            true => ModelError::Refused(about(&why)),
            false => ModelError::Unavailable(about(&why)),
        };
        if !status.is_success() {
            return Err(refused(format!("status {}", status.as_u16())));
        }
        let body = outbound::read_body(response, MOST_BYTES).await;
        let body = body.map_err(|error| ModelError::Unavailable(about(&error.to_string())))?;
        let reported: Value = serde_json::from_slice(&body).unwrap_or_default();
        let token = reported["access_token"].as_str();
        let token = token.ok_or_else(|| ModelError::Malformed(about("the answer has none")))?;
        Ok((Secret::given(token), reported["expires_in"].as_i64().unwrap_or(LIFETIME)))
    }
}

#[async_trait]
impl Model for VertexModel {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let model = tokio::time::timeout(request.timeout, self.model()).await.unwrap_or_else(|_| {
            Err(ModelError::Timeout(format!("provider {}: no token came in time", self.name)))
        })?;
        let named = if request.model.contains('/') { String::new() } else { "google/".to_owned() };
        let request = ModelRequest { model: named + &request.model, ..request.clone() };
        model.answer(&request).await
    }

    fn takes_pictures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::fixture::request;
    use crate::oci::tests::key;
    use crate::served::serve;
    use axum::extract::State;
    use axum::http::HeaderMap;
    use axum::routing::post;
    use axum::{Json, Router};
    use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use std::sync::Mutex as Seen;
    use turnstone_domain::SystemClock;

    type Requests = Arc<Seen<Vec<String>>>;

    /// AGS-44: a service account gets one token for several calls, which carry it.
    #[tokio::test]
    async fn vertex_is_asked_with_a_token_of_the_service_account() {
        let seen = Requests::default();
        let token = async |State(seen): State<Requests>, body: String| {
            seen.lock().unwrap().push(body);
            Json(json!({"access_token": "t-1", "expires_in": 3600}))
        };
        let chat = async |State(seen): State<Requests>, headers: HeaderMap, Json(body): Json<Value>| {
            let key = headers["authorization"].to_str().unwrap();
            seen.lock().unwrap().push(format!("{key} {}", body["model"].as_str().unwrap()));
            Json(json!({"choices": [{"message": {"content": "hi"}}]}))
        };
        let app = Router::new()
            .route("/token", post(token))
            .route("/v1/endpoints/openapi/chat/completions", post(chat))
            .with_state(Arc::clone(&seen));
        let (address, _serving) = serve(app).await;
        let url = format!("http://{address}");
        let credentials = json!({"type": "service_account", "client_email": "a@b.example", "private_key": key(),
                                 "private_key_id": "k", "project_id": "p", "token_uri": format!("{url}/token")});
        let account = ServiceAccount::read(&credentials).unwrap();
        let client = outbound::open_client().unwrap();
        let base_url = format!("{url}/v1/endpoints/openapi");
        let model = VertexModel::new("vertex", base_url, account, client, Map::new(), Arc::new(SystemClock));
        for _ in 0..2 {
            assert_eq!(model.answer(&request()).await.unwrap().content.as_deref(), Some("hi"));
        }
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen[1..], ["Bearer t-1 google/m", "Bearer t-1 google/m"]);
        let form: BTreeMap<String, String> =
            url::form_urlencoded::parse(seen[0].as_bytes()).into_owned().collect();
        let assertion = form["assertion"].as_str();
        let (text, signature) = assertion.rsplit_once('.').unwrap();
        let own = private_key(&key()).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, own.public_key().as_ref());
        public.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(text.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!("a@b.example"), &json!(format!("{url}/token"))));
    }

    #[test]
    fn credentials_of_another_kind_are_refused_by_their_member() {
        let user = json!({"type": "authorized_user", "refresh_token": "r"});
        assert!(ServiceAccount::read(&user).err().unwrap().contains("client_email"));
    }
}
