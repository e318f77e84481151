//! Heads that two servers could read differently are refused, and the connection ends with them.

use super::harness::{Setup, ok};

async fn refused(head: &str, status: &str) {
    let gateway = Setup::to(ok().await).start().await;
    // Behind a good request as well: the framing is followed from one to the next.
    for before in
        ["", "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"]
    {
        let mut client = gateway.connect().await;
        if !before.is_empty() {
            client.send(before).await;
            assert_eq!(client.receive().await.status, 200);
        }
        client.send(format!("{head}GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        let (rest, _ended) = client.rest().await;
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.starts_with(&format!("HTTP/1.1 {status}")), "{head:?}: {rest}");
        assert_eq!(rest.matches("HTTP/1.1").count(), 1, "{head:?}: {rest}");
    }
}

fn post(lines: &str) -> String {
    format!("POST / HTTP/1.1\r\nhost: a\r\n{lines}\r\n")
}

/// A body that is whole in chunks, and five bytes long.
const EMPTY: &str = "0\r\n\r\n";

#[tokio::test]
async fn two_lengths_are_refused() {
    for lines in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        "Transfer-Encoding: CHUNKED\r\nx: y\r\nContent-Length: 0\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5, 5\r\n",
        "content-length: +5\r\n",
        "content-length: 0x5\r\n",
    ] {
        refused(&format!("{}{EMPTY}", post(lines)), "400").await;
    }
}

#[tokio::test]
async fn codings_that_are_not_chunks_are_refused() {
    for lines in [
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding\t: chunked\r\n",
        "transfer-encoding: \x0bchunked\r\n",
    ] {
        refused(&format!("{}{EMPTY}", post(lines)), "400").await;
    }
    let old = "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    refused(&format!("{old}{EMPTY}"), "400").await;
}

#[tokio::test]
async fn lines_that_end_in_their_own_way_are_refused() {
    for lines in [
        "x: a\rcontent-length: 5\r\n",
        "x: a\r\r\n",
        "x: a\r\n b\r\n",
        "x: a\r\n\tb\r\n",
        "x : a\r\n",
        " x: a\r\n",
        "x: a\0b\r\n",
        "x\r\n",
        ": a\r\n",
    ] {
        refused(&post(lines), "400").await;
    }
    refused("POST  / HTTP/1.1\r\nhost: a\r\n\r\n", "400").await;
    refused("POST / HTTP/1.1\r\n host: a\r\n\r\n", "400").await;
}

#[tokio::test]
async fn a_chunk_that_is_none_is_refused() {
    for body in [
        "+2\r\nhi\r\n0\r\n\r\n",
        "2;a\nb\r\nhi\r\n0\r\n\r\n",
        "zz\r\nhi\r\n0\r\n\r\n",
        "2\r\nhiX\r\n0\r\n\r\n",
    ] {
        let head = post("transfer-encoding: chunked\r\n");
        refused(&format!("{head}{body}"), "400").await;
    }
}

#[tokio::test]
async fn a_request_has_exactly_one_host_and_no_tunnel() {
    refused("GET / HTTP/1.1\r\n\r\n", "400").await;
    refused("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "400").await;
    refused("CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n", "405").await;
}
