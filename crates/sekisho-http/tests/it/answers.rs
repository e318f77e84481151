//! Families of fields, a policy's own refusals, and the members of a problem: what a policy file says of answers.

use http::HeaderMap;
use sekisho::{CanonicalPath, Decision, Mode, Request, Timestamp};
use sekisho_http::{Answer, HeaderLines, Profile};
use serde_json::json;

use crate::support::{START, limiter, policies};

const ANSWER: &str = "[answer]\nheaders = [\"x-ratelimit\"]\n";
const TWO: &str = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"2/min sliding-log\"]\n";

/// Returns the answer to the request of that number, with the settings of the file.
fn answer(file: &str, number: u64, profile: Profile) -> Answer {
    let (limiter, _) = limiter(file);
    for _ in 1..number {
        drop(decide(&limiter));
    }
    let decision = decide(&limiter);
    let settings = &policies(file).settings().answer.clone();
    Answer::new(&decision, profile, settings, Timestamp::from_secs(START))
}

fn decide(limiter: &sekisho::Limiter) -> Decision {
    let request = Request {
        method: "GET",
        host: None,
        path: &CanonicalPath::root(),
        query: None,
        client: Some([192, 0, 2, 7].into()),
        principal: None,
        headers: &HeaderLines(&HeaderMap::new()),
    };
    limiter.decide_now(&request, Mode::Check)
}

fn lines(answer: &Answer) -> Vec<String> {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}", value.to_str().expect("text"))
    };
    let mut lines: Vec<_> = answer.headers.iter().map(line).collect();
    lines.sort();
    lines
}

fn json(answer: &Answer) -> serde_json::Value {
    serde_json::from_slice(&answer.body).expect("a JSON body")
}

#[test]
fn a_family_is_there_when_it_is_chosen() {
    let allowed = answer(&format!("{ANSWER}{TWO}"), 2, Profile::Standard);
    assert_eq!(
        lines(&allowed),
        ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000060"],
        "zero is sent, and a success has no wait"
    );
    let all = "[answer]\nheaders = [\"ratelimit\", \"x-ratelimit\"]\nreset = \"delta\"\n";
    let denied = answer(&format!("{all}{TWO}"), 3, Profile::Standard);
    assert_eq!(
        lines(&denied),
        [
            "cache-control: no-store",
            "content-type: application/problem+json",
            "ratelimit-policy: \"api\";q=2;w=60",
            "ratelimit: \"api\";r=0;t=60",
            "retry-after: 60",
            "x-ratelimit-limit: 2",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 60",
        ],
        "`Retry-After` is there although it was not chosen"
    );
    let none = answer(&format!("[answer]\nheaders = []\n{TWO}"), 3, Profile::Standard);
    assert_eq!(
        lines(&none),
        ["cache-control: no-store", "content-type: application/problem+json", "retry-after: 60"]
    );
}

#[test]
fn a_reset_is_rounded_up_to_the_next_second_of_the_clock() {
    let (limiter, clock) = limiter(TWO);
    assert!(decide(&limiter).is_allowed());
    clock.advance(sekisho::Span::from_nanos(1));
    let decision = decide(&limiter);
    let mut settings = policies(&format!("{ANSWER}{TWO}")).settings().answer.clone();
    let wall = Timestamp::from_nanos(START * 1_000_000_000 + 1);
    let reset = |settings: &sekisho::AnswerSettings| {
        let answer = Answer::new(&decision, Profile::Standard, settings, wall);
        answer.headers["x-ratelimit-reset"].to_str().expect("text").to_owned()
    };
    assert_eq!(reset(&settings), "1700000061");
    settings.reset = sekisho::ResetForm::Delta;
    assert_eq!(reset(&settings), "60");
}

#[test]
fn a_problem_has_the_numbers_for_those_who_read_no_headers() {
    for (reset, wanted) in [("unix", 1_700_000_060), ("delta", 60)] {
        let file = format!("[answer]\nreset = \"{reset}\"\n{TWO}");
        assert_eq!(
            json(&answer(&file, 3, Profile::Standard)),
            json!({
                "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
                "title": "Quota Exceeded",
                "status": 429,
                "detail": "the quota `api` is used up; the same request passes in 60 s",
                "violated-policies": ["api"],
                "error_code": "rate_limit_exceeded",
                "retry_after": 60,
                "limit": 2,
                "remaining": 0,
                "reset": wanted,
            })
        );
    }
    let never = TWO.replace("limits", "cost = 3\nlimits");
    let never = json(&answer(&never, 1, Profile::Standard));
    assert_eq!((&never["limit"], &never["remaining"]), (&json!(2), &json!(2)));
    assert_eq!(never.get("retry_after"), None, "there is nothing to wait for: {never}");
}

