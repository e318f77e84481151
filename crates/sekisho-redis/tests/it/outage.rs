//! What a caller is told when the server is gone, slow, or not what it should be.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
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

/// What a server refuses is said, and not for every request: otherwise nobody would know why nothing is limited.
#[tokio::test]
async fn what_a_server_refuses_is_said_once() {
    let pair = Pair::start();
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    pair.redis.on_change(move |change| heard.lock().push(change.to_string()));
    let counted = Counted::new("10/min", "ten", "u");
    check_now(&pair.redis, &counted, 1).await.unwrap();
    pair.server.command(&["SET", "sk1:{=u}test:ten", "b 1"]);
    for _ in 0..5 {
        let error = check_now(&pair.redis, &counted, 1).await.unwrap_err();
        assert!(error.to_string().contains("what this script never wrote"), "{error}");
    }
    let said = said.lock();
    let [line] = said.as_slice() else { panic!("it is said once: {said:?}") };
    assert!(line.contains("refuses (1 since") && line.contains("never wrote"), "{line}");
}

/// A peer that is no Redis costs its connection, whatever it sends.
#[tokio::test]
async fn what_is_no_redis_is_found_out() {
    for sent in [
        b"*1\r\n".repeat(100_000),
        b"*2147483647\r\n".repeat(1_000),
        b"$9999999999\r\n".to_vec(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"+OK\r\n".repeat(10_000),
        b":1\r\n".repeat(10_000),
        vec![0; 100_000],
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _serving = thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _gone = stream.write_all(&sent);
                // It is read, so that nothing is reset on the way.
                let _read = stream.read(&mut [0; 4_096]);
            }
        });
        let options =
            RedisOptions { timeout: Span::from_nanos(500_000_000), ..RedisOptions::default() };
        let store = RedisStore::new(&format!("redis://{address}"), options).unwrap();
        let counted = Counted::new("10/min", "ten", "u");
        for _ in 0..3 {
            let error = check_now(&store, &counted, 1).await.unwrap_err();
            assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        }
    }
}
