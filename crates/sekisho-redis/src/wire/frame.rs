//! Whether a reply has come whole, and is one that a server of ours would send.
//!
//! The library that takes replies apart recurses into arrays and makes room for what they announce, so a peer that is no Redis
//! could end the process with a few bytes. Here a reply is walked through beforehand, without recursion and without room.

/// How deep arrays may stand in each other. The deepest that is asked for, the slots of a cluster, has four.
const DEPTH_MAX: usize = 8;
/// The longest array. A call's reply has a few items a key.
const ITEMS_MAX: u64 = 1 << 20;
/// The longest reply. A call's is as long as its states are, and logs are told in part.
const BYTES_MAX: usize = 64 << 20;
/// The longest line: an error, a status or a number.
const LINE_MAX: usize = 64 << 10;

/// Returns whether the bytes begin with a whole reply, or what is wrong with them.
pub(super) fn whole(bytes: &[u8]) -> Result<bool, &'static str> {
    // How many items are to come at each depth. The reply itself is one item.
    let mut open = [0_u64; DEPTH_MAX];
    let (mut depth, mut rest) = (0, bytes);
    open[0] = 1;
    loop {
        while open[depth] == 0 {
            if depth == 0 {
                return Ok(true);
            }
            depth -= 1;
        }
        let Some((kind, after)) = rest.split_first() else { return Ok(false) };
        let Some(end) = line(after)? else { return Ok(false) };
        let line = &after[..end];
        open[depth] -= 1;
        rest = &after[end + 2..];
        match kind {
            b'+' | b'-' | b':' => {}
            b'$' => {
                let Some(length) = length(line)? else { continue };
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > BYTES_MAX {
                    return Err("a reply without an end");
                }
                // And the end of the line behind it.
                let Some(after) = rest.get(length + 2..) else { return unfinished(bytes) };
                rest = after;
            }
            b'*' => {
                let Some(items) = length(line)? else { continue };
                if items > ITEMS_MAX {
                    return Err("an array without an end");
                }
                depth += 1;
                if depth == DEPTH_MAX {
                    return Err("arrays in arrays without an end");
                }
                open[depth] = items;
            }
            _ => return Err("it begins with none of `+-:$*`"),
        }
    }
}

/// Returns that more is to come, if there is room for it.
fn unfinished(bytes: &[u8]) -> Result<bool, &'static str> {
    if bytes.len() > BYTES_MAX { Err("a reply without an end") } else { Ok(false) }
}

/// Returns how long the first line is, without its end; nothing where that has not come.
fn line(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    match bytes.iter().take(LINE_MAX).position(|byte| *byte == b'\r') {
        Some(end) => Ok((end + 2 <= bytes.len()).then_some(end)),
        None if bytes.len() >= LINE_MAX => Err("a line without an end"),
        None => Ok(None),
    }
}

/// Returns a length; nothing for -1, which stands for nothing.
fn length(line: &[u8]) -> Result<Option<u64>, &'static str> {
    if line == b"-1" {
        return Ok(None);
    }
    let digits =
        str::from_utf8(line).ok().filter(|text| text.bytes().all(|of| of.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).map(Some).ok_or("a length that is none")
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;
    use redis_protocol::resp2::decode::decode_bytes_mut;

    use super::*;

    #[test]
    fn a_reply_is_whole_when_its_last_byte_has_come() {
        let reply = b"*4\r\n:1\r\n$-1\r\n*2\r\n$0\r\n\r\n$5\r\na\r\nbc\r\n+OK\r\n";
        for end in 0..reply.len() {
            assert_eq!(whole(&reply[..end]), Ok(false), "{end}");
        }
        assert_eq!(whole(reply), Ok(true));
        assert_eq!(whole(&[&reply[..], b"garbage"].concat()), Ok(true));
        assert_eq!(whole(b"-ERR no\r\n"), Ok(true));
        assert_eq!(whole(b"*-1\r\n"), Ok(true));
        assert_eq!(whole(b"*0\r\n"), Ok(true));
    }

    #[test]
    fn what_no_server_sends_is_found_before_it_costs_anything() {
        for bad in [
            b"*1\r\n".repeat(8_000),
            b"*2147483647\r\n".to_vec(),
            b"$9999999999\r\nx".to_vec(),
            b"$99999999999999999999999\r\n".to_vec(),
            b"*-2\r\n".to_vec(),
            b"$\r\n".to_vec(),
            b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
            b"xxxx\r\n".to_vec(),
            vec![b'+'; LINE_MAX + 2],
        ] {
            assert!(whole(&bad).is_err(), "{:?}", bad.first_chunk::<8>());
        }
    }

    proptest! {
        /// What is whole is taken apart, and what is not is left alone, whatever a peer sends.
        #[test]
        fn the_library_is_only_given_what_it_can_take(bytes in proptest::collection::vec(
            prop_oneof![Just(b'*'), Just(b'$'), Just(b':'), Just(b'+'), Just(b'\r'), Just(b'\n'), b'0'..b'4', any::<u8>()],
            0..60,
        )) {
            if whole(&bytes) == Ok(true) {
                let _taken_or_refused = decode_bytes_mut(&mut BytesMut::from(&bytes[..]));
            }
        }
    }
}
