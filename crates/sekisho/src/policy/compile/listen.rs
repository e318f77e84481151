//! The doors that a file opens, and whether the clients of them all have an address.

use std::ops::Range;

use sekisho_core::Span;

use super::Problems;
use crate::policy::{
    Settings,
    address::ListenAddress,
    file::{AuthFile, ListenFile, OriginalFile, Spanned},
    identity::{AddressSource, IdentityDoor},
    lint::Code,
    settings::{GatewaySettings, ListenSettings, Original},
};

/// The longest that an answer may be held: no usual proxy waits longer for one.
const HOLD_MAX: Span = Span::from_secs(60);
/// The shortest: what a timer can do.
const HOLD_MIN: Span = Span::from_nanos(1_000_000);

pub(super) fn compile(file: Option<&ListenFile>, problems: &mut Problems<'_>) -> ListenSettings {
    let Some(file) = file else { return ListenSettings::default() };
    let mut address = |text: Option<&Spanned<String>>| -> Option<ListenAddress> {
        let text = text?;
        let parsed = text.get_ref().parse();
        parsed.map_err(|error| problems.add(Code::Address, text.span(), format!("{error}"))).ok()
    };
    let (http, admin) = (address(file.http.as_ref()), address(file.admin.as_ref()));
    let resp = address(file.resp.as_ref());
    let gateway = file.gateway.as_ref().and_then(|gateway| {
        let at = address(Some(&gateway.get_ref().at))?;
        Some(GatewaySettings { at, to: gateway.get_ref().to.get_ref().clone() })
    });
    if let Some(to) = file.gateway.as_ref().map(|gateway| &gateway.get_ref().to) {
        let rest =
            ["http://", "https://"].iter().find_map(|scheme| to.get_ref().strip_prefix(scheme));
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            problems.add(
                Code::Address,
                to.span(),
                "the server behind the gateway is a URL like `http://127.0.0.1:3000`",
            );
        }
    }
    let auth = file.auth.as_ref();
    let original = match auth.and_then(|auth| auth.original.as_ref()).map(Spanned::get_ref) {
        None | Some(OriginalFile::Path) => Original::Path,
        Some(OriginalFile::XOriginal) => Original::XOriginal,
        Some(OriginalFile::XForwarded) => Original::XForwarded,
    };
    let hold = auth.and_then(|auth| hold(auth, problems));
    let settings = ListenSettings { http, resp, admin, gateway, original, hold };
    refuse_doors_in_one_place(file, &settings, problems);
    settings
}

fn hold(file: &AuthFile, problems: &mut Problems<'_>) -> Option<Span> {
    let text = file.hold.as_ref()?;
    let span = text.get_ref().parse().ok();
    let span = span.filter(|span| (HOLD_MIN..=HOLD_MAX).contains(span));
    if span.is_none() {
        let message = "an answer is held for 1 ms to 60 s, like `2s`: leave this out to hold none";
        problems.add(Code::Number, text.span(), message);
    }
    span
}

fn refuse_doors_in_one_place(
    file: &ListenFile,
    settings: &ListenSettings,
    problems: &mut Problems<'_>,
) {
    let gateway = file.gateway.as_ref().map(|gateway| gateway.get_ref().at.span());
    let mut doors = Vec::new();
    doors.extend(settings.http.as_ref().zip(file.http.as_ref().map(Spanned::span)));
    doors.extend(settings.resp.as_ref().zip(file.resp.as_ref().map(Spanned::span)));
    doors.extend(settings.admin.as_ref().zip(file.admin.as_ref().map(Spanned::span)));
    doors.extend(settings.gateway.as_ref().map(|gateway| &gateway.at).zip(gateway));
    for (index, (address, span)) in doors.iter().enumerate() {
        if doors.iter().take(index).any(|(other, _)| address.collides(other)) {
            let message = "this address is another door's: give this one its own";
            problems.add(Code::Address, span.clone(), message);
        }
    }
}

/// Whether clients have an address, whichever door they come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Addresses {
    /// They all have.
    Always,
    /// Those of a unix socket have the one that the proxy behind it names, if it does.
    Sometimes,
    /// Those of a unix socket have none.
    Not,
}

impl Addresses {
    pub(super) fn of(settings: &Settings) -> Self {
        let listen = &settings.listen;
        let gateway = listen.gateway.as_ref().map(|gateway| &gateway.at);
        let doors = [
            (listen.http.as_ref(), IdentityDoor::Http),
            (listen.http.as_ref(), IdentityDoor::Auth),
            (gateway, IdentityDoor::Gateway),
        ];
        let of = |(address, door): (Option<&ListenAddress>, IdentityDoor)| match address {
            None | Some(ListenAddress::Tcp(_)) => Self::Always,
            // A check says itself who asks.
            Some(ListenAddress::Unix(_)) if door == IdentityDoor::Http => Self::Always,
            Some(ListenAddress::Unix(_)) => match settings.identity.source(door) {
                AddressSource::Peer => Self::Not,
                _ => Self::Sometimes,
            },
        };
        doors.into_iter().map(of).max().unwrap_or(Self::Always)
    }

    /// Complains when a policy counts by what no client of some door has.
    pub(super) fn want(self, span: Range<usize>, problems: &mut Problems<'_>) {
        if self == Self::Not {
            let message = "whoever comes through a unix socket has no address: say with `[identity] address` which header the \
                proxy names it in, or count by something else";
            problems.add(Code::Identity, span, message);
        }
    }
}
