//! The policy file as plain structs. Nothing is decided here; a field that a later version will know is kept as it is, so that
//! it can be refused by name.

mod either;

use std::collections::BTreeMap;

use serde::Deserialize;
pub(crate) use toml::Spanned;

use super::{
    compile::{Problems, later},
    lint::Code,
};

/// A field of a later version.
type Later = Option<Spanned<toml::Value>>;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyFile {
    /// Where to listen; a door opens only where an address is given.
    pub(crate) listen: Option<ListenFile>,
    /// Where counts live.
    #[serde(default)]
    pub(crate) store: StoreFile,
    /// Who is asking.
    #[serde(default)]
    pub(crate) identity: IdentityFile,
    /// What answers look like.
    #[serde(default)]
    pub(crate) answer: AnswerFile,
    /// Clients that no policy holds for.
    #[serde(default)]
    pub(crate) allow: ListFile,
    /// Clients that are refused.
    #[serde(default)]
    pub(crate) deny: ListFile,
    /// The policies. All that match a request hold together.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<PolicyTable>"))]
    pub(crate) policy: Vec<Spanned<PolicyTable>>,
}

/// `[listen]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ListenFile {
    /// Address of the check API and forward-auth, like `127.0.0.1:8080`, or `unix:` and the path of a socket.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) http: Option<Spanned<String>>,
    /// Address of health, readiness, metrics and the fullest keys. Whoever can connect may ask.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) admin: Option<Spanned<String>>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) grpc: Later,
    /// Address of the RESP door, like `127.0.0.1:8082`: `CL.THROTTLE` and `THROTTLE` for clients of Redis.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) resp: Option<Spanned<String>>,
    /// The gateway: where it listens, and the one server that it passes requests on to.
    #[cfg_attr(feature = "schema", schemars(with = "Option<GatewayFile>"))]
    pub(crate) gateway: Option<Spanned<GatewayFile>>,
    /// How forward-auth is asked.
    pub(crate) auth: Option<AuthFile>,
}

impl ListenFile {
    /// Returns whether a door that clients come through is a unix socket.
    pub(crate) fn has_socket(&self) -> bool {
        let gateway = self.gateway.as_ref().map(|gateway| &gateway.get_ref().at);
        let mut doors = self.http.iter().chain(gateway);
        doors.any(|address| address.get_ref().starts_with("unix:"))
    }
}

/// `gateway` of `[listen]`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct GatewayFile {
    /// Its address, like `127.0.0.1:8000`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(crate) at: Spanned<String>,
    /// The server behind it, like `http://127.0.0.1:3000`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(crate) to: Spanned<String>,
}

/// `[listen.auth]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthFile {
    /// Where the original request is: `path` (the default: this request's own method, and what follows `/auth`), `x-original`
    /// (nginx: `X-Original-Method`, `X-Original-URI`) or `x-forwarded` (Traefik, Caddy, APISIX: `X-Forwarded-Method`, `-Uri`,
    /// `-Host`). Headers count only from trusted proxies.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OriginalFile>"))]
    pub(crate) original: Option<Spanned<OriginalFile>>,
    /// How long an answer is held until a `leaky-queue`'s slot, like `2s`: 1 ms to 60 s. A slot that is further away is refused.
    /// When absent, a request with a slot passes at once.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) hold: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OriginalFile {
    Path,
    XOriginal,
    XForwarded,
}

