//! A service with one method. Messages are plain text instead of Protocol Buffers, so that the example needs no `protoc`;
//! generated services are limited in the same way.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response, uri::PathAndQuery};
use tonic::{
    Status,
    body::Body,
    client,
    server::{self, NamedService, UnaryService},
    transport::Channel,
};
use tower_service::Service;

use crate::text::Text;

const HELLO: &str = "/example.Greeter/Hello";

/// Greets whoever is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Greeter;

impl UnaryService<String> for Greeter {
    type Response = String;
    type Future = Ready<Result<tonic::Response<String>, Status>>;

    fn call(&mut self, request: tonic::Request<String>) -> Self::Future {
        ready(Ok(tonic::Response::new(format!("Hello {}!", request.into_inner()))))
    }
}

impl NamedService for Greeter {
    const NAME: &'static str = "example.Greeter";
}

impl Service<Request<Body>> for Greeter {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move {
            Ok(match request.uri().path() {
                HELLO => server::Grpc::new(Text).unary(Self, request).await,
                _ => Status::unimplemented("there is no such method").into_http(),
            })
        })
    }
}

/// Calls the method.
pub(crate) async fn hello(channel: Channel, name: &str) -> Result<String, Status> {
    let mut client = client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let request = tonic::Request::new(name.to_owned());
    let reply = client.unary(request, PathAndQuery::from_static(HELLO), Text).await?;
    Ok(reply.into_inner())
}
