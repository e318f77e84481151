//! A connection that becomes a WebSocket.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, accept_async, client_async,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use super::harness::{PATIENCE, Running, Setup, get, listen, ok, speaking};

/// Starts an upstream that sends every message back, and closes with a code of its own when it hears `bye`.
async fn echo() -> std::net::SocketAddr {
    let (socket, address) = listen().await;
    let _serving = tokio::spawn(async move {
        loop {
            let (stream, _) = socket.accept().await.unwrap();
            let _connection = tokio::spawn(send_back(stream));
        }
    });
    address
}

async fn send_back(stream: TcpStream) {
    let mut web = accept_async(stream).await.unwrap();
    while let Some(Ok(message)) = web.next().await {
        match message {
            Message::Text(text) if text.as_str() == "bye" => {
                let code = CloseCode::from(4001);
                let frame = CloseFrame { code, reason: "so long".into() };
                let _sent = web.close(Some(frame)).await;
            }
            Message::Text(_) | Message::Binary(_) => web.send(message).await.unwrap(),
            _ => {}
        }
    }
}

async fn open(gateway: &Running) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(gateway.at).await.unwrap();
    let (web, response) = client_async("ws://h.example/chat", stream).await.unwrap();
    assert_eq!(response.status(), 101);
    assert!(response.headers().contains_key("ratelimit"), "it was counted");
    web
}

#[tokio::test]
async fn a_thousand_frames_each_way_and_the_close_code_come_through() {
    let gateway = Setup::to(echo().await).start().await;
    let (mut out, mut back) = open(&gateway).await.split();
    let message = |number: usize| {
        let text = format!("{number} {}", "x".repeat(number * 7));
        if number.is_multiple_of(2) {
            Message::text(text)
        } else {
            Message::binary(text.into_bytes())
        }
    };
    let sending = tokio::spawn(async move {
        for number in 0..1_000 {
            out.send(message(number)).await.unwrap();
        }
        out.send(Message::text("bye")).await.unwrap();
        out
    });
    for number in 0..1_000 {
        let received = timeout(PATIENCE, back.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(received, message(number));
    }
    let Message::Close(Some(frame)) = back.next().await.unwrap().unwrap() else {
        panic!("no close frame")
    };
    assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4001, "so long"));
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn what_looks_like_a_head_within_a_websocket_is_left_alone() {
    let gateway = Setup::to(echo().await).start().await;
    let mut web = open(&gateway).await;
    let stream = web.get_mut();
    // Raw bytes below the frames: masked with zeroes they are sent as they are.
    let text = "\r\n\r\nPOST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    tokio::io::AsyncWriteExt::write_all(stream, &frame).await.unwrap();
    let received = timeout(PATIENCE, web.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(received, Message::text(text));
}

#[tokio::test]
async fn a_websocket_outlives_the_time_for_heads_and_idleness_and_ends_with_the_gateway() {
    let mut setup = Setup::to(echo().await);
    setup.gateway.limits.header_timeout = Duration::from_millis(200);
    setup.gateway.limits.idle_timeout = Duration::from_millis(200);
    setup.gateway.limits.drain_timeout = Duration::from_millis(500);
    let mut gateway = setup.start().await;
    let mut web = open(&gateway).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    web.send(Message::text("still here")).await.unwrap();
    assert_eq!(web.next().await.unwrap().unwrap(), Message::text("still here"));
    gateway.stop();
    web.send(Message::text("drained")).await.unwrap();
    assert_eq!(web.next().await.unwrap().unwrap(), Message::text("drained"));
    timeout(PATIENCE, &mut gateway.ended).await.expect("an end").unwrap();
    assert!(timeout(PATIENCE, web.next()).await.unwrap().is_none_or(|message| message.is_err()));
}

#[tokio::test]
async fn a_protocol_that_was_not_asked_for_is_the_upstreams_fault() {
    let to = speaking(|mut client| async move {
        let (_, headers) = client.head().await.unwrap();
        assert!(!headers.iter().any(|(name, _)| name == "upgrade"), "{headers:?}");
        client
            .send("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
            .await;
        let _rest = client.rest().await;
    })
    .await;
    let gateway = Setup::to(to).start().await;
    let head = format!("{}connection: upgrade\r\nupgrade: h2c\r\n", get("/"));
    gateway.ask(&head).await.is_problem(502);
}

#[tokio::test]
async fn a_refused_handshake_names_the_wait() {
    let gateway = Setup::to(ok().await).limits("1/min sliding-log").start().await;
    assert_eq!(gateway.get("/").await.status, 200);
    let head = format!("{}connection: upgrade\r\nupgrade: websocket\r\n", get("/"));
    let reply = gateway.ask(&head).await;
    reply.is_problem(429);
    assert_eq!(reply.header("retry-after"), Some("60"));
}