/// `[store]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreFile {
    /// The most bytes of the memory store, as a number or like `512MiB`. Default: a quarter of the machine's memory.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Bytes>"))]
    pub(crate) max_bytes: Option<Spanned<Bytes>>,
    /// The most entries of the memory store: one a key and limit.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub(crate) max_entries: Option<Spanned<i64>>,
    /// What happens to new keys while every entry is in use: `shared` (the default), `deny` or `allow`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OverflowFile>"))]
    pub(crate) overflow: Option<Spanned<OverflowFile>>,
    /// The Redis or Valkey that several servers count in together: `redis://`, `rediss://` (TLS), `redis+unix://`,
    /// `redis-cluster://` or `redis-sentinel://`. When absent, counts live in this process's memory. `${NAME}` is replaced from
    /// the environment, `$$` is a `$`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) url: Option<Spanned<String>>,
    /// Several single servers instead of `url`, over which clients are spread. `${NAME}` is replaced as there.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub(crate) shards: Option<Spanned<Vec<Spanned<String>>>>,
    /// How long a request waits for the shared store, from `1ms` to `10s`; `50ms` by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) timeout: Option<Spanned<String>>,
    /// What every key in the shared store begins with; `sk` by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) prefix: Option<Spanned<String>>,
    /// A file that holds the shared store's password, instead of one in the address. `${NAME}` is replaced.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) password_file: Option<Spanned<String>>,
    /// A file of PEM certificates that the shared store's TLS is checked against; the machine's own when absent.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) ca_file: Option<Spanned<String>>,
    /// What digests of secret key parts are made with, at least 16 bytes, the same on every server. `${NAME}` is replaced.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) digest_secret: Option<Spanned<String>>,
    /// The share of each limit that one server lets through by itself while the shared store is down, where a policy says
    /// `on_store_error = "local"`: a number above 0 and up to 1 (the default), or a text like `1/4`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ShareSchema>"))]
    pub(crate) local_share: Option<Spanned<toml::Value>>,
    /// A file that the memory store's state is kept in over a restart: written at the end and every `snapshot_every`, read at
    /// the start. `${NAME}` is replaced. Not beside `url` or `shards`, whose store outlives a server.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) snapshot: Option<Spanned<String>>,
    /// The time between two writes of `snapshot`, from `1s` to `1day`; `1min` by default. A crash loses at most what was used
    /// in it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) snapshot_every: Option<Spanned<String>>,
}

/// A number above 0 and up to 1, or a text like `1/4`.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "says what a share looks like; it is read from the file's own text")]
pub(crate) enum ShareSchema {
    Number(f64),
    Text(String),
}

/// A number of bytes, or a text like `512MiB`.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum Bytes {
    Number(i64),
    Text(String),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum OverflowFile {
    Shared,
    Deny,
    Allow,
}

/// `[identity]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct IdentityFile {
    /// Where the client's address comes from; `peer`, the address that connects, by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<AddressFile>"))]
    pub(crate) address: Option<Spanned<AddressFile>>,
    /// The proxies whose word about a client's address counts: address blocks or single addresses.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub(crate) trusted_proxies: Option<Spanned<Vec<Spanned<String>>>>,
    /// How many leading bits of an IPv4 address make a client: 0 to 32, 32 by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u8>"))]
    pub(crate) ipv4_prefix: Option<Spanned<i64>>,
    /// How many leading bits of an IPv6 address make a client: 32 to 128, 64 by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u8>"))]
    pub(crate) ipv6_prefix: Option<Spanned<i64>>,
    /// Another source for forward-auth.
    pub(crate) auth: Option<DoorIdentityFile>,
    /// Another source for the check API.
    pub(crate) http: Option<DoorIdentityFile>,
    /// Another source for the gateway.
    pub(crate) gateway: Option<DoorIdentityFile>,
}

/// `[identity.<door>]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct DoorIdentityFile {
    /// Where the address of this door's clients comes from.
    #[cfg_attr(feature = "schema", schemars(with = "Option<AddressFile>"))]
    pub(crate) address: Option<Spanned<AddressFile>>,
}

/// An address source: a word, or a table with a header's name.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum AddressFile {
    Word(AddressWord),
    Header(AddressHeader),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddressWord {
    Peer,
    XForwardedFor,
    Forwarded,
    XRealIp,
    ProxyProtocol,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AddressHeader {
    /// The header that holds one address, like `cf-connecting-ip`.
    pub(crate) header: String,
}

/// `[answer]`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerFile {
    /// Which families of fields answers have: `retry-after`, `ratelimit`, `x-ratelimit`; the first two by default. A refusal
    /// that has a wait names it in `Retry-After` whatever is chosen.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<FamilyFile>>"))]
    pub(crate) headers: Option<Vec<FamilyFile>>,
    /// What `X-RateLimit-Reset` is: `unix` seconds (the default) or `delta` seconds.
    pub(crate) reset: Option<ResetFile>,
    /// Whether scripts of other origins may read the fields: lists them in `Access-Control-Expose-Headers`.
    #[serde(default)]
    pub(crate) expose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FamilyFile {
    RetryAfter,
    Ratelimit,
    XRatelimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResetFile {
    Unix,
    Delta,
}

/// `refusal` of a policy.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusalFile {
    /// The status of a denial, 400 to 599; 429 by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u16>"))]
    pub(crate) status: Option<Spanned<i64>>,
    /// The body of a denial, instead of the problem.
    pub(crate) body: Option<String>,
    /// The media type of that body; `text/plain; charset=utf-8` by default.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) content_type: Option<Spanned<String>>,
    /// The problem's `detail`, in any language, in which `{policy}`, `{limit}`, `{remaining}` and `{retry_after}` are filled in.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) detail: Option<Spanned<String>>,
    /// The status of a request that lacks a part of the key: 400, 401 (the default) or 403.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u16>"))]
    pub(crate) missing_key_status: Option<Spanned<i64>>,
}

/// `count` of a policy.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct CountFile {
    /// The statuses of answers that count; a request whose answer has another gets its units back.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<u16>"))]
    pub(crate) status: Spanned<Vec<i64>>,
}

