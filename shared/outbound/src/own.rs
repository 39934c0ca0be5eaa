//! The addresses on which this server listens. A tool that called them could answer its own reviews.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use turnstone_domain::address::{only_public, without_metadata};
use url::{Host, Url};

/// The addresses on which this server listens, and the names under which clients reach it.
#[derive(Clone, Debug, Default)]
pub struct OwnAddresses {
    bound: Arc<[SocketAddr]>,
    /// Names in lower case, with their ports.
    named: Arc<[(String, u16)]>,
}

impl OwnAddresses {
    /// Returns these addresses, and those of `written`: an address or a name, each with its port. Port 0 is none.
    ///
    /// # Errors
    /// A sentence that names the text without a port.
    pub fn new(bound: Vec<SocketAddr>, written: &[String]) -> Result<Self, String> {
        let (mut bound, mut named) = (bound, Vec::new());
        for text in written {
            let name = || {
                let (name, port) = text.rsplit_once(':')?;
                Some((name.trim_end_matches('.').to_ascii_lowercase(), port.parse::<u16>().ok()?))
            };
            match (text.parse::<SocketAddr>(), name()) {
                (Ok(address), _) => bound.push(address),
                (Err(_), Some((name, port))) if !name.is_empty() => named.push((name, port)),
                _ => {
                    return Err(format!("`{text}` is no address with a port, such as `api.example.com:443`"));
                }
            }
        }
        bound.retain(|address| address.port() != 0);
        Ok(Self { bound: bound.into(), named: named.into() })
    }

    /// Returns true if the server listens on this port, at some address.
    #[must_use]
    pub fn has_port(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        self.bound.iter().any(|own| Some(own.port()) == port)
    }

    /// Checks that a URL does not name one of them. A name is also checked when it is resolved: see
    /// [`OwnAddresses::resolver`].
    ///
    /// # Errors
    /// A sentence that names the address.
    pub fn check(&self, url: &Url) -> Result<(), String> {
        let Some(port) = url.port_or_known_default() else { return Ok(()) };
        let is_own = match url.host() {
            Some(Host::Ipv4(ip)) => self.is_own(SocketAddr::new(ip.into(), port)),
            Some(Host::Ipv6(ip)) => self.is_own(SocketAddr::new(ip.into(), port)),
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                self.named.iter().any(|(own, of)| *of == port && own.eq_ignore_ascii_case(name))
            }
            None => false,
        };
        match is_own {
            true => {
                let host = url.host_str().unwrap_or_default();
                Err(format!("{host}:{port} is an address of this server, which its tools never call"))
            }
            false => Ok(()),
        }
    }

    /// Returns true if a connection to this address would reach this server.
    #[must_use]
    pub fn is_own(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        self.bound.iter().filter(|own| own.port() == address.port()).any(|own| {
            let own = own.ip().to_canonical();
            own == ip
                || (ip.is_unspecified() && own.is_loopback())
                || (own.is_unspecified() && (ip.is_unspecified() || is_of_this_machine(ip)))
        })
    }

    /// Returns the resolver for a URL: it leaves out metadata services, everything that is not public if `public`, and the
    /// addresses at which the URL's port is this server's.
    #[must_use]
    pub fn resolver(&self, url: &Url, public: bool) -> OwnResolver {
        OwnResolver { own: self.clone(), port: url.port_or_known_default().unwrap_or_default(), public }
    }
}

/// Returns true if an address is one of this machine: only such an address can be bound.
fn is_of_this_machine(ip: std::net::IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// The system's resolver for calls to one port, without this server's addresses.
#[derive(Clone, Debug)]
pub struct OwnResolver {
    own: OwnAddresses,
    port: u16,
    public: bool,
}

impl Resolve for OwnResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { own, port, public } = self.clone();
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let found = match public {
                true => only_public(&name, found)?,
                false => without_metadata(&name, found)?,
            };
            let others = found.into_iter().filter(|address| !own.is_own(SocketAddr::new(address.ip(), port)));
            let others: Vec<SocketAddr> = others.collect();
            if others.is_empty() {
                return Err(format!("{name}:{port} is this server itself, which its tools never call").into());
            }
            Ok(Box::new(others.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(bound: &str) -> OwnAddresses {
        OwnAddresses::new(vec![bound.parse().unwrap()], &["Api.example.com:443".to_owned()]).unwrap()
    }

    #[test]
    fn every_notation_of_an_own_address_is_refused() {
        let refused = |own: &OwnAddresses, text: &str| own.check(&Url::parse(text).unwrap()).is_err();
        let loopback = own("127.0.0.1:8080");
        for text in [
            "http://127.0.0.1:8080/reviews",
            "http://127.1:8080/",
            "http://2130706433:8080/",
            "http://[::ffff:127.0.0.1]:8080/",
            "http://0.0.0.0:8080/",
            "https://API.example.com/",
            "https://api.example.com.:443/",
        ] {
            assert!(refused(&loopback, text), "{text}");
        }
        for text in [
            "http://127.0.0.1:8081/",
            "http://127.0.0.1/",
            "http://192.0.2.7:8080/",
            "http://api.example.com/",
        ] {
            assert!(!refused(&loopback, text), "{text}");
        }
        for (bound, text) in [
            ("0.0.0.0:80", "http://127.0.0.1/"),
            ("[::]:80", "http://127.0.0.9/"),
            ("[::]:80", "http://[::1]/"),
            ("192.0.2.7:443", "https://192.0.2.7/"),
        ] {
            assert!(refused(&own(bound), text), "{bound} {text}");
        }
        assert!(!refused(&own("0.0.0.0:80"), "http://192.0.2.7/"), "an address of another machine");
    }

    #[test]
    fn an_address_has_a_port() {
        for bad in ["api.example.com", ":80", "api.example.com:https"] {
            assert!(OwnAddresses::new(Vec::new(), &[bad.to_owned()]).unwrap_err().contains(bad));
        }
        let free = OwnAddresses::new(vec!["127.0.0.1:0".parse().unwrap()], &[]).unwrap();
        assert!(!free.is_own("127.0.0.1:0".parse().unwrap()));
    }

    #[tokio::test]
    async fn a_name_of_an_own_address_is_not_resolved_for_its_port() {
        let loopback =
            OwnAddresses::new(vec!["127.0.0.1:8080".parse().unwrap(), "[::1]:8080".parse().unwrap()], &[])
                .unwrap();
        let resolve = async |url: &str| {
            let resolver = loopback.resolver(&Url::parse(url).unwrap(), false);
            resolver
                .resolve("localhost".parse().unwrap())
                .await
                .map(Iterator::count)
                .map_err(|e| e.to_string())
        };
        assert!(resolve("http://localhost:8080/").await.unwrap_err().contains("this server itself"));
        assert!(resolve("http://localhost:8081/").await.unwrap() > 0);
    }
}
