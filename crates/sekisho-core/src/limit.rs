//! A limit: a rate, a burst and an algorithm; or `block`, or `unlimited`.

pub(crate) mod text;

use core::{fmt, num::NonZero};

use crate::{
    Algorithm, Period, Rate, Span,
    exact::{self, ExactSpan},
    limits::WAIT_NS_MAX,
};

/// What a request may spend.
///
/// Written as `<amount>/<period> [burst <n>] [<algorithm>] [resolution <length>]`; [`FromStr`](core::str::FromStr) and
/// [`Display`](fmt::Display) give the text both ways, the latter in canonical form.
///
/// ```
/// use sekisho_core::Limit;
///
/// assert_eq!("60/60s gcra".parse::<Limit>()?.to_string(), "60/min token-bucket");
/// assert!("0/min".parse::<Limit>().unwrap_err().to_string().contains("block"));
/// # Ok::<(), sekisho_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Lets nobody through.
    Block,
    /// Lets everybody through.
    Unlimited,
    /// Counts.
    Metered(Metered),
}

/// A limit that counts: a rate, a burst and an algorithm that fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metered {
    rate: Rate,
    algorithm: Algorithm,
    // Invariant: at least 1 for a bucket; 0 for windows and logs, which have none; burst · period / amount is at most
    // a hundred years.
    burst: u64,
    // How far one unit moves the instant of a bucket or queue, and how far a full burst does: made once, so that a decision
    // divides for nothing but the units that are left.
    step: ExactSpan,
    full: ExactSpan,
    // Invariant: 1 for all but a sliding log; at most the period.
    resolution: NonZero<u64>,
}

impl Limit {
    /// Returns a limit that counts. An absent burst is the amount for a bucket and 0 for a queue.
    ///
    /// # Errors
    /// [`LimitError::BurstWithoutUse`] for a burst on a window or log, [`LimitError::ZeroBurst`] on a bucket,
    /// [`LimitError::LongWait`] when a full burst takes more than 36,500 days, [`LimitError::CalendarAlgorithm`] for a
    /// calendar period with anything but a fixed window.
    pub fn metered(
        rate: Rate,
        algorithm: Algorithm,
        burst: Option<u64>,
    ) -> Result<Self, LimitError> {
        let burst = match (algorithm, burst) {
            (Algorithm::TokenBucket, Some(0)) => return Err(LimitError::ZeroBurst),
            (Algorithm::TokenBucket, None) => rate.amount().get(),
            (Algorithm::TokenBucket | Algorithm::LeakyQueue, Some(burst)) => burst,
            (
                Algorithm::FixedWindow
                | Algorithm::AnchoredWindow
                | Algorithm::SlidingLog
                | Algorithm::SlidingWindow,
                Some(_),
            ) => return Err(LimitError::BurstWithoutUse(algorithm)),
            (_, None) => 0,
        };
        match rate.period() {
            Period::Calendar(..) if algorithm != Algorithm::FixedWindow => {
                return Err(LimitError::CalendarAlgorithm(algorithm));
            }
            Period::Calendar(..) => {}
            Period::Fixed(period) => {
                let wait = exact::times(burst, period.get());
                if wait > exact::times(WAIT_NS_MAX, rate.amount().get()) {
                    return Err(LimitError::LongWait);
                }
            }
        }
        #[cfg(not(feature = "alloc"))]
        if algorithm == Algorithm::SlidingLog {
            return Err(LimitError::NeedsAlloc);
        }
        let span =
            |units| ExactSpan::of(exact::times(units, rate.longest_ns().get()), rate.amount());
        Ok(Self::Metered(Metered {
            rate,
            algorithm,
            burst,
            step: span(1),
            full: span(burst),
            resolution: NonZero::<u64>::MIN,
        }))
    }

