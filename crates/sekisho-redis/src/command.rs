//! Commands as they go over the wire: arrays of byte strings (RESP 2).

use std::io::Write as _;

/// Begins a command of so many arguments, its name included.
pub(crate) fn begin(out: &mut Vec<u8>, arguments: usize) {
    // A vector takes what it is given.
    let _taken = write!(out, "*{arguments}\r\n");
}

/// Adds one argument.
pub(crate) fn argument(out: &mut Vec<u8>, argument: &[u8]) {
    let _taken = write!(out, "${}\r\n", argument.len());
    out.extend_from_slice(argument);
    out.extend_from_slice(b"\r\n");
}

/// Adds a whole command.
pub(crate) fn command(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    begin(out, arguments.len());
    for of in arguments {
        argument(out, of);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_is_an_array_of_byte_strings() {
        let mut out = Vec::new();
        super::command(&mut out, &[b"GET", b"a\r\nb"]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n");
    }
}
