//! One question to a running server, bounded in time and size.

use std::{io, time::Duration};

use http::{Request, header::HOST};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    runtime::Builder,
    time::timeout,
};

use crate::{args::Admin, report::Report};

/// How long the whole of an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes of an answer: many times what a thousand of the longest keys need.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a server answers.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Asks an admin listener.
pub(super) fn get(admin: &Admin, target: &str) -> Result<Answered, Report> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Report::failed)?;
    let asking = async {
        match admin {
            Admin::Tcp(place) => {
                let stream = TcpStream::connect(place).await;
                exchange(stream.map_err(|error| unreachable(admin, &error))?, admin, target).await
            }
            Admin::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                exchange(stream.map_err(|error| unreachable(admin, &error))?, admin, target).await
            }
        }
    };
    runtime.block_on(async { timeout(PATIENCE, asking).await }).unwrap_or_else(|_| {
        Err(Report::failed(format!("{admin} does not answer within {} s", PATIENCE.as_secs()))
            .hint("the server hangs or is behind a firewall, or another program listens there"))
    })
}

fn unreachable(admin: &Admin, error: &io::Error) -> Report {
    Report::failed(format!("nothing answers at {admin}: {error}")).hint(
        "start a server that has an admin address (`sekisho serve --admin 127.0.0.1:9090`, or `[listen] admin` in its policy file), \
         or say with `--admin` or `-c FILE` where it is",
    )
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    admin: &Admin,
    target: &str,
) -> Result<Answered, Report> {
    let no_http = |error: &dyn std::error::Error| {
        Report::failed(format!("what {admin} answers is not HTTP, or is cut: {error}"))
            .hint("another program may listen there: name the admin address of a `sekisho serve`")
    };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| no_http(&error))?;
    // It ends with the runtime, at the latest.
    let _driven = tokio::spawn(connection);
    let host = match admin {
        Admin::Tcp(place) => place,
        Admin::Unix(_) => "localhost",
    };
    let request = Request::get(target).header(HOST, host).body(Empty::<Bytes>::new());
    let request = request.map_err(Report::input)?;
    let response = sender.send_request(request).await.map_err(|error| no_http(&error))?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| no_http(&*error))?.to_bytes();
    Ok(Answered { status, body: String::from_utf8_lossy(&body).into_owned() })
}
