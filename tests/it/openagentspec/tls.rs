//! The API over TLS, in the real program.

use super::Authority;
use crate::program::{Program, run};
use serde_json::json;
use std::path::Path;
use turnstone_tests::documents::oas;

fn set_up(folder: &Path, cert: &str, key: &str) {
    let settings = format!(
        "[server]\nbind = '127.0.0.1:0'\n[server.tls]\ncert = '{cert}'\nkey = '{key}'\n[agents]\ndir = 'agents'\n"
    );
    std::fs::create_dir_all(folder.join("agents")).unwrap();
    std::fs::write(folder.join("agents/desk.yaml"), oas("desk", "")).unwrap();
    std::fs::write(folder.join("turnstone.toml"), settings).unwrap();
}

/// OAS-69, OAS-72, OAS-75: with a certificate, definitions, POST and state are HTTPS, and plain HTTP is refused.
#[tokio::test]
async fn the_agents_are_served_over_https() {
    turnstone_tests::fleet::install_crypto();
    let folder = turnstone_tests::scratch::folder();
    let authority = Authority::new();
    authority.equip(folder.path());
    set_up(folder.path(), "cert.pem", "key.pem");
    let mut program = Program::start(folder.path(), &["dev"], &[]);
    let said = program.says("https://127.0.0.1:").await;
    let url = said.split_whitespace().find(|word| word.starts_with("https://127.0.0.1:")).unwrap();
    let http = authority.client();
    let definition = http.get(format!("{url}/agents/desk")).send().await.unwrap();
    assert_eq!(definition.headers()["content-type"], "application/yaml");
    let begun = http.post(format!("{url}/agents/desk")).json(&json!({"input": "hi"})).send().await.unwrap();
    assert_eq!(begun.status(), 303);
    let place = begun.headers()["location"].to_str().unwrap().to_owned();
    let state = http.get(format!("{url}{place}")).send().await.unwrap();
    assert_eq!(state.json::<serde_json::Value>().await.unwrap()["agent"], "desk");
    let plain = url.replace("https://", "http://");
    assert!(http.get(format!("{plain}/livez")).send().await.is_err(), "it answers without TLS");
    let stranger = reqwest::Client::builder().no_proxy().build().unwrap();
    assert!(stranger.get(format!("{url}/livez")).send().await.is_err(), "it is trusted by a stranger");
    program.stop().await;
}

/// A client that does not trust the certificate reports that, and not an unreachable server.
#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_named() {
    turnstone_tests::fleet::install_crypto();
    let folder = turnstone_tests::scratch::folder();
    Authority::new().equip(folder.path());
    set_up(folder.path(), "cert.pem", "key.pem");
    let mut program = Program::start(folder.path(), &["dev"], &[]);
    let said = program.says("https://127.0.0.1:").await;
    let url = said.split_whitespace().find(|word| word.starts_with("https://127.0.0.1:")).unwrap().to_owned();
    let client = turnstone_tests::scratch::folder();
    let list = ["job", "list", "--url", &url];
    let refused = run(client.path(), &list, &[]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in ["the certificate of", "is refused", "UnknownIssuer", "SSL_CERT_FILE"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    assert!(!refused.stderr.contains("turnstone dev"), "a server is there: {refused:?}");
    let authority = folder.path().join("ca.pem");
    let trusted = run(client.path(), &list, &[("SSL_CERT_FILE", authority.to_str().unwrap())]).await;
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let settings = format!("[mcp.far]\nurl = '{url}/mcp'\nallow_private = true\n");
    std::fs::write(client.path().join("turnstone.toml"), settings).unwrap();
    let checked = run(client.path(), &["mcp", "check"], &[]).await;
    assert!(checked.stdout.contains("the server's certificate is refused"), "{checked:?}");
    program.stop().await;
}

/// OAS-69: SIGHUP reloads the certificate. New connections get the new one, open connections stay, and unusable files
/// change nothing.
#[tokio::test]
async fn a_new_certificate_is_loaded_without_a_restart() {
    turnstone_tests::fleet::install_crypto();
    let folder = turnstone_tests::scratch::folder();
    let (old, new) = (Authority::new(), Authority::new());
    old.equip(folder.path());
    set_up(folder.path(), "cert.pem", "key.pem");
    let mut program = Program::start(folder.path(), &["dev"], &[]);
    let said = program.says("https://127.0.0.1:").await;
    let url = said.split_whitespace().find(|word| word.starts_with("https://127.0.0.1:")).unwrap().to_owned();
    let alive = async |http: &reqwest::Client| {
        http.get(format!("{url}/livez")).send().await.is_ok_and(|answer| answer.status() == 200)
    };
    let connected = old.client();
    assert!(alive(&connected).await);
    std::fs::write(folder.path().join("cert.pem"), "no certificate").unwrap();
    program.signal("HUP");
    program.warns("the api keeps its current one").await;
    assert!(alive(&old.client()).await, "the old certificate is still there");
    new.equip(folder.path());
    program.signal("HUP");
    program.warns("the certificate was read again").await;
    assert!(alive(&new.client()).await, "a new connection gets the new one");
    assert!(!alive(&old.client()).await, "no new connection gets the old one");
    assert!(alive(&connected).await, "an open connection stays");
    program.stop().await;
}

/// OAS-69: files that are no certificate and key are refused at the start, by name.
#[tokio::test]
async fn bad_certificates_are_refused_by_name() {
    let folder = turnstone_tests::scratch::folder();
    Authority::new().equip(folder.path());
    let other = turnstone_tests::scratch::folder();
    Authority::new().equip(other.path());
    std::fs::write(folder.path().join("odd.pem"), "no certificate").unwrap();
    std::fs::copy(other.path().join("key.pem"), folder.path().join("other.pem")).unwrap();
    for (cert, key, words) in [
        ("gone.pem", "key.pem", "gone.pem"),
        ("odd.pem", "key.pem", "odd.pem"),
        ("cert.pem", "odd.pem", "odd.pem"),
        ("cert.pem", "other.pem", "other.pem"),
    ] {
        set_up(folder.path(), cert, key);
        let ran = run(folder.path(), &["dev"], &[]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("[server.tls]") && ran.stderr.contains(words), "{cert} {key}: {ran:?}");
    }
}
