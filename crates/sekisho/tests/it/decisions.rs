//! Requests under policies: what matches, who is counted, what it costs, and what becomes of it.

use std::sync::Arc;

use sekisho::{
    Asked, CanonicalPath, Decision, Direct, FakeClock, Limiter, Mode, Outcome, PolicySet, Request,
    Ruling, Span,
};

type Lines<'a> = &'a [(&'a str, &'a str)];

/// A limiter on a clock that stands still.
fn limiter(policies: &str) -> Limiter {
    Limiter::with_clock(PolicySet::parse(policies).unwrap(), Arc::new(FakeClock::default()))
}

fn decide(limiter: &Limiter, line: &str, peer: &str, headers: Lines<'_>) -> Decision {
    let (method, target) = line.split_once(' ').unwrap();
    let request = Request {
        method,
        host: Some("api.example.com:443"),
        path: &CanonicalPath::parse(target).unwrap(),
        query: target.split_once('?').map(|(_, query)| query),
        client: Some(peer.parse().unwrap()),
        principal: None,
        headers: &headers,
    };
    limiter.decide_now(&request, Mode::Check)
}

fn outcomes(limiter: &Limiter, requests: &[(&str, &str, Lines<'_>)]) -> Vec<&'static str> {
    requests
        .iter()
        .map(|(line, peer, headers)| decide(limiter, line, peer, headers).ruling.as_str())
        .collect()
}

#[test]
fn all_policies_that_match_hold_together_all_or_none() {
    let limiter = limiter(
        r#"
        [[policy]]
        name = "hour"
        key = ["ip"]
        limits = ["3/h"]
        [[policy]]
        name = "login"
        match = { method = "POST", path = "/v1/auth/**", unless = { path = "/v1/auth/ping" } }
        key = ["ip"]
        limits = ["1/min"]
        "#,
    );
    let peer = "203.0.113.9";
    let seen = outcomes(
        &limiter,
        &[
            ("POST /v1/auth/x", peer, &[]),
            ("POST /v1/auth/x", peer, &[]),
            ("POST /v1/auth/ping", peer, &[]),
            ("GET /v1/auth/x", peer, &[]),
            ("GET /v1/auth/x", peer, &[]),
        ],
    );
    // The second was refused by `login`, so `hour` was not charged for it.
    assert_eq!(seen, ["allow", "deny", "allow", "allow", "deny"]);
}

#[test]
fn the_order_of_policies_changes_no_outcome() {
    let (a, b) = (
        "[[policy]]\nname = \"a\"\nkey = [\"ip\"]\nlimits = [\"2/min fixed-window\", \"block\"]\nmatch = { path = \"/x\" }\n",
        "[[policy]]\nname = \"b\"\nkey = [\"ip\"]\nlimits = [\"5/h\"]\n",
    );
    for policies in [format!("{a}{b}"), format!("{b}{a}")] {
        let limiter = limiter(&policies);
        assert_eq!(decide(&limiter, "GET /x", "192.0.2.1", &[]).ruling, Ruling::Blocked);
        let other = decide(&limiter, "GET /y", "192.0.2.1", &[]);
        assert_eq!(
            other.binding().unwrap().verdict.remaining,
            Some(4),
            "nothing was charged for the blocked one"
        );
    }
}

#[test]
fn keys_come_from_where_the_policy_says() {
    let limiter = limiter(
        r#"
        [[policy]]
        name = "key"
        match = { path = ["/h/**", "/s/{user}/**"] }
        key = [{ header = "X-Api-Key", or = { cookie = "sid", or = { query = "user", or = "ip" } } }, "path-pattern"]
        limits = ["1/min"]
        "#,
    );
    let one = "192.0.2.1";
    let fresh: [(&str, &str, Lines<'_>); 7] = [
        ("GET /h", one, &[("x-api-key", "a")]),
        ("GET /h", one, &[("x-api-key", "b")]),
        ("GET /h", one, &[("x-api-key", ""), ("cookie", "other=1; sid=a")]),
        ("GET /h?user=a", one, &[]),
        ("GET /h?user=", one, &[]),
        ("GET /h", "192.0.2.2", &[]),
        ("GET /s/u/x", one, &[("x-api-key", "a")]),
    ];
    assert_eq!(outcomes(&limiter, &fresh), ["allow"; 7], "seven keys");
    let known: [(&str, &str, Lines<'_>); 4] = [
        ("GET /h/deeper", "192.0.2.7", &[("X-API-KEY", " a ")]),
        ("GET /h?x=1&user=%61", one, &[]),
        ("GET /h", one, &[]),
        ("GET /s/v/y", one, &[("x-api-key", "a")]),
    ];
    assert_eq!(outcomes(&limiter, &known), ["deny"; 4], "the same keys again");
    let refused = decide(&limiter, "GET /h", one, &[("x-api-key", "a")]);
    let key = refused.binding().unwrap().key.to_string();
    assert!(
        key.starts_with("header.x-api-key=#") && !key.contains("=a"),
        "a secret is kept as a digest: {key}"
    );
}

#[test]
fn a_missing_part_does_what_the_policy_says() {
    for (word, expected) in
        [("deny", ["missing-key"; 2]), ("skip", ["allow"; 2]), ("shared", ["allow", "deny"])]
    {
        let limiter = limiter(&format!(
            "[[policy]]\nname = \"p\"\nkey = [{{ header = \"x-api-key\" }}]\non_missing_key = \"{word}\"\nlimits = [\"1/min\"]\n"
        ));
        let seen = outcomes(&limiter, &[("GET /", "192.0.2.1", &[]), ("GET /", "192.0.2.2", &[])]);
        assert_eq!(seen, expected, "{word}");
    }
}

#[test]
fn plans_share_their_state_so_an_upgrade_gives_the_difference() {
    let limiter = limiter(
        r#"
        [[policy]]
        name = "api"
        key = ["ip"]
        plan = { header = "x-plan", default = "free" }
        [policy.plans]
        free = ["100/min"]
        pro = ["1000/min burst 200"]
        "#,
    );
    let count = |plan: &'static str| {
        (0..1_000)
            .filter(|_| decide(&limiter, "GET /", "192.0.2.1", &[("x-plan", plan)]).is_allowed())
            .count()
    };
    assert_eq!(count("gold"), 100, "an unknown plan is the default one");
    assert_eq!(count("pro"), 100, "an upgrade gives exactly the difference");
    assert_eq!(count("free"), 0);
}

#[test]
fn a_cost_comes_from_a_bounded_header() {
    let limiter = limiter(
        "[[policy]]\nname = \"p\"\nkey = [\"ip\"]\ncost = { header = \"x-cost\", max = 5, default = 2 }\nlimits = [\"10/min\"]\n",
    );
    let left = |value: Lines<'_>| {
        let decision = decide(&limiter, "GET /", "192.0.2.1", value);
        (decision.ruling.as_str(), decision.binding().and_then(|part| part.verdict.remaining))
    };
    assert_eq!(left(&[]), ("allow", Some(8)));
    assert_eq!(left(&[("x-cost", "5")]), ("allow", Some(3)));
    for bad in ["6", "0", "-1", "1.5", "NaN", "18446744073709551616", "9223372036854775808", "1, 1"]
    {
        assert_eq!(left(&[("x-cost", bad)]), ("bad-request", None), "{bad}");
    }
    assert_eq!(
        left(&[("x-cost", "3")]),
        ("allow", Some(0)),
        "nothing was charged for the bad ones"
    );
}

#[test]
fn lists_let_through_and_refuse_by_address_and_key() {
    let limiter = limiter(
        r#"
        [allow]
        cidr = ["10.0.0.0/8"]
        [deny]
        cidr = ["198.51.100.7"]
        [[policy]]
        name = "p"
        key = [{ header = "x-api-key", or = "ip" }]
        limits = ["1/min"]
        allow = { key = ["friend"] }
        deny = { cidr = ["2001:db8:bad::/48"], key = ["thief", "192.0.2.66"] }
        "#,
    );
    let twice = |peer: &str, headers: Lines<'_>| {
        [0, 1].map(|_| decide(&limiter, "GET /", peer, headers).ruling.as_str())
    };
    assert_eq!(twice("10.1.2.3", &[]), ["allow"; 2]);
    assert_eq!(twice("::ffff:10.1.2.3", &[]), ["allow"; 2]);
    assert_eq!(twice("198.51.100.7", &[("x-api-key", "friend")]), ["blocked"; 2]);
    assert_eq!(twice("192.0.2.1", &[("x-api-key", "friend")]), ["allow"; 2]);
    assert_eq!(twice("192.0.2.1", &[("x-api-key", "thief")]), ["blocked"; 2]);
    assert_eq!(twice("2001:db8:bad::1", &[]), ["blocked"; 2]);
    assert_eq!(twice("192.0.2.66", &[]), ["blocked"; 2]);
    assert_eq!(twice("192.0.2.1", &[]), ["allow", "deny"]);
}

#[test]
fn addresses_count_by_prefix() {
    let limiter = limiter(
        "[identity]\nipv4_prefix = 24\n[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n",
    );
    let seen: Vec<_> =
        ["2001:db8:1:2::1", "2001:DB8:1:2:ffff::9", "192.0.2.1", "::ffff:192.0.2.200", "192.0.3.1"]
            .map(|peer| decide(&limiter, "GET /", peer, &[]).ruling.as_str())
            .into();
    assert_eq!(seen, ["allow", "deny", "allow", "deny", "allow"]);
}

#[test]
fn hosts_and_headers_match_as_written() {
    let limiter = limiter(
        "[[policy]]\nname = \"p\"\nmatch = { host = \"*.Example.com\", header = { x-tenant = [\"acme\", \"evil\"] } }\nkey = [\"ip\"]\nlimits = [\"block\"]\n",
    );
    let ruling =
        |headers: Lines<'_>| decide(&limiter, "GET /", "192.0.2.1", headers).ruling.as_str();
    assert_eq!(ruling(&[("X-Tenant", "evil")]), "blocked");
    assert_eq!(ruling(&[("x-tenant", "good")]), "allow");
    assert_eq!(ruling(&[]), "allow");
}

#[test]
fn modes_and_costs_of_the_caller_replace_the_policys() {
    let limiter =
        limiter("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"10/min sliding-log\"]\n");
    let path = CanonicalPath::root();
    let request = Request {
        method: "GET",
        host: None,
        path: &path,
        query: None,
        client: Some([192, 0, 2, 1].into()),
        principal: None,
        headers: &sekisho::NoHeaders,
    };
    let ask =
        |mode: Mode, cost| limiter.decide_now(&request, Asked { cost: Some(cost), ..mode.into() });
    let left = |decision: &Decision| decision.binding().unwrap().verdict.remaining;
    let forced = ask(Mode::Force, 12);
    assert_eq!(left(&forced), Some(0));
    assert_eq!(left(&ask(Mode::Refund { at: forced.at }, 5)), Some(3));
    assert_eq!(left(&ask(Mode::Look, 9)), Some(3));
    assert_eq!(ask(Mode::Check, 4).ruling, Ruling::Deny);
    assert_eq!(ask(Mode::Check, 11).ruling, Ruling::Never);
}

#[test]
fn limits_without_a_policy_are_counted_by_key() {
    let limiter = limiter("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n");
    let limits = ["2/min".parse().unwrap(), "3/h sliding-log".parse().unwrap()];
    let ask = |key: &[u8]| {
        limiter.decide_direct_now(&Direct { limits: &limits, key, cost: 1 }, Mode::Check)
    };
    let seen: Vec<_> = (0..3).map(|_| ask(b"").ruling.as_str()).collect();
    assert_eq!(seen, ["allow", "allow", "deny"]);
    let odd = vec![0xff; 10_000];
    assert_eq!(ask(&odd).binding().unwrap().verdict.outcome, Outcome::Allow);
    assert_eq!(ask(b"").binding().unwrap().verdict.retry_after, Some(Span::from_secs(30)));
}

#[test]
fn a_verified_principal_is_counted_and_a_made_up_one_is_nobody() {
    let limiter = limiter(
        "[[policy]]\nname = \"p\"\nkey = [\"principal\"]\non_missing_key = \"deny\"\nlimits = [\"1/min\"]\nrefusal = { status = 420, missing_key_status = 403 }\n",
    );
    let path = CanonicalPath::root();
    let ask = |principal: Option<&str>| {
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: None,
            principal,
            headers: &sekisho::NoHeaders,
        };
        limiter.decide_now(&request, Mode::Check)
    };
    assert_eq!(ask(Some("alice")).binding().unwrap().key.as_str(), "principal=alice");
    let refused = ask(Some("alice"));
    let refusal = refused.refusal.as_ref().unwrap();
    assert_eq!((refused.ruling.as_str(), refusal.status), ("deny", Some(420)));
    assert_eq!(ask(Some("")).refusal.as_ref().unwrap().missing_key_status, Some(403));
    assert_eq!(ask(None).ruling, Ruling::MissingKey);
    assert!(ask(Some("bob")).refusal.is_none(), "an allowed request is refused by nobody");
}

#[test]
fn what_does_not_count_is_given_back_and_what_does_is_not() {
    let limiter = limiter(
        "[[policy]]\nname = \"login\"\nkey = [\"ip\"]\nlimits = [\"3/h sliding-log\", \"9/h\"]\ncount = { status = [401, 403] }\n[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"100/h\"]\n",
    );
    let left = |decision: &Decision| -> Vec<_> {
        decision.parts.iter().map(|part| part.verdict.remaining.unwrap()).collect()
    };
    let give_back = |decision: &Decision, status: u16| {
        let uncounted = |part: &sekisho::Part| {
            part.counted.as_ref().is_some_and(|counted| !counted.counts(status))
        };
        limiter.refund_now(decision, uncounted).unwrap()
    };
    let first = decide(&limiter, "POST /", "192.0.2.1", &[]);
    assert_eq!(
        (left(&first), give_back(&first, 200)),
        (vec![2, 8, 99], 2),
        "a success does not count"
    );
    let second = decide(&limiter, "POST /", "192.0.2.1", &[]);
    assert_eq!((left(&second), give_back(&second, 401)), (vec![2, 8, 98], 0), "a failure does");
    assert_eq!(left(&decide(&limiter, "POST /", "192.0.2.1", &[])), [1, 7, 97]);
    let refused = decide(&limiter, "POST /", "192.0.2.1", &[]);
    assert!(refused.is_allowed());
    let denied = decide(&limiter, "POST /", "192.0.2.1", &[]);
    assert_eq!(
        (denied.ruling.as_str(), give_back(&denied, 200)),
        ("deny", 0),
        "nothing was charged"
    );
}
