//! The server's own clock, set back and going on: what the script stores is what the core makes of it.
//!
//! A trace with times of its own leaves states that lie after the server's clock, or before it. From there on the server's clock
//! decides, and the core is told the same times.

use sekisho::{Ask, Charge, Mode, Now, Store, Timestamp, Verdict, Zones};
use sekisho_core::{Slot, State, decide};
use sekisho_testkit::generate::Rng;

use crate::{
    agree::{LIMITS, cost},
    support::{Counted, Pair, all_expire},
};

const TRACES: u64 = 300;

/// What the core makes of the same calls.
struct Mirror {
    states: Vec<State>,
}

impl Mirror {
    fn ask(
        &mut self,
        charges: &[Charge<'_>],
        mode: Mode,
        at: Timestamp,
        set_back: bool,
    ) -> Vec<Verdict> {
        let before = self.states.clone();
        let mut verdicts = vec![Verdict::UNLIMITED; charges.len()];
        if set_back {
            for (charge, state) in charges.iter().zip(&mut self.states) {
                charge.limit.repair(state, at, &Zones);
            }
        }
        let mut slots: Vec<Slot<'_>> = (charges.iter().zip(&mut self.states))
            .map(|(charge, state)| Slot { limit: charge.limit, state, cost: charge.cost })
            .collect();
        let _joint = decide(&mut slots, &mut verdicts, at, mode, &Zones);
        // A look stores no repair either.
        if mode == Mode::Look {
            self.states = before;
        }
        verdicts
    }
}

fn counted(rng: &mut Rng, trace: u64) -> Vec<Counted> {
    let first = usize::try_from(rng.below(LIMITS.len() as u64)).unwrap();
    let key = format!("u{trace}");
    (0..usize::try_from(rng.between(1, 2)).unwrap())
        .map(|more| {
            let (id, numbers) = LIMITS[(first + 3 * more) % LIMITS.len()];
            Counted::new(numbers[usize::try_from(rng.below(3)).unwrap()], id, &key)
        })
        .collect()
}

async fn trace(pair: &Pair, rng: &mut Rng, number: u64) -> usize {
    const DAY_US: u64 = 86_400_000_000;
    let counted = counted(rng, number);
    let mut mirror = Mirror { states: vec![State::Fresh; counted.len()] };
    let far = *rng.pick(&[1_000, 1_000_000, 60_000_000, 3 * DAY_US, 400 * DAY_US]);
    let start = pair.redis.decide(&[Ask::new(&[], Mode::Look)], Now::StoreClock).await;
    let start = start[0].as_ref().unwrap().at.as_nanos() / 1_000;
    let mut us = if rng.chance(1, 4) { start - rng.below(far) } else { start + rng.below(far) };
    let mut last = us;
    let mut moved = 0;
    let (ahead, then) = (rng.between(1, 4), rng.between(2, 5));
    for call in 0..ahead + then {
        let live = call >= ahead;
        let charges: Vec<Charge<'_>> = counted
            .iter()
            .map(|one| one.charge(cost(rng, one.limit.capacity().unwrap())))
            .collect();
        let mode = match rng.below(8) {
            0 => Mode::Look,
            1 | 2 => Mode::Force,
            3 => Mode::Refund { at: Timestamp::from_nanos(last * 1_000) },
            _ => Mode::Check,
        };
        us += rng.below(20);
        let now = if live { Now::StoreClock } else { Now::At(Timestamp::from_nanos(us * 1_000)) };
        let Some(Ok(answer)) = pair.redis.decide(&[Ask::new(&charges, mode)], now).await.pop()
        else {
            return moved; // beyond what can be counted
        };
        if !matches!(mode, Mode::Refund { .. }) {
            last = answer.at.as_nanos() / 1_000;
        }
        let before = mirror.states.clone();
        let wanted = mirror.ask(&charges, mode, answer.at, live);
        assert_eq!(
            answer.verdicts, wanted,
            "trace {number}, call {call}: {charges:?} {mode:?} at {:?}, states {before:?}",
            answer.at
        );
        moved += usize::from(live && us > answer.at.as_nanos() / 1_000);
    }
    moved
}

#[tokio::test]
async fn what_lies_after_the_clock_is_moved_as_the_core_moves_it() {
    let pair = Pair::start();
    let mut rng = Rng::new(7);
    let mut moved = 0;
    for number in 0..TRACES {
        moved += trace(&pair, &mut rng, number).await;
    }
    println!("{moved} decisions with a state that may lie ahead");
    assert!(moved > 300, "{moved}");
    let _keys = all_expire(&mut pair.connection().await).await;
}