/// `allow` and `deny`: by address block, and in a policy by key.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFile {
    /// Address blocks or single addresses, like `10.0.0.0/8`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub(crate) cidr: Vec<Spanned<String>>,
    /// Keys of the policy: a text for a key of one part, a list of texts for a composite.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<OneOrMany>"))]
    pub(crate) key: Vec<Spanned<OneOrMany>>,
}

/// `[[policy]]`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyTable {
    /// Its name: letters, digits, `-`, `_` and `.`. State belongs to it, and headers show it.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub(crate) name: Spanned<String>,
    /// Which requests it covers; all, when absent.
    #[cfg_attr(feature = "schema", schemars(with = "Option<MatchFile>"))]
    pub(crate) r#match: Option<Spanned<MatchFile>>,
    /// What requests count under. A list of several parts is a composite.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<PartFile>"))]
    pub(crate) key: Spanned<Vec<Spanned<PartFile>>>,
    /// The limits that hold, together, all or none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<LimitFile>>"))]
    pub(crate) limits: Option<Spanned<Vec<Spanned<LimitFile>>>>,
    /// Limits by plan, instead of `limits`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<BTreeMap<String, Vec<LimitFile>>>"))]
    pub(crate) plans: Option<Spanned<BTreeMap<String, Vec<Spanned<LimitFile>>>>>,
    /// How a request's plan is known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<PlanFile>"))]
    pub(crate) plan: Option<Spanned<PlanFile>>,
    /// How many units a request costs: a number, 1 by default, or a header within bounds.
    #[cfg_attr(feature = "schema", schemars(with = "Option<CostFile>"))]
    pub(crate) cost: Option<Spanned<CostFile>>,
    /// What happens when a part of the key is absent. Required exactly when one can be.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OnMissingFile>"))]
    pub(crate) on_missing_key: Option<Spanned<OnMissingFile>>,
    /// `enforce`. Other modes are not in this version.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(crate) mode: Option<Spanned<String>>,
    /// Clients that this policy does not hold for.
    #[serde(default)]
    pub(crate) allow: ListFile,
    /// Clients that this policy refuses.
    #[serde(default)]
    pub(crate) deny: ListFile,
    /// What happens to requests while the shared store is down: `allow` (the default), `deny` or `local`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OnStoreErrorFile>"))]
    pub(crate) on_store_error: Option<Spanned<OnStoreErrorFile>>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) ban: Later,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) on_change: Later,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) enforce_percent: Later,
    /// What a denial looks like.
    #[cfg_attr(feature = "schema", schemars(with = "Option<RefusalFile>"))]
    pub(crate) refusal: Option<Spanned<RefusalFile>>,
    /// Which answers count, where the answer is seen: in the tower layer and the gateway.
    #[cfg_attr(feature = "schema", schemars(with = "Option<CountFile>"))]
    pub(crate) count: Option<Spanned<CountFile>>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) count_denied: Later,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) headers: Later,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) descriptor: Later,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) domain: Later,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) scope: Later,
}

