//! Which server has which slot.

use redis_protocol::resp2::types::BytesFrame as Frame;
use sekisho::Host;

/// How many slots a cluster has.
const SLOTS: usize = 16_384;

/// The servers, and which of them has each slot.
#[derive(Debug, Default)]
pub(super) struct Slots {
    hosts: Vec<Host>,
    /// The place of each slot's server, from 1; 0 where none is known. Empty as long as nothing is known.
    places: Vec<u16>,
}

impl Slots {
    /// Reads the reply to `CLUSTER SLOTS` of a server: ranges, each with its master first. A master without a name of its own
    /// is where the question was asked.
    pub(super) fn read(told: &Frame, asked: &Host) -> Option<Self> {
        let Frame::Array(ranges) = told else { return None };
        let mut slots = Self::default();
        for range in ranges {
            let Frame::Array(range) = range else { return None };
            let [Frame::Integer(first), Frame::Integer(last), Frame::Array(master), ..] =
                range.as_slice()
            else {
                return None;
            };
            let [name, Frame::Integer(port), ..] = master.as_slice() else { return None };
            let name = match name {
                Frame::BulkString(name) => str::from_utf8(name).ok()?,
                _ => "",
            };
            let name = if name.is_empty() { asked.name.clone() } else { name.to_owned() };
            let host = Host { name, port: u16::try_from(*port).ok()? };
            let (first, last) = (slot(*first)?, slot(*last)?);
            let place = slots.place(&host);
            slots.places.get_mut(first..=last)?.fill(place);
        }
        // A server that knows of none has not joined yet.
        (!slots.hosts.is_empty()).then_some(slots)
    }

    /// Learns that one slot is elsewhere.
    pub(super) fn moved(&mut self, slot: u16, to: &Host) {
        let place = self.place(to);
        if let Some(of) = self.places.get_mut(usize::from(slot)) {
            *of = place;
        }
    }

    /// Returns who has a slot, if that is known.
    pub(super) fn host(&self, slot: u16) -> Option<&Host> {
        let place = self.places.get(usize::from(slot))?;
        self.hosts.get(usize::from(*place).checked_sub(1)?)
    }

    /// Returns whether a server has any slot, or had one.
    pub(super) fn has(&self, host: &Host) -> bool {
        self.hosts.contains(host)
    }

    fn place(&mut self, host: &Host) -> u16 {
        if self.places.is_empty() {
            self.places = vec![0; SLOTS];
        }
        let at = self.hosts.iter().position(|known| known == host).unwrap_or_else(|| {
            self.hosts.push(host.clone());
            self.hosts.len() - 1
        });
        // A cluster has at most a thousand servers.
        u16::try_from(at + 1).unwrap_or(0)
    }
}

fn slot(of: i64) -> Option<usize> {
    usize::try_from(of).ok().filter(|of| *of < SLOTS)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn host(name: &str, port: u16) -> Host {
        Host { name: name.to_owned(), port }
    }

    fn range(first: i64, last: i64, name: &'static str, port: i64) -> Frame {
        let master = vec![
            Frame::BulkString(Bytes::from_static(name.as_bytes())),
            Frame::Integer(port),
            Frame::BulkString(Bytes::from_static(b"id")),
        ];
        Frame::Array(vec![Frame::Integer(first), Frame::Integer(last), Frame::Array(master)])
    }

    #[test]
    fn ranges_are_read_and_changed() {
        let told = Frame::Array(vec![range(0, 99, "", 7000), range(100, 16_383, "b", 7001)]);
        let mut slots = Slots::read(&told, &host("a", 1)).unwrap();
        let wanted = [(0, "a", 7000), (99, "a", 7000), (100, "b", 7001), (16_383, "b", 7001)];
        for (slot, name, port) in wanted {
            assert_eq!(slots.host(slot), Some(&host(name, port)), "{slot}");
        }
        slots.moved(5, &host("c", 7002));
        assert_eq!(
            (slots.host(5), slots.host(6)),
            (Some(&host("c", 7002)), Some(&host("a", 7000)))
        );
    }

    #[test]
    fn what_is_no_such_reply_is_nothing() {
        let asked = host("a", 1);
        for bad in [
            Frame::Null,
            Frame::Array(vec![]),
            Frame::Array(vec![Frame::Integer(1)]),
            Frame::Array(vec![range(0, 16_384, "b", 7000)]),
            Frame::Array(vec![range(-1, 5, "b", 7000)]),
            Frame::Array(vec![range(9, 5, "b", 7000)]),
            Frame::Array(vec![range(0, 5, "b", 70_000)]),
        ] {
            assert!(Slots::read(&bad, &asked).is_none(), "{bad:?}");
        }
        let mut none = Slots::default();
        assert_eq!(none.host(7), None);
        none.moved(7, &asked);
        assert_eq!((none.host(7), none.host(8)), (Some(&asked), None));
    }
}
