//! Servers that ask for a certificate of the client: the files that a document names prove the worker.

use super::{end, flow, job, part, property, register, start, then};
use crate::openagentspec::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use turnstone_domain::Clock;
use turnstone_tests::Fleet;
use turnstone_worker::tool::ToolPolicy;

/// The settings of a server with the files of a folder, which accepts clients of the same authority only.
fn settings(folder: &Path) -> ServerConfig {
    let certificate = |name: &str| CertificateDer::from_pem_file(folder.join(name)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let builder = ServerConfig::builder().with_client_cert_verifier(verifier);
    builder.with_single_cert(vec![certificate("cert.pem")], key).unwrap()
}

/// Answers each call of a model with `proven`; its thread ends with the test process.
fn serve(folder: &Path) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, settings) = (listener.local_addr().unwrap().port(), Arc::new(settings(folder)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&settings)).unwrap();
            // A client without a certificate fails here.
            let _ = answer(StreamOwned::new(connection, stream));
        }
    });
    port
}

fn answer(stream: StreamOwned<ServerConnection, std::net::TcpStream>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while stream.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    stream.read_exact(&mut vec![0; length])?;
    let body = json!({"choices": [{"message": {"content": "proven"}}]}).to_string();
    let size = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
    );
    stream.get_mut().write_all((head + &body).as_bytes())?;
    stream.get_mut().flush()
}

/// A flow with one call of the model behind a port.
fn asking(port: u16, folder: &Path, files: &[&str]) -> Value {
    let mut fields = json!({"model_id": "m", "url": format!("https://127.0.0.1:{port}")});
    for name in files {
        let file = folder.join(format!("{}.pem", name.trim_end_matches("_file")));
        fields[*name] = file.to_str().unwrap().into();
    }
    let model = part("OpenAiCompatibleConfig", "llm", fields);
    let node = part("LlmNode", "look", json!({"llm_config": model, "prompt_template": "look"}));
    let nodes = [start("start", &[]), node, end("end", &[property("generated_text", "string")])];
    flow("proving", &nodes, &[then("start", "look"), then("look", "end")], &[])
}

/// AGS-41: a model behind mTLS is called with the certificate that the document names, when the operator allows the files.
#[tokio::test]
async fn a_model_behind_mtls_is_called_with_the_named_certificate() {
    turnstone_tests::fleet::install_crypto();
    let folder = turnstone_tests::scratch::folder();
    Authority::new().equip(folder.path());
    let port = serve(folder.path());
    for (allowed, files, outcome) in [
        (true, &["key_file", "cert_file", "ca_file"][..], "proven"),
        (true, &["ca_file"][..], "both are needed"),
        (false, &["key_file", "cert_file", "ca_file"][..], "allowed_files"),
        (true, &[][..], "certificate"),
    ] {
        let mut fleet = Fleet::builder().workers(0).start().await;
        let policy = ToolPolicy {
            allowed_hosts: vec!["127.0.0.1".to_owned()],
            allowed_files: if allowed { vec![folder.path().to_owned()] } else { Vec::new() },
            allow_private: true,
            ..ToolPolicy::default()
        };
        fleet.add_worker_with(1, |mut deps| {
            let clock: Arc<dyn Clock> = Arc::clone(&deps.clock);
            deps.toolbox = deps.toolbox.with_policy(policy, &clock).expect("a policy");
            deps
        });
        let name = register(&fleet, asking(port, folder.path(), files)).await;
        let mut job = job(&name, &json!({}));
        job["options"] = json!({"retry": {"max_attempts": 1}});
        let ended = fleet.settled(&fleet.push(&job).await).await;
        assert!(ended.to_string().contains(outcome), "{files:?}: {ended:#}");
        fleet.end().await;
    }
}
