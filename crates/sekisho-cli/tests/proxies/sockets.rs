//! A proxy that asks over a unix socket.

use std::thread;

use crate::{
    client::{Ask, Client},
    stack::{Proxy, Stack},
};

const THREE: &str = r#"[[policy]]
name   = "three"
key    = ["ip"]
on_missing_key = "deny"
limits = ["3/365d sliding-log"]
"#;

// Traefik asks over TCP alone.
behind!(nginx Nginx, caddy Caddy, haproxy Haproxy, envoy Envoy; (
    each_client_has_its_own_count,
    of_a_thousand_at_once_three_pass,
));

fn each_client_has_its_own_count(proxy: Proxy) {
    let stack = Stack::over_socket(proxy, THREE);
    for number in [2, 3] {
        let mut client = stack.client(number);
        assert_eq!(client.statuses(4, Ask::get("/")), [200, 200, 200, 429]);
    }
    assert_eq!(stack.site.reached().len(), 6);
}

fn of_a_thousand_at_once_three_pass(proxy: Proxy) {
    let stack = Stack::over_socket(proxy, THREE);
    let passed: usize = thread::scope(|scope| {
        let spawn = |mut client: Client| scope.spawn(move || client.statuses(100, Ask::get("/")));
        let asking: Vec<_> = (0..10).map(|_| spawn(stack.client(2))).collect();
        let statuses = asking.into_iter().flat_map(|asked| asked.join().unwrap());
        statuses.filter(|status| *status == 200).count()
    });
    assert_eq!((passed, stack.site.reached().len()), (3, 3));
}
