//! What is in the caches: one key, no key, two threads, and several limits.

use std::num::NonZeroU32;

use governor::{Quota, RateLimiter};
use sekisho::{
    CanonicalPath, KeyedLimiter, Limiter, Mode, NoHeaders, PolicySet, Request, UnkeyedLimiter,
};

use crate::{
    measure::{Key, ROUNDS, block, in_turn, keep, median, rate, scattered},
    report::{Report, Target},
};

const CALLS: u32 = 4 << 20;
const PLENTY: &str = "4000000000/h";

fn quota(per_hour: u32) -> Quota {
    Quota::per_hour(NonZeroU32::new(per_hour).unwrap())
}

pub(crate) fn run(report: &mut Report) {
    one_key(report, "allowed", PLENTY, 4_000_000_000);
    one_key(report, "denied", "1/h", 1);
    no_key(report, "allowed", PLENTY, 4_000_000_000);
    no_key(report, "denied", "1/h", 1);
    two_threads(report);
}

fn one_key(report: &mut Report, name: &str, limit: &str, per_hour: u32) {
    let ours = KeyedLimiter::new(limit.parse().unwrap());
    let theirs = RateLimiter::keyed(quota(per_hour));
    let (mut a, mut b, mut c) = (Key::new(), Key::new(), Key::new());
    let [outcome, verdict, other] = in_turn(
        CALLS,
        [
            &mut block(|_| keep(ours.outcome(a.of(7)))),
            &mut block(|_| keep(ours.check(b.of(7)).is_ok_and(|checked| checked.is_allowed()))),
            &mut block(|_| keep(theirs.check_key(c.of(7)).is_ok())),
        ],
    );
    let what = format!("one key, {name}: outcome / governor keyed");
    report.row(what, (outcome, other), "ns", Target::AtMost(0.8));
    let what = format!("one key, {name}: all numbers / governor keyed");
    report.row(what, (verdict, other), "ns", Target::AtMost(0.8));
}

fn no_key(report: &mut Report, name: &str, limit: &str, per_hour: u32) {
    let ours = UnkeyedLimiter::new(limit.parse().unwrap());
    let theirs = RateLimiter::direct(quota(per_hour));
    let [outcome, verdict, other] = in_turn(
        CALLS,
        [
            &mut block(|_| keep(ours.outcome())),
            &mut block(|_| keep(ours.check())),
            &mut block(|_| keep(theirs.check().is_ok())),
        ],
    );
    let what = format!("no key, {name}: outcome / governor direct");
    report.row(what, (outcome, other), "ns", Target::AtMost(1.0));
    let what = format!("no key, {name}: all numbers / governor direct");
    report.row(what, (verdict, other), "ns", Target::AtMost(1.3));
}

fn two_threads(report: &mut Report) {
    let ours = KeyedLimiter::new(PLENTY.parse().unwrap());
    let theirs = RateLimiter::keyed(quota(4_000_000_000));
    let names = ["key-000000007".to_owned(), "key-000000008".to_owned()];
    let same = |_: usize| keep(ours.outcome(&names[0]));
    let own = |thread: usize| keep(ours.outcome(&names[thread]));
    let their_same = |_: usize| keep(theirs.check_key(&names[0]).is_ok());
    let (mut pair, mut other, mut one, mut two) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        pair.push(rate(2, &same) / 1e6);
        other.push(rate(2, &their_same) / 1e6);
        one.push(rate(1, &own) / 1e6);
        two.push(rate(2, &own) / 1e6);
    }
    let what = "two threads, one key: total / governor keyed";
    report.row(what, (median(pair), median(other)), "M/s", Target::AtLeast(1.5));
    let what = "two threads, own keys / one thread";
    report.row(what, (median(two), median(one)), "M/s", Target::AtLeast(1.8));
}

/// A request under a policy with one limit and with three, beside each other.
pub(crate) fn policies(report: &mut Report) {
    let set = |limits: &str| {
        let file = format!("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [{limits}]\n");
        Limiter::new(PolicySet::parse(&file).unwrap())
    };
    // Units that come back slowly, of which there are plenty: no state is fresh again, and so made anew, meanwhile.
    let [hour, day, week] = ["h", "day", "week"].map(|p| format!("\"100000/{p} burst 100000000\""));
    let (one, three) = (set(&hour), set(&format!("{hour}, {day}, {week}")));
    let path = CanonicalPath::parse("/v1/users/7").unwrap();
    let ask = |limiter: &Limiter, address: u32| {
        let client = Some(address.to_be_bytes().into());
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client,
            principal: None,
            headers: &NoHeaders,
        };
        keep(limiter.decide_now(&request, Mode::Check).is_allowed());
    };
    for keys in [1 << 10, 1 << 20] {
        (0..keys)
            .for_each(|address| [&one, &three].iter().for_each(|limiter| ask(limiter, address)));
        let [three, one] = in_turn(
            1 << 19,
            [
                &mut block(|call| ask(&three, scattered(call, keys))),
                &mut block(|call| ask(&one, scattered(call, keys))),
            ],
        );
        let what = format!("policy, {keys} addresses: three limits / one");
        report.row(what, (three, one), "ns", Target::AtMost(2.0));
    }
}