    /// Returns this sliding log with entries at multiples of `resolution` only, from 1 ns (every instant, as without one) to the
    /// period: the log is smaller, and a request counts for less than one resolution longer.
    ///
    /// ```
    /// use sekisho_core::{Limit, Span};
    ///
    /// let limit = "1000/h sliding-log".parse::<Limit>()?.with_resolution(Span::from_nanos(10_000_000))?;
    /// assert_eq!(limit.to_string(), "1000/h sliding-log resolution 10ms");
    /// # Ok::<(), sekisho_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// [`LimitError::ResolutionWithoutUse`] on anything but a sliding log, [`LimitError::ZeroResolution`] and
    /// [`LimitError::LongResolution`] for one that is nothing or longer than the period.
    pub fn with_resolution(self, resolution: Span) -> Result<Self, LimitError> {
        match self {
            Self::Metered(metered) if metered.algorithm == Algorithm::SlidingLog => {
                let resolution =
                    NonZero::new(resolution.as_nanos()).ok_or(LimitError::ZeroResolution)?;
                if resolution > metered.period_ns() {
                    return Err(LimitError::LongResolution);
                }
                Ok(Self::Metered(Metered { resolution, ..metered }))
            }
            Self::Metered(_) | Self::Block | Self::Unlimited => {
                Err(LimitError::ResolutionWithoutUse)
            }
        }
    }

    /// Returns the most units that can be there at once: L for windows and logs, B for a bucket, B + 1 for a queue, 0 for
    /// `block`; `None` for `unlimited`.
    pub const fn capacity(&self) -> Option<u64> {
        match self {
            Self::Block => Some(0),
            Self::Unlimited => None,
            Self::Metered(metered) => Some(metered.capacity()),
        }
    }

    /// Returns the parts of a limit that counts.
    pub const fn as_metered(&self) -> Option<&Metered> {
        match self {
            Self::Metered(metered) => Some(metered),
            Self::Block | Self::Unlimited => None,
        }
    }
}

impl Metered {
    /// Returns the rate.
    pub const fn rate(&self) -> &Rate {
        &self.rate
    }

    /// Returns the amount: units per period.
    pub const fn amount(&self) -> NonZero<u64> {
        self.rate.amount()
    }

    /// Returns the period.
    pub const fn period(&self) -> &Period {
        self.rate.period()
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the burst of a bucket (at least 1) or queue; 0 for windows and logs.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns the time in which a bucket or queue gets one unit back, where that is a whole number of nanoseconds.
    ///
    /// ```
    /// use sekisho_core::{Limit, Span};
    ///
    /// let interval = |text: &str| text.parse::<Limit>().ok()?.as_metered()?.interval();
    /// assert_eq!(interval("60/min"), Some(Span::from_secs(1)));
    /// assert_eq!(interval("7/min"), None); // 8,571,428,571 and 3/7
    /// ```
    pub const fn interval(&self) -> Option<Span> {
        if self.step.rest == 0 { Some(Span::from_nanos(self.step.ns)) } else { None }
    }

    /// Returns the distance between the instants at which a sliding log has entries: 1 ns if none was given, and for all else.
    pub const fn resolution(&self) -> Span {
        Span::from_nanos(self.resolution.get())
    }

    /// Returns a limit with other numbers, and the period, the algorithm and the resolution of this one.
    ///
    /// ```
    /// # use sekisho_core::Limit;
    /// let limit: Limit = "1000/h sliding-log resolution 10ms".parse()?;
    /// let half = limit.as_metered().map(|metered| metered.with_numbers(500, None));
    /// assert_eq!(half, Some("500/h sliding-log resolution 10ms".parse()));
    /// # Ok::<(), sekisho_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Rate::new`] and [`Limit::metered`].
    pub fn with_numbers(&self, amount: u64, burst: Option<u64>) -> Result<Limit, LimitError> {
        let limit = Limit::metered(Rate::new(amount, *self.period())?, self.algorithm, burst)?;
        if self.algorithm == Algorithm::SlidingLog {
            return limit.with_resolution(self.resolution());
        }
        Ok(limit)
    }

    /// Returns the most units that can be there at once.
    pub const fn capacity(&self) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket => self.burst,
            Algorithm::LeakyQueue => self.burst.saturating_add(1),
            Algorithm::FixedWindow
            | Algorithm::AnchoredWindow
            | Algorithm::SlidingLog
            | Algorithm::SlidingWindow => self.rate.amount().get(),
        }
    }

    /// Returns the length of a period that has one; a calendar period has its longest.
    #[inline]
    pub(crate) const fn period_ns(&self) -> NonZero<u64> {
        self.rate.longest_ns()
    }

    /// Returns how far `units` move the instant of a bucket or queue.
    #[inline]
    pub(crate) fn span(&self, units: u64) -> ExactSpan {
        if units == 1 {
            self.step
        } else {
            ExactSpan::of(exact::times(units, self.period_ns().get()), self.amount())
        }
    }

    /// Returns how far one unit moves it.
    #[inline]
    pub(crate) const fn step(&self) -> ExactSpan {
        self.step
    }

    /// Returns how far a full burst does.
    #[inline]
    pub(crate) const fn full(&self) -> ExactSpan {
        self.full
    }
}

