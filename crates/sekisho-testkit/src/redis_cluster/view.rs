//! What one node of a cluster sees of it.

use std::{ops::RangeInclusive, time::Duration};

use crate::redis_server::{RedisServer, Reply};

/// A node's own words, read.
#[derive(Debug)]
pub(super) struct View {
    /// It serves: every slot has a master that it can reach.
    pub(super) healthy: bool,
    /// It is a master, or linked to its own.
    pub(super) follows: bool,
    /// How many nodes it has been introduced to, with itself.
    pub(super) known: usize,
    /// How many of them are replicas that it can reach.
    pub(super) followers: usize,
    owners: Vec<(RangeInclusive<u16>, usize)>,
}

impl View {
    /// Asks a node; none if it does not answer in time. `ids` are the nodes' names by their numbers.
    pub(super) fn of(node: &RedisServer, ids: &[String], patience: Duration) -> Option<Self> {
        let ask = |words: &[&str]| match node.try_command(words, patience) {
            Ok(Reply::Bulk(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
            _ => None,
        };
        let state = ask(&["CLUSTER", "INFO"])?;
        let replication = ask(&["INFO", "replication"])?;
        let table = ask(&["CLUSTER", "NODES"])?;
        let mut view = Self {
            healthy: state.contains("cluster_state:ok"),
            follows: replication.contains("role:master")
                || replication.contains("master_link_status:up"),
            known: 0,
            followers: 0,
            owners: Vec::new(),
        };
        for line in table.lines() {
            view.read(line, ids);
        }
        Some(view)
    }

    /// Returns the node that serves a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<usize> {
        self.owners.iter().find(|(slots, _)| slots.contains(&slot)).map(|(_, owner)| *owner)
    }

    /// Reads `<id> <address> <flags> <its master> <sent> <heard> <epoch> <link> <slot or slots>…`.
    fn read(&mut self, line: &str, ids: &[String]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(node) = ids.iter().position(|id| words.first() == Some(&id.as_str())) else {
            // Somebody it is only just being introduced to, under a name for the time being.
            return;
        };
        let flags = words[2];
        let reached = words[7] == "connected" && !flags.contains("fail");
        self.known += usize::from(!flags.contains("handshake"));
        self.followers += usize::from(flags.contains("slave") && reached);
        for slots in &words[8..] {
            // One in brackets is halfway to or from another node, and listed elsewhere too.
            let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
                self.owners.push((first..=last, node));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_nodes_is_read() {
        let ids = ["aa", "bb", "cc"].map(str::to_owned);
        let mut view =
            View { healthy: true, follows: true, known: 0, followers: 0, owners: Vec::new() };
        for line in [
            "aa 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5 7 [8->-bb]",
            "bb 127.0.0.1:3@4 master,fail? - 0 0 2 connected 8-9",
            "cc 127.0.0.1:5@6 slave aa 0 0 1 connected",
            "dd 127.0.0.1:7@8 handshake - 0 0 0 connected",
        ] {
            view.read(line, &ids);
        }
        assert_eq!((view.known, view.followers), (3, 1));
        let owners: Vec<Option<usize>> = [0, 5, 6, 7, 8].map(|slot| view.owner(slot)).into();
        assert_eq!(owners, [Some(0), Some(0), None, Some(0), Some(1)]);
    }
}
