//! Where counts live: in this process's memory, or in a store that several servers share.

mod snapshot;

use sekisho_core::{Limit, Period, Span};

use super::Problems;
use crate::{
    digest::Seed,
    policy::{
        environment::{EnvironmentError, Lookup, fill_in},
        file::{Bytes, OverflowFile, Spanned, StoreFile},
        lint::Code,
        settings::{SharedStoreSettings, StoreSettings},
        share::Share,
        store_address::StoreAddress,
    },
    store::memory::Overflow,
};

/// The longest prefix of keys, in bytes: every key has it.
const PREFIX_BYTES_MAX: usize = 64;
/// The time that a request may wait for the store.
const TIMEOUT_MIN: Span = Span::from_nanos(1_000_000);
const TIMEOUT_MAX: Span = Span::from_secs(10);
/// The most servers that clients are spread over.
const SHARDS_MAX: usize = 64;
/// How long the secret of digests is, in bytes: shorter ones could be guessed, longer ones add nothing.
const SECRET_BYTES_MIN: usize = 16;
const SECRET_BYTES_MAX: usize = 1_024;
/// The largest amount that a shared store counts exactly: its scripts' numbers are doubles, whose whole numbers end at 2⁵³, and
/// a rest has to fit three times.
const SHARED_AMOUNT_MAX: u64 = 1 << 51;
/// What the periods of a shared store are whole numbers of, in nanoseconds: its clock has no finer time.
const SHARED_PERIOD_NS: u64 = 1_000;

