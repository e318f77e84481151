//! `simulate`, `bound`, `schema`, `completions` and the reference.

use std::process::{Command, Stdio};

use crate::sekisho;

#[test]
fn simulate_answers_a_line_a_request() {
    let (out, err, code) = sekisho(
        &["simulate", "--limit", "60/min", "--trace", "-", "--output", "jsonl"],
        "100.50\n",
    );
    assert_eq!(
        out,
        "{\"t\":\"100.5\",\"key\":\"-\",\"cost\":1,\"outcome\":\"allow\",\"remaining\":59,\"retry_after_ns\":null,\"reset_after_ns\":1000000000,\"delay_ns\":0}\n"
    );
    assert_eq!((err.as_str(), code), ("", 0));
}

#[test]
fn simulate_names_a_bad_line_and_a_bad_limit_with_exit_code_two() {
    let (out, err, code) =
        sekisho(&["simulate", "--limit", "60/min", "--trace", "-"], "1\n2,a,b\n");
    assert_eq!((out.lines().count(), code), (1, 2));
    assert_eq!(
        err,
        "error: -: line 2: the cost is a whole number from 0 to 18446744073709551615\nhint: a trace line is `seconds[,key[,cost]]`, like `100.5,alice,2`\n"
    );
    for (limit, words) in [
        ("0/min", "write `block`"),
        ("x", "a limit is"),
        ("1/calendar-day zone Asia/Edo", "no time zone"),
    ] {
        let (_, err, code) = sekisho(&["simulate", "--limit", limit, "--trace", "-"], "");
        assert!(err.contains(words) && code == 2, "{limit}: {err}");
    }
    let (_, err, code) = sekisho(&["simulate", "--limit", "1/s", "--trace", "/nowhere/trace"], "");
    assert!(err.contains("/nowhere/trace") && code == 2, "{err}");
}

#[test]
fn a_reader_that_has_seen_enough_is_a_success() {
    let trace = (0..200_000).map(|second| second.to_string()).collect::<Vec<_>>().join("\n");
    let path = std::env::temp_dir().join(format!("sekisho-trace-{}", std::process::id()));
    std::fs::write(&path, trace).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sekisho"))
        .args(["simulate", "--limit", "1/s", "--trace"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn bound_prints_the_worst_case() {
    let (out, _, code) =
        sekisho(&["bound", "60/min burst 10", "--within", "60s", "--within", "1h"], "");
    assert_eq!(
        (out.as_str(), code),
        (
            "60/min burst 10 token-bucket\n  at most 69 in any 60s, 70 with both its ends\n    confirmed: the simulator passes 70 of it\n  at most 3609 in any 3600s, 3610 with both its ends\n    confirmed: the simulator passes 3610 of it\n",
            0
        )
    );
    let (out, _, _) = sekisho(&["bound", "60/min sliding-log", "--output", "json"], "");
    assert_eq!(
        out,
        "{\"closed\":120,\"found_closed\":120,\"found_half_open\":60,\"half_open\":60,\"limit\":\"60/min sliding-log\",\"within_ns\":60000000000}\n"
    );
    // What came with the first leaves after a minute, and what comes then is entered 3 s later.
    let coarse = "60/min sliding-log resolution 7s";
    let (out, _, code) =
        sekisho(&["bound", coarse, "--within", "1min", "--within", "122s", "--within", "124s"], "");
    assert_eq!(
        (out.as_str(), code),
        (
            "60/min sliding-log resolution 7s\n  at most 60 in any 60s, 120 with both its ends\n    confirmed: the simulator passes 120 of it\n  at most 120 in any 122s\n    confirmed: the simulator passes 120 of it\n  at most 180 in any 124s\n    confirmed: the simulator passes 180 of it\n",
            0
        )
    );
    let (_, err, code) = sekisho(&["bound", "60/min resolution 7s"], "");
    assert!(err.contains("only a `sliding-log` has a resolution") && code == 2, "{err}");
}

#[test]
fn what_is_generated_is_well_formed() {
    let (schema, _, _) = sekisho(&["schema"], "");
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["policy"].is_object() && schema["additionalProperties"] == false);
    let (openapi, _, _) = sekisho(&["schema", "--openapi"], "");
    let openapi: serde_json::Value = serde_json::from_str(&openapi).unwrap();
    assert!(openapi["paths"]["/v1/check"]["post"].is_object());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _, code) = sekisho(&["completions", shell], "");
        assert!(script.contains("simulate") && code == 0, "{shell}");
    }
    let (reference, _, _) = sekisho(&["reference"], "");
    assert!(reference.contains("## `sekisho lint`") && !reference.contains("reference` "));
}

#[test]
fn wrong_arguments_exit_with_two_and_say_what_to_do() {
    for arguments in
        [&["serve", "--listen", "here"][..], &["nothing"], &["lint"], &["explain", "-c"], &[]]
    {
        let (_, err, code) = sekisho(arguments, "");
        assert!(
            code == 2 && err.contains("--help") || err.contains("Usage"),
            "{arguments:?}: {code} {err}"
        );
    }
}
