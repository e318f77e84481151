//! Policy files: right ones, wrong ones, and what is said of them.

use sekisho::{Code, PolicySet};

const DESIGN: &str = include_str!("data/design.toml");

/// The fields of the design that this version does not have. Each later part shortens this list.
const NOT_YET: [&str; 2] = ["listen.grpc", "policy[0].ban"];

#[test]
fn the_design_is_parsed_whole_and_what_is_not_there_yet_is_named() {
    let errors = PolicySet::parse(DESIGN).unwrap_err();
    let fields: Vec<_> = errors.diagnostics().iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, NOT_YET);
    assert!(errors.diagnostics().iter().all(|error| error.code == Code::NotYet && error.line > 0));
}

#[test]
fn without_them_the_design_compiles() {
    let named = ["grpc", "gateway", "ban"];
    let is_named = |line: &&str| {
        named
            .iter()
            .any(|name| line.split_once('=').is_some_and(|(field, _)| field.trim() == *name))
    };
    let text: Vec<_> = DESIGN.lines().filter(|line| !is_named(line)).collect();
    let set = PolicySet::parse(&text.join("\n")).unwrap();
    let policies: Vec<_> = set.policies().iter().map(sekisho::Policy::name).collect();
    assert_eq!(policies, ["login", "api", "exports", "partners"]);
    let plans: Vec<_> = set.policies()[1]
        .plans()
        .map(|(plan, limits)| (plan, limits[0].limit().to_string()))
        .collect();
    assert_eq!(
        plans,
        [
            ("free", "100/min token-bucket".to_owned()),
            ("pro", "1000/min burst 200 token-bucket".to_owned())
        ]
    );
    let names: Vec<_> = set.policies()[3]
        .plans()
        .flat_map(|(_, limits)| limits)
        .map(sekisho::PolicyLimit::name)
        .collect();
    assert_eq!(names, ["partners-daily", "partners-1s-token-bucket"]);
    let warned: Vec<_> = set.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(
        warned,
        [
            Code::UnverifiedHeader,
            Code::OpenDigest,
            Code::PlanFromClient,
            Code::UnverifiedHeader,
            Code::OpenDigest
        ]
    );
    let on_store_error: Vec<_> =
        set.policies().iter().map(|policy| policy.on_store_error().as_str()).collect();
    assert_eq!(on_store_error, ["deny", "local", "allow", "allow"]);
}

/// A policy around a few lines, so that a case shows only what is wrong.
fn policy(lines: &str) -> String {
    format!("[[policy]]\nname = \"p\"\n{lines}\n")
}

