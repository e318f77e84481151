//! What a caller is told when the server is gone, slow, or not what it should be.

use std::time::{Duration, Instant};

use sekisho::{Answer, Outcome, Span, Store, StoreError};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::redis_server::{RedisServer, free_port};

use crate::support::{Counted, Pair, check_now, connect, patient};

#[tokio::test]
async fn no_server_is_an_error_of_the_call() {
    let store = patient(&format!("redis://127.0.0.1:{}", free_port()));
    let counted = Counted::new("10/min", "ten", "u");
    let error = check_now(&store, &counted, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let error = store.forget(&counted.scope, &counted.key).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let error = RedisStore::new("http://127.0.0.1", RedisOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut server = RedisServer::start();
    let store = patient(&server.url());
    let counted = Counted::new("10/min", "ten", "u");
    check_now(&store, &counted, 3).await.unwrap();
    server.stop();
    for _ in 0..3 {
        let error = check_now(&store, &counted, 1).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    server.restart();
    // It came back empty, and without the script.
    let verdict = once_it_is_back(&store, &counted).await.verdicts[0];
    assert_eq!((verdict.outcome, verdict.remaining), (Outcome::Allow, Some(9)));
}

/// Checks one unit as soon as the server is reached again, within the two seconds that are promised.
#[expect(clippy::disallowed_methods, reason = "it is waited for real")]
async fn once_it_is_back(store: &RedisStore, counted: &Counted) -> Answer {
    let began = Instant::now();
    loop {
        match check_now(store, counted, 1).await {
            Ok(answer) => return answer,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(2), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_slow_server_costs_the_timeout() {
    let server = RedisServer::start();
    let timeout = Span::from_nanos(250_000_000);
    let options = RedisOptions { timeout, ..Default::default() };
    let store = RedisStore::new(&server.url(), options).unwrap();
    let mut connection = connect(&server).await;
    let counted = Counted::new("10/min", "ten", "u");
    check_now(&store, &counted, 1).await.unwrap();
    let _: () =
        redis::cmd("CLIENT").arg("PAUSE").arg(60_000).query_async(&mut connection).await.unwrap();
    let error = check_now(&store, &counted, 1).await.unwrap_err();
    assert_eq!(error, StoreError::Timeout(timeout));
}

#[tokio::test]
async fn a_server_that_refuses_is_unavailable_and_nothing_is_charged() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let mut config = async |name: &str, value: &str| {
        let mut command = redis::cmd("CONFIG");
        command.arg("SET").arg(name).arg(value);
        let _: () = command.query_async(&mut connection).await.unwrap();
    };
    let counted = Counted::new("10/min", "ten", "u");
    config("maxmemory", "1").await;
    let error = check_now(&pair.redis, &counted, 1).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("OOM")), "{error:?}");
    config("maxmemory", "0").await;
    let verdict = check_now(&pair.redis, &counted, 1).await.unwrap().verdicts[0];
    assert_eq!(verdict.remaining, Some(9));
}
