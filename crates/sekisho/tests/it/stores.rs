//! `[store]` and `on_store_error` in policy files: right ones, wrong ones, and what is said of them.

use std::path::Path;

use sekisho::{
    CanonicalPath, Code, Limiter, OnStoreError, PolicySet, Request, Share, Span, Topology,
};

const POLICY: &str = "[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"10/min burst 4\"]\n";

fn file(store: &str) -> String {
    format!("[store]\n{store}\n{POLICY}")
}

/// Compiles a file in an environment of three names.
fn parse(text: &str) -> Result<PolicySet, sekisho::PolicyErrors> {
    PolicySet::parse_with(text, &|name| match name {
        "HOST" => Some("redis.example:7000".to_owned()),
        "PASSWORD" => Some("hunter%242".to_owned()),
        "SECRET" => Some("0123456789abcdef".to_owned()),
        _ => None,
    })
}

#[test]
fn without_a_url_counts_are_in_memory() {
    let set = parse(POLICY).unwrap();
    assert_eq!(set.settings().store.shared, None);
    assert_eq!(set.policies()[0].on_store_error(), OnStoreError::Deny);
    assert!(Limiter::new(set).fallback().is_none());
}

#[test]
fn a_snapshot_has_a_path_and_a_time() {
    assert_eq!(parse(POLICY).unwrap().settings().store.snapshot, None);
    for (fields, path, every) in [
        ("snapshot = \"state.snapshot\"", "state.snapshot", 60),
        ("snapshot = \"/run/${HOST}/$$\"\nsnapshot_every = \"5s\"", "/run/redis.example:7000/$", 5),
        ("snapshot = \"a\"\nsnapshot_every = \"1day\"", "a", 86_400),
    ] {
        let set = parse(&file(fields)).unwrap();
        let snapshot = set.settings().store.snapshot.as_ref().unwrap();
        assert_eq!((&*snapshot.path, snapshot.every), (Path::new(path), Span::from_secs(every)));
        assert_eq!(set.warnings(), []);
    }
}

#[test]
fn a_url_alone_has_the_usual_rest() {
    let set = parse(&file("url = \"redis://127.0.0.1\"")).unwrap();
    let shared = set.settings().store.shared.clone().unwrap();
    assert_eq!(shared.addresses.len(), 1);
    assert_eq!(shared.addresses[0].to_string(), "redis://127.0.0.1:6379");
    assert_eq!((shared.timeout, shared.prefix.as_str()), (Span::from_nanos(50_000_000), "sk"));
    assert_eq!((shared.password_file, shared.ca_file), (None, None));
    assert_eq!(shared.local_share, Share::WHOLE);
    assert_eq!(set.policies()[0].on_store_error(), OnStoreError::Allow);
    assert_eq!(set.warnings(), []);
}

#[test]
fn every_field_is_read_and_the_environment_is_filled_in() {
    let store = r#"url = "rediss-cluster://app:${PASSWORD}$$@${HOST},b"
        timeout = "2s"
        prefix = "my:{app}"
        password_file = "/run/secrets/${HOST}"
        ca_file = "ca.pem"
        digest_secret = "${SECRET}"
        local_share = "1/4"
        max_bytes = "64MiB""#;
    let set = parse(&file(store)).unwrap();
    let settings = &set.settings().store;
    let shared = settings.shared.as_ref().unwrap();
    let address = &shared.addresses[0];
    assert_eq!((&address.topology, address.tls), (&Topology::Cluster, true));
    assert_eq!(address.password.as_deref(), Some("hunter$2$"));
    assert_eq!(address.hosts[0].to_string(), "redis.example:7000");
    assert_eq!((shared.timeout, shared.prefix.as_str()), (Span::from_secs(2), "my:{app}"));
    let password_file = Some(Path::new("/run/secrets/redis.example:7000"));
    assert_eq!(shared.password_file.as_deref(), password_file);
    assert_eq!(shared.ca_file.as_deref(), Some(Path::new("ca.pem")));
    assert_eq!(shared.local_share, "1/4".parse().unwrap());
    assert_eq!(settings.max_bytes, Some(64 << 20));
    let shown = format!("{set:?}");
    assert!(!shown.contains("hunter") && !shown.contains("0123456789abcdef"), "{shown}");

    let shards = "shards = [\"redis://a\", \"rediss://a/1\", \"redis+unix:///run/r.sock\"]";
    let set = parse(&file(shards)).unwrap();
    let shared = set.settings().store.shared.as_ref().unwrap();
    let shards: Vec<_> = shared.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(shards, ["redis://a:6379", "rediss://a:6379/1", "redis+unix:///run/r.sock"]);
}

