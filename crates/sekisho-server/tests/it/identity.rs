//! Who is asking, and about what: address sources and the forms of the original request, over a socket.

use crate::harness::Running;

fn file(identity: &str, original: &str) -> String {
    format!(
        r#"
        [listen.auth]
        original = "{original}"
        [identity]
        {identity}
        [[policy]]
        name = "login"
        match = {{ method = "POST", path = "/login", host = "site.example" }}
        key = ["ip"]
        limits = ["1/h"]
        "#
    )
}

const TRUSTED: &str = "address = \"x-forwarded-for\"\ntrusted_proxies = [\"127.0.0.1\"]";
const UNTRUSTED: &str = "address = \"x-forwarded-for\"\ntrusted_proxies = [\"10.0.0.0/8\"]";

/// Asks with these header lines and returns the status.
async fn status(server: &Running, head: &str, lines: &[&str]) -> u16 {
    let lines: String = lines.iter().flat_map(|line| [*line, "\r\n"]).collect();
    server.ask(&format!("{head} HTTP/1.1\r\nhost: site.example\r\n{lines}")).await.status
}

#[tokio::test]
async fn a_trusted_proxy_says_for_whom_it_asks() {
    let server = Running::start(&file(TRUSTED, "path")).await;
    let ask = async |line: &str| status(&server, "POST /auth/login", &[line]).await;
    assert_eq!(ask("x-forwarded-for: 203.0.113.9").await, 200);
    assert_eq!(
        ask("x-forwarded-for: 6.6.6.6, 203.0.113.9").await,
        429,
        "what the client wrote itself"
    );
    assert_eq!(ask("x-forwarded-for: 203.0.113.10").await, 200);
    assert_eq!(ask("forwarded: for=203.0.113.11").await, 200, "another family: the proxy itself");
    assert_eq!(ask("x-real-ip: 203.0.113.12").await, 429, "and again");
}

#[tokio::test]
async fn a_proxy_that_is_not_trusted_is_told_so() {
    let server = Running::start(&file(UNTRUSTED, "path")).await;
    for _ in 0..3 {
        assert_eq!(
            status(&server, "POST /auth/login", &["x-forwarded-for: 203.0.113.9"]).await,
            503
        );
        assert_eq!(
            status(&server, "POST /auth403/login", &["x-forwarded-for: 203.0.113.9"]).await,
            503
        );
    }
    assert_eq!(
        status(&server, "POST /auth/login", &[]).await,
        200,
        "without the header it speaks for itself"
    );
    for original in ["x-original", "x-forwarded"] {
        let server = Running::start(&file(UNTRUSTED, original)).await;
        let lines = [
            "x-original-method: GET",
            "x-original-uri: /",
            "x-forwarded-method: GET",
            "x-forwarded-uri: /",
        ];
        assert_eq!(status(&server, "GET /auth", &lines).await, 503, "{original}");
    }
}

#[tokio::test]
async fn the_original_request_is_where_the_file_says() {
    let server = Running::start(&file(TRUSTED, "x-original")).await;
    let nginx = ["x-original-method: POST", "x-original-uri: //login/?next=/"];
    assert_eq!(status(&server, "GET /auth403", &nginx).await, 200);
    assert_eq!(status(&server, "GET /auth403", &nginx).await, 403);
    let spoofed = ["x-forwarded-method: GET", "x-forwarded-uri: /other", nginx[0], nginx[1]];
    assert_eq!(
        status(&server, "GET /auth403/elsewhere", &spoofed).await,
        403,
        "other forms do not count"
    );
    assert_eq!(status(&server, "POST /auth403/login", &[]).await, 503, "a proxy that does not say");
    let twice = ["x-original-method: GET", "x-original-method: POST", "x-original-uri: /login"];
    assert_eq!(
        status(&server, "GET /auth403", &twice).await,
        503,
        "one of them may be the client's"
    );
    assert_eq!(status(&server, "GET /auth403", &[nginx[0], "x-original-uri: /a%2fb"]).await, 403);

    let server = Running::start(&file(TRUSTED, "x-forwarded")).await;
    let caddy = [
        "x-forwarded-method: POST",
        "x-forwarded-uri: /login?x=1",
        "x-forwarded-host: site.example:8443",
    ];
    assert_eq!(status(&server, "GET /auth", &caddy).await, 200);
    assert_eq!(status(&server, "GET /auth", &caddy).await, 429);
    let elsewhere = [caddy[0], caddy[1], "x-forwarded-host: other.example"];
    assert_eq!(status(&server, "GET /auth", &elsewhere).await, 200, "another host");
}

#[tokio::test]
async fn the_check_api_reads_the_described_request_alike() {
    let server = Running::start(&file(UNTRUSTED, "path")).await;
    let ask = |peer: &str, forwarded: &str| {
        let body = format!(
            r#"{{"request":{{"method":"POST","path":"/login","host":"site.example","peer":"{peer}",
               "headers":{{"x-forwarded-for":"{forwarded}"}}}}}}"#
        );
        let server = &server;
        async move { server.answer(&body).await["key"].as_str().unwrap().to_owned() }
    };
    assert_eq!(ask("10.1.1.1", "6.6.6.6, 203.0.113.9, 10.2.2.2").await, "ip=203.0.113.9");
    assert_eq!(ask("198.51.100.7", "203.0.113.9").await, "ip=198.51.100.7");
}
