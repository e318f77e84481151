//! Two spellings that nginx takes for one location, and that we accept, are one path to our policies.

use std::{
    collections::BTreeMap,
    env,
    net::{Ipv4Addr, SocketAddr},
};

use sekisho::CanonicalPath;
use sekisho_testkit::{generate::Rng, redis_server::free_port};

use crate::{
    client::{Ask, Client},
    program::Folder,
    stack::Proxy,
};

const SPELLINGS: usize = 2_000;
/// What paths are made of: few things, so that many spellings meet, and all that has a meaning of its own.
const PIECES: [&str; 30] = [
    "a", "a", "%61", "A", "%41", "b", ".", ".", "%2e", "%2E", "..", "..", "", "", "%20", "+",
    "%2b", "%25", "%2561", "%3f", "%23", ";", "é", "%c3%a9", "%ff", "%0a", "%2f", "%5C", "%",
    "%00",
];
const ENDS: [&str; 10] = ["", "", "", "/", "//", "/.", "?a=/b/..", "?", "#/c", "/a/.."];

/// It answers every path with its own reading of it.
const CONFIGURATION: &str = r#"
pid nginx.pid;
error_log stderr notice;
events {}
http {
    access_log off;
    default_type text/plain;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen ADDRESS;
        location / { return 200 "$uri"; }
    }
}
"#;

fn spelling(rng: &mut Rng) -> String {
    let mut path = String::new();
    for _ in 0..rng.between(1, 5) {
        path.push('/');
        for _ in 0..rng.between(1, 2) {
            let piece = *rng.pick(&PIECES);
            path.push_str(piece);
        }
    }
    let end = *rng.pick(&ENDS);
    path.push_str(end);
    path
}

/// A location with and without its last slash is one to policies.
fn bare(path: &[u8]) -> Vec<u8> {
    path.strip_suffix(b"/").unwrap_or(path).to_vec()
}

#[test]
fn what_nginx_takes_for_one_location_is_one_path() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let folder = Folder::new();
    folder.write("nginx.conf", &CONFIGURATION.replace("ADDRESS", &address.to_string()));
    let _nginx = Proxy::Nginx.launch(&folder).unwrap_or_else(|said| panic!("nginx said: {said}"));
    let mut client = Client::new(2, address);
    let given = env::var("SEKISHO_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or(1);
    let mut rng = Rng::new(seed);
    let (mut locations, mut met) = (BTreeMap::new(), 0);
    for _ in 0..SPELLINGS {
        let spelling = spelling(&mut rng);
        let Ok(ours) = CanonicalPath::parse(&spelling) else { continue };
        let answer = client.ask(Ask::get(&spelling));
        if answer.status != 200 {
            continue;
        }
        let location = bare(&answer.body);
        let (first, before) =
            locations.entry(location).or_insert_with(|| (spelling.clone(), ours.clone()));
        assert_eq!(*before, ours, "SEKISHO_SEED={seed}: `{first}` and `{spelling}`");
        met += usize::from(*first != spelling);
    }
    assert!(met > 200, "SEKISHO_SEED={seed}: only {met} spellings met another; make them closer");
    // What is one location has one path; that two locations have two keeps limits from meeting by chance.
    for (location, (spelling, ours)) in &locations {
        assert_eq!(bare(ours.as_bytes()), *location, "SEKISHO_SEED={seed}: `{spelling}`");
    }
}
