//! Counts that are spread over several servers which know nothing of each other.
//!
//! Each identity is counted on the server that scores highest for it (rendezvous hashing, Thaler and Ravishankar 1998). So all
//! limits of one identity are in one place; the order of the servers does not matter; and when one is taken away or added,
//! only the identities that were or will be counted there move. Who moves begins with fresh limits.

use sekisho::StoreAddress;
use sha1_smol::Sha1;

/// The servers, by what their names make of an identity.
#[derive(Debug)]
pub(crate) struct Shards {
    seeds: Vec<u64>,
}

impl Shards {
    pub(crate) fn new(addresses: &[StoreAddress]) -> Self {
        let seed = |address: &StoreAddress| {
            let digest = Sha1::from(address.authority()).digest().bytes();
            u64::from_be_bytes(std::array::from_fn(|at| digest[at]))
        };
        Self { seeds: addresses.iter().map(seed).collect() }
    }

    /// Returns the place of the server that counts for an identity.
    pub(crate) fn place(&self, identity: &str) -> usize {
        let hash = fnv(identity.as_bytes());
        let scores = self.seeds.iter().map(|seed| mixed(seed ^ hash));
        scores.enumerate().max_by_key(|(_, score)| *score).map_or(0, |(place, _)| place)
    }
}

/// FNV-1a: the same on every machine and in every version.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The finish of splitmix64: each bit of the input changes half of the output.
const fn mixed(mut of: u64) -> u64 {
    of = (of ^ (of >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    of = (of ^ (of >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    of ^ (of >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(hosts: &[&str]) -> Vec<StoreAddress> {
        hosts.iter().map(|host| format!("redis://{host}").parse().unwrap()).collect()
    }

    fn homes(hosts: &[&str]) -> Vec<String> {
        let shards = Shards::new(&addresses(hosts));
        (0..10_000).map(|who| hosts[shards.place(&format!("=u{who}"))].to_owned()).collect()
    }

    #[test]
    fn where_an_identity_lives_is_what_other_versions_say() {
        let shards = Shards::new(&addresses(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]));
        let places: Vec<usize> =
            ["=alice", "=bob", "=carol", "=dave", "="].map(|who| shards.place(who)).into();
        assert_eq!(places, [1, 0, 0, 1, 0]);
    }

    #[test]
    fn each_counts_for_its_part_whatever_the_order() {
        let three = homes(&["a", "b", "c"]);
        for host in ["a", "b", "c"] {
            let count = three.iter().filter(|home| *home == host).count();
            assert!((3_100..3_600).contains(&count), "{host}: {count}");
        }
        assert_eq!(three, homes(&["c", "a", "b"]));
    }

    #[test]
    fn only_what_lived_there_moves() {
        let (three, two) = (homes(&["a", "b", "c"]), homes(&["a", "b"]));
        for (before, after) in three.iter().zip(&two) {
            assert!(before == after || before == "c");
        }
    }
}
