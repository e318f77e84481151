//! Scales and the numbers beside them: where a value lies on an axis, and which round values are named.

/// How far from nought a number may lie before it is drawn at the edge: differences of two such numbers stay finite.
const HUGE: f64 = 1e100;
/// Nearer to nought than this is nought.
const TINY: f64 = 1e-100;
/// A range narrower than this part of its numbers is one number to a float.
const FLAT: f64 = 1e-9;
/// Above this the name of a tick is shortened with a letter.
const LONG: f64 = 1e6;
/// From here on, and below [`SHORT`], a number is written with its power of ten.
const POWERS: f64 = 1e15;
const SHORT: f64 = 1e-4;

/// A stretch of numbers that is mapped to 0..1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    whole: bool,
    /// The step that its ends are multiples of, and the number of ticks it is for.
    round: Option<(f64, usize)>,
}

/// A value that an axis names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where it lies, 0 to 1.
    pub(super) place: f64,
    pub(super) label: String,
}

impl Scale {
    /// A scale from exactly `low` to `high`. With `whole`, ticks are at whole numbers only.
    pub(super) fn exact(low: f64, high: f64, whole: bool) -> Self {
        let room = low.abs().max(high.abs()) * FLAT;
        let flat = high - low <= room;
        let half = if flat && room > 0.0 { (room * 1e8).max(TINY) } else { 1.0 };
        let (low, high) = if flat { (low - half, high + half) } else { (low, high) };
        Self { low, high, whole, round: None }
    }

    /// A scale that begins and ends at a tick when it is asked for as many ticks again, or for more.
    pub(super) fn round(low: f64, high: f64, ticks: usize, whole: bool) -> Self {
        let exact = Self::exact(low, high, whole);
        let step = exact.step(ticks);
        let below = (exact.low / step + FLAT).floor() * step;
        // A single value is given room on both sides, but counts do not go below nought.
        let low = if low < 0.0 { below } else { below.max(0.0) };
        let high = (exact.high / step - FLAT).ceil() * step;
        Self { low, high: high.max(low + step), whole, round: Some((step, ticks)) }
    }

    /// Where a value lies, from 0 to 1; a value outside lies at the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// About as many ticks as wanted, at steps of 1, 2 or 5 with any number of noughts.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        let step = self.step(wanted);
        let first = (self.low / step - FLAT).ceil();
        let count = index((self.high / step + FLAT).floor() - first, 4 * wanted.max(1));
        let values = (0..=count).map(|at| (first + float(at)) * step);
        values.map(|value| Tick { place: self.at(value), label: self.label(value, step) }).collect()
    }

    fn step(&self, wanted: usize) -> f64 {
        if let Some((step, _)) = self.round.filter(|(_, ticks)| wanted >= *ticks) {
            return step;
        }
        let rough = (self.high - self.low) / float(wanted.max(1));
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0]
            .map(|step| step * power)
            .into_iter()
            .find(|step| *step >= rough * (1.0 - FLAT));
        let step = step.unwrap_or(10.0 * power);
        if self.whole { step.max(1.0) } else { step }
    }

    fn label(&self, value: f64, step: f64) -> String {
        let largest = self.low.abs().max(self.high.abs());
        if value.abs() < step / 2.0 {
            "0".to_owned()
        } else if !(SHORT..POWERS).contains(&largest) {
            let places = index(value.abs().log10().floor() - step.log10().floor(), 12);
            trim(&format!("{value:.places$e}"))
        } else {
            let letters = [(1e12, "T"), (1e9, "G"), (LONG, "M")];
            let (unit, letter) =
                letters.into_iter().find(|(from, _)| largest >= *from).unwrap_or((1.0, ""));
            let places = index(-((step / unit).log10() + FLAT).floor(), 12);
            format!("{}{letter}", grouped(value / unit, places))
        }
    }
}

/// A number that can be drawn: nothing for one that is not finite.
pub(super) fn tame(value: f64) -> Option<f64> {
    let near = if value.abs() < TINY { 0.0 } else { value.clamp(-HUGE, HUGE) };
    value.is_finite().then_some(near)
}