/// `match`, and `unless` inside it.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct MatchFile {
    /// Methods; `GET` covers `HEAD`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OneOrMany>"))]
    pub(crate) method: Option<Spanned<OneOrMany>>,
    /// Host names without ports; `*.example.com` covers every name below it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OneOrMany>"))]
    pub(crate) host: Option<Spanned<OneOrMany>>,
    /// Path patterns: `*` is one segment, `**` any number of them.
    #[cfg_attr(feature = "schema", schemars(with = "Option<OneOrMany>"))]
    pub(crate) path: Option<Spanned<OneOrMany>>,
    /// Headers and their values; `*` is any value.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, OneOrMany>"))]
    pub(crate) header: BTreeMap<String, Spanned<OneOrMany>>,
    /// What is not covered: the same fields.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Box<MatchFile>>"))]
    pub(crate) unless: Option<Box<Spanned<Self>>>,
}

/// A text, or a list of texts.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// A part of a key: a word, or a table.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum PartFile {
    /// `ip`, `path-pattern` or `principal`.
    Word(String),
    Table(Box<PartTable>),
}

/// A part of a key as a table: one source, and what stands in for it.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PartTable {
    /// The client's address, with prefixes of its own.
    pub(crate) ip: Option<PrefixFile>,
    /// A header, kept as a digest.
    pub(crate) header: Option<String>,
    /// A cookie, kept as a digest.
    pub(crate) cookie: Option<String>,
    /// A query parameter.
    pub(crate) query: Option<String>,
    /// A segment of the path, counted from 1.
    pub(crate) segment: Option<i64>,
    /// A text, the same for every request.
    pub(crate) constant: Option<String>,
    /// What stands in when the source is absent.
    #[cfg_attr(feature = "schema", schemars(with = "Option<PartFile>"))]
    pub(crate) or: Option<Spanned<PartFile>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PrefixFile {
    /// 0 to 32.
    pub(crate) ipv4_prefix: Option<i64>,
    /// 32 to 128.
    pub(crate) ipv6_prefix: Option<i64>,
}

/// A limit: its text, or a table with an id.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum LimitFile {
    /// Like `60/min burst 10`.
    Text(String),
    Table(LimitTable),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitTable {
    /// The name of its state; by default `<period>-<algorithm>`.
    pub(crate) id: Option<String>,
    /// Its text.
    pub(crate) rate: String,
    /// How far apart the entries of a `sliding-log` are, like `10ms`; 1ns if absent, at most the period.
    pub(crate) resolution: Option<String>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub(crate) scope: Later,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanFile {
    /// The header that names the plan.
    pub(crate) header: String,
    /// The plan of a request without it, or with a name that is no plan.
    pub(crate) default: String,
}

/// A cost: a number, or a table.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub(crate) enum CostFile {
    Number(i64),
    Table(CostTable),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct CostTable {
    /// The header that names the cost, a whole number.
    pub(crate) header: String,
    /// The least that is accepted; 1 by default.
    pub(crate) min: Option<i64>,
    /// The most that is accepted.
    pub(crate) max: i64,
    /// The cost of a request without the header; `min` by default.
    pub(crate) default: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnMissingFile {
    Deny,
    Skip,
    Shared,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnStoreErrorFile {
    Allow,
    Deny,
    Local,
}

/// Takes the fields of later versions off a list of suggestions: they would be refused as well.
fn without_later(message: &str) -> String {
    let mut shorter = message.to_owned();
    for name in later::NAMES {
        shorter = shorter.replace(&format!("`{name}`, "), "").replace(&format!(", `{name}`"), "");
    }
    if message.starts_with("unknown field `") && !shorter.starts_with("unknown field `") {
        return message.to_owned();
    }
    shorter
}

/// Reads the file, or says why not.
pub(crate) fn parse(text: &str, problems: &mut Problems<'_>) -> Option<PolicyFile> {
    // The syntax first, so that a wrong type is not reported as wrong TOML.
    if let Err(error) = toml::de::DeTable::parse(text) {
        let message = format!("{}: this is not TOML", error.message());
        problems.add(Code::Syntax, error.span().unwrap_or_default(), message);
        return None;
    }
    match toml::from_str(text) {
        Ok(file) => Some(file),
        Err(error) => {
            let unknown = error.message().starts_with("unknown field");
            let code = if unknown { Code::UnknownField } else { Code::WrongType };
            let span = error.span().unwrap_or_default();
            problems.add(code, span, without_later(error.message()));
            None
        }
    }
}