#[test]
fn a_policy_may_refuse_in_its_own_way() {
    let own =
        "refusal = { status = 503, body = \"later, please\", content_type = \"text/x-note\" }\n";
    let file = format!("{TWO}{own}");
    let denied = answer(&file, 3, Profile::Standard);
    assert_eq!((denied.status.as_u16(), &denied.body[..]), (503, &b"later, please"[..]));
    assert_eq!(denied.headers["content-type"], "text/x-note");
    assert_eq!(denied.headers["retry-after"], "60");
    assert_eq!(denied.headers["cache-control"], "no-store");
    let nginx = answer(&file, 3, Profile::Nginx);
    assert_eq!((nginx.status.as_u16(), &nginx.body[..]), (403, &b"later, please"[..]));
    assert_eq!(answer(&file, 2, Profile::Standard).status, 200);

    let plain = answer(&format!("{TWO}refusal = {{ body = \"x\" }}\n"), 3, Profile::Standard);
    assert_eq!(
        (plain.status.as_u16(), &plain.headers["content-type"]),
        (429, &"text/plain; charset=utf-8".parse().expect("a value"),)
    );
    let hidden = "[[policy]]\nname = \"gone\"\nkey = [\"ip\"]\nlimits = [\"block\"]\nrefusal = { status = 404 }\n";
    assert_eq!(answer(hidden, 1, Profile::Standard).status, 404);
    assert_eq!(answer(hidden, 1, Profile::Nginx).status, 403);
}

#[test]
fn a_detail_is_filled_in_whatever_its_language() {
    let detail = |words: &str, number| {
        let answer = answer(
            &format!("{TWO}refusal = {{ detail = \"{words}\" }}\n"),
            number,
            Profile::Standard,
        );
        json(&answer)["detail"].as_str().expect("text").to_owned()
    };
    let japanese = "{policy} の上限は毎分 {limit} 回です(残り {remaining})。{retry_after} 秒後にもう一度お試しください。";
    assert_eq!(
        detail(japanese, 3),
        "api の上限は毎分 2 回です(残り 0)。60 秒後にもう一度お試しください。"
    );
    let raw =
        answer(&format!("{TWO}refusal = {{ detail = \"{japanese}\" }}\n"), 3, Profile::Standard);
    assert!(String::from_utf8(raw.body).expect("UTF-8").contains("秒後"), "no escapes");
    assert_eq!(detail("no places", 3), "no places");
    assert_eq!(detail("a { that ends nowhere", 3), "a { that ends nowhere");
    // What never passes has no wait to fill in.
    let never = format!("{TWO}cost = 3\nrefusal = {{ detail = \"in {{retry_after}} s\" }}\n");
    let words = json(&answer(&never, 1, Profile::Standard))["detail"].clone();
    assert_eq!(words, "the request costs 3, and `api` never holds more than 2");
}

#[test]
fn a_missing_key_has_a_status_of_its_own() {
    let file = |status: u16| {
        format!(
            "[[policy]]\nname = \"api\"\nkey = [{{ header = \"x-api-key\" }}]\non_missing_key = \"deny\"\nlimits = [\"1/s\"]\n\
             refusal = {{ status = 503, body = \"over\", detail = \"over\", missing_key_status = {status} }}\n"
        )
    };
    for status in [400, 401, 403] {
        let missing = answer(&file(status), 1, Profile::Standard);
        assert_eq!(missing.status, status);
        assert_eq!(missing.headers.contains_key("www-authenticate"), status == 401);
        assert_eq!(json(&missing)["detail"], "the request lacks what policy `api` counts by");
        assert_eq!(answer(&file(status), 1, Profile::Nginx).status, 401, "as nginx knows it");
    }
}

#[test]
fn scripts_may_read_what_an_answer_has() {
    let file = format!("[answer]\nexpose = true\n{TWO}");
    let exposed = |number| {
        let answer = answer(&file, number, Profile::Standard);
        answer.headers["access-control-expose-headers"].to_str().expect("text").to_owned()
    };
    assert_eq!(exposed(1), "RateLimit, RateLimit-Policy");
    assert_eq!(exposed(3), "RateLimit, RateLimit-Policy, Retry-After");
    assert!(
        !answer(TWO, 3, Profile::Standard).headers.contains_key("access-control-expose-headers")
    );
}
