//! Forward-auth as it is deployed: real proxies, with the configurations in `examples/`, ask the real program.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

/// Makes a test for each of some proxies of each function that takes one.
macro_rules! behind {
    ($($name:ident $proxy:ident),*; $cases:tt) => {
        $(behind!(one $name $proxy $cases);)*
    };
    (one $name:ident $proxy:ident ($($case:ident),* $(,)?)) => {
        mod $name {
            $(#[test]
            fn $case() {
                super::$case(crate::stack::Proxy::$proxy);
            })*
        }
    };
}

/// The same for all there are.
macro_rules! behind_each_proxy {
    ($($case:ident),* $(,)?) => {
        behind!(nginx Nginx, caddy Caddy, haproxy Haproxy, traefik Traefik, envoy Envoy; ($($case),*));
    };
}

mod client;
mod decisions;
mod limit_req;
mod paths;
mod program;
mod site;
mod sockets;
mod spellings;
mod spoofing;
mod stack;
mod undecided;
