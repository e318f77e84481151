//! Who a request counts under: the parts of a policy's key, and what stands in for one that is absent.

use std::fmt;

use super::{
    OnMissingKey,
    compile::Problems,
    file::{IdentityFile, PartFile, PartTable, PrefixFile, Spanned},
    lint::Code,
    matcher::{Matched, is_header_name},
};
use crate::{
    digest::Seed,
    key::{Key, KeyBuilder},
    request::Request,
};

/// How many leading bits of an address make a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    pub(crate) v4: u8,
    pub(crate) v6: u8,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

/// Where one part of a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Ip(Prefixes),
    Header(String),
    Cookie(String),
    Query(String),
    /// A segment of the path, from 1.
    Segment(usize),
    PathPattern,
    /// Who the caller was found to be by whatever stands before the limiter.
    Principal,
    Constant(String),
}

/// A policy's key: its parts, each with its alternatives in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySpec {
    // Invariant: at least one part, each with at least one alternative.
    parts: Vec<Vec<Source>>,
}

/// The key of a request, or why it has none.
pub(crate) enum Identified {
    Key(Key),
    Missing,
    Skip,
}

impl Prefixes {
    pub(crate) fn compile(file: &IdentityFile, problems: &mut Problems<'_>) -> Self {
        let mut prefix = |of: &Option<Spanned<i64>>, low: u8, high: u8, default: u8| {
            let Some(spanned) = of else { return default };
            prefix_in(*spanned.get_ref(), low, high).unwrap_or_else(|| {
                problems.add(
                    Code::Number,
                    spanned.span(),
                    format!("this prefix is {low} to {high} bits"),
                );
                default
            })
        };
        Self {
            v4: prefix(&file.ipv4_prefix, 0, 32, 32),
            v6: prefix(&file.ipv6_prefix, 32, 128, 64),
        }
    }

    fn with(self, file: PrefixFile) -> Option<Self> {
        let v4 = file.ipv4_prefix.map_or(Some(self.v4), |bits| prefix_in(bits, 0, 32))?;
        let v6 = file.ipv6_prefix.map_or(Some(self.v6), |bits| prefix_in(bits, 32, 128))?;
        Some(Self { v4, v6 })
    }
}

fn prefix_in(bits: i64, low: u8, high: u8) -> Option<u8> {
    u8::try_from(bits).ok().filter(|bits| (low..=high).contains(bits))
}

impl Source {
    /// Returns the name of the part in a key.
    fn name(&self) -> String {
        match self {
            Self::Ip(_) => "ip".to_owned(),
            Self::Header(name) => format!("header.{name}"),
            Self::Cookie(name) => format!("cookie.{name}"),
            Self::Query(name) => format!("query.{name}"),
            Self::Segment(index) => format!("segment.{index}"),
            Self::PathPattern => "path-pattern".to_owned(),
            Self::Principal => "principal".to_owned(),
            Self::Constant(_) => "constant".to_owned(),
        }
    }

    /// Returns whether any client can make up a new value for it.
    pub(crate) const fn is_made_up(&self) -> bool {
        matches!(self, Self::Header(_) | Self::Cookie(_) | Self::Query(_) | Self::Segment(_))
    }

    fn add(
        &self,
        key: &mut KeyBuilder,
        request: &Request<'_>,
        matched: &Matched<'_>,
        seed: &Seed,
    ) -> Option<()> {
        let name = self.name();
        match self {
            Self::Ip(prefixes) => {
                let client = request.client?.to_canonical();
                key.address(
                    &name,
                    client,
                    if client.is_ipv4() { prefixes.v4 } else { prefixes.v6 },
                );
            }
            Self::Header(header) => key.secret(&name, &request.header(header)?, seed),
            Self::Cookie(cookie) => key.secret(&name, &request.cookie(cookie)?, seed),
            Self::Query(parameter) => key.part(&name, &request.parameter(parameter)?),
            Self::Segment(index) => key.part(&name, request.path.segments().nth(index - 1)?),
            Self::PathPattern => key.part(&name, matched.pattern?.as_str().as_bytes()),
            Self::Principal => {
                key.part(&name, request.principal.filter(|name| !name.is_empty())?.as_bytes());
            }
            Self::Constant(text) => key.part(&name, text.as_bytes()),
        }
        Some(())
    }

