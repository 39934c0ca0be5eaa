//! An identity provider: a discovery document and a key set over real HTTP, and tokens that it signs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::task::AbortOnDropHandle;

/// An RSA key, because ring generates none. It signs nothing but the tokens of these tests.
const RSA: &str = include_str!("token_issuer/rsa-2048.der.base64");

/// Returns bytes in base64url without padding.
#[must_use]
pub fn url_safe(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// A key that signs tokens.
pub enum TokenKey {
    /// P-256.
    Ec(EcdsaKeyPair),
    /// Ed25519.
    Ed(Ed25519KeyPair),
    /// RSA of 2,048 bits.
    Rsa(Box<RsaKeyPair>),
    /// A symmetric key; its bytes may be a public key.
    Hmac(Vec<u8>),
    /// `alg: none`.
    None,
}

impl TokenKey {
    /// Generates a key on the curve P-256.
    pub fn ec() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .expect("the test's own data");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random);
        Self::Ec(key.expect("the test's own data"))
    }

    /// Generates an Ed25519 key.
    pub fn ed() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("the test's own data");
        Self::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("the test's own data"))
    }

    /// Returns the one RSA key.
    pub fn rsa() -> Self {
        let text: String = RSA.split_whitespace().collect();
        let key = RsaKeyPair::from_der(&BASE64_STANDARD.decode(text).expect("the test's own data"));
        Self::Rsa(Box::new(key.expect("the test's own data")))
    }

    /// Returns the algorithm as headers name it.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
            Self::Hmac(_) => "HS256",
            Self::None => "none",
        }
    }

    /// Returns the bytes of the public key.
    pub fn public(&self) -> Vec<u8> {
        match self {
            Self::Ec(key) => key.public_key().as_ref().to_vec(),
            Self::Ed(key) => key.public_key().as_ref().to_vec(),
            Self::Rsa(key) => key.public().as_ref().to_vec(),
            Self::Hmac(_) | Self::None => Vec::new(),
        }
    }

    /// Returns the public key as a member of a key set.
    pub fn listed(&self, id: &str) -> Value {
        let public = self.public();
        match self {
            Self::Ec(_) => {
                let (x, y) = (url_safe(&public[1..33]), url_safe(&public[33..]));
                json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": x, "y": y})
            }
            Self::Ed(_) => json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": url_safe(&public)}),
            Self::Rsa(key) => {
                let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "kid": id, "alg": "RS256", "n": url_safe(&n), "e": url_safe(&e)})
            }
            Self::Hmac(key) => json!({"kty": "oct", "kid": id, "k": url_safe(key)}),
            Self::None => json!({"kty": "none", "kid": id}),
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(key) => key.sign(&random, message).expect("the test's own data").as_ref().to_vec(),
            Self::Ed(key) => key.sign(message).as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("the test's own data");
                signature
            }
            Self::Hmac(key) => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec(),
            Self::None => Vec::new(),
        }
    }

    /// Returns a token with this header and these claims.
    pub fn token_of(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| url_safe(value.to_string().as_bytes());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = url_safe(&self.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// Returns a token that names this key.
    pub fn token(&self, id: &str, claims: &Value) -> String {
        self.token_of(&json!({"typ": "JWT", "alg": self.algorithm(), "kid": id}), claims)
    }
}

struct Served {
    keys: Value,
    issuer: String,
    is_down: bool,
    reads: usize,
}

/// The identity provider.
pub struct TokenIssuer {
    /// Its address, which is its name.
    pub url: String,
    served: Arc<Mutex<Served>>,
    _serving: AbortOnDropHandle<std::io::Result<()>>,
}

impl TokenIssuer {
    /// Starts one with this key set.
    pub async fn start(keys: &[Value]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("the test's own data");
        let url = format!("http://{}/realm", listener.local_addr().expect("the test's own data"));
        let served = Served { keys: json!({"keys": keys}), issuer: url.clone(), is_down: false, reads: 0 };
        let served = Arc::new(Mutex::new(served));
        let app = Router::new()
            .route("/realm/.well-known/openid-configuration", get(discovery))
            .route("/realm/keys", get(key_set))
            .with_state(Arc::clone(&served));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, served, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Replaces the key set.
    pub fn serve(&self, keys: &[Value]) {
        self.served.lock().expect("the test's own data").keys = json!({"keys": keys});
    }

    /// Sets the issuer that the discovery document names.
    pub fn call_itself(&self, issuer: &str) {
        self.served.lock().expect("the test's own data").issuer = issuer.to_owned();
    }

    /// From now on every request is answered by 500, or as usual.
    pub fn go_down(&self, is_down: bool) {
        self.served.lock().expect("the test's own data").is_down = is_down;
    }

    /// Returns how often the key set was read.
    pub fn reads(&self) -> usize {
        self.served.lock().expect("the test's own data").reads
    }
}

async fn discovery(State(served): State<Arc<Mutex<Served>>>) -> Response {
    let served = served.lock().expect("the test's own data");
    if served.is_down {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let issuer = &served.issuer;
    let keys = format!("{issuer}/keys");
    Json(json!({"issuer": issuer, "jwks_uri": keys})).into_response()
}

async fn key_set(State(served): State<Arc<Mutex<Served>>>) -> Response {
    let mut served = served.lock().expect("the test's own data");
    served.reads += 1;
    if served.is_down {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    Json(served.keys.clone()).into_response()
}
