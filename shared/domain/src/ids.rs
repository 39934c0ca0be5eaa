//! Identifiers: UUIDv7 as lower-case text, made in Rust, never by the database.

use crate::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use utoipa::ToSchema;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

/// A job: an OJS envelope id (OJS core §3.1).
///
/// Two tenants may choose the same id for their jobs. So an id that a client chose for a tenant is kept as
/// `<id>~<tenant>`, which is unique. Clients never see the tenant in it: [`fmt::Display`] and serialization leave it out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(description = "A job: an OJS envelope id (OJS core §3.1).")]
pub struct JobId(pub String);

/// Between an id and the tenant for which a client chose it.
const CHOSEN_FOR: char = '~';

/// Returns the unique form of an id that a client chose for a job or a workflow.
#[must_use]
pub fn chosen(id: &str, tenant: Option<&str>) -> String {
    tenant.map_or_else(|| id.to_owned(), |tenant| format!("{id}{CHOSEN_FOR}{tenant}"))
}

/// Returns an id as its client knows it, without the tenant for which it was chosen.
#[must_use]
pub fn shown(id: &str) -> &str {
    id.split_once(CHOSEN_FOR).map_or(id, |(shown, _)| shown)
}

impl JobId {
    /// Returns the id that a client chose for a job of this tenant.
    #[must_use]
    pub fn chosen(id: &str, tenant: Option<&str>) -> Self {
        Self(chosen(id, tenant))
    }

    /// Returns the unique form, which the store uses. Clients get [`Self::shown`].
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id as clients know it.
    #[must_use]
    pub fn shown(&self) -> &str {
        shown(&self.0)
    }

    /// Serializes the unique form, for the store.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_whole<S: Serializer>(id: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&id.0)
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl From<&str> for JobId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for JobId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

id!(
    /// An engagement: everything between one user and one agent until it ends.
    EngagementId
);
id!(
    /// One tool call, unique over all turns (OSSA §1.5); it is also the call's idempotency key.
    CallId
);
id!(
    /// A file that an agent made.
    ArtifactId
);
id!(
    /// A review: a question to a user or an agent about a parked job.
    ReviewId
);

/// The source of new ids.
pub trait Ids: Send + Sync + 'static {
    /// Returns a new UUIDv7 in lower case; later calls sort after earlier ones within one process.
    fn next(&self) -> String;
}

/// UUIDv7 from the machine's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
    fn next(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

/// Bytes that cannot be guessed: every id has at least 32 random bits of its own, and all of sixteen ids are used.
#[must_use]
pub fn secret_bytes(ids: &dyn Ids) -> [u8; 32] {
    let mut hash = Sha256::new();
    for _ in 0..16 {
        hash.update(ids.next());
    }
    hash.finalize().into()
}

/// The form of an id (OSSA `spec.identity.*.generation`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdForm {
    /// As all ids here.
    #[default]
    UuidV7,
    /// A random UUID.
    UuidV4,
    /// 26 characters that sort by time.
    Ulid,
}

impl IdForm {
    /// Returns a new id of this form.
    #[must_use]
    pub fn next(self, ids: &dyn Ids) -> String {
        match self {
            Self::UuidV7 => ids.next(),
            Self::UuidV4 => {
                uuid::Builder::from_random_bytes(first_half(secret_bytes(ids))).into_uuid().to_string()
            }
            Self::Ulid => self.of(&ids.next()),
        }
    }

    /// Returns the id of this form for `text`: always the same one.
    #[must_use]
    pub fn of(self, text: &str) -> String {
        let hashed = || first_half(Sha256::digest(text.as_bytes()).into());
        match self {
            Self::UuidV7 => text.to_owned(),
            Self::UuidV4 => uuid::Builder::from_random_bytes(hashed()).into_uuid().to_string(),
            // A UUIDv7 begins with the milliseconds of its time, as a ULID does, so its bytes are one.
            Self::Ulid if is_uuid_v7(text) => {
                ulid(uuid::Uuid::parse_str(text).map_or_else(|_| hashed(), uuid::Uuid::into_bytes))
            }
            Self::Ulid => ulid(hashed()),
        }
    }
}

fn first_half(bytes: [u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&bytes[..16]);
    half
}

/// 128 bits in Crockford's alphabet.
fn ulid(bytes: [u8; 16]) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let number = u128::from_be_bytes(bytes);
    (0..26).rev().map(|digit| char::from(ALPHABET[(number >> (digit * 5)) as usize & 31])).collect()
}

/// Returns the lowest UUIDv7 of this time: ids that were made before sort before it.
#[must_use]
pub fn lowest_at(time: Timestamp) -> String {
    let ms = time.0.clamp(0, 0xffff_ffff_ffff);
    format!("{:08x}-{:04x}-7000-8000-000000000000", ms >> 16, ms & 0xffff)
}

