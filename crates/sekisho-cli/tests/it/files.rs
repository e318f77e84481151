//! `lint` and `explain`.

use std::path::PathBuf;

use crate::sekisho;

/// A policy file that is gone when the test is.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("sekisho-{name}-{}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

const POLICIES: &str = r#"[[policy]]
name   = "login"
match  = { method = "POST", path = "/v1/auth/**" }
key    = ["ip"]
limits = ["10/s burst 5", "100/h sliding-log"]

[[policy]]
name   = "api"
match  = { path = "/v1/**" }
key    = [{ header = "x-api-key", or = "ip" }]
limits = ["100/min"]
"#;

#[test]
fn lint_shows_warnings_and_the_worst_case() {
    let file = File::new("warned", POLICIES.as_bytes());
    let (out, err, code) = sekisho(&["lint", "-c", file.path()], "");
    insta::assert_snapshot!(out.replace(file.path(), "FILE"), @r#"
    FILE:10:10: warning[SK101] policy[1].key: any client can make up a new `header.x-api-key` and get a new count with it: add a policy with `key = ["ip"]` for the same requests, or count by what has been verified
    policy login (line 2): POST /v1/auth/**, by ip
      10/s burst 5 token-bucket: at most 14 in any 1s, 15 with both its ends
      100/h sliding-log: at most 100 in any 3600s, 200 with both its ends
    policy api (line 8): /v1/**, by header.x-api-key or ip
      100/min token-bucket: at most 199 in any 60s, 200 with both its ends
    scope: process. Counts live in this process's memory: each server that runs this file admits the whole of every limit.
    "#);
    assert_eq!((err.as_str(), code), ("", 0));
    let (_, err, code) = sekisho(&["lint", "--strict", "-c", file.path()], "");
    assert!(err.ends_with("1 warning\n") && code == 2, "{err}");
}

#[test]
fn lint_names_every_error_with_its_place() {
    let file =
        File::new("wrong", POLICIES.replace("100/min", "0/min").replace("POST", "post").as_bytes());
    let (out, err, code) = sekisho(&["lint", "-c", file.path()], "");
    insta::assert_snapshot!(out.replace(file.path(), "FILE"), @r#"
    FILE:3:21: error[SK020] policy[0].match.method: a method is written in capitals, like `GET`; `match` without `method` covers all
    FILE:10:10: warning[SK101] policy[1].key: any client can make up a new `header.x-api-key` and get a new count with it: add a policy with `key = ["ip"]` for the same requests, or count by what has been verified
    FILE:11:11: error[SK011] policy[1].limits[0]: `0/min`: an amount of 0 could mean two things: write `block` to let nobody through, `unlimited` to let everybody through
    "#);
    assert_eq!((err.replace(file.path(), "FILE").as_str(), code), ("error: FILE: 2 errors\n", 2));
    let (out, _, code) = sekisho(&["lint", "--output", "json", "-c", file.path()], "");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (json["ok"].as_bool(), json["diagnostics"][0]["line"].as_u64(), code),
        (Some(false), Some(3), 2)
    );
}

#[test]
fn lint_takes_any_bytes() {
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("binary", b"\x00\xff\xfe[[policy]]"),
        ("half", b"[[policy]]\nname = \"a"),
    ] {
        let file = File::new(name, bytes);
        let (_, err, code) = sekisho(&["lint", "-c", file.path()], "");
        assert!(code == 2 && err.starts_with("error: "), "{name}: {err}");
    }
    let (_, err, code) = sekisho(&["lint", "-c", "/nowhere/sekisho.toml"], "");
    assert!(code == 2 && err.contains("/nowhere/sekisho.toml"), "{err}");
}

#[test]
fn explain_shows_policies_keys_and_charges() {
    let file = File::new("explained", POLICIES.as_bytes());
    let ask = |arguments: &[&str]| {
        let (out, err, code) = sekisho(&[&["explain", "-c", file.path()], arguments].concat(), "");
        (out, err.replace(file.path(), "FILE"), code)
    };
    let (out, _, code) = ask(&["POST /v1//auth/login?next=/", "--peer", "203.0.113.9"]);
    insta::assert_snapshot!(out, @r"
    POST /v1/auth/login
    policy login (line 2)
      key   ip=203.0.113.9
      limit 10/s burst 5 token-bucket (id 1s-token-bucket), cost 1
      limit 100/h sliding-log (id 3600s-sliding-log), cost 1
    policy api (line 8)
      key   ip=203.0.113.9
      limit 100/min token-bucket (id 60s-token-bucket), cost 1
    all of these are charged, or none
    ");
    assert_eq!(code, 0);
    let (out, _, _) =
        ask(&["GET /v1/x", "-H", "x-api-key: a", "--peer", "203.0.113.9", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let key = json["charges"][0]["key"].as_str().unwrap();
    assert!(key.starts_with("header.x-api-key=#"), "{key}");
    let (out, _, _) = ask(&["GET /other", "--peer", "203.0.113.9"]);
    assert!(out.contains("no policy holds"), "{out}");
    let (out, _, _) = ask(&["GET /v1/x"]);
    assert!(out.contains("refused by policy api"), "{out}");
    for (arguments, words) in [
        (&["GET"][..], "is no request"),
        (&["GET /a%2fb"], "no encoded slash"),
        (&["GET /", "-H", "x"], "is no header line"),
        (&["GET /", "--peer", "x"], "invalid value"),
    ] {
        let (_, err, code) = ask(arguments);
        assert!(code == 2 && err.contains(words), "{arguments:?}: {err}");
    }
}

#[test]
fn lint_and_explain_say_what_happens_while_a_shared_store_is_down() {
    let store = "[store]\nurl = \"redis://u:hunter2@127.0.0.1:1/2\"\nlocal_share = 0.25\n";
    let policies = POLICIES
        .replace("limits = [\"100/min\"]", "limits = [\"100/min\"]\non_store_error = \"local\"");
    let text = format!(
        "{store}{}\n[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"9/s\"]\non_store_error = \"deny\"\n",
        policies.replace("\"/v1/auth/**\" }", "\"/login\" }")
    );
    let file = File::new("shared", text.as_bytes());
    let (out, err, code) = sekisho(&["lint", "-c", file.path()], "");
    insta::assert_snapshot!(out.replace(file.path(), "FILE"), @r#"
    FILE:13:10: warning[SK106] policy[1].key: without `digest_secret` in `[store]` everybody can make the digests that this key has there: whoever reads the store can try out values
    policy login (line 5): POST /login, by ip
      while the store is down, its requests pass, uncounted
      10/s burst 5 token-bucket: at most 14 in any 1s, 15 with both its ends
      100/h sliding-log: at most 100 in any 3600s, 200 with both its ends
    policy api (line 11): /v1/**, by header.x-api-key or ip
      while the store is down, each server holds 1/4 of these limits by itself, so N servers let through up to N x 1/4 of them
      100/min token-bucket: at most 199 in any 60s, 200 with both its ends
    policy all (line 18): every request, by ip
      while the store is down, its requests are refused with 503
      9/s token-bucket: at most 17 in any 1s, 18 with both its ends
    scope: shared. Counts live in redis://u:***@127.0.0.1:1/2: all servers that run this file admit each limit together.
    "#);
    assert_eq!((err.as_str(), code), ("", 0));
    assert!(!out.contains("hunter2"), "{out}");
    let (out, _, _) = sekisho(&["lint", "--output", "json", "-c", file.path()], "");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (json["scope"].as_str(), json["store"]["local_share"].as_str()),
        (Some("shared"), Some("1/4"))
    );
    assert_eq!(json["store"]["at"][0], "redis://u:***@127.0.0.1:1/2");
    let api = &json["policies"][1];
    assert_eq!(
        (api["on_store_error"].as_str(), api["limits"][0]["local"].as_str()),
        (Some("local"), Some("25/min token-bucket"))
    );
    let ask = |request: &str| {
        sekisho(&["explain", "-c", file.path(), request, "--peer", "192.0.2.1"], "").0
    };
    assert!(ask("GET /v1/x").ends_with("while the store is down, it is refused with 503\n"));
}
