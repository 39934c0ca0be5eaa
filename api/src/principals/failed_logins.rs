//! Failed logins, counted by the client's address: requests whose key or token opens nothing.
//!
//! A key has 256 random bits and cannot be guessed, at any rate. The limit spares the store and the audit the noise of
//! those who try, and of clients that repeat an old key. It refuses no valid key: clients behind one address share it.

use super::rate::{RequestRate, limited};
use crate::reply::Failure;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use turnstone_domain::Timestamp;

/// The most addresses that are counted at once.
const ADDRESSES: usize = 10_000;
/// A network of this prefix belongs to one subscriber (RFC 6177).
const NETWORK: u128 = !0 << 64;

/// The failed logins of each address.
pub(crate) struct FailedLogins {
    /// 0 is no limit.
    per_minute: u32,
    counted: Mutex<HashMap<IpAddr, RequestRate>>,
}

impl FailedLogins {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute, counted: Mutex::default() }
    }

    /// Returns true if the next failed login of this address is refused with 429.
    pub(super) fn is_exhausted(&self, from: Option<IpAddr>, now: Timestamp) -> bool {
        let Some(from) = from.map(network) else { return false };
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.get(&from).is_some_and(|rate| rate.is_exhausted(now))
    }

    /// Counts a failed login, and returns its error: `refused`, or 429 above the limit. Above [`ADDRESSES`], those are
    /// forgotten that may fail a minute's worth of times again; if none may, all are.
    pub(super) fn count(&self, from: Option<IpAddr>, now: Timestamp, refused: Failure) -> Failure {
        let Some(from) = from.map(network).filter(|_| self.per_minute > 0) else { return refused };
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= ADDRESSES && !counted.contains_key(&from) {
            counted.retain(|_, rate| !rate.is_unused(now));
            if counted.len() >= ADDRESSES {
                counted.clear();
            }
        }
        let rate = counted.entry(from).or_insert_with(|| RequestRate::of_bursts(self.per_minute.into()));
        match rate.take(now) {
            Ok(()) => refused,
            Err(wait) => {
                let message = format!(
                    "The key or token opens nothing, and this address has sent {} such requests within a minute.",
                    self.per_minute
                );
                let hint =
                    "Send a valid key, which is accepted at once, or wait for as long as Retry-After says.";
                limited(message, hint, wait).into()
            }
        }
    }
}

/// Returns the address by which a client is counted: of IPv6 its network, whose addresses it can choose.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_ojs::OjsError;

    fn fail(logins: &FailedLogins, from: &str, at: i64) -> u16 {
        let from = Some(from.parse().unwrap());
        logins.count(from, Timestamp(at), OjsError::unauthorized().into()).0.status
    }

    #[test]
    fn an_address_fails_a_minutes_worth_of_times_at_once() {
        let logins = FailedLogins::new(3);
        assert_eq!([0; 4].map(|at| fail(&logins, "10.0.0.1", at)), [401, 401, 401, 429]);
        assert!(logins.is_exhausted(Some("::ffff:10.0.0.1".parse().unwrap()), Timestamp(0)));
        assert_eq!(fail(&logins, "10.0.0.2", 0), 401);
        assert_eq!([20_000; 2].map(|at| fail(&logins, "10.0.0.1", at)), [401, 429]);
    }

    #[test]
    fn the_addresses_of_one_network_count_together() {
        let logins = FailedLogins::new(1);
        let from = ["2001:db8:1:1::1", "2001:db8:1:1:ffff::2", "2001:db8:1:2::1"];
        assert_eq!(from.map(|from| fail(&logins, from, 0)), [401, 429, 401]);
    }

    #[test]
    fn the_number_of_counted_addresses_is_bounded() {
        let logins = FailedLogins::new(1);
        let many = u32::try_from(2 * ADDRESSES).unwrap();
        for number in 0..many {
            fail(&logins, &std::net::Ipv4Addr::from(number).to_string(), 0);
            assert!(logins.counted.lock().unwrap().len() <= ADDRESSES);
        }
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let logins = FailedLogins::new(0);
        assert!([0; 100].map(|at| fail(&logins, "10.0.0.1", at)).iter().all(|status| *status == 401));
        assert!(logins.counted.lock().unwrap().is_empty());
    }
}
