//! Addresses from outside, and the check that they belong to the public internet.
//!
//! A URL from a model, a document or a client is checked twice, because neither check is enough alone. [`check_url`]
//! checks the text: an IP literal never reaches a resolver. [`is_public`] checks the resolved address when the
//! connection is made, so a name that changes between check and use gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use url::{Host, Url};

/// IPv4 blocks that are not the public internet: network, prefix length.
const REFUSED_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // the machine's own service address at Azure
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, and the metadata service of most clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24),  // AS112
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, broadcast
];

/// IPv6 blocks inside 2000::/3 that carry something else than ordinary hosts: network, prefix length.
const REFUSED_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which carries any IPv4 address
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// The metadata services of clouds, which give the credentials of a machine to its programs.
const METADATA: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// The names of metadata services.
const METADATA_NAMES: [&str; 2] = ["metadata.google.internal", "metadata.goog"];

/// Returns true if an address is the metadata service of a cloud, which no configuration opens.
#[must_use]
pub fn is_metadata(address: IpAddr) -> bool {
    METADATA.contains(&address.to_canonical())
}

/// Returns true if an address belongs to an ordinary host of the public internet. Everything else is refused: loopback,
/// private, link-local, shared, mapped, translated, multicast, documentation, unassigned.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !REFUSED_V4
            .iter()
            .any(|(net, len)| same_prefix(v4.to_bits().into(), net.to_bits().into(), 32, *len)),
        IpAddr::V6(v6) => {
            v6.segments()[0] & 0xe000 == 0x2000
                && !REFUSED_V6.iter().any(|(net, len)| same_prefix(v6.to_bits(), net.to_bits(), 128, *len))
        }
    }
}

fn same_prefix(address: u128, network: u128, width: u32, length: u32) -> bool {
    (address >> (width - length)) == (network >> (width - length))
}

/// Checks a URL without resolving it: scheme, credentials, and a host that is an IP address. The notation does not
/// matter: the url crate has normalised `0x7f.1` and `2130706433` by now.
///
/// # Errors
/// A sentence that names what is refused.
pub fn check_url(url: &Url) -> Result<(), String> {
    check_parts(url)?;
    let refused = |what: &str| {
        Err(format!("{what} is not a public address; it is reached only with allow_private = true"))
    };
    match url.host() {
        Some(Host::Ipv4(v4)) if !is_public(v4.into()) => refused(&v4.to_string()),
        Some(Host::Ipv6(v6)) if !is_public(v6.into()) => refused(&v6.to_string()),
        Some(Host::Domain(name)) if is_local_name(name) => refused(name),
        _ => check_form(url),
    }
}

/// Checks a URL that is still a text. With `allow_private`, only its form is checked.
///
/// # Errors
/// A sentence that names what is refused.
pub fn check_text(text: &str, allow_private: bool) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("it is not a URL: {error}"))?;
    if allow_private { check_form(&url) } else { check_url(&url) }
}

/// Checks scheme, host and credentials, which apply to every URL, guarded or not. No URL may name the metadata service of
/// a cloud.
///
/// # Errors
/// A sentence that names what is refused. Credentials are not repeated.
pub fn check_form(url: &Url) -> Result<(), String> {
    check_parts(url)?;
    let is_refused = match url.host() {
        Some(Host::Ipv4(v4)) => is_metadata(v4.into()),
        Some(Host::Ipv6(v6)) => is_metadata(v6.into()),
        Some(Host::Domain(name)) => {
            METADATA_NAMES.contains(&name.trim_end_matches('.').to_ascii_lowercase().as_str())
        }
        None => false,
    };
    match url.host_str().filter(|_| is_refused) {
        Some(host) => Err(format!("{host} is the metadata service of a cloud, which is never called")),
        None => Ok(()),
    }
}

/// Checks scheme, host and credentials.
fn check_parts(url: &Url) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("the scheme {} is refused; only http and https are called", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "a user or password in the URL is refused; use a header with a secret reference".to_owned()
        );
    }
    if url.host().is_none() {
        return Err("the URL has no host".to_owned());
    }
    Ok(())
}

fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns the addresses of a name that belong to the public internet.
///
/// # Errors
/// A sentence that says that the name has none.
pub fn only_public(name: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
    let public: Vec<SocketAddr> = found.into_iter().filter(|address| is_public(address.ip())).collect();
    if public.is_empty() {
        return Err(format!(
            "{name} has no public address; others are reached only with allow_private = true"
        ));
    }
    Ok(public)
}

