//! The places among which a name has its own.

use sekisho_core::Timestamp;

use super::{
    WAYS,
    place::{Fullness, Place, Seen, Worth},
};
use crate::store::Charge;

/// What became of a decision that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It is here, or need not be.
    Well,
    /// An exhausted or refused key found no place, or lost its own.
    CrowdedOut,
}

/// Some places. Hashes stand apart, so that a key that is not here is found out in two cache lines.
#[derive(Debug, Default)]
pub(super) struct Set {
    hashes: [u64; WAYS],
    /// What all places have at least, if that is known. A flood of keys that come once is turned away by this, and looks at no
    /// place.
    floor: Option<Floor>,
    places: [Option<Place>; WAYS],
}

/// What a newcomer must have more of, while no key of the set is fresh again.
#[derive(Clone, Copy, Debug)]
struct Floor {
    fullness: Fullness,
    denied: u64,
    all_living_until: Timestamp,
}

impl Set {
    /// Notes what was seen of the key of a charge.
    pub(super) fn note(&mut self, hash: u64, charge: &Charge<'_>, seen: Seen) -> Noted {
        if let Some(index) = self.find(hash, charge) {
            self.update(index, seen);
            return Noted::Well;
        }
        if !seen.is_decision || seen.is_fresh() {
            return Noted::Well;
        }
        let below = |floor: Option<Floor>| {
            floor.is_some_and(|floor| seen.worth() <= (floor.fullness, floor.denied))
        };
        if below(self.known_floor(seen.at)) || below(self.floor(seen.at)) {
            return if seen.matters() { Noted::CrowdedOut } else { Noted::Well };
        }
        self.floor = None;
        let worth =
            |place: &Option<Place>| place.as_ref().map_or(Worth::Empty, |of| of.worth(seen.at));
        let places = self.places.iter_mut().zip(&mut self.hashes);
        let Some((place, known)) = places.min_by_key(|(place, _)| worth(place)) else {
            return Noted::Well;
        };
        *known = hash;
        match place.replace(Place::new(charge, seen)) {
            Some(lost) if lost.is_living(seen.at) && lost.matters() => Noted::CrowdedOut,
            _ => Noted::Well,
        }
    }

    fn update(&mut self, index: usize, seen: Seen) {
        let Some(place) = self.places.get_mut(index) else { return };
        *place = place.take().and_then(|place| place.updated(seen));
        // Most keys only get fuller, and a floor that all are still above holds.
        let holds = |floor: &Floor| {
            place.as_ref().is_some_and(|place| match place.worth(floor.all_living_until) {
                Worth::Living(fullness, denied, _) => {
                    (fullness, denied) >= (floor.fullness, floor.denied)
                }
                Worth::Empty | Worth::Stale(_) => false,
            })
        };
        self.floor = self.floor.filter(holds);
    }

    /// Returns the floor of an earlier look, when it still holds.
    fn known_floor(&self, now: Timestamp) -> Option<Floor> {
        self.floor.filter(|floor| floor.all_living_until > now)
    }

    /// Returns what a newcomer must have more of; `None` when there is room.
    fn floor(&mut self, now: Timestamp) -> Option<Floor> {
        let mut least: Option<Floor> = None;
        for place in &self.places {
            let Worth::Living(fullness, denied, until) = place.as_ref()?.worth(now) else {
                return None;
            };
            let before = least.unwrap_or(Floor { fullness, denied, all_living_until: until });
            let (fullness, denied) = (fullness, denied).min((before.fullness, before.denied));
            let all_living_until = before.all_living_until.min(until);
            least = Some(Floor { fullness, denied, all_living_until });
        }
        self.floor = least;
        least
    }

    /// Returns copies of the places whose keys are not fresh again.
    pub(super) fn living(&self, now: Timestamp) -> impl Iterator<Item = Place> + '_ {
        self.places.iter().flatten().filter(move |place| place.is_living(now)).cloned()
    }

    pub(super) fn held(&self) -> usize {
        self.places.iter().flatten().count()
    }

    fn find(&self, hash: u64, charge: &Charge<'_>) -> Option<usize> {
        self.hashes.iter().zip(&self.places).position(|(known, place)| {
            *known == hash && place.as_ref().is_some_and(|place| place.is_of(charge))
        })
    }
}
