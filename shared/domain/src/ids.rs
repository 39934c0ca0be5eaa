//! Identifiers: UUIDs as lower-case text, made in Rust, never by the database.
//!
//! Most are new UUIDv7s. The ids that a turn sends to other systems derive from the turn ([`IdSource`]), so that a turn
//! that runs again after lost commits sends the same ones.

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

    /// Returns the id that derives from this source; only a world that repeats recorded ids returns another one.
    fn derived(&self, source: &IdSource<'_>) -> String {
        source.id()
    }
}

/// The place in a job from which an id derives.
///
/// A database may lose commits: an asynchronous standby takes over, or an older copy is restored. The turn then runs again
/// from the older record. Ids that other systems saw, such as an `Idempotency-Key`, have to be the same ones then. So they
/// are a function of the job, the turn and the position, and of nothing random.
///
/// Two different sources have two different ids, within a job and over all jobs. A call that an operator repeats
/// (tool-retry) keeps the id of its journal row. A fork is a job of its own, so its calls have other ids.
#[derive(Clone, Copy, Debug)]
pub struct IdSource<'a> {
    /// The job, with the tenant for which its id was chosen.
    pub job: &'a JobId,
    /// The turn. Nodes of a flow and iterations of a loop are turns of their own.
    pub turn: i64,
    /// The thing within the turn.
    pub of: Identified<'a>,
}

/// The thing within a turn that a derived id identifies.
#[derive(Clone, Copy, Debug)]
pub enum Identified<'a> {
    /// A call that the model requests. When the model is asked again and requests another tool at this position, that is
    /// another call. Other arguments do not make another call: the effect may be there already, and the tool decides.
    RequestedCall {
        /// The position among the calls of the answer, from 0.
        position: usize,
        /// The name of the tool.
        tool: &'a str,
    },
    /// The call of a flow's node, or the wait for the user after an agent's answer. A turn has one at most.
    PlannedCall {
        /// The name of the tool.
        tool: &'a str,
    },
    /// The job of a delegate or of a reviewer.
    ChildJob {
        /// The call that it answers.
        call: &'a CallId,
        /// The position of the call, or of the flow: delegates of a turn sort by it.
        position: usize,
        /// The number of delegates that the turn had for this call before.
        number: usize,
    },
    /// The engagement of the same delegate.
    ChildEngagement {
        /// The call that it answers.
        call: &'a CallId,
        /// The position of the call, or of the flow: delegates of a turn sort by it.
        position: usize,
        /// The number of delegates that the turn had for this call before.
        number: usize,
    },
    /// The transaction of the turn's state.
    StateTransaction,
}

impl IdSource<'_> {
    /// Returns the id: always the same one for the same source.
    ///
    /// It is a UUIDv7, which OJS demands of jobs (core §3.1). Its time is that of the job's own id and a millisecond per
    /// turn. Number and position follow, so that derived ids sort after the job's, in the order of their use. The other
    /// 62 bits are the SHA-256 of all parts.
    #[must_use]
    pub fn id(&self) -> String {
        let (kind, number, position, name) = match self.of {
            Identified::RequestedCall { position, tool } => ("call", 0, position, tool),
            Identified::PlannedCall { tool } => ("planned-call", 0, 0, tool),
            Identified::ChildJob { call, position, number } => ("child-job", number, position, call.as_str()),
            Identified::ChildEngagement { call, position, number } => {
                ("child-engagement", number, position, call.as_str())
            }
            Identified::StateTransaction => ("state-transaction", 0, 0, ""),
        };
        let (turn, at) = (self.turn.to_string(), (number.to_string(), position.to_string()));
        let mut bytes = hashed(&[kind, self.job.as_str(), &turn, &at.0, &at.1, name]);
        let own = uuid::Uuid::parse_str(self.job.shown()).unwrap_or_default();
        // 48 bits of time, then the version, and 4 and 8 bits that only sort.
        let time = (own.as_u128() >> 80).saturating_add(u128::from(self.turn.unsigned_abs()));
        bytes[..6].copy_from_slice(&time.to_be_bytes()[10..]);
        bytes[6] = u8::try_from(number.min(0xf)).unwrap_or_default();
        bytes[7] = u8::try_from(position.min(0xff)).unwrap_or_default();
        of_version(uuid::Version::SortRand, bytes)
    }
}

/// Returns the UUIDv8 that derives from these parts: always the same one, and another one for other parts. It reveals
/// none of them.
#[must_use]
pub fn of_parts(parts: &[&str]) -> String {
    of_version(uuid::Version::Custom, hashed(parts))
}

fn hashed(parts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, no part can be read as a piece of its neighbour.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    first_half(hash.finalize().into())
}

