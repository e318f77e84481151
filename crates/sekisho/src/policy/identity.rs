//! Where a client's address comes from, as the file says it. Reading it off a request is for the doors.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{
    compile::Problems,
    file::{AddressFile, AddressWord, IdentityFile, ListenFile, Spanned},
    lint::Code,
    matcher::is_header_name,
};

/// Where a client's address comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressSource {
    /// The address that connects.
    #[default]
    Peer,
    /// The list `X-Forwarded-For`.
    XForwardedFor,
    /// The `for` parameters of the list `Forwarded` (RFC 7239).
    Forwarded,
    /// The single address `X-Real-IP`.
    XRealIp,
    /// The address that a PROXY protocol header names when the connection opens.
    ProxyProtocol,
    /// A single address in a header of that name, in small letters.
    Header(String),
}

/// A door that clients come through, each of which may have an address source of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityDoor {
    /// The check API.
    Http,
    /// Forward-auth.
    Auth,
    /// The gateway.
    Gateway,
}

/// Whom to believe about a client's address.
#[derive(Clone, Debug, Default)]
pub struct IdentitySettings {
    pub(crate) source: AddressSource,
    pub(crate) http: Option<AddressSource>,
    pub(crate) auth: Option<AddressSource>,
    pub(crate) gateway: Option<AddressSource>,
    pub(crate) trusted: Vec<IpNet>,
}

impl IdentitySettings {
    /// Returns settings that take an address from `source`, when one of `trusted` connects.
    pub const fn new(source: AddressSource, trusted: Vec<IpNet>) -> Self {
        Self { source, http: None, auth: None, gateway: None, trusted }
    }

    /// Returns where the address of a door's clients comes from.
    pub fn source(&self, door: IdentityDoor) -> &AddressSource {
        let own = match door {
            IdentityDoor::Http => &self.http,
            IdentityDoor::Auth => &self.auth,
            IdentityDoor::Gateway => &self.gateway,
        };
        own.as_ref().unwrap_or(&self.source)
    }

    /// Returns where the address comes from where no door has a source of its own.
    pub const fn common_source(&self) -> &AddressSource {
        &self.source
    }

    /// Returns whether an address is a proxy's whose word counts.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted.iter().any(|block| block.contains(&address))
    }

    pub(super) fn compile(
        file: &IdentityFile,
        listen: Option<&ListenFile>,
        problems: &mut Problems<'_>,
    ) -> Self {
        // Whoever reaches a unix socket is believed: its mode says who that may be.
        let on_socket = listen.is_some_and(ListenFile::has_socket);
        let mut trusted = Vec::new();
        for text in file.trusted_proxies.iter().flat_map(Spanned::get_ref) {
            let address = || text.get_ref().parse::<IpAddr>().ok().map(IpNet::from);
            match text.get_ref().parse().ok().or_else(address) {
                Some(block) => trusted.push(block),
                None => problems.add(
                    Code::List,
                    text.span(),
                    "an address block is like `10.0.0.0/8`, `2001:db8::/32` or one address",
                ),
            }
        }
        let mut source = |address: Option<&Spanned<AddressFile>>| {
            let source = compile_source(address?, problems);
            if source != AddressSource::Peer && trusted.is_empty() && !on_socket {
                problems.add(
                    Code::Identity,
                    address?.span(),
                    "whose word counts? Name the proxies that may say it: `trusted_proxies = [\"10.0.0.0/8\"]`",
                );
            }
            Some(source)
        };
        let settings = Self {
            source: source(file.address.as_ref()).unwrap_or_default(),
            http: file.http.as_ref().and_then(|door| source(door.address.as_ref())),
            auth: file.auth.as_ref().and_then(|door| source(door.address.as_ref())),
            gateway: file.gateway.as_ref().and_then(|door| source(door.address.as_ref())),
            trusted,
        };
        let all = [&settings.http, &settings.auth, &settings.gateway];
        let unused = settings.source == AddressSource::Peer
            && all.into_iter().flatten().all(|source| *source == AddressSource::Peer);
        if let Some(list) = file.trusted_proxies.as_ref().filter(|_| unused) {
            problems.add(
                Code::Identity,
                list.span(),
                "these proxies are asked for nothing: say with `address` which header they set, or leave this out",
            );
        }
        settings
    }
}

fn compile_source(address: &Spanned<AddressFile>, problems: &mut Problems<'_>) -> AddressSource {
    match address.get_ref() {
        AddressFile::Word(word) => match word {
            AddressWord::Peer => AddressSource::Peer,
            AddressWord::XForwardedFor => AddressSource::XForwardedFor,
            AddressWord::Forwarded => AddressSource::Forwarded,
            AddressWord::XRealIp => AddressSource::XRealIp,
            AddressWord::ProxyProtocol => AddressSource::ProxyProtocol,
        },
        AddressFile::Header(table) => {
            if !is_header_name(&table.header) {
                problems.add(
                    Code::Identity,
                    address.span(),
                    "a header's name has letters, digits and `-`",
                );
            }
            // These two are lists, and are read as such.
            match table.header.to_ascii_lowercase().as_str() {
                "x-forwarded-for" => AddressSource::XForwardedFor,
                "forwarded" => AddressSource::Forwarded,
                name => AddressSource::Header(name.to_owned()),
            }
        }
    }
}