/// Each kind of error: the file, then code, line, field and words of the message.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_kind_of_error_has_its_code_line_field_and_words() {
    let right = "key = [\"ip\"]\nlimits = [\"1/s\"]";
    let cases = [
        ("[[policy", Code::Syntax, 1, "", "TOML"),
        (
            "[[policy]]\nname = \"p\"\nkye = [\"ip\"]\n",
            Code::UnknownField,
            3,
            "policy[0].kye",
            "`kye`",
        ),
        ("[[policy]]\nname = 5\n", Code::WrongType, 2, "policy[0].name", "string"),
        ("", Code::NoPolicy, 1, "", "[[policy]]"),
        ("[listen]\nhttp = \"x\"\n", Code::Address, 2, "listen.http", "127.0.0.1:8080"),
        ("[store]\nmax_bytes = \"5\"\n", Code::Number, 2, "store.max_bytes", "MiB"),
        ("[store]\nmax_entries = 1\n", Code::Number, 2, "store.max_entries", "at least 2"),
        ("[identity]\nipv6_prefix = 31\n", Code::Number, 2, "identity.ipv6_prefix", "32 to 128"),
        (
            "[identity]\naddress = \"x-forwarded-for\"\n",
            Code::Identity,
            2,
            "identity.address",
            "trusted_proxies",
        ),
        (
            "[identity]\ntrusted_proxies = [\"10.0.0.0/8\"]\n",
            Code::Identity,
            2,
            "identity.trusted_proxies",
            "address",
        ),
        (
            "[identity]\naddress = \"x-forwarded\"\n",
            Code::WrongType,
            2,
            "identity.address",
            "x-forwarded-for",
        ),
        (
            "[identity]\naddress = \"proxy-protocol\"\n",
            Code::Identity,
            2,
            "identity.address",
            "trusted_proxies",
        ),
        (
            "[listen.auth]\nhold = \"2min 1s\"\n",
            Code::Number,
            2,
            "listen.auth.hold",
            "1 ms to 60 s",
        ),
        ("[deny]\ncidr = [\"10.0.0.0/33\"]\n", Code::List, 2, "deny.cidr[0]", "10.0.0.0/8"),
    ];
    for (text, code, line, field, words) in cases {
        let text = if code == Code::NoPolicy || text.contains("policy") {
            text.to_owned()
        } else {
            format!("{text}{}", policy(right))
        };
        expect(&text, code, line, field, words);
    }
    let policies = [
        ("key = [\"ip\"]\nlimits = [\"0/min\"]", Code::Limit, 4, "policy[0].limits[0]", "block"),
        (
            "key = [\"ip\"]\nlimits = [\"9/s\", \"9/s burst x\"]",
            Code::Limit,
            4,
            "policy[0].limits[1]",
            "burst 20",
        ),
        (
            "key = [\"ip\"]\nlimits = [{ rate = \"9/s\", resolution = \"1ms\" }]",
            Code::Limit,
            4,
            "policy[0].limits[0]",
            "only a `sliding-log` has a resolution",
        ),
        (
            "key = [\"ip\"]\nlimits = [{ rate = \"9/s sliding-log\", resolution = \"\" }]",
            Code::Limit,
            4,
            "policy[0].limits[0]",
            "as in `resolution 10ms`",
        ),
        (
            "key = [\"ip\"]\nlimits = [{ rate = \"9/s sliding-log\", resolution = \"2s\" }]",
            Code::Limit,
            4,
            "policy[0].limits[0]",
            "at most the period",
        ),
        (
            "key = [\"ip\"]\nlimits = [{ rate = \"9/s sliding-log resolution 1ms\", resolution = \"1ms\" }]",
            Code::Limit,
            4,
            "policy[0].limits[0]",
            "has a resolution already",
        ),
        ("key = [\"ip\"]\nlimits = []", Code::NoLimit, 4, "policy[0].limits", "at least one"),
        ("key = [\"ip\"]", Code::NoLimit, 2, "policy[0].name", "neither"),
        (
            "key = [\"ip\"]\nlimits = [\"1/s\", \"2/s\"]",
            Code::SameId,
            4,
            "policy[0].limits[1]",
            "1s-token-bucket",
        ),
        (
            "key = [\"ip\"]\nlimits = [\"1/calendar-day zone Asia/Edo\"]",
            Code::UnknownZone,
            4,
            "policy[0].limits[0]",
            "Asia/Edo",
        ),
        ("key = []\nlimits = [\"1/s\"]", Code::Key, 3, "policy[0].key", "constant"),
        ("key = [\"peer\"]\nlimits = [\"1/s\"]", Code::Key, 3, "policy[0].key[0]", "`ip`"),
        (
            "key = [{ header = \"a\", cookie = \"b\", or = \"ip\" }]\nlimits = [\"1/s\"]",
            Code::Key,
            3,
            "policy[0].key[0]",
            "several",
        ),
        (
            "key = [{ segment = 0, or = \"ip\" }]\nlimits = [\"1/s\"]",
            Code::Key,
            3,
            "policy[0].key[0]",
            "from 1",
        ),
        ("key = [\"path-pattern\"]\nlimits = [\"1/s\"]", Code::Key, 3, "policy[0].key", "path"),
        (
            "key = [{ header = \"a\" }]\nlimits = [\"1/s\"]",
            Code::OnMissingKey,
            3,
            "policy[0].key",
            "on_missing_key",
        ),
        (
            "on_missing_key = \"skip\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::OnMissingKey,
            3,
            "policy[0].on_missing_key",
            "leave",
        ),
        (
            "cost = -1\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::Cost,
            3,
            "policy[0].cost",
            "whole number",
        ),
        (
            "cost = { header = \"c\", max = 5, default = 9 }\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::Cost,
            3,
            "policy[0].cost",
            "default",
        ),
        (
            "match = { path = \"v1\" }\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::Match,
            3,
            "policy[0].match.path",
            "begins with",
        ),
        (
            "match = { method = \"get\" }\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::Match,
            3,
            "policy[0].match.method",
            "capitals",
        ),
        (
            "match = { unless = {} }\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::Match,
            3,
            "policy[0].match.unless",
            "leaves out",
        ),
        (
            "mode = \"shadow\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::NotYet,
            3,
            "policy[0].mode",
            "enforce",
        ),
        (
            "deny = { key = [[\"a\", \"b\"]] }\nkey = [\"ip\"]\nlimits = [\"1/s\"]",
            Code::List,
            3,
            "policy[0].deny.key[0]",
            "ip",
        ),
        (
            "plan = { header = \"x\", default = \"free\" }\nkey = [\"ip\"]\nplans.pro = [\"1/s\"]",
            Code::Plan,
            3,
            "policy[0].plan",
            "free",
        ),
        (
            "key = [\"ip\"]\nplans.a = [{ id = \"x\", rate = \"1/s\" }]\nplans.b = [{ id = \"x\", rate = \"1/min\" }]\nplan = { header = \"x\", default = \"a\" }",
            Code::PlanIds,
            5,
            "policy[0].plans.b[0]",
            "`x`",
        ),
    ];
    for (lines, code, line, field, words) in policies {
        expect(&policy(lines), code, line, field, words);
    }
    for (lines, field, words) in [
        ("refusal = { status = 200 }", "policy[0].refusal.status", "400 to 599"),
        ("refusal = { missing_key_status = 404 }", "policy[0].refusal.missing_key_status", "401"),
        ("refusal = { content_type = \"text/html\" }", "policy[0].refusal.content_type", "body"),
        ("refusal = { detail = \"wait {seconds}\" }", "policy[0].refusal.detail", "{retry_after}"),
        ("count = { status = [] }", "policy[0].count.status", "at least one"),
        ("count = { status = [99] }", "policy[0].count.status", "100 to 599"),
    ] {
        expect(&policy(&format!("{lines}\n{right}")), Code::Answer, 3, field, words);
    }
    expect(&format!("{0}{0}", policy(right)), Code::Name, 6, "policy[1].name", "another policy");
    expect(&policy(right).replace("\"p\"", "\"a b\""), Code::Name, 2, "policy[0].name", "letters");
}

