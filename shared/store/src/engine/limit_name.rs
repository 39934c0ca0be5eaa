//! Names of limits that jobs name by a key, as they are stored: each tenant has keys of its own.

/// Stands between tenant and key. No tenant and no key has it: neither may have control characters.
const BETWEEN: char = '\u{1f}';

/// The stored name of a key.
pub(super) fn stored(tenant: Option<&str>, key: &str) -> String {
    tenant.map_or_else(|| key.to_owned(), |tenant| format!("{tenant}{BETWEEN}{key}"))
}

/// Tenant and key of a stored name.
pub(super) fn parted(stored: &str) -> (Option<&str>, &str) {
    match stored.split_once(BETWEEN) {
        Some((tenant, key)) => (Some(tenant), key),
        None => (None, stored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_belongs_to_its_tenant() {
        for (tenant, key) in [(None, "stripe"), (Some("acme"), "stripe"), (Some("a/b"), "c/d")] {
            assert_eq!(parted(&stored(tenant, key)), (tenant, key));
        }
        assert_ne!(stored(Some("a"), "b"), stored(None, "a/b"));
    }
}
