//! An API that other machines can reach needs a key.

use std::net::SocketAddr;

/// The API would be open to the network without a key.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{bind} can be reached from other machines, and no API key is configured: any client could run jobs and tools. \
     Bind to 127.0.0.1 or [::1], or configure at least one API key or issuer of tokens."
)]
pub struct ExposureError {
    /// The address.
    pub bind: SocketAddr,
}

/// Refuses an address that is not loopback when clients need neither a key nor a token.
///
/// # Errors
/// [`ExposureError`], which contains the fix.
pub fn check_exposure(bind: SocketAddr, needs_key: bool) -> Result<(), ExposureError> {
    if bind.ip().to_canonical().is_loopback() || needs_key { Ok(()) } else { Err(ExposureError { bind }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open() {
        for (bind, open) in [
            ("127.0.0.1:8080", true),
            ("127.9.9.9:1", true),
            ("[::1]:8080", true),
            ("[::ffff:127.0.0.1]:8080", true),
            ("0.0.0.0:8080", false),
            ("[::]:8080", false),
            ("192.168.1.2:8080", false),
        ] {
            assert_eq!(check_exposure(bind.parse().unwrap(), false).is_ok(), open, "{bind}");
        }
        let error = check_exposure("0.0.0.0:80".parse().unwrap(), false).unwrap_err().to_string();
        assert!(error.contains("0.0.0.0:80") && error.contains("API key"), "{error}");
    }
}