    /// Adds a value that a list names, if it can be a value of this source.
    fn add_named(&self, key: &mut KeyBuilder, value: &str, seed: &Seed) -> Option<()> {
        let name = self.name();
        match self {
            Self::Ip(prefixes) => {
                let address: std::net::IpAddr = value.parse().ok()?;
                let address = address.to_canonical();
                key.address(
                    &name,
                    address,
                    if address.is_ipv4() { prefixes.v4 } else { prefixes.v6 },
                );
            }
            Self::Header(_) | Self::Cookie(_) => key.secret(&name, value.as_bytes(), seed),
            Self::Query(_) | Self::Segment(_) | Self::PathPattern | Self::Principal => {
                key.part(&name, value.as_bytes());
            }
            Self::Constant(text) => {
                if text != value {
                    return None;
                }
                key.part(&name, value.as_bytes());
            }
        }
        Some(())
    }
}

impl KeySpec {
    pub(crate) fn compile(
        parts: &Spanned<Vec<Spanned<PartFile>>>,
        prefixes: Prefixes,
        problems: &mut Problems<'_>,
    ) -> Self {
        if parts.get_ref().is_empty() {
            problems.add(
                Code::Key,
                parts.span(),
                "a key has at least one part; `{ constant = \"all\" }` counts every request together",
            );
        }
        let mut compiled = Vec::new();
        for part in parts.get_ref() {
            let mut alternatives = Vec::new();
            let mut next = Some(part);
            while let Some(alternative) = next {
                let (source, or) = compile_part(alternative, prefixes, problems);
                alternatives.extend(source);
                next = or;
            }
            compiled.push(alternatives);
        }
        Self { parts: compiled }
    }

    /// Returns whether a request may lack a part, all its alternatives included; `None` when a part is wrong, which has been
    /// complained of already.
    pub(crate) fn can_be_missing(&self, segments_min: usize, has_address: bool) -> Option<bool> {
        let always = |source: &Source| match source {
            Source::Ip(_) => has_address,
            Source::PathPattern | Source::Constant(_) => true,
            Source::Segment(index) => *index <= segments_min,
            Source::Header(_) | Source::Cookie(_) | Source::Query(_) | Source::Principal => false,
        };
        let known = self.parts.iter().all(|sources| !sources.is_empty());
        known.then(|| self.parts.iter().any(|sources| !sources.iter().any(always)))
    }

    pub(crate) fn uses_pattern(&self) -> bool {
        self.parts.iter().flatten().any(|source| *source == Source::PathPattern)
    }

    /// Returns whether any part of this is an address.
    pub(crate) fn uses_address(&self) -> bool {
        self.parts.iter().flatten().any(|source| matches!(source, Source::Ip(_)))
    }

    /// Returns whether this counts by address alone.
    pub(crate) fn is_address(&self) -> bool {
        matches!(self.parts.as_slice(), [alternatives] if matches!(alternatives.as_slice(), [Source::Ip(_)]))
    }

    /// Returns whether a part of it is kept as a digest, since nobody may read it.
    pub(crate) fn uses_secret(&self) -> bool {
        let is_secret = |source: &Source| matches!(source, Source::Header(_) | Source::Cookie(_));
        self.parts.iter().flatten().any(is_secret)
    }

    /// Returns the first part that any client can make up, so that one client can be many.
    pub(crate) fn made_up(&self) -> Option<String> {
        self.parts.iter().flatten().find(|source| source.is_made_up()).map(Source::name)
    }

    /// Returns the key of a request.
    pub(crate) fn identify(
        &self,
        request: &Request<'_>,
        matched: &Matched<'_>,
        on_missing: OnMissingKey,
        seed: &Seed,
    ) -> Identified {
        let mut key = KeyBuilder::new();
        for alternatives in &self.parts {
            let found =
                alternatives.iter().find_map(|source| source.add(&mut key, request, matched, seed));
            match (found, on_missing) {
                (Some(()), _) => {}
                (None, OnMissingKey::Deny) => return Identified::Missing,
                (None, OnMissingKey::Skip) => return Identified::Skip,
                (None, OnMissingKey::Shared) => key.part("missing", b""),
            }
        }
        Identified::Key(key.build(seed))
    }