/// Compiles `[store]`. Also returns what the digests of secret key parts are made with.
pub(super) fn compile(
    file: &StoreFile,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> (StoreSettings, Seed) {
    let max_bytes = file.max_bytes.as_ref().and_then(|bytes| {
        let parsed = parse_bytes(bytes.get_ref()).filter(|bytes| *bytes >= 1 << 20);
        if parsed.is_none() {
            problems.add(
                Code::Number,
                bytes.span(),
                "this is a number of bytes, at least `1MiB`, like 536870912 or `512MiB`",
            );
        }
        parsed
    });
    let max_entries = file.max_entries.as_ref().and_then(|entries| {
        let parsed = usize::try_from(*entries.get_ref()).ok().filter(|entries| *entries >= 2);
        if parsed.is_none() {
            problems.add(Code::Number, entries.span(), "a store has at least 2 entries");
        }
        parsed
    });
    let overflow = file.overflow.as_ref().map(|overflow| match overflow.get_ref() {
        OverflowFile::Shared => Overflow::Shared,
        OverflowFile::Deny => Overflow::Deny,
        OverflowFile::Allow => Overflow::Allow,
    });
    let shared = shared(file, lookup, problems);
    let secret = secret(file, lookup, problems);
    let snapshot = snapshot::compile(file, lookup, problems);
    let seed = match &shared {
        // All servers that share a store must find the same key for the same client, after a restart as well.
        Some(shared) => Seed::derived(secret.as_deref().unwrap_or(&shared.prefix)),
        None => Seed::random(),
    };
    (StoreSettings { shared, max_bytes, max_entries, overflow, snapshot }, seed)
}

fn parse_bytes(bytes: &Bytes) -> Option<usize> {
    let text = match bytes {
        Bytes::Number(number) => return usize::try_from(*number).ok(),
        Bytes::Text(text) => text,
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

fn shared(
    file: &StoreFile,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> Option<SharedStoreSettings> {
    let addresses = match (&file.url, &file.shards) {
        (None, None) => {
            refuse_without_address(file, problems);
            return None;
        }
        (Some(url), None) => {
            address(url, lookup, problems).map(|address| vec![address]).unwrap_or_default()
        }
        (None, Some(shards)) => of_shards(shards, lookup, problems),
        (Some(_), Some(shards)) => {
            let message = "a store has one `url` or several `shards`, not both";
            problems.add(Code::Store, shards.span(), message);
            Vec::new()
        }
    };
    if let Some(path) = &file.ca_file
        && !addresses.is_empty()
        && addresses.iter().all(|address| !address.tls)
    {
        let message = "this store is not spoken to over TLS: write `rediss` for `redis`, or leave `ca_file` out";
        problems.add(Code::Store, path.span(), message);
    }
    Some(SharedStoreSettings {
        addresses,
        timeout: timeout(file, problems),
        prefix: prefix(file, problems),
        password_file: path(file.password_file.as_ref(), Some(lookup), problems),
        ca_file: path(file.ca_file.as_ref(), None, problems),
        local_share: local_share(file, problems),
    })
}

/// Complains about what says how a shared store is used where there is none.
fn refuse_without_address(file: &StoreFile, problems: &mut Problems<'_>) {
    let texts = [
        ("timeout", &file.timeout),
        ("prefix", &file.prefix),
        ("password_file", &file.password_file),
        ("ca_file", &file.ca_file),
        ("digest_secret", &file.digest_secret),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?.span())));
    let share = file.local_share.as_ref().map(|share| ("local_share", share.span()));
    for (name, span) in texts.chain(share) {
        let message = format!(
            "`{name}` is about a store that several servers share: say where that is, as in `url = \"redis://127.0.0.1:6379\"`"
        );
        problems.add(Code::Store, span, message);
    }
}

/// Returns a text with the environment's values in it.
fn filled(
    text: &Spanned<String>,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> Option<String> {
    let filled = fill_in(text.get_ref(), lookup);
    let complain = |error: EnvironmentError| {
        problems.add(Code::Environment, text.span(), error.to_string());
    };
    filled.map_err(complain).ok()
}

fn address(
    text: &Spanned<String>,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> Option<StoreAddress> {
    let parsed = filled(text, lookup, problems)?.parse();
    parsed.map_err(|error| problems.add(Code::Store, text.span(), format!("{error}"))).ok()
}

fn of_shards(
    shards: &Spanned<Vec<Spanned<String>>>,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> Vec<StoreAddress> {
    if !(1..=SHARDS_MAX).contains(&shards.get_ref().len()) {
        let message = format!("there are 1 to {SHARDS_MAX} shards");
        problems.add(Code::Store, shards.span(), message);
    }
    let mut addresses: Vec<StoreAddress> = Vec::new();
    for text in shards.get_ref() {
        let Some(address) = address(text, lookup, problems) else { continue };
        if !address.is_one_server() {
            let message = "a shard is one server: a cluster and sentinels are named by `url`";
            problems.add(Code::Store, text.span(), message);
        }
        if addresses.iter().any(|other| other.authority() == address.authority()) {
            let message = "another shard is the same server and database";
            problems.add(Code::Store, text.span(), message);
        }
        addresses.push(address);
    }
    addresses
}

fn timeout(file: &StoreFile, problems: &mut Problems<'_>) -> Span {
    let Some(text) = &file.timeout else { return SharedStoreSettings::TIMEOUT };
    let span = text.get_ref().parse().ok();
    let span = span.filter(|span| (TIMEOUT_MIN..=TIMEOUT_MAX).contains(span));
    if span.is_none() {
        let message = "a request waits for the store for 1 ms to 10 s, like `50ms`";
        problems.add(Code::Number, text.span(), message);
    }
    span.unwrap_or(SharedStoreSettings::TIMEOUT)
}

fn prefix(file: &StoreFile, problems: &mut Problems<'_>) -> String {
    let Some(text) = &file.prefix else { return SharedStoreSettings::PREFIX.to_owned() };
    let prefix = text.get_ref();
    let visible = prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if !visible || !(1..=PREFIX_BYTES_MAX).contains(&prefix.len()) {
        let message = format!(
            "a prefix has 1 to {PREFIX_BYTES_MAX} visible ASCII characters, the same on every server"
        );
        problems.add(Code::Store, text.span(), message);
    }
    prefix.clone()
}

fn path(
    text: Option<&Spanned<String>>,
    lookup: Option<Lookup<'_>>,
    problems: &mut Problems<'_>,
) -> Option<std::path::PathBuf> {
    let text = text?;
    let path = match lookup {
        Some(lookup) => filled(text, lookup, problems)?,
        None => text.get_ref().clone(),
    };
    if path.is_empty() || path.contains('\0') {
        problems.add(Code::Store, text.span(), "this is the path of a file");
    }
    Some(path.into())
}

fn local_share(file: &StoreFile, problems: &mut Problems<'_>) -> Share {
    let Some(value) = &file.local_share else { return Share::WHOLE };
    let share = match value.get_ref() {
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::String(text) => Some(text.clone()),
        // The digits as they were written: a double would not be the same number.
        toml::Value::Float(_) => Some(problems.text(value.span()).replace('_', "")),
        _ => None,
    };
    let share = share.and_then(|text| text.strip_prefix('+').unwrap_or(&text).parse().ok());
    if share.is_none() {
        problems.add(Code::Store, value.span(), crate::policy::share::ShareError.to_string());
    }
    share.unwrap_or(Share::WHOLE)
}

fn secret(file: &StoreFile, lookup: Lookup<'_>, problems: &mut Problems<'_>) -> Option<String> {
    let text = file.digest_secret.as_ref()?;
    let secret = filled(text, lookup, problems)?;
    if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
        let message = format!("a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes");
        problems.add(Code::Store, text.span(), message);
    }
    Some(secret)
}

/// Returns what a shared store cannot count about a limit.
pub(super) fn uncountable(limit: &Limit) -> Option<String> {
    let metered = limit.as_metered()?;
    if metered.amount().get() > SHARED_AMOUNT_MAX {
        return Some(format!("a shared store counts amounts up to {SHARED_AMOUNT_MAX}"));
    }
    match metered.period() {
        Period::Fixed(ns) if ns.get() % SHARED_PERIOD_NS > 0 => {
            return Some("a shared store counts in whole microseconds".to_owned());
        }
        Period::Fixed(_) | Period::Calendar(..) => {}
    }
    // A nanosecond is what a limit without a resolution has.
    let resolution = metered.resolution().as_nanos();
    (resolution > 1 && resolution % SHARED_PERIOD_NS > 0).then(|| {
        "a shared store counts in whole microseconds, and so is a resolution: like `10us`"
            .to_owned()
    })
}