fn expect(text: &str, code: Code, line: usize, field: &str, words: &str) {
    let errors = PolicySet::parse(text).expect_err(text);
    let found = errors.diagnostics().iter().find(|error| error.code == code);
    let found = found.unwrap_or_else(|| panic!("{code} is missing in\n{errors}\nfor\n{text}"));
    assert_eq!((found.line, found.field.as_str()), (line, field), "{found}\n{text}");
    assert!(found.message.contains(words), "{found}\n{text}");
}

#[test]
fn what_could_never_work_is_refused() {
    let gateway = |to: &str| {
        format!(
            "[listen]\ngateway = {{ at = \"127.0.0.1:1\", to = \"{to}\" }}\n{}",
            policy("key = [\"ip\"]\nlimits = [\"1/s\"]")
        )
    };
    expect(&gateway("example.com"), Code::Address, 2, "listen.gateway.to", "http://127.0.0.1:3000");
    let set = PolicySet::parse(&gateway("http://127.0.0.1:2")).unwrap();
    assert_eq!(
        set.settings().listen.gateway.as_ref().map(|of| of.to.as_str()),
        Some("http://127.0.0.1:2")
    );
    let limits: Vec<_> =
        (1..=1_025).map(|id| format!("{{ id = \"l{id}\", rate = \"1/s\" }}")).collect();
    let text = policy(&format!("key = [\"ip\"]\nlimits = [{}]", limits.join(", ")));
    expect(&text, Code::NoLimit, 2, "policy[0].name", "1024");
    let small = format!(
        "[store]\nmax_entries = 7\n{}",
        policy("key = [\"ip\"]\nlimits = [\"1/s\", \"9/h\"]")
    );
    expect(&small, Code::Number, 2, "store.max_entries", "at least 8");
    for (host, fits) in
        [("a.example:80", false), ("::1", true), ("A.Example.", true), ("*.a.example", true)]
    {
        let text =
            policy(&format!("match = {{ host = \"{host}\" }}\nkey = [\"ip\"]\nlimits = [\"1/s\"]"));
        assert_eq!(PolicySet::parse(&text).is_ok(), fits, "{host}");
    }
    let padded = policy("match = { header = { a = \" z \" } }\nkey = [\"ip\"]\nlimits = [\"1/s\"]");
    expect(&padded, Code::Match, 3, "policy[0].match.header.a", "blanks");
}