/// Returns the addresses of a name that are no metadata services of clouds.
///
/// # Errors
/// A sentence that says that the name has no others.
pub fn without_metadata(name: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
    let others: Vec<SocketAddr> = found.into_iter().filter(|address| !is_metadata(address.ip())).collect();
    if others.is_empty() {
        return Err(format!("{name} has no address that may be called"));
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &[&str] = &[
        // loopback, in the notations that have fooled filters
        "http://127.0.0.1/",
        "http://127.0.0.1:8080/",
        "http://127.1/",
        "http://127.0.1/",
        "http://127.255.255.254/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://0177.0.0.01/",
        "http://017700000001/",
        "http://0x7f.0x0.0x0.0x1/",
        "http://%31%32%37.0.0.1/",
        "http://１２７.０.０.１/",
        "http://127。0。0。1/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127.0.0.1./",
        "http://0/",
        "http://0.0.0.0/",
        "http://0.1.2.3/",
        "http://localhost/",
        "http://LOCALHOST/",
        "http://localhost./",
        "http://api.localhost/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::]/",
        // IPv4 inside IPv6
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::ffff:8.8.8.8]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b::808:808]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[2001:0:53aa:64c::1]/",
        // private and shared
        "http://10.0.0.1/",
        "http://10.255.255.255/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.0.1/",
        "http://192.168.1.1:8443/",
        "http://3232235777/",
        "http://100.64.0.1/",
        "http://100.127.255.255/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fec0::1]/",
        // link-local and metadata services
        "http://169.254.169.254/latest/meta-data/",
        "http://169.254.170.2/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fe80::1]/",
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://192.0.0.192/",
        // multicast, documentation, benchmarks, reserved
        "http://224.0.0.1/",
        "http://239.255.255.250/",
        "http://240.0.0.1/",
        "http://255.255.255.255/",
        "http://192.0.2.1/",
        "http://198.18.0.1/",
        "http://198.51.100.7/",
        "http://203.0.113.7/",
        "http://192.88.99.1/",
        "http://[ff02::1]/",
        "http://[2001:db8::1]/",
        "http://[3fff::1]/",
        "http://[100::1]/",
        "http://[5f00::1]/",
        // form
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com@127.0.0.1/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:text/plain,x",
    ];

    const ALLOWED: &[&str] = &[
        "http://8.8.8.8/",
        "https://1.1.1.1/",
        "http://100.63.255.255/",
        "http://100.128.0.1/",
        "http://172.15.0.1/",
        "http://172.32.0.1/",
        "http://198.20.0.1/",
        "http://223.255.255.255/",
        "https://[2606:4700:4700::1111]/",
        "https://[2001:4860:4860::8888]/",
        "https://[2a00:1450:4001:81b::200e]/",
        "https://example.com/a?b=c",
        "https://localhost.example.com/",
    ];

    #[test]
    fn every_disguise_of_a_private_address_is_refused() {
        for text in REFUSED {
            let Ok(url) = Url::parse(text) else { continue };
            assert!(check_url(&url).is_err(), "{text} became {url} and passed");
        }
    }

    #[test]
    fn public_addresses_and_names_pass() {
        for text in ALLOWED {
            assert_eq!(check_url(&Url::parse(text).unwrap()), Ok(()), "{text}");
        }
    }

    #[test]
    fn credentials_are_not_repeated() {
        let error = check_url(&Url::parse("http://bob:hunter2@example.com/").unwrap()).unwrap_err();
        assert!(!error.contains("hunter2") && error.contains("secret reference"), "{error}");
    }

    #[test]
    fn of_a_mixed_answer_only_public_addresses_are_used() {
        let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 0);
        let mixed = vec![address("127.0.0.1"), address("8.8.8.8"), address("fd00::1")];
        assert_eq!(only_public("rebind.example", mixed).unwrap(), vec![address("8.8.8.8")]);
        let error = only_public("rebind.example", vec![address("10.0.0.1")]).unwrap_err();
        assert!(error.contains("rebind.example"), "{error}");
    }

    #[test]
    fn metadata_services_are_refused_whatever_the_configuration() {
        for text in [
            "http://169.254.169.254/latest/meta-data/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[fd00:ec2::254]/",
            "http://169.254.170.2/",
            "http://100.100.100.200/",
            "http://168.63.129.16/",
            "http://metadata.google.internal/computeMetadata/v1/",
            "http://METADATA.google.internal./",
        ] {
            assert!(check_text(text, true).is_err(), "{text}");
            assert!(check_text(text, false).is_err(), "{text}");
        }
        for text in ["http://127.0.0.1/", "http://169.254.1.1/", "http://metadata.example.com/"] {
            assert!(check_text(text, true).is_ok(), "{text}");
        }
        let both: Vec<SocketAddr> =
            ["169.254.169.254:80", "10.0.0.1:80"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(without_metadata("h", both.clone()), Ok(both[1..].to_vec()));
        assert!(without_metadata("h", both[..1].to_vec()).is_err());
    }
}