#[test]
fn a_share_is_the_number_that_is_written() {
    for (text, share) in [
        ("1", "1"),
        ("1.0", "1"),
        ("+0.5", "1/2"),
        ("0.1", "1/10"),
        ("0.333_333", "333333/1000000"),
        ("\"1/3\"", "1/3"),
        ("\"0.25\"", "1/4"),
        // A double has 17 digits at most.
        ("0.100000000000000001", "100000000000000001/1000000000000000000"),
    ] {
        let set = parse(&file(&format!("url = \"redis://a\"\nlocal_share = {text}"))).unwrap();
        let shared = set.settings().store.shared.as_ref().unwrap();
        assert_eq!(shared.local_share.to_string(), share, "{text}");
    }
}

#[test]
fn what_stands_in_is_scaled_when_the_file_is_read() {
    let text = file("url = \"redis://a\"\nlocal_share = 0.5");
    let local = text.clone() + "on_store_error = \"local\"\n";
    for (text, on_store_error, stands_in) in [
        (text.clone() + "on_store_error = \"allow\"\n", OnStoreError::Allow, None),
        (text + "on_store_error = \"deny\"\n", OnStoreError::Deny, None),
        (local.clone(), OnStoreError::Local, Some("5/min burst 2 token-bucket")),
    ] {
        let set = parse(&text).unwrap();
        let policy = &set.policies()[0];
        assert_eq!(policy.on_store_error(), on_store_error);
        let limit = policy.plans().next().map(|(_, limits)| limits[0].clone()).unwrap();
        assert_eq!(limit.limit().to_string(), "10/min burst 4 token-bucket");
        assert_eq!(limit.local().map(ToString::to_string).as_deref(), stands_in);
    }
    // Without a shared store nothing stands in for it.
    let set = parse(&format!("{POLICY}on_store_error = \"local\"\n")).unwrap();
    assert!(set.policies()[0].plans().all(|(_, limits)| limits[0].local().is_none()));
    // Nor does a limiter that counts in memory whatever the file says have a second one.
    assert!(Limiter::new(parse(&local).unwrap()).fallback().is_none());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_wrong_field_has_its_code_line_field_and_words() {
    let url = "url = \"redis://a\"";
    let long = format!("{url}\nprefix = \"{}\"", "x".repeat(65));
    let many: Vec<_> = (0..65).map(|shard| format!("\"redis://h{shard}\"")).collect();
    let many = format!("shards = [{}]", many.join(", "));
    for (store, code, line, field, words) in [
        ("url = \"http://a\"", Code::Store, 2, "store.url", "redis-sentinel://"),
        ("url = \"valkey://a\"", Code::Store, 2, "store.url", "write `redis`"),
        ("url = \"redis://hunter2/a\"", Code::Store, 2, "store.url", "database"),
        ("url = 5", Code::WrongType, 2, "store.url", "string"),
        ("url = \"redis://${NOBODY}\"", Code::Environment, 2, "store.url", "`NOBODY`"),
        ("url = \"redis://:a$b@c\"", Code::Environment, 2, "store.url", "`$$`"),
        ("shards = []", Code::Store, 2, "store.shards", "1 to 64"),
        (&many, Code::Store, 2, "store.shards", "1 to 64"),
        ("shards = [\"redis://a\", \"x\"]", Code::Store, 2, "store.shards[1]", "begins with"),
        (
            "shards = [\"redis://a\",\n\"redis://${X}\"]",
            Code::Environment,
            3,
            "store.shards[1]",
            "`X`",
        ),
        (
            "shards = [\"redis://a\", \"redis://u:p@a:6379/0\"]",
            Code::Store,
            2,
            "store.shards[1]",
            "same server",
        ),
        ("shards = [\"redis-cluster://a\"]", Code::Store, 2, "store.shards[0]", "one server"),
        ("shards = [\"redis-sentinel://a/m\"]", Code::Store, 2, "store.shards[0]", "one server"),
        (&format!("{url}\nshards = [\"redis://b\"]"), Code::Store, 3, "store.shards", "not both"),
        (&format!("{url}\ntimeout = \"999us\""), Code::Number, 3, "store.timeout", "1 ms to 10 s"),
        (&format!("{url}\ntimeout = \"11s\""), Code::Number, 3, "store.timeout", "1 ms to 10 s"),
        (&format!("{url}\ntimeout = \"50\""), Code::Number, 3, "store.timeout", "50ms"),
        (&format!("{url}\nprefix = \"\""), Code::Store, 3, "store.prefix", "1 to 64"),
        (&format!("{url}\nprefix = \"a b\""), Code::Store, 3, "store.prefix", "visible"),
        (&format!("{url}\nprefix = \"é\""), Code::Store, 3, "store.prefix", "ASCII"),
        (&long, Code::Store, 3, "store.prefix", "1 to 64"),
        (
            &format!("{url}\npassword_file = \"${{NOBODY}}\""),
            Code::Environment,
            3,
            "store.password_file",
            "`NOBODY`",
        ),
        (&format!("{url}\npassword_file = \"\""), Code::Store, 3, "store.password_file", "path"),
        (&format!("{url}\nca_file = \"ca.pem\""), Code::Store, 3, "store.ca_file", "rediss"),
        (
            &format!("{url}\ndigest_secret = \"short\""),
            Code::Store,
            3,
            "store.digest_secret",
            "16 to",
        ),
        (&format!("{url}\nlocal_share = 0"), Code::Store, 3, "store.local_share", "0.25"),
        (&format!("{url}\nlocal_share = 2"), Code::Store, 3, "store.local_share", "1/4"),
        (&format!("{url}\nlocal_share = -0.5"), Code::Store, 3, "store.local_share", "at most 1"),
        (&format!("{url}\nlocal_share = 5e-1"), Code::Store, 3, "store.local_share", "at most 1"),
        (&format!("{url}\nlocal_share = inf"), Code::Store, 3, "store.local_share", "at most 1"),
        (&format!("{url}\nlocal_share = []"), Code::Store, 3, "store.local_share", "at most 1"),
        (&format!("{url}\nlocal_share = \"4\""), Code::Store, 3, "store.local_share", "at most 1"),
        ("timeout = \"1s\"", Code::Store, 2, "store.timeout", "`url"),
        ("prefix = \"sk\"", Code::Store, 2, "store.prefix", "`url"),
        ("password_file = \"p\"", Code::Store, 2, "store.password_file", "`url"),
        ("ca_file = \"p\"", Code::Store, 2, "store.ca_file", "`url"),
        ("digest_secret = \"0123456789abcdef\"", Code::Store, 2, "store.digest_secret", "`url"),
        ("local_share = 1", Code::Store, 2, "store.local_share", "`url"),
        ("snapshot = \"\"", Code::Snapshot, 2, "store.snapshot", "path of a file"),
        ("snapshot = \"state/\"", Code::Snapshot, 2, "store.snapshot", "path of a file"),
        ("snapshot = 5", Code::WrongType, 2, "store.snapshot", "string"),
        ("snapshot = \"${NOBODY}\"", Code::Environment, 2, "store.snapshot", "`NOBODY`"),
        ("snapshot_every = \"1min\"", Code::Snapshot, 2, "store.snapshot_every", "name one"),
        (
            "snapshot = \"x\"\nsnapshot_every = \"999ms\"",
            Code::Number,
            3,
            "store.snapshot_every",
            "1 s to 1 day",
        ),
        (
            "snapshot = \"x\"\nsnapshot_every = \"25h\"",
            Code::Number,
            3,
            "store.snapshot_every",
            "1 s to 1 day",
        ),
        (&format!("{url}\nsnapshot = \"x\""), Code::Snapshot, 3, "store.snapshot", "leave it out"),
        (
            "shards = [\"redis://a\"]\nsnapshot_every = \"1min\"",
            Code::Snapshot,
            3,
            "store.snapshot_every",
            "leave it out",
        ),
    ] {
        expect(&file(store), code, line, field, words);
    }
    let wrong = format!("{POLICY}on_store_error = \"open\"\n");
    expect(&wrong, Code::WrongType, 5, "policy[0].on_store_error", "`local`");
}

fn expect(text: &str, code: Code, line: usize, field: &str, words: &str) {
    let errors = parse(text).expect_err(text);
    let found = errors.diagnostics().iter().find(|error| error.code == code);
    let found = found.unwrap_or_else(|| panic!("{code} is missing in\n{errors}\nfor\n{text}"));
    assert_eq!((found.line, found.field.as_str()), (line, field), "{found}\n{text}");
    assert!(found.message.contains(words), "{found}\n{text}");
    assert!(!errors.to_string().contains("hunter2"), "{errors}");
}

#[test]
fn what_a_shared_store_cannot_count_is_refused_where_there_is_one() {
    for (limit, words) in [
        ("2251799813685249/s", "up to 2251799813685248"),
        ("1/1500ns", "microseconds"),
        ("1/999ns sliding-log", "microseconds"),
        ("1/s sliding-log resolution 1500ns", "and so is a resolution"),
    ] {
        let policy = format!("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n");
        assert!(parse(&policy).is_ok(), "{limit} in memory");
        let shared = format!("[store]\nurl = \"redis://a\"\n{policy}");
        expect(&shared, Code::SharedLimit, 6, "policy[0].limits[0]", words);
    }
    for limit in [
        "2251799813685248/s",
        "1/1us",
        "9/calendar-day",
        "block",
        "unlimited",
        "1/s sliding-log resolution 1us",
        "1/s sliding-log resolution 1ns",
    ] {
        let policy = format!("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n");
        assert!(parse(&format!("[store]\nurl = \"redis://a\"\n{policy}")).is_ok(), "{limit}");
    }
}

#[test]
fn what_is_probably_not_meant_is_warned_of() {
    let codes = |text: &str| {
        let set = parse(text).unwrap();
        let found = set.warnings().iter().map(|warning| (warning.code, warning.line));
        found.collect::<Vec<_>>()
    };
    for word in ["allow", "deny", "local"] {
        let text = format!("{POLICY}on_store_error = \"{word}\"\n");
        assert_eq!(codes(&text), [(Code::NothingDown, 5)]);
        let shared = format!("[store]\nurl = \"redis://a\"\n{text}");
        assert_eq!(codes(&shared), []);
    }
    let by_key = POLICY.replace("\"ip\"", "{ header = \"x-key\", or = \"ip\" }");
    let shared = |more: &str| {
        format!(
            "[store]\nurl = \"redis://a\"\n{more}\n{POLICY}{}",
            by_key.replace("\"p\"", "\"q\"")
        )
    };
    assert_eq!(codes(&shared("")), [(Code::OpenDigest, 10)]);
    assert_eq!(codes(&shared("digest_secret = \"${SECRET}\"")), []);
}

/// Two servers that share a store must count a client under one key, and so must one before and after a restart.
#[test]
fn servers_that_share_a_store_make_the_same_keys() {
    let key = |store: &str| {
        let text = file(store).replace("\"ip\"", "{ header = \"x-key\", or = \"ip\" }");
        let set = parse(&text).unwrap();
        let path = CanonicalPath::parse("/").unwrap();
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: Some([192, 0, 2, 1].into()),
            principal: None,
            headers: &[("x-key", "alice")].as_slice(),
        };
        let key = set.explain(&request).unwrap()[0].key.to_string();
        assert!(!key.contains("alice"), "{key}");
        key
    };
    let url = "url = \"redis://a\"";
    assert_eq!(key(url), key("url = \"redis://:p@b\"\ntimeout = \"1s\""));
    assert_ne!(key(url), key(&format!("{url}\nprefix = \"other\"")));
    let secret = format!("{url}\ndigest_secret = \"${{SECRET}}\"");
    assert_eq!(key(&secret), key(&format!("{secret}\nprefix = \"other\"")));
    assert_ne!(key(&secret), key(url));
    assert_ne!(key(""), key(""), "in memory nobody else needs them");
}

#[test]
fn what_the_page_about_policy_files_shows_is_read() {
    let page = include_str!("../../../../docs/policy-file.md");
    let blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut shared = 0;
    for block in blocks {
        let set = PolicySet::parse_with(block, &|_| Some("0123456789abcdef".to_owned()));
        let set = set.unwrap_or_else(|errors| panic!("{errors}\n{block}"));
        if let Some(store) = &set.settings().store.shared {
            shared += 1;
            let words: Vec<_> =
                set.policies().iter().map(|policy| policy.on_store_error().as_str()).collect();
            assert_eq!(words, ["deny", "local", "allow"]);
            assert_eq!(store.local_share.to_string(), "1/4");
            assert!(set.warnings().iter().all(|warning| warning.code != Code::OpenDigest));
        }
    }
    assert_eq!(shared, 1);
}
