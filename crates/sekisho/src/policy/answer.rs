//! What answers look like, as the file says it: families of fields for all, and each policy's own refusal.

use super::{
    compile::Problems,
    file::{AnswerFile, CountFile, FamilyFile, RefusalFile, ResetFile, Spanned},
    lint::Code,
};

/// A family of answer fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFamily {
    /// `Retry-After` (RFC 9110, 10.2.3).
    RetryAfter,
    /// `RateLimit` and `RateLimit-Policy` of the IETF draft.
    RateLimit,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    XRateLimit,
}

/// What `X-RateLimit-Reset` is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetForm {
    /// Seconds since the Unix epoch.
    #[default]
    Unix,
    /// Seconds from now.
    Delta,
}

/// What answers look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerSettings {
    /// Which families of fields they have.
    pub families: Vec<HeaderFamily>,
    /// What `X-RateLimit-Reset` is.
    pub reset: ResetForm,
    /// Whether scripts of other origins may read the fields.
    pub expose: bool,
}

impl Default for AnswerSettings {
    fn default() -> Self {
        let families = vec![HeaderFamily::RetryAfter, HeaderFamily::RateLimit];
        Self { families, reset: ResetForm::default(), expose: false }
    }
}

impl AnswerSettings {
    /// Returns whether answers have a family.
    pub fn has(&self, family: HeaderFamily) -> bool {
        self.families.contains(&family)
    }

    pub(super) fn compile(file: &AnswerFile) -> Self {
        let family = |family: &FamilyFile| match family {
            FamilyFile::RetryAfter => HeaderFamily::RetryAfter,
            FamilyFile::Ratelimit => HeaderFamily::RateLimit,
            FamilyFile::XRatelimit => HeaderFamily::XRateLimit,
        };
        let families = file.headers.as_ref().map(|list| list.iter().map(family).collect());
        let reset = match file.reset {
            None | Some(ResetFile::Unix) => ResetForm::Unix,
            Some(ResetFile::Delta) => ResetForm::Delta,
        };
        let default = Self::default();
        Self { families: families.unwrap_or(default.families), reset, expose: file.expose }
    }
}

/// What a policy's denial looks like; what it does not say is the door's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The status, 400 to 599.
    pub status: Option<u16>,
    /// The body and its media type, instead of a problem.
    pub body: Option<(String, String)>,
    /// The problem's `detail`, with places to fill in.
    pub detail: Option<String>,
    /// The status of a request that lacks a part of the key.
    pub missing_key_status: Option<u16>,
}

/// The places that a `detail` may have.
const PLACES: [&str; 4] = ["policy", "limit", "remaining", "retry_after"];

impl Refusal {
    pub(super) fn compile(file: &RefusalFile, problems: &mut Problems<'_>) -> Self {
        let mut status = |of: &Option<Spanned<i64>>, fits: fn(i64) -> bool, words: &str| {
            let of = of.as_ref()?;
            let number = u16::try_from(*of.get_ref()).ok().filter(|_| fits(*of.get_ref()));
            if number.is_none() {
                problems.add(Code::Answer, of.span(), words);
            }
            number
        };
        let denied = status(
            &file.status,
            |of| (400..600).contains(&of),
            "the status of a denial is 400 to 599",
        );
        let missing = status(
            &file.missing_key_status,
            |of| matches!(of, 400 | 401 | 403),
            "the status of a missing key is 400, 401 or 403",
        );
        if let Some(kind) = &file.content_type {
            let printable = kind.get_ref().bytes().all(|byte| (b' '..=b'~').contains(&byte));
            if file.body.is_none() || !printable || !kind.get_ref().contains('/') {
                problems.add(
                    Code::Answer,
                    kind.span(),
                    "a media type is like `text/plain`, and belongs to a `body`",
                );
            }
        }
        if let Some(detail) = &file.detail
            && let Some(place) = unknown_place(detail.get_ref())
        {
            let message = format!(
                "`{{{place}}}` is not filled in: a detail has {{policy}}, {{limit}}, {{remaining}} and {{retry_after}}"
            );
            problems.add(Code::Answer, detail.span(), message);
        }
        let kind =
            file.content_type.as_ref().map_or("text/plain; charset=utf-8", |kind| kind.get_ref());
        Self {
            status: denied,
            body: file.body.clone().map(|body| (body, kind.to_owned())),
            detail: file.detail.as_ref().map(|detail| detail.get_ref().clone()),
            missing_key_status: missing,
        }
    }
}

fn unknown_place(detail: &str) -> Option<&str> {
    let places =
        detail.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(place, _)| place);
    places.into_iter().find(|place| !PLACES.contains(place))
}

/// Which answers count: what is charged for others is given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedAnswers {
    statuses: Vec<u16>,
}

impl CountedAnswers {
    /// Returns whether an answer with this status counts.
    pub fn counts(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }

    pub(super) fn compile(file: &CountFile, problems: &mut Problems<'_>) -> Self {
        let status = |of: &i64| u16::try_from(*of).ok().filter(|of| (100..600).contains(of));
        let statuses: Option<Vec<_>> = file.status.get_ref().iter().map(status).collect();
        if let Some(statuses) = statuses.filter(|list| !list.is_empty()) {
            return Self { statuses };
        }
        let message = "statuses are numbers from 100 to 599, at least one";
        problems.add(Code::Answer, file.status.span(), message);
        Self::default()
    }
}
