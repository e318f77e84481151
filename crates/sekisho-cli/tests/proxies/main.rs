//! Forward-auth as it is deployed: real proxies, with the configurations in `examples/`, ask the real program.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

/// Makes a test for each proxy of each function that takes one.
macro_rules! behind_each_proxy {
    ($($case:ident),* $(,)?) => {
        mod nginx {
            $(#[test]
            fn $case() {
                super::$case(crate::stack::Proxy::Nginx);
            })*
        }

        mod caddy {
            $(#[test]
            fn $case() {
                super::$case(crate::stack::Proxy::Caddy);
            })*
        }
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
