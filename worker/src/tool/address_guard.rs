//! The address guard: calls that a model or a document can steer reach public addresses only.
//!
//! It checks in two places, because neither is enough. [`check_url`] checks the text of the URL, because an
//! IP literal never reaches a resolver. [`PublicResolver`](turnstone_outbound::PublicResolver) checks the addresses of a name when the connection
//! is made, so that a name that changes after the check gains nothing. Clients behind the guard follow no
//! redirect and use no proxy.

pub use turnstone_domain::address::{check_form, check_url, is_public};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::outbound;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use url::Url;

    #[tokio::test]
    async fn a_guarded_client_never_reaches_a_local_listener() {
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = seen.clone();
        let app = axum::Router::new().fallback(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            async { "reached" }
        });
        let (address, _serving) = crate::served::serve(app).await;
        let port = address.port();

        let guarded = outbound::guarded_client().unwrap();
        // The resolver alone, without the check of the URL: a name of a loopback address is refused.
        let by_name = guarded.get(format!("http://localhost:{port}/")).send().await.unwrap_err();
        assert!(
            outbound::describe(&by_name).contains("no public address"),
            "{}",
            outbound::describe(&by_name)
        );
        for literal in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"] {
            assert!(
                check_url(&Url::parse(&format!("http://{literal}:{port}/")).unwrap()).is_err(),
                "{literal}"
            );
        }
        assert_eq!(seen.load(Ordering::SeqCst), 0, "the listener was reached");

        let open = outbound::open_client().unwrap();
        let text = open.get(format!("http://localhost:{port}/")).send().await.unwrap().text().await.unwrap();
        assert_eq!((text.as_str(), seen.load(Ordering::SeqCst)), ("reached", 1));
    }
}