    /// Returns every key that a list entry can mean: one value a part, under each of the part's alternatives.
    pub(crate) fn named(&self, values: &[String], seed: &Seed) -> Option<Vec<Key>> {
        if values.len() != self.parts.len() {
            return None;
        }
        let mut builders = vec![KeyBuilder::new()];
        for (alternatives, value) in self.parts.iter().zip(values) {
            let mut longer = Vec::new();
            for builder in &builders {
                for source in alternatives {
                    let mut key = builder.clone();
                    longer.extend(source.add_named(&mut key, value, seed).map(|()| key));
                }
            }
            builders = longer;
        }
        let keys: Vec<_> = builders.into_iter().map(|builder| builder.build(seed)).collect();
        (!keys.is_empty()).then_some(keys)
    }
}

/// Returns the source of a part, if it is right, and what stands in for it.
fn compile_part<'a>(
    part: &'a Spanned<PartFile>,
    prefixes: Prefixes,
    problems: &mut Problems<'_>,
) -> (Option<Source>, Option<&'a Spanned<PartFile>>) {
    let table = match part.get_ref() {
        PartFile::Word(word) => {
            let source = match word.as_str() {
                "ip" => Some(Source::Ip(prefixes)),
                "path-pattern" => Some(Source::PathPattern),
                "principal" => Some(Source::Principal),
                _ => None,
            };
            if source.is_none() {
                problems.add(
                    Code::Key,
                    part.span(),
                    format!(
                        "`{word}` is no part of a key: write `ip`, `path-pattern`, `principal`, or a table like `{{ header = \"{word}\" }}`"
                    ),
                );
            }
            return (source, None);
        }
        PartFile::Table(table) => table,
    };
    let sources = sources_of(table, prefixes);
    let source = match sources.as_slice() {
        [Ok(source)] => Some(source.clone()),
        [Err(message)] => {
            problems.add(Code::Key, part.span(), *message);
            None
        }
        [] => {
            problems.add(
                Code::Key,
                part.span(),
                "this part names no source: one of ip, header, cookie, query, segment, constant",
            );
            None
        }
        _ => {
            problems.add(
                Code::Key,
                part.span(),
                "this part names several sources; the second goes into `or`, or into a part of its own",
            );
            None
        }
    };
    (source, table.or.as_ref())
}

fn sources_of(table: &PartTable, prefixes: Prefixes) -> Vec<Result<Source, &'static str>> {
    const HEADER: &str = "a header's name has letters, digits and `-`";
    const NAME: &str = "a name is not empty";
    const PREFIX: &str = "an IPv4 prefix is 0 to 32 bits, an IPv6 prefix 32 to 128";
    const SEGMENT: &str = "segments are counted from 1";
    let header = table.header.as_ref().map(|name| {
        is_header_name(name).then(|| Source::Header(name.to_ascii_lowercase())).ok_or(HEADER)
    });
    let named = |name: &Option<String>, source: fn(String) -> Source| {
        name.as_ref().map(|name| (!name.is_empty()).then(|| source(name.clone())).ok_or(NAME))
    };
    let segment = table.segment.map(|index| {
        usize::try_from(index).ok().filter(|index| *index > 0).map(Source::Segment).ok_or(SEGMENT)
    });
    let ip = table.ip.map(|file| prefixes.with(file).map(Source::Ip).ok_or(PREFIX));
    [
        ip,
        header,
        named(&table.cookie, Source::Cookie),
        named(&table.query, Source::Query),
        segment,
        table.constant.as_ref().map(|text| Ok(Source::Constant(text.clone()))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl fmt::Display for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |alternatives: &Vec<Source>| {
            alternatives.iter().map(Source::name).collect::<Vec<_>>().join(" or ")
        };
        f.write_str(&self.parts.iter().map(part).collect::<Vec<_>>().join(", "))
    }
}
