//! Refusals as gRPC tells them: HTTP status 200, and the status in a header block that is all of the response.
//!
//! How long to wait is said twice: `grpc-retry-pushback-ms` for clients with a retry policy, and a `google.rpc.RetryInfo` in
//! the status details for code that reads those.

use std::fmt::Write as _;

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use sekisho::{AnswerSettings, Decision, PathError, Ruling, Span, Timestamp};

use super::observe::RefusedWith;
use crate::{Answer, answer::detail, headers};

/// Which status a gRPC client gets when its quota is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrpcRefusal {
    /// 8, the status for a quota. Clients retry it only if they are told to.
    #[default]
    ResourceExhausted,
    /// 14, which many clients retry of their own accord.
    Unavailable,
}

/// What a request is spoken in.
#[derive(Clone, Debug)]
pub(super) enum Wire {
    Http,
    /// gRPC, with the media type that an answer has as well.
    Grpc(HeaderValue),
}

impl Wire {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        match headers.get(CONTENT_TYPE) {
            Some(kind) if is_grpc(kind.as_bytes()) => Self::Grpc(kind.clone()),
            _ => Self::Http,
        }
    }
}

/// Returns whether a media type is `application/grpc` or one of its variants.
fn is_grpc(kind: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let Some((start, rest)) = kind.split_at_checked(GRPC.len()) else { return false };
    start.eq_ignore_ascii_case(GRPC) && matches!(rest.first(), None | Some(b'+' | b'-' | b';'))
}

/// A status of gRPC.
#[derive(Clone, Copy)]
enum Code {
    InvalidArgument = 3,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unavailable = 14,
    Unauthenticated = 16,
}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

impl GrpcRefusal {
    /// Returns what a decision that refuses becomes.
    pub(super) fn answer(
        self,
        kind: HeaderValue,
        decision: &Decision,
        settings: &AnswerSettings,
        wall: Timestamp,
    ) -> Answer {
        let code = self.code(decision);
        let message = detail(decision);
        let mut answer = trailers_only(kind, code, &message);
        headers::merge_into(&mut answer.headers, decision, settings, wall);
        let wait = decision.binding().and_then(|part| part.verdict.retry_after);
        if let Some(wait) = wait.filter(|_| decision.ruling == Ruling::Deny) {
            add_retry_info(&mut answer.headers, code, &message, wait);
        }
        answer
    }

    fn code(self, decision: &Decision) -> Code {
        match (&decision.ruling, self) {
            (Ruling::Deny, Self::Unavailable) | (Ruling::StoreDown(_), _) => Code::Unavailable,
            (Ruling::MissingKey, _) => Code::Unauthenticated,
            (Ruling::Blocked, _) => Code::PermissionDenied,
            (Ruling::BadRequest(_), _) => Code::InvalidArgument,
            // An allowed request is not asked about.
            (Ruling::Deny | Ruling::Never | Ruling::Allow, _) => Code::ResourceExhausted,
        }
    }

    /// Returns the status alone of what a decision that refuses becomes.
    pub(super) fn refused_with(self, decision: &Decision) -> RefusedWith {
        refused_with(self.code(decision))
    }

    /// The status of what becomes of a request with a path that no policy can be asked about.
    pub(super) const BAD_PATH: RefusedWith = refused_with(Code::InvalidArgument);

    /// Returns what becomes of a request with a path that no policy can be asked about.
    #[expect(clippy::unused_self, reason = "beside `answer`, which needs it")]
    pub(super) fn bad_path(self, kind: HeaderValue, error: PathError) -> Answer {
        trailers_only(kind, Code::InvalidArgument, &error.to_string())
    }
}

const fn refused_with(code: Code) -> RefusedWith {
    RefusedWith { status: StatusCode::OK, grpc_status: Some(code as u16) }
}

fn trailers_only(kind: HeaderValue, code: Code, message: &str) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(GRPC_STATUS, HeaderValue::from(code as u16));
    if let Ok(message) = HeaderValue::try_from(percent_encoded(message)) {
        headers.insert(GRPC_MESSAGE, message);
    }
    Answer { status: StatusCode::OK, headers, body: Vec::new() }
}

fn add_retry_info(headers: &mut HeaderMap, code: Code, message: &str, wait: Span) {
    // Clients read 32 bits, and take a negative number for `never`.
    let pushback = wait.as_millis_ceil().min(i32::MAX as u64);
    headers.insert(GRPC_PUSHBACK, HeaderValue::from(pushback));
    let details = BASE64_STANDARD_NO_PAD.encode(status_with_retry_info(code, message, wait));
    if let Ok(details) = HeaderValue::try_from(details) {
        headers.insert(GRPC_DETAILS, details);
    }
}

/// Returns the bytes of a `google.rpc.Status` that has a `google.rpc.RetryInfo` among its details.
fn status_with_retry_info(code: Code, message: &str, wait: Span) -> Vec<u8> {
    let (seconds, nanos) = (wait.as_nanos() / SECOND_NS, wait.as_nanos() % SECOND_NS);
    let duration = [number(1, seconds), number(2, nanos)].concat();
    let retry_info = bytes(1, &duration);
    let any =
        [bytes(1, b"type.googleapis.com/google.rpc.RetryInfo"), bytes(2, &retry_info)].concat();
    [number(1, code as u64), bytes(2, message.as_bytes()), bytes(3, &any)].concat()
}

const SECOND_NS: u64 = 1_000_000_000;

/// Returns a field of a protobuf message that holds a number; nothing for zero, as proto3 has it.
fn number(field: u8, value: u64) -> Vec<u8> {
    if value == 0 {
        return Vec::new();
    }
    let mut written = vec![field << 3];
    varint(value, &mut written);
    written
}

/// Returns a field that holds bytes, text or another message.
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut written = vec![field << 3 | 2];
    varint(value.len() as u64, &mut written);
    written.extend_from_slice(value);
    written
}

fn varint(mut value: u64, written: &mut Vec<u8>) {
    while value > 0x7f {
        written.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    written.push(value.to_le_bytes()[0]);
}

/// Returns a message as `grpc-message` spells it: printable ASCII, everything else percent-encoded.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            // Written to a string, which never fails.
            let _never = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_grpc_is_grpc() {
        for kind in [
            "application/grpc",
            "Application/gRPC+proto",
            "application/grpc;x=y",
            "application/grpc-web-text",
        ] {
            assert!(is_grpc(kind.as_bytes()), "{kind}");
        }
        for kind in [
            "",
            "application/json",
            "application/grpcx",
            "application/grp",
            "text/application/grpc",
        ] {
            assert!(!is_grpc(kind.as_bytes()), "{kind}");
        }
    }

    #[test]
    fn a_message_is_printable_ascii() {
        assert_eq!(percent_encoded("60 s, 100%\n"), "60 s, 100%25%0A");
        assert_eq!(percent_encoded("\u{4e0a}"), "%E4%B8%8A");
    }

    #[test]
    fn retry_info_is_what_protoc_would_write() {
        let written =
            status_with_retry_info(Code::ResourceExhausted, "no", Span::from_nanos(1_500_000_000));
        let mut wanted =
            b"\x08\x08\x12\x02no\x1a\x36\x0a\x28type.googleapis.com/google.rpc.RetryInfo".to_vec();
        // `retry_delay`: one second, and 500,000,000 ns as 0x80 0xCA 0xB5 0xEE 0x01.
        wanted.extend_from_slice(b"\x12\x0a\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01");
        assert_eq!(written, wanted);
        assert_eq!(status_with_retry_info(Code::Unavailable, "", Span::ZERO)[..2], [8, 14]);
    }
}