#[test]
fn what_is_said_is_fit_for_a_terminal_and_suggests_what_works() {
    let errors = PolicySet::parse("[listen]\nhtpp = \"x\"\n").unwrap_err();
    let message = &errors.diagnostics()[0].message;
    assert!(message.contains("`http`") && !message.contains("grpc"), "{message}");
    let long = policy(&format!("key = [\"ip\"]\nlimits = [\"\\u001b[31m{}\"]", "x".repeat(10_000)));
    let errors = PolicySet::parse(&long).unwrap_err();
    let message = &errors.diagnostics()[0].message;
    assert!(message.len() < 1_000 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn several_errors_are_found_at_once_in_the_files_order() {
    let text = policy("key = [\"nobody\"]\nlimits = [\"0/min\", \"x\"]\ncost = -5");
    let errors = PolicySet::parse(&text).unwrap_err();
    let codes: Vec<_> = errors.diagnostics().iter().map(|error| (error.line, error.code)).collect();
    assert_eq!(codes, [(3, Code::Key), (4, Code::Limit), (4, Code::Limit), (5, Code::Cost)]);
}

#[test]
fn hostile_files_get_an_error_and_never_a_panic() {
    for text in [
        "\0",
        "\u{feff}",
        "[[policy]]\n[[policy]]",
        "policy = 5",
        "policy = [5]",
        "[listen]\nhttp = []",
        &"[".repeat(10_000),
        &"a.".repeat(5_000),
    ] {
        assert!(PolicySet::parse(text).is_err(), "{text:.40}");
    }
}

#[test]
fn doors_on_unix_sockets_and_what_is_held() {
    let api = policy("key = [\"principal\"]\non_missing_key = \"deny\"\nlimits = [\"1/s\"]");
    let with = |listen: &str| format!("[listen]\n{listen}\n{api}");
    let listen = PolicySet::parse(&with("http = \"unix:/run/a.sock\"\nauth.hold = \"1500ms\""));
    let listen = listen.unwrap().settings().listen.clone();
    assert_eq!(listen.http, Some("unix:/run/a.sock".parse().unwrap()));
    assert_eq!(listen.hold, Some(sekisho::Span::from_nanos(1_500_000_000)));
    for (text, field, code) in [
        ("http = \"unix:a.sock\"", "listen.http", Code::Address),
        ("http = \"unix:/a\"\nadmin = \"unix:/a\"", "listen.admin", Code::Address),
        (
            "admin = \"[::1]:1\"\ngateway = { at = \"[::1]:1\", to = \"http://a\" }",
            "listen.gateway.at",
            Code::Address,
        ),
        ("auth.hold = \"2\"", "listen.auth.hold", Code::Number),
        ("auth.hold = \"0s\"", "listen.auth.hold", Code::Number),
        ("auth.hold = \"999us\"", "listen.auth.hold", Code::Number),
        ("auth.hold = \"61s\"", "listen.auth.hold", Code::Number),
        ("auth.hold = \"month\"", "listen.auth.hold", Code::Number),
        ("auth.hold = 2", "listen.auth.hold", Code::WrongType),
    ] {
        expect(&with(text), code, text.lines().count() + 1, field, "");
    }
    assert!(PolicySet::parse(&with("auth.hold = \"1ms\"")).is_ok());
    assert!(PolicySet::parse(&with("auth.hold = \"60s\"")).is_ok());
    // Port 0 is another port each time.
    assert!(PolicySet::parse(&with("http = \"[::1]:0\"\nadmin = \"[::1]:0\"")).is_ok());
}

#[test]
fn whom_a_unix_socket_gives_no_address_cannot_be_counted_by_it() {
    let file = |identity: &str, lines: &str| {
        format!("[listen]\nhttp = \"unix:/run/a.sock\"\n[identity]\n{identity}\n{}", policy(lines))
    };
    let by_address = "key = [\"ip\"]\nlimits = [\"1/s\"]";
    expect(&file("", by_address), Code::Identity, 7, "policy[0].key", "unix socket");
    let listed = "key = [\"path-pattern\"]\nmatch = { path = \"/\" }\nlimits = [\"1/s\"]\n\
        deny = { cidr = [\"10.0.0.0/8\"] }";
    expect(&file("", listed), Code::Identity, 10, "policy[0].deny.cidr[0]", "unix socket");
    let named = "address = \"x-real-ip\"";
    expect(&file(named, by_address), Code::OnMissingKey, 7, "policy[0].key", "on_missing_key");
    let said = "key = [\"ip\"]\non_missing_key = \"skip\"\nlimits = [\"1/s\"]";
    for identity in [named, "address = \"proxy-protocol\"", "auth.address = \"x-real-ip\""] {
        let text = file(identity, said);
        assert!(PolicySet::parse(&text).is_ok(), "{text}");
    }
    // The check API says itself who asks, so its own source does not matter.
    assert!(
        PolicySet::parse(&file("http.address = \"peer\"\naddress = \"x-real-ip\"", said)).is_ok()
    );
}

/// A resolution is part of a limit's text, given in either way, and no part of what names its state.
#[test]
fn a_resolution_is_read_from_a_limits_table_or_text() {
    let set = PolicySet::parse(&policy(
        "key = [\"ip\"]\nlimits = [{ id = \"x\", rate = \"1000/h sliding-log\", resolution = \"10ms\" }, \
         \"9/min sliding-log resolution 1s\"]",
    ))
    .unwrap();
    let limits: Vec<_> = (set.policies()[0].plans().flat_map(|(_, limits)| limits))
        .map(|limit| (limit.scope().limit().to_owned(), limit.limit().to_string()))
        .collect();
    assert_eq!(
        limits,
        [
            ("x".to_owned(), "1000/h sliding-log resolution 10ms".to_owned()),
            ("60s-sliding-log".to_owned(), "9/min sliding-log resolution 1s".to_owned()),
        ]
    );
    // Plans share a state whatever their resolutions are.
    let plans = "key = [\"ip\"]\nplan = { header = \"x-plan\", default = \"free\" }\n[policy.plans]\n\
                 free = [\"9/min sliding-log\"]\npro = [{ rate = \"90/min sliding-log\", resolution = \"1s\" }]";
    assert!(PolicySet::parse(&policy(plans)).is_ok());
}
