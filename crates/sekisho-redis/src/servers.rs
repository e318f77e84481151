//! Which server is asked what.

use std::{collections::BTreeSet, sync::Arc};

use sekisho::{Key, StoreAddress, StoreError, Timestamp, Topology};

use crate::{
    cluster::Cluster,
    link::{Link, Manners, Target, Waiting},
    question::{Answered, Question},
    refusal::Failure,
    sentinel::Sentinels,
    shards::Shards,
    stats::ServerStats,
    wire::Place,
};

/// The servers of a store.
#[derive(Debug)]
pub(crate) enum Servers {
    /// All is counted in one place.
    One(Link),
    /// Each identity is counted on one of several.
    Shards(Shards, Vec<Link>),
    /// A cluster says itself which of its servers counts what.
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// Returns the servers at some addresses, without going there.
    pub(crate) fn new(
        addresses: &[StoreAddress],
        manners: impl Fn(&StoreAddress) -> Result<Manners, StoreError>,
    ) -> Result<Self, StoreError> {
        match addresses {
            [] => Err(StoreError::Unavailable("a store has at least one address".into())),
            [address] if address.topology == Topology::Cluster => {
                let manners = Arc::new(manners(address)?);
                Ok(Self::Cluster(Arc::new(Cluster::new(address.hosts.clone(), manners))))
            }
            [address] => Ok(Self::One(link(address, manners(address)?)?)),
            _ => {
                check_shards(addresses)?;
                let links: Result<Vec<Link>, StoreError> =
                    addresses.iter().map(|address| link(address, manners(address)?)).collect();
                Ok(Self::Shards(Shards::new(addresses), links?))
            }
        }
    }

    /// Returns where an identity is counted: what has the same place can be decided in one call.
    pub(crate) fn place(&self, key: &Key) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Shards(shards, _) => shards.place(key.as_str()),
            Self::Cluster(_) => usize::from(Cluster::slot(key)),
        }
    }

    /// Returns a time near the server's now, if any is known.
    pub(crate) fn about(&self, place: usize) -> Timestamp {
        match self {
            Self::One(link) => link.seen(),
            Self::Shards(_, links) => links.get(place).map_or(Timestamp::EPOCH, Link::seen),
            Self::Cluster(cluster) => cluster.seen(),
        }
    }

    /// Puts a question to who counts there.
    pub(crate) fn ask(&self, place: usize, question: Question) -> Waiting {
        match self {
            Self::One(link) => link.ask(question, false),
            Self::Shards(_, links) => links[place].ask(question, false),
            Self::Cluster(cluster) => cluster.ask(slot(place), question),
        }
    }

    /// Returns what it says.
    pub(crate) async fn told(
        &self,
        place: usize,
        waiting: Waiting,
    ) -> Result<Answered, StoreError> {
        match self {
            Self::One(_) | Self::Shards(..) => waiting.told().await.map_err(Failure::error),
            Self::Cluster(cluster) => cluster.told(slot(place), waiting).await,
        }
    }

    /// Says what is counted of each.
    pub(crate) fn stats(&self) -> Vec<ServerStats> {
        match self {
            Self::One(link) => vec![link.stats()],
            Self::Shards(_, links) => links.iter().map(Link::stats).collect(),
            Self::Cluster(cluster) => cluster.stats(),
        }
    }
}

/// Fails unless some addresses are those of as many single servers.
fn check_shards(addresses: &[StoreAddress]) -> Result<(), StoreError> {
    let mut names = BTreeSet::new();
    for address in addresses {
        if !address.is_one_server() {
            let why = format!("counts are spread over single servers, and {address} is none");
            return Err(StoreError::Unavailable(why.into()));
        }
        if !names.insert(address.authority()) {
            return Err(StoreError::Unavailable(format!("{address} is named twice").into()));
        }
    }
    Ok(())
}

/// A place in a cluster is a slot.
fn slot(place: usize) -> u16 {
    u16::try_from(place).unwrap_or(0)
}

fn link(address: &StoreAddress, manners: Manners) -> Result<Link, StoreError> {
    let target = match &address.topology {
        Topology::Unix(path) => Target::Place(Place::Socket(path.clone())),
        Topology::Sentinel { master } => {
            let (hosts, master) = (address.hosts.clone(), master.clone());
            Target::Sentinels(Sentinels { hosts, master })
        }
        Topology::Single => match address.hosts.as_slice() {
            [host] => Target::Place(Place::Host(host.clone())),
            _ => return Err(StoreError::Unavailable("one server has one host".into())),
        },
        Topology::Cluster => {
            return Err(StoreError::Unavailable("a cluster is no single server".into()));
        }
    };
    Ok(Link::new(target, Arc::new(manners)))
}
