//! Keys of policies on a real server: what is another key in memory is another one there.

use std::net::IpAddr;

use sekisho::{CanonicalPath, Limiter, Mode, NoHeaders, PolicySet, Request};
use sekisho_testkit::redis_server::RedisServer;

use crate::support::{all_expire, connect, patient};

const FILE: &str = r#"
[[policy]]
name = "pair"
key = [{ query = "x" }, { query = "y" }]
on_missing_key = "shared"
limits = ["1/week"]
"#;

async fn is_allowed(limiter: &Limiter<sekisho_redis::RedisStore>, query: &str) -> bool {
    let path = CanonicalPath::parse("/").unwrap();
    let request = Request {
        method: "GET",
        host: None,
        path: &path,
        query: Some(query),
        client: Some(IpAddr::from([192, 0, 2, 1])),
        principal: None,
        headers: &NoHeaders,
    };
    limiter.decide(&request, Mode::Check).await.is_allowed()
}

/// Parts that read alike side by side, parts that are absent, and bytes that mean something on the way or there: each
/// begins with the whole limit, and has used it up the second time.
#[tokio::test]
async fn b58_b60_each_key_is_its_own_on_a_server() {
    let server = RedisServer::start();
    let limiter = Limiter::with_store(PolicySet::parse(FILE).unwrap(), patient(&server.url()));
    let queries = [
        "x=a:b&y=c",
        "x=a&y=b:c",
        "x=ab&y=c",
        "x=a&y=bc",
        "x=a",
        "y=a",
        "x=%7Ba%7D&y=b",
        "x=%7B%7D&y=b",
        "x=%7D%7B&y=b",
        "x=%00&y=b",
        "x=%20&y=b",
        "x=%0D%0A&y=b",
        "x=*3&y=$1",
        "x=%E6%97%A5&y=b",
    ];
    for query in queries {
        assert!(is_allowed(&limiter, query).await, "{query}");
    }
    for query in queries {
        assert!(!is_allowed(&limiter, query).await, "{query}");
    }
    assert_eq!(all_expire(&mut connect(&server).await).await, queries.len());
}
