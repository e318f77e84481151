//! A trace, read request by request, or by what may be asked together.

use std::{
    io::{self, BufRead},
    iter::Peekable,
};

use super::{Arrival, LINE_BYTES_MAX, LineError, parse_line};

/// Why a trace is not read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is not `seconds[,key[,cost]]`.
    #[error("line {line}: {error}")]
    Line {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        error: LineError,
    },
    /// The trace cannot be read.
    #[error("the trace cannot be read: {0}")]
    Read(#[source] io::Error),
}

/// A request, and where the trace has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The line's number, from 1.
    pub line: u64,
    /// The request.
    pub arrival: Arrival,
}

/// The requests of a trace, in order. The first error is the last item.
#[derive(Debug)]
pub struct Reader<R> {
    trace: R,
    line: Vec<u8>,
    number: u64,
    microseconds: bool,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Returns the requests that can be read there.
    pub const fn new(trace: R) -> Self {
        Self { trace, line: Vec::new(), number: 0, microseconds: false, ended: false }
    }

    /// The same, for a store that counts in whole microseconds: a time between two of them is a wrong line.
    #[must_use]
    pub fn in_microseconds(self) -> Self {
        Self { microseconds: true, ..self }
    }

    /// Returns them by what may be asked together, at most so many at once.
    pub fn together(self, most: usize) -> Batches<R> {
        Batches { requests: self.peekable(), most: most.max(1) }
    }

    /// Reads the next line, and returns whether there is one.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        self.number += 1;
        // A line that never ends is as wrong as one that is too long.
        let mut bounded = io::Read::take(&mut self.trace, LINE_BYTES_MAX);
        Ok(bounded.read_until(b'\n', &mut self.line).map_err(TraceError::Read)? > 0)
    }

    /// Returns the request of the line; nothing when it is empty or a comment.
    fn request(&self) -> Result<Option<Numbered>, TraceError> {
        let wrong = |error| TraceError::Line { line: self.number, error };
        let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let Some(arrival) = parse_line(text).map_err(wrong)? else { return Ok(None) };
        if self.microseconds && !arrival.at.as_nanos().is_multiple_of(1_000) {
            return Err(wrong(LineError::Microseconds));
        }
        Ok(Some(Numbered { line: self.number, arrival }))
    }

    /// Returns the next request; nothing at the end.
    fn next_request(&mut self) -> Result<Option<Numbered>, TraceError> {
        while self.read_line()? {
            if let Some(request) = self.request()? {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Numbered, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_request().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Requests that follow each other, are of the same time and come from as many keys: whatever order a store takes them in, none
/// changes what another is told.
#[derive(Debug)]
pub struct Batches<R: BufRead> {
    requests: Peekable<Reader<R>>,
    most: usize,
}

impl<R: BufRead> Iterator for Batches<R> {
    type Item = Result<Vec<Numbered>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = match self.requests.next()? {
            Ok(first) => vec![first],
            Err(error) => return Some(Err(error)),
        };
        while batch.len() < self.most {
            // What is wrong comes after what was right before it.
            let next = self.requests.next_if(|next| match next {
                Ok(next) => fits(&batch, &next.arrival),
                Err(_) => false,
            });
            let Some(Ok(next)) = next else { break };
            batch.push(next);
        }
        Some(Ok(batch))
    }
}

fn fits(batch: &[Numbered], next: &Arrival) -> bool {
    batch.iter().all(|one| one.arrival.at == next.at && one.arrival.key != next.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(trace: &str, most: usize) -> Vec<Result<Vec<u64>, String>> {
        let lines = |batch: Vec<Numbered>| batch.iter().map(|one| one.line).collect();
        let batches = Reader::new(trace.as_bytes()).in_microseconds().together(most);
        batches.map(|batch| batch.map(lines).map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn only_neighbours_of_one_time_and_different_keys_go_together() {
        assert_eq!(
            batches("1,a\n1,b\n# more\n1.0,c\n1,b\n2,a\n2,b\n1,c\n", 128),
            [Ok(vec![1, 2, 4]), Ok(vec![5]), Ok(vec![6, 7]), Ok(vec![8])]
        );
        assert_eq!(batches("1\n1,-\n1,\n", 128), [Ok(vec![1]), Ok(vec![2]), Ok(vec![3])]);
        assert_eq!(batches("1,a\n1,b\n1,c\n", 2), [Ok(vec![1, 2]), Ok(vec![3])]);
        assert_eq!(batches("\n# nothing\n", 128), []);
    }

    #[test]
    fn what_is_wrong_comes_after_what_was_right_and_is_the_last() {
        let wrong =
            "line 3: the seconds are a decimal with up to nine places, like `100.5`, at least 0";
        assert_eq!(batches("1,a\n1,b\nx\n1,c\n", 128), [Ok(vec![1, 2]), Err(wrong.to_owned())]);
    }

    #[test]
    fn a_time_between_two_microseconds_is_wrong_where_it_cannot_be_counted() {
        assert_eq!(batches("1.000001000,a\n", 128), [Ok(vec![1])]);
        let [Err(error)] = &batches("1.0000001,a\n", 128)[..] else { panic!("it was taken") };
        assert_eq!(
            error,
            "line 1: times on this store are whole microseconds: at most six places of a second"
        );
        assert!(Reader::new(&b"1.0000001"[..]).all(|read| read.is_ok()));
    }
}