/// Why a limit cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The text is not `<amount>/<period> …`.
    Shape,
    /// The amount is not a whole number from 1 to 18446744073709551615.
    Amount,
    /// An amount of 0.
    ZeroAmount,
    /// The period's number or unit is unknown.
    Period,
    /// A period of 0.
    ZeroPeriod,
    /// A period of more than 3,650 days.
    LongPeriod,
    /// The burst is not a whole number.
    Burst,
    /// A bucket that holds nothing.
    ZeroBurst,
    /// A burst on an algorithm that has none.
    BurstWithoutUse(Algorithm),
    /// A full burst takes more than 36,500 days to come back.
    LongWait,
    /// A calendar period with anything but a fixed window.
    CalendarAlgorithm(Algorithm),
    /// A zone on a period that is not a calendar's.
    ZoneWithoutCalendar,
    /// Not the name of a time zone.
    Zone,
    /// The resolution is not a length of time.
    Resolution,
    /// A resolution of 0.
    ZeroResolution,
    /// A resolution longer than the period.
    LongResolution,
    /// A resolution on anything but a sliding log.
    ResolutionWithoutUse,
    /// A word that is no algorithm, or one too many.
    Word,
    /// A sliding log in a build without the feature `alloc`.
    NeedsAlloc,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => f.write_str(
                "a limit is `<amount>/<period> [burst <n>] [<algorithm>] [resolution <length>]`, like `60/min` or `100/30s burst 20`; or `block`, or `unlimited`",
            ),
            Self::Amount => f.write_str("the amount is a whole number from 1 to 18446744073709551615"),
            Self::ZeroAmount => f.write_str(
                "an amount of 0 could mean two things: write `block` to let nobody through, `unlimited` to let everybody through",
            ),
            Self::Period => f.write_str(
                "the period is a unit with a whole number before it or none: ns, us, ms, s, min, h, day, week, as in `30s`; or `calendar-day`, `calendar-month`",
            ),
            Self::ZeroPeriod => f.write_str("the period is at least 1ns"),
            Self::LongPeriod => f.write_str("the period is at most 3650 days"),
            Self::Burst => f.write_str("`burst` is followed by a whole number, as in `burst 20`"),
            Self::ZeroBurst => f.write_str(
                "a bucket holds at least 1 unit: write `burst 1`, or `block` to let nobody through",
            ),
            Self::BurstWithoutUse(algorithm) => {
                write!(f, "`{algorithm}` has no burst: leave it out, or use `token-bucket` or `leaky-queue`")
            }
            Self::LongWait => f.write_str(
                "a full burst would take more than 36500 days to come back: lower the burst or raise the rate",
            ),
            Self::CalendarAlgorithm(algorithm) => {
                write!(f, "a calendar window is a `fixed-window`, not a `{algorithm}`: leave the algorithm out")
            }
            Self::ZoneWithoutCalendar => {
                f.write_str("only `calendar-day` and `calendar-month` have a zone: leave it out")
            }
            Self::Zone => f.write_str("`zone` is followed by an IANA name, as in `zone Asia/Tokyo`"),
            Self::Resolution => f.write_str(
                "`resolution` is followed by a length of time, as in `resolution 10ms`",
            ),
            Self::ZeroResolution => f.write_str("the resolution is at least 1ns"),
            Self::LongResolution => f.write_str("the resolution is at most the period"),
            Self::ResolutionWithoutUse => f.write_str(
                "only a `sliding-log` has a resolution: leave it out, or write `sliding-log` before it",
            ),
            Self::Word => f.write_str(
                "after the rate come `burst <n>`, `zone <name>`, one algorithm (token-bucket, leaky-queue, fixed-window, anchored-window, sliding-window or sliding-log), and last the `resolution <length>` of a sliding-log",
            ),
            Self::NeedsAlloc => f.write_str("a sliding log needs the feature `alloc`"),
        }
    }
}

impl core::error::Error for LimitError {}
