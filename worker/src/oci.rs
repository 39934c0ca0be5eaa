//! Requests to Oracle's cloud: the profile of a configuration file, and the signature of a request (OCI request
//! signatures, version 1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue,
};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use turnstone_domain::{Clock, Timestamp};
use url::Url;

/// The headers that are signed, in this order.
const SIGNED: &str = "date (request-target) host content-length content-type x-content-sha256";

/// A key of the cloud with its id.
pub struct OciSigner {
    key_id: String,
    key: RsaKeyPair,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for OciSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OciSigner").finish_non_exhaustive()
    }
}

impl OciSigner {
    /// Reads a profile of a configuration file: its key, and with `by_token` its security token.
    ///
    /// # Errors
    /// A sentence without secrets: the file, the profile, an entry or the key is missing or unusable.
    pub fn read(file: &Path, profile: &str, by_token: bool, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let about = |why: String| format!("the profile `{profile}` of {}: {why}", file.display());
        let text = read_file(file)?;
        let entries = section(&text, profile).ok_or_else(|| about("there is none".to_owned()))?;
        let entry = |name: &str| {
            entries.get(name).map(String::as_str).ok_or_else(|| about(format!("it has no `{name}`")))
        };
        let beside = |path: &str| match path.strip_prefix("~/") {
            Some(rest) => std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(rest),
            None => file.parent().unwrap_or(Path::new("")).join(path),
        };
        let key = private_key(&read_file(&beside(entry("key_file")?))?).map_err(about)?;
        let key_id = match by_token {
            true => format!("ST${}", read_file(&beside(entry("security_token_file")?))?.trim()),
            false => format!("{}/{}/{}", entry("tenancy")?, entry("user")?, entry("fingerprint")?),
        };
        Ok(Self { key_id, key, clock })
    }

    /// Returns the headers of a POST request with a JSON body.
    ///
    /// # Errors
    /// A sentence: the key cannot sign.
    pub fn headers(&self, url: &Url, body: &[u8]) -> Result<HeaderMap, String> {
        let date = date(self.clock.now());
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("{}{port}", url.host_str().unwrap_or_default());
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let digest = STANDARD.encode(digest(&SHA256, body));
        let text = format!(
            "date: {date}\n(request-target): post {}{query}\nhost: {host}\ncontent-length: {}\n\
             content-type: application/json\nx-content-sha256: {digest}",
            url.path(),
            body.len()
        );
        let signature = STANDARD.encode(signed(&self.key, text.as_bytes())?);
        let authorization = format!(
            "Signature version=\"1\",headers=\"{SIGNED}\",keyId=\"{}\",algorithm=\"rsa-sha256\",signature=\"{signature}\"",
            self.key_id
        );
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (DATE, date),
            (CONTENT_TYPE, "application/json".to_owned()),
            (CONTENT_LENGTH, body.len().to_string()),
            (HeaderName::from_static("x-content-sha256"), digest),
            (AUTHORIZATION, authorization),
        ] {
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| "its key id cannot be sent in a header".to_owned())?;
            value.set_sensitive(name == AUTHORIZATION);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// Reads an RSA key in PEM.
///
/// # Errors
/// A sentence without the key.
pub fn private_key(pem: &str) -> Result<RsaKeyPair, String> {
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "its key is no private key in PEM; keys with a pass phrase are not read".to_owned())?;
    let pair = match &der {
        PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        _ => return Err("its key is no RSA key".to_owned()),
    };
    pair.map_err(|error| format!("its key is no RSA key: {error}"))
}

/// Returns a signature with SHA-256 and the padding of PKCS #1.
///
/// # Errors
/// A sentence: the key cannot sign.
pub fn signed(key: &RsaKeyPair, text: &[u8]) -> Result<Vec<u8>, String> {
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature)
        .map_err(|_| "its key cannot sign".to_owned())?;
    Ok(signature)
}

/// Returns a file that the operator allows.
fn read_file(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// The entries of a section of a file of `[NAME]` and `key=value` lines.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found = None;
    let mut is_it = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_it = head.trim() == name;
            if is_it {
                found.get_or_insert_with(BTreeMap::new);
            }
        } else if let (true, Some((key, value))) = (is_it, line.split_once('=')) {
            found.get_or_insert_with(BTreeMap::new).insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    found
}

fn date(now: Timestamp) -> String {
    let at = DateTime::from_timestamp_millis(now.0).unwrap_or_default();
    at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use turnstone_domain::SystemClock;

    /// A key in PEM that was made for these tests and is used nowhere else.
    pub fn key() -> String {
        let of = |edge: &str| format!("-----{edge} PRIVATE KEY-----\n");
        format!("{}{}{}", of("BEGIN"), include_str!("oci_test_key.txt"), of("END"))
    }

    pub fn signer() -> Arc<OciSigner> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(folder.path().join("key.pem"), key()).unwrap();
        let text = "[DEFAULT]\nuser=other\n# a note\n[TESTS]\nuser=ocid1.user\ntenancy = ocid1.tenancy\n\
                    fingerprint=20:3b\nkey_file=key.pem\n";
        std::fs::write(&file, text).unwrap();
        Arc::new(OciSigner::read(&file, "TESTS", false, Arc::new(SystemClock)).unwrap())
    }

    /// Asserts that a request is signed as the cloud's documentation says.
    pub fn assert_signed(headers: &HeaderMap, target: &str, body: &[u8]) {
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(text("x-content-sha256"), STANDARD.encode(digest(&SHA256, body)));
        let authorization = text("authorization");
        let part = |name: &str| {
            let begin = authorization.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
            let rest = &authorization[begin..];
            rest[..rest.find('"').unwrap()].to_owned()
        };
        assert_eq!(part("keyId"), "ocid1.tenancy/ocid1.user/20:3b");
        let signed: Vec<String> = part("headers")
            .split(' ')
            .map(|name| match name {
                "(request-target)" => format!("{name}: {target}"),
                name => format!("{name}: {}", text(name)),
            })
            .collect();
        let key = private_key(&key()).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
        let signature = STANDARD.decode(part("signature")).unwrap();
        public.verify(signed.join("\n").as_bytes(), &signature).expect("a signature of the headers");
    }

    #[test]
    fn a_profile_that_lacks_something_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, "[A]\nuser=u\n[B]\nkey_file=none.pem\n").unwrap();
        let read =
            |profile| OciSigner::read(&file, profile, false, Arc::new(SystemClock)).map(|_| ()).unwrap_err();
        assert!(read("A").contains("no `key_file`") && read("B").contains("none.pem"));
        assert!(read("C").contains("there is none"));
        assert!(private_key("nothing").unwrap_err().contains("no private key"));
    }
}