/// Uniform in `[0, 1)`, from the random part of an id; one half for a text that is no id.
#[must_use]
pub fn fraction(id: &str) -> f64 {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    let tail = digits.get(digits.len().saturating_sub(8)..).unwrap_or_default();
    u32::from_str_radix(tail, 16).map_or(0.5, |n| f64::from(n) / (f64::from(u32::MAX) + 1.0))
}

/// The first characters of a UUID, one of them at least.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// Reads the first characters of an id, in either case. Returns `None` when no id begins like this.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |(at, byte): (usize, u8)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        let is_prefix = (1..=36).contains(&text.len()) && text.bytes().enumerate().all(fits);
        is_prefix.then(|| Self(text.to_ascii_lowercase()))
    }

    /// Returns the lowest id that begins like this.
    #[must_use]
    pub fn lowest(&self) -> String {
        self.filled('0')
    }

    /// Returns the highest id that begins like this.
    #[must_use]
    pub fn highest(&self) -> String {
        self.filled('f')
    }

    fn filled(&self, digit: char) -> String {
        let rest = (self.0.len()..36).map(|at| if matches!(at, 8 | 13 | 18 | 23) { '-' } else { digit });
        self.0.chars().chain(rest).collect()
    }
}

/// Returns true if `text` is a UUIDv7 in the canonical lower-case spelling that OJS core §3.1 demands of a job id.
#[must_use]
pub fn is_uuid_v7(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'7',
            19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_stands_for_the_ids_that_begin_like_it() {
        let prefix = IdPrefix::parse("0190A7b2-1").unwrap();
        assert_eq!(prefix.lowest(), "0190a7b2-1000-0000-0000-000000000000");
        assert_eq!(prefix.highest(), "0190a7b2-1fff-ffff-ffff-ffffffffffff");
        let whole = SystemIds.next();
        let itself = IdPrefix::parse(&whole).unwrap();
        assert_eq!((itself.lowest(), itself.highest()), (whole.clone(), whole.clone()));
        for wrong in ["", "0190a7b21", "0190a7b2_", "xyz", &format!("{whole}0"), "0190a7bü"] {
            assert_eq!(IdPrefix::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_id_that_a_client_chose_is_unique_per_tenant() {
        let id = SystemIds.next();
        let (alphas, betas) = (JobId::chosen(&id, Some("alpha")), JobId::chosen(&id, Some("beta")));
        assert_ne!(alphas, betas);
        assert_eq!((alphas.shown(), betas.to_string()), (id.as_str(), id.clone()));
        assert_eq!(serde_json::to_value(&alphas).unwrap(), id);
        assert_eq!(JobId::chosen(&id, None), JobId(id));
    }

    #[test]
    fn only_canonical_version_7_ids_are_accepted() {
        assert!(is_uuid_v7(&SystemIds.next()));
        for bad in ["", "x", "0190A7B2-0000-7000-8000-000000000000", "0190a7b2-0000-4000-8000-000000000000"] {
            assert!(!is_uuid_v7(bad), "{bad:?} must be refused");
        }
    }

    #[test]
    fn ids_of_before_sort_below_the_lowest_of_a_time() {
        let at = Timestamp(1_795_275_723_601);
        let uuid =
            |ms: u64| uuid::Builder::from_unix_timestamp_millis(ms, &[0xff; 10]).into_uuid().to_string();
        assert!(is_uuid_v7(&lowest_at(at)));
        assert!(uuid(1_795_275_723_600) < lowest_at(at) && lowest_at(at) <= uuid(1_795_275_723_601));
    }

    #[test]
    fn the_random_part_of_an_id_spreads_over_the_unit_interval() {
        assert!(fraction("01890000-0000-7000-8000-000000000000") < 0.001);
        assert!((0.999..1.0).contains(&fraction("01890000-0000-7000-8000-ffffffffffff")));
        assert!((0.0..1.0).contains(&fraction("")));
    }

    /// RS-01: ids in the requested form; the id for a text is always the same.
    #[test]
    fn ids_have_the_requested_form() {
        let v4 = IdForm::UuidV4.next(&SystemIds);
        assert_eq!(uuid::Uuid::parse_str(&v4).unwrap().get_version_num(), 4);
        let id = SystemIds.next();
        let ulid = IdForm::Ulid.of(&id);
        assert_eq!((ulid.len(), ulid == IdForm::Ulid.of(&id)), (26, true));
        assert!(ulid < IdForm::Ulid.next(&SystemIds), "they sort by time");
        assert_eq!(IdForm::UuidV4.of("worker-1"), IdForm::UuidV4.of("worker-1"));
        assert_ne!(IdForm::Ulid.of("worker-1"), IdForm::Ulid.of("worker-2"));
        assert_eq!(super::ulid([0xff; 16]), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        assert_ne!(secret_bytes(&SystemIds), secret_bytes(&SystemIds));
    }

    #[test]
    fn ids_sort_by_creation() {
        let ids: Vec<String> = (0..1000).map(|_| SystemIds.next()).collect();
        assert!(ids.is_sorted());
    }
}