fn of_version(version: uuid::Version, bytes: [u8; 16]) -> String {
    let made = uuid::Builder::from_bytes(bytes).with_version(version).with_variant(uuid::Variant::RFC4122);
    made.into_uuid().to_string()
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

/// Returns the identity of a commit from a new UUIDv7: above zero, and never given twice. The milliseconds of twelve days are
/// in the high bits, so that rows of one time are stored together. 33 random bits follow.
#[must_use]
pub fn commit_id(new: &str) -> i64 {
    let bits = uuid::Uuid::parse_str(new).map_or(1, |id| id.as_u128());
    let (time, random) = ((bits >> 80) & ((1 << 30) - 1), bits & ((1 << 33) - 1));
    i64::try_from((time << 33) | random).map_or(1, |id| id.max(1))
}

/// Returns the identity of the commit that follows `newest`, of a database with one writer: above it, so that the identities are
/// the order of commits. The milliseconds are in the high bits, and 21 random bits follow.
#[must_use]
pub fn commit_id_after(newest: i64, new: &str) -> i64 {
    let bits = uuid::Uuid::parse_str(new).map_or(1, |id| id.as_u128());
    let (time, random) = ((bits >> 80) & ((1 << 42) - 1), bits & ((1 << 21) - 1));
    let id = i64::try_from((time << 21) | random).unwrap_or_default();
    // The clock may have stepped back, and a millisecond has many commits.
    if id > newest { id } else { newest.saturating_add(1 + i64::try_from(random).unwrap_or_default()) }
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
    fn commits_of_one_writer_rise_also_after_the_clock_stepped_back() {
        let early = SystemIds.next();
        let mut newest = 0;
        for _ in 0..1_000 {
            let next = commit_id_after(newest, &SystemIds.next());
            assert!(next > newest);
            newest = next;
        }
        let next = commit_id_after(newest, &early);
        assert!(next > newest);
        assert!(next - newest <= 1 << 21, "{next} {newest}");
        // Two copies of a file have different ids.
        assert_ne!(commit_id_after(newest, &early), commit_id_after(newest, &SystemIds.next()));
    }

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

    /// The form of derived ids: that of a job id where OJS demands it, with the time of the job that it works for.
    #[test]
    fn a_derived_id_is_stable_and_valid() {
        let job = JobId::from("0190a7b2-1234-7abc-8def-0123456789ab");
        let call = CallId(source(&job, 3, Identified::RequestedCall { position: 1, tool: "pay" }).id());
        // The written value: a worker of another version has to derive the same one.
        assert_eq!(call.as_str(), "0190a7b2-1237-7001-8289-32ab6df432e7");
        assert!(is_uuid_v7(call.as_str()));
        let child = |turn, position| {
            source(&job, turn, Identified::ChildJob { call: &call, position, number: 0 }).id()
        };
        assert!(
            is_uuid_v7(&child(3, 1)) && child(3, 1).starts_with("0190a7b2-1237-7001-"),
            "{}",
            child(3, 1)
        );
        assert!(job.0 < child(1, 0) && child(1, 0) < child(1, 1) && child(1, 1) < child(2, 0));
    }

    fn source<'a>(job: &'a JobId, turn: i64, of: Identified<'a>) -> IdSource<'a> {
        IdSource { job, turn, of }
    }

    /// Every part of a source, as a property test makes it.
    type Parts = (u8, String, Option<String>, i64, usize, String);

    fn id_of((kind, job, tenant, turn, position, name): &Parts) -> (String, String) {
        let job = JobId::chosen(job, tenant.as_deref());
        let call = CallId(name.clone());
        let of = match kind {
            0 => Identified::RequestedCall { position: *position, tool: name },
            1 => Identified::PlannedCall { tool: name },
            2 => Identified::ChildJob { call: &call, position: 0, number: *position },
            3 => Identified::ChildEngagement { call: &call, position: 0, number: *position },
            _ => Identified::StateTransaction,
        };
        (source(&job, *turn, of).id(), format!("{:?}", source(&job, *turn, of)))
    }

    proptest::proptest! {
        /// Two calls of a turn, two turns (each iteration of a loop is one), two jobs and two tenants share no id.
        #[test]
        fn derived_ids_are_the_same_only_for_the_same_source(
            parts in proptest::collection::vec(
                (0..5_u8, "[ab~:0-9]{1,3}", proptest::option::of("[ab~:]{1,2}"), 1..4_i64, 0..4_usize, "[ab:0-9]{0,3}"),
                2..40,
            )
        ) {
            let mut known = std::collections::HashMap::new();
            for parts in &parts {
                let (id, source) = id_of(parts);
                let before = known.entry(id).or_insert_with(|| source.clone());
                proptest::prop_assert_eq!(&*before, &source);
            }
            let sources: std::collections::HashSet<&String> = known.values().collect();
            proptest::prop_assert_eq!(sources.len(), known.len());
        }
    }

    #[test]
    fn ids_sort_by_creation() {
        let ids: Vec<String> = (0..1000).map(|_| SystemIds.next()).collect();
        assert!(ids.is_sorted());
    }
}
