//! The trace interface, byte for byte.

use sekisho_replay::simulate::{SimulateError, Simulation};

fn run(limits: &[&str], trace: &str) -> (String, Result<(), SimulateError>) {
    let simulation = Simulation::new(limits.iter().map(|limit| limit.parse().unwrap()).collect());
    let mut out = Vec::new();
    let result = simulation.run(trace.as_bytes(), &mut out);
    (String::from_utf8(out).unwrap(), result)
}

#[test]
fn the_worked_example() {
    let trace = "# three per ten seconds\n0\n0\n0\n0\n\n3.333333333\n3.333333334\n";
    let (out, result) = run(&["3/10s burst 3 token-bucket"], trace);
    result.unwrap();
    assert_eq!(
        out,
        r#"{"t":"0","key":"-","cost":1,"outcome":"allow","remaining":2,"retry_after_ns":null,"reset_after_ns":3333333334,"delay_ns":0}
{"t":"0","key":"-","cost":1,"outcome":"allow","remaining":1,"retry_after_ns":null,"reset_after_ns":6666666667,"delay_ns":0}
{"t":"0","key":"-","cost":1,"outcome":"allow","remaining":0,"retry_after_ns":null,"reset_after_ns":10000000000,"delay_ns":0}
{"t":"0","key":"-","cost":1,"outcome":"deny","remaining":0,"retry_after_ns":3333333334,"reset_after_ns":10000000000,"delay_ns":0}
{"t":"3.333333333","key":"-","cost":1,"outcome":"deny","remaining":0,"retry_after_ns":1,"reset_after_ns":6666666667,"delay_ns":0}
{"t":"3.333333334","key":"-","cost":1,"outcome":"allow","remaining":0,"retry_after_ns":null,"reset_after_ns":10000000000,"delay_ns":0}
"#
    );
}

#[test]
fn several_limits_name_the_one_that_binds() {
    let (out, result) = run(&["1/s fixed-window", "2/min sliding-log", "block"], "5,a\n");
    result.unwrap();
    assert!(out.ends_with(r#""outcome":"never","remaining":0,"retry_after_ns":null,"reset_after_ns":0,"delay_ns":0,"limit":"block"}
"#), "{out}");
    let (out, result) = run(
        &["1/s fixed-window", "2/min sliding-log"],
        "5,a\n5,a\n5,b\n6,a\n7,a,1\n7,a,3\n7,a,0\n",
    );
    result.unwrap();
    let binding: Vec<_> = out
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            format!(
                "{} {} {}",
                line["outcome"].as_str().unwrap(),
                line["remaining"],
                line["limit"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        binding,
        [
            "allow 0 1/s fixed-window",
            "deny 0 1/s fixed-window",
            "allow 0 1/s fixed-window",
            "allow 0 1/s fixed-window",
            "deny 0 2/min sliding-log",
            "never 1 1/s fixed-window",
            "allow 0 2/min sliding-log",
        ]
    );
}

#[test]
fn unlimited_has_nothing_remaining_to_show() {
    let (out, result) = run(&["unlimited"], "5\n");
    result.unwrap();
    assert!(out.contains(r#""outcome":"allow","remaining":null"#), "{out}");
}

#[test]
fn a_bad_line_is_named_and_what_came_before_it_is_kept() {
    let (out, result) = run(&["1/s"], "1\n# two\nx\n4\n");
    assert_eq!(
        result.unwrap_err().to_string(),
        "line 3: the seconds are a decimal with up to nine places, like `100.5`, at least 0"
    );
    assert_eq!(out.lines().count(), 1);
}

#[test]
fn late_stamps_and_keys_keep_their_own_state() {
    let (out, result) = run(&["4/2s"], "100\n100\n100\n100\n100\n90\n100\n50,other\n");
    result.unwrap();
    let outcomes: Vec<_> = out.lines().map(|line| line.contains("allow")).collect();
    assert_eq!(outcomes, [true, true, true, true, false, false, false, true]);
}
