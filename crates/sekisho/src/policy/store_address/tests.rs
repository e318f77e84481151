//! Every form, and hostile ones.

use super::{StoreAddressError as Error, *};

fn parse(text: &str) -> StoreAddress {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn every_form_is_read_and_shown_in_its_one_way() {
    for (text, shown, authority) in [
        ("redis://a", "redis://a:6379", "a:6379/0"),
        ("redis://A.Example:7/", "redis://a.example:7", "a.example:7/0"),
        ("rediss://a/3", "rediss://a:6379/3", "a:6379/3"),
        ("redis://u@a", "redis://u@a:6379", "a:6379/0"),
        ("redis://:p@a", "redis://:***@a:6379", "a:6379/0"),
        ("redis://u:p@a", "redis://u:***@a:6379", "a:6379/0"),
        ("redis://u%3A%40:@a", "redis://u%3A%40@a:6379", "a:6379/0"),
        ("redis://[0:0::1]:7", "redis://[::1]:7", "[::1]:7/0"),
        ("redis://[::1]", "redis://[::1]:6379", "[::1]:6379/0"),
        ("redis+unix:///run/r.sock", "redis+unix:///run/r.sock", "unix:/run/r.sock/0"),
        (
            "redis+unix:///run/a%3Fb?password=p%26q&db=2&user=%25",
            "redis+unix:///run/a%3Fb?db=2&user=%25&password=***",
            "unix:/run/a?b/2",
        ),
        ("redis-cluster://a,b:7001", "redis-cluster://a:6379,b:7001", "cluster:a:6379,b:7001"),
        ("rediss-cluster://u:p@a/0", "rediss-cluster://u:***@a:6379", "cluster:a:6379"),
        (
            "redis-sentinel://:p@a,[::2]:5/my-master.1/2",
            "redis-sentinel://:***@a:26379,[::2]:5/my-master.1/2",
            "sentinel:a:26379,[::2]:5/my-master.1/2",
        ),
        ("rediss-sentinel://a/m", "rediss-sentinel://a:26379/m", "sentinel:a:26379/m/0"),
    ] {
        let address = parse(text);
        assert_eq!(address.to_string(), shown, "{text}");
        assert_eq!(address.authority(), authority, "{text}");
        // What is shown is read again, but for the password.
        let again = StoreAddress { password: None, ..parse(shown) };
        assert_eq!(again, StoreAddress { password: None, ..address }, "{text}");
    }
}

#[test]
fn what_is_read_is_decoded() {
    let address = parse("rediss://us%C3%A9r:p%40%3A%2F%25@host:1/9");
    assert_eq!(address.topology, Topology::Single);
    assert_eq!(address.hosts, [Host { name: "host".into(), port: 1 }]);
    assert!(address.tls && address.is_one_server());
    assert_eq!(address.user.as_deref(), Some("usér"));
    assert_eq!(address.password.as_deref(), Some("p@:/%"));
    assert_eq!(address.database, 9);
    let socket = parse("redis+unix:///a%20b?user=u&password=%23");
    assert_eq!(socket.topology, Topology::Unix("/a b".into()));
    assert!(socket.hosts.is_empty() && socket.is_one_server());
    assert_eq!((socket.user.as_deref(), socket.password.as_deref()), (Some("u"), Some("#")));
    let sentinel = parse("redis-sentinel://a,b/m/1");
    assert_eq!(sentinel.topology, Topology::Sentinel { master: "m".into() });
    assert_eq!((sentinel.hosts.len(), sentinel.database), (2, 1));
    assert!(!sentinel.is_one_server() && !parse("redis-cluster://a").is_one_server());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn hostile_texts_are_told_apart_and_none_is_let_through() {
    let many = (0..=STORE_HOSTS_MAX).map(|host| format!("h{host}")).collect::<Vec<_>>().join(",");
    let many = format!("redis-cluster://{many}");
    let long = format!("redis://{}", "a".repeat(STORE_ADDRESS_BYTES_MAX));
    let long_path = format!("redis+unix:///{}", "a".repeat(107));
    let long_host = format!("redis://{}", "a".repeat(254));
    for (text, error) in [
        ("", Error::Scheme),
        ("localhost:6379", Error::Scheme),
        ("redis:/a", Error::Scheme),
        ("REDIS://a", Error::Scheme),
        ("http://a", Error::Scheme),
        ("redisss://a", Error::Scheme),
        ("redis-clusters://a", Error::Scheme),
        ("unix:///run/a", Error::Scheme),
        ("rediss+unix:///run/a", Error::Scheme),
        ("valkey://a", Error::Valkey),
        ("valkeys://a", Error::Valkey),
        (&long, Error::Long),
        ("redis://a b", Error::Blank),
        ("redis://a\n", Error::Blank),
        ("redis://a\0", Error::Blank),
        ("redis://u:%@a", Error::Percent),
        ("redis://u:%4@a", Error::Percent),
        ("redis://u:%zz@a", Error::Percent),
        ("redis://u:%+1@a", Error::Percent),
        ("redis://u:%ff@a", Error::Percent),
        ("redis+unix:///a%", Error::Percent),
        ("redis://u:p@q@a", Error::Credentials),
        ("redis://u:p:q@a", Error::Credentials),
        ("redis://u:p/q@a", Error::Credentials),
        ("redis://", Error::NoHost(1)),
        ("redis://:6379", Error::NoHost(1)),
        ("redis:///1", Error::NoHost(1)),
        ("redis://u:p@", Error::NoHost(1)),
        ("redis-cluster://a,,b", Error::NoHost(2)),
        ("redis-cluster://a,", Error::NoHost(2)),
        ("redis-cluster://,a", Error::NoHost(1)),
        ("redis-sentinel:///m", Error::NoHost(1)),
        ("redis://::1", Error::BadHost(1)),
        ("redis://[::1", Error::BadHost(1)),
        ("redis://[::1]6379", Error::BadHost(1)),
        ("redis://[a]", Error::BadHost(1)),
        ("redis://[fe80::1%eth0]", Error::BadHost(1)),
        ("redis://a%41", Error::BadHost(1)),
        ("redis://hö", Error::BadHost(1)),
        (&long_host, Error::BadHost(1)),
        ("redis://a:", Error::Port(1)),
        ("redis://a:0", Error::Port(1)),
        ("redis://a:70000", Error::Port(1)),
        ("redis://a:+1", Error::Port(1)),
        ("redis://[::1]:", Error::Port(1)),
        ("redis-cluster://a,b:x", Error::Port(2)),
        ("redis-cluster://a,A:6379", Error::SameHost(2)),
        ("redis-sentinel://[::1],[0::1]:26379/m", Error::SameHost(2)),
        ("redis://a,b", Error::Hosts),
        (&many, Error::ManyHosts),
        ("redis://a/x", Error::Database),
        ("redis://a/-1", Error::Database),
        ("redis://a/1/2", Error::Database),
        ("redis://a/4294967296", Error::Database),
        ("redis+unix:///a?db=", Error::Database),
        ("redis-cluster://a/1", Error::ClusterDatabase),
        ("redis-sentinel://a", Error::Master),
        ("redis-sentinel://a/", Error::Master),
        ("redis-sentinel://a//1", Error::Master),
        ("redis-sentinel://a/m%41", Error::Master),
        ("redis-sentinel://a/m/x", Error::Database),
        ("redis+unix://", Error::Path),
        ("redis+unix://run/a", Error::Path),
        ("redis+unix:///", Error::Path),
        ("redis+unix:///run/", Error::Path),
        ("redis+unix:///a%00", Error::Path),
        (&long_path, Error::Path),
        ("redis://a?db=1", Error::Query),
        ("redis://a#insecure", Error::Query),
        ("redis+unix:///a#b", Error::Query),
        ("redis+unix:///a?db", Error::Query),
        ("redis+unix:///a?db=1&db=1", Error::Query),
        ("redis+unix:///a?pass=x", Error::Query),
        ("redis+unix:///a?db=1&", Error::Query),
    ] {
        assert_eq!(text.parse::<StoreAddress>(), Err(error), "{text:.60}");
    }
}

#[test]
fn no_text_shows_a_password() {
    for text in [
        "redis://u:hunter2@a",
        "redis+unix:///a?password=hunter2",
        "rediss-cluster://:hunter2@a,b",
        "redis-sentinel://:hunter2@a/m",
    ] {
        let address = parse(text);
        assert_eq!(address.password.as_deref(), Some("hunter2"));
        let shown = format!("{address} {address:?} {}", address.authority());
        assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
    }
    // Misplaced as it may be: no error quotes the text.
    for text in ["redis://hunter2", "redis://u:hunter2/x@a", "redis://u:hunter2", "hunter2"] {
        let Err(error) = text.parse::<StoreAddress>() else { continue };
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
    }
}

#[test]
fn every_beginning_of_an_address_and_every_change_of_a_byte_is_read_or_refused() {
    for text in [
        "rediss://us%C3%A9r:p%40@[::1]:6379/15",
        "redis+unix:///run/r%20.sock?db=2&user=u&password=%25",
        "redis-sentinel://u:p@a:1,[::2],c/mymaster/3",
    ] {
        for end in 0..=text.len() {
            let _either = text[..end].parse::<StoreAddress>();
            for letter in ["%", "@", ":", "/", "[", "]", ",", "?", "é", "\0"] {
                let changed = format!("{}{letter}{}", &text[..end], &text[end..]);
                let Ok(address) = changed.parse::<StoreAddress>() else { continue };
                assert!(address.to_string().parse::<StoreAddress>().is_ok(), "{changed}");
            }
        }
    }
}
