//! The service that the layer makes.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};
use sekisho::{Memory, PathError, Store};
use tower_service::Service;

use super::{LimitBody, LimitLayer, ask::Refused, grpc::Wire};
use crate::{Answer, Problem, Profile};

/// A service behind a limiter; made by [`LimitLayer`].
pub struct LimitService<I, S = Memory> {
    layer: Arc<LimitLayer<S>>,
    inner: I,
}

impl<I, S> LimitService<I, S> {
    pub(super) const fn new(layer: Arc<LimitLayer<S>>, inner: I) -> Self {
        Self { layer, inner }
    }
}

impl<I: Clone, S> Clone for LimitService<I, S> {
    fn clone(&self) -> Self {
        Self { layer: Arc::clone(&self.layer), inner: self.inner.clone() }
    }
}

impl<I: fmt::Debug, S: fmt::Debug> fmt::Debug for LimitService<I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitService")
            .field("layer", &self.layer)
            .field("inner", &self.inner)
            .finish()
    }
}

impl<I, S, ReqB, ResB> Service<Request<ReqB>> for LimitService<I, S>
where
    I: Service<Request<ReqB>, Response = Response<ResB>> + Clone + Send + 'static,
    I::Future: Send,
    S: Store + 'static,
    ReqB: Send + 'static,
    ResB: Send + 'static,
{
    type Response = Response<LimitBody<ResB>>;
    type Error = I::Error;
    type Future = LimitFuture<Self::Response, I::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqB>) -> Self::Future {
        let layer = Arc::clone(&self.layer);
        // The one that was asked whether it is ready is the one that is called.
        let spare = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, spare);
        LimitFuture { work: Box::pin(layer.serve(request, ready)) }
    }
}

impl<S: Store + 'static> LimitLayer<S> {
    async fn serve<I, ReqB, ResB>(
        self: Arc<Self>,
        request: Request<ReqB>,
        mut inner: I,
    ) -> Result<Response<LimitBody<ResB>>, I::Error>
    where
        I: Service<Request<ReqB>, Response = Response<ResB>>,
    {
        let (mut parts, body) = request.into_parts();
        let wire = Wire::of(&parts.headers);
        let mut admitted = match self.ask(&parts, &wire).await {
            Ok(admitted) => admitted,
            Err(refused) => return Ok(self.answered(self.refusal(&refused, wire))),
        };
        admitted.mark(&mut parts.extensions);
        self.wait(&admitted).await;
        let mut response = inner.call(Request::from_parts(parts, body)).await?;
        self.settle(&mut admitted, response.status().as_u16()).await;
        admitted.tell(response.headers_mut(), &self.limiter.policies().settings().answer);
        Ok(self.answered(response.map(LimitBody::inner)))
    }

    fn answered<B>(&self, response: Response<B>) -> Response<B> {
        if let Some(observer) = &self.observer {
            observer.answered(response.status());
        }
        response
    }

    fn refusal<B>(&self, refused: &Refused, wire: Wire) -> Response<LimitBody<B>> {
        let settings = &self.limiter.policies().settings().answer;
        match (refused, wire) {
            (Refused::Path(error), Wire::Http) => of(bad_path(*error)),
            (Refused::Path(error), Wire::Grpc(kind)) => of(self.grpc.bad_path(kind, *error)),
            (Refused::Decision(decision), Wire::Http) => {
                of(Answer::new(decision, Profile::Standard, settings, self.clock.wall()))
            }
            (Refused::Decision(decision), Wire::Grpc(kind)) => {
                of(self.grpc.answer(kind, decision, settings, self.clock.wall()))
            }
        }
    }
}

fn bad_path(error: PathError) -> Answer {
    Answer::problem(&Problem::plain(StatusCode::BAD_REQUEST, error.to_string()))
}

fn of<B>(answer: Answer) -> Response<LimitBody<B>> {
    let mut response = Response::new(LimitBody::refusal(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

/// What becomes of a request; made by [`LimitService`].
#[must_use = "futures do nothing unless polled"]
pub struct LimitFuture<R, E> {
    work: Pin<Box<dyn Future<Output = Result<R, E>> + Send>>,
}

impl<R, E> Future for LimitFuture<R, E> {
    type Output = Result<R, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.as_mut().poll(context)
    }
}

impl<R, E> fmt::Debug for LimitFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitFuture").finish_non_exhaustive()
    }
}
