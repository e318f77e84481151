//! An exact rate limiter for your process: policies, keys, stores, and a direct limit and key.
//!
//! Two ways in:
//!
//! * [`KeyedLimiter`]: a [`Limit`] and a key. `check` charges, `look` shows, `force` and `refund` settle afterwards, `until_ready`
//!   waits its turn.
//! * [`Limiter`]: the policies of a file ([`PolicySet`]), a [`Request`], and a [`Store`] that counts. The memory store decides
//!   without waiting ([`Limiter::decide_now`]); any store decides with [`Limiter::decide`]. [`Limiter::keep_fullest`] has it
//!   remember who is nearest to the end of a limit.
//!
//! ```
//! use sekisho::KeyedLimiter;
//!
//! let limiter = KeyedLimiter::new("60/min sliding-log".parse()?);
//! let verdict = limiter.check("203.0.113.9")?;
//! assert_eq!((verdict.is_allowed(), verdict.remaining), (true, Some(59)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Needs no async runtime. What every limit means, exactly, is in [`sekisho_core`], which this crate re-exports.

mod calendar;
mod clock;
mod decision;
mod digest;
mod fullest;
mod key;
mod keyed;
mod limiter;
mod machine;
mod policy;
mod queue;
mod request;
mod store;
mod sync;
mod unkeyed;

pub use sekisho_core::{
    self as core, Algorithm, Calendar, CalendarUnit, Joint, Limit, LimitError, Metered, Mode,
    Outcome, Period, Rate, Span, Timestamp, Verdict, Zone,
};

pub use crate::{
    calendar::Zones,
    clock::{Clock, FakeClock, SystemClock, Wait},
    decision::{Decision, Degraded, Part, Ruling},
    digest::Seed,
    fullest::{FULLEST_PLACES, FullKey, Fullest, WAYS as FULLEST_WAYS},
    key::{KEY_BYTES_MAX, Key, mask},
    keyed::{Checked, KeyedLimiter, WAITERS_MAX, WaitError},
    limiter::{Asked, Direct, Limiter},
    policy::{
        GatewaySettings, ListenSettings, OnMissingKey, OnStoreError, Original, Policy, PolicyLimit,
        PolicySet, Settings, SharedStoreSettings, SnapshotSettings, StoreSettings,
        address::{ListenAddress, ListenAddressError, SOCKET_PATH_BYTES_MAX},
        answer::{AnswerSettings, CountedAnswers, HeaderFamily, Refusal, ResetForm},
        identity::{AddressSource, IdentityDoor, IdentitySettings},
        lint::{Code, Diagnostic, PolicyErrors, Severity},
        plan::CostError,
        share::{Share, ShareError},
        store_address::{
            Host, STORE_ADDRESS_BYTES_MAX, STORE_HOSTS_MAX, StoreAddress, StoreAddressError,
            Topology,
        },
    },
    queue::{Place, Slot},
    request::{
        Headers, NoHeaders, Request,
        path::{CanonicalPath, PathError},
    },
    store::{
        Answer, Ask, Charge, Now, Scope, Store, StoreError,
        memory::{CHARGES_MAX, Memory, MemoryOptions, Occupancy, Overflow},
        snapshot::{Restored, Saved, Snapshot, SnapshotError, SnapshotFault},
    },
    unkeyed::UnkeyedLimiter,
};

#[cfg(feature = "schema")]
/// Returns the JSON Schema of the policy file.
pub fn policy_schema() -> schemars::Schema {
    schemars::schema_for!(policy::file::PolicyFile)
}
