//! Serves the example tools: `cargo run -p turnstone-examples --example tool-server -- 7480`.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use turnstone_examples::{TOOL_SERVER_PORT, tool_server};

#[tokio::main]
async fn main() -> ExitCode {
    let port = match std::env::args().nth(1).map(|port| port.parse::<u16>()) {
        None => TOOL_SERVER_PORT,
        Some(Ok(port)) => port,
        Some(Err(_)) => {
            eprintln!("usage: tool-server [PORT]   (0 picks a free port; default {TOOL_SERVER_PORT})");
            return ExitCode::from(2);
        }
    };
    match serve(port).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the tool server cannot listen on port {port}: {error}; give another port as argument");
            ExitCode::FAILURE
        }
    }
}

async fn serve(port: u16) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let address = listener.local_addr()?;
    println!("example tools on http://{address} - the calls they saw: http://{address}/log");
    axum::serve(listener, tool_server())
        .with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) })
        .await
}
