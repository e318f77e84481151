//! Clients that no limit holds for, and clients that are refused: by address block, and in a policy by key.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use ipnet::IpNet;

use super::{compile::Problems, file::ListFile, identify::KeySpec, lint::Code};
use crate::{digest::Seed, key::Key};

/// One list.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    blocks: Vec<IpNet>,
    keys: BTreeSet<Key>,
    /// The keys as they are written, for digests under another seed.
    named: Written,
}

/// Keys as the file has them: some are secrets, so nobody prints them.
#[derive(Clone, Default)]
struct Written(Vec<Box<[String]>>);

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Written({} keys)", self.0.len())
    }
}

/// Both lists. Who is on both is refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    pub(crate) allow: List,
    pub(crate) deny: List,
}

impl Lists {
    /// Makes the digests of a policy's keys anew, under another seed.
    pub(crate) fn rekey(&mut self, key: &KeySpec, seed: &Seed) {
        self.allow.rekey(key, seed);
        self.deny.rekey(key, seed);
    }
}

impl List {
    pub(crate) fn compile(
        file: &ListFile,
        key: Option<&KeySpec>,
        seed: &Seed,
        problems: &mut Problems<'_>,
    ) -> Self {
        let mut list = Self::default();
        for text in &file.cidr {
            let address = || text.get_ref().parse::<IpAddr>().ok().map(IpNet::from);
            match text.get_ref().parse().ok().or_else(address) {
                Some(block) => list.blocks.push(block),
                None => problems.add(
                    Code::List,
                    text.span(),
                    "an address block is like `10.0.0.0/8`, `2001:db8::/32` or one address",
                ),
            }
        }
        for values in &file.key {
            let named = key.and_then(|key| key.named(values.get_ref().as_slice(), seed));
            match (key, named) {
                (_, Some(keys)) => {
                    list.keys.extend(keys);
                    list.named.0.push(values.get_ref().as_slice().into());
                }
                (Some(key), None) => problems.add(
                    Code::List,
                    values.span(),
                    format!("this is no key of the policy, which counts by {key}: one text a part"),
                ),
                (None, None) => problems.add(
                    Code::List,
                    values.span(),
                    "keys are listed in a policy, which says what a key is",
                ),
            }
        }
        list
    }

    /// Makes the digests of the keys anew.
    fn rekey(&mut self, key: &KeySpec, seed: &Seed) {
        let keys = self.named.0.iter().filter_map(|values| key.named(values, seed));
        self.keys = keys.flatten().collect();
    }

    pub(crate) fn has_address(&self, client: Option<IpAddr>) -> bool {
        client.is_some_and(|client| {
            let client = client.to_canonical();
            self.blocks.iter().any(|block| block.contains(&client))
        })
    }

    pub(crate) fn has_key(&self, key: &Key) -> bool {
        self.keys.contains(key)
    }
}