/// A value as it is read: `12,000`, `0.25`, `1.5e-9`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size < TINY {
        "0".to_owned()
    } else if !(SHORT..POWERS).contains(&size) {
        trim(&format!("{value:.2e}"))
    } else {
        let places = index(2.0 - size.log10().floor(), 6);
        let text = grouped(value, if size >= 1_000.0 { 0 } else { places });
        if places > 0 && text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    }
}

/// A number of things as a float. No picture has more than fit.
pub(super) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// The whole number below a float, from 0 to `most`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it lies between two numbers that fit"
)]
pub(super) fn index(value: f64, most: usize) -> usize {
    value.clamp(0.0, float(most)).floor() as usize
}

/// `1234567.5` as `1,234,567.5`.
fn grouped(value: f64, places: usize) -> String {
    let text = format!("{:.places$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        out.push('−');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// `1.50e-9` as `1.5e-9`, with a real minus in front.
fn trim(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let short = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    format!("{}e{power}", short.replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, wanted: usize) -> Vec<String> {
        scale.ticks(wanted).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(Scale::exact(0.0, 220.0, false), 5), ["0", "50", "100", "150", "200"]);
        assert_eq!(labels(Scale::round(0.0, 117.0, 4, false), 4), ["0", "50", "100", "150"]);
        assert_eq!(labels(Scale::exact(0.1, 0.52, false), 4), ["0.2", "0.4"]);
        assert_eq!(
            labels(Scale::round(-30.0, 45.0, 4, false), 4),
            ["−40", "−20", "0", "20", "40", "60"]
        );
        assert_eq!(labels(Scale::round(0.0, 2.0, 8, true), 8), ["0", "1", "2"]);
        assert_eq!(
            labels(Scale::round(0.0, 12_000.0, 3, true), 3),
            ["0", "5,000", "10,000", "15,000"]
        );
    }

    #[test]
    fn long_numbers_are_written_short() {
        assert_eq!(labels(Scale::round(0.0, 3e6, 3, true), 3), ["0", "1M", "2M", "3M"]);
        assert_eq!(labels(Scale::round(0.0, 5e9, 2, true), 2), ["0", "5G"]);
        assert_eq!(labels(Scale::round(0.0, 3e20, 3, false), 3), ["0", "1e20", "2e20", "3e20"]);
        assert_eq!(labels(Scale::round(0.0, 3e-9, 3, false), 3), ["0", "1e-9", "2e-9", "3e-9"]);
        assert_eq!(
            labels(Scale::round(0.0, 1.5e6, 3, true), 3),
            ["0.0M", "0.5M", "1.0M", "1.5M"]
                .map(|label| { if label == "0.0M" { "0" } else { label } })
        );
    }

    #[test]
    fn any_range_has_a_few_ticks_and_finite_places() {
        let numbers =
            [0.0, 1.0, -1.0, 1e-100, 1e100, -1e100, 1e15 + 1.0, 1e15, 0.1, 60.0, f64::MIN_POSITIVE];
        for low in numbers {
            for high in numbers.into_iter().filter(|high| *high >= low) {
                for scale in [Scale::exact(low, high, false), Scale::round(low, high, 4, true)] {
                    let ticks = scale.ticks(4);
                    assert!((1..=17).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
                    assert!(
                        ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.place)),
                        "{low} to {high}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_value_is_read_at_a_glance() {
        let read = [0.0, 60.0, 12_000.0, 0.25, 1.0 / 3.0, -7.5, 1.5e-9, 2e20, 99_999.6].map(number);
        assert_eq!(
            read,
            ["0", "60", "12,000", "0.25", "0.333", "−7.5", "1.5e-9", "2e20", "100,000"]
        );
    }

    #[test]
    fn only_finite_numbers_are_drawn() {
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(tame), [None; 3]);
        assert_eq!(
            [1e300, -1e300, 1e-300, 2.5].map(tame),
            [Some(HUGE), Some(-HUGE), Some(0.0), Some(2.5)]
        );
    }
}
