use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower::{Layer, Service};

use crate::body::PermitBody;
use crate::endpoint::Endpoint;
use crate::heavy_requests::{Claim, HeavyRequests};
use crate::problem::Problem;

/// Finds out whose request it is; `None` is answered 401.
type WhoseRequest<B> = Arc<dyn Fn(&Request<B>) -> Option<String> + Send + Sync>;

/// A tower layer that lets a request through when it gets a permit, keeps the permit until the
/// response body has ended, and stops the request at the endpoint's time bound, or when somebody
/// asks for it to stop.
///
/// Lay it below the layer that authenticates, so that the closure can read who asks.
pub struct HeavyRequestLayer<B> {
    heavy: HeavyRequests,
    endpoint: Endpoint,
    user: WhoseRequest<B>,
}

impl<B> HeavyRequestLayer<B> {
    /// A layer for one endpoint; `user` says whose request it is, and no heavy request is anonymous.
    pub fn new(
        heavy: HeavyRequests,
        endpoint: Endpoint,
        user: impl Fn(&Request<B>) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { heavy, endpoint, user: Arc::new(user) }
    }
}

impl<B> Clone for HeavyRequestLayer<B> {
    fn clone(&self) -> Self {
        Self { heavy: self.heavy.clone(), endpoint: self.endpoint, user: Arc::clone(&self.user) }
    }
}

impl<B> fmt::Debug for HeavyRequestLayer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeavyRequestLayer")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl<S, B> Layer<S> for HeavyRequestLayer<B> {
    type Service = HeavyRequestService<S, B>;

    fn layer(&self, service: S) -> Self::Service {
        HeavyRequestService { service, layer: self.clone() }
    }
}

/// The service that [`HeavyRequestLayer`] makes.
pub struct HeavyRequestService<S, B> {
    service: S,
    layer: HeavyRequestLayer<B>,
}

impl<S: Clone, B> Clone for HeavyRequestService<S, B> {
    fn clone(&self) -> Self {
        Self { service: self.service.clone(), layer: self.layer.clone() }
    }
}

impl<S, B> fmt::Debug for HeavyRequestService<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layer.fmt(f)
    }
}

impl<S, B, R> Service<Request<B>> for HeavyRequestService<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<HeavyBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that is ready is the one we were asked about; the clone takes its place.
        let unready = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, unready);
        let layer = self.layer.clone();
        let user = (layer.user)(&request);
        Box::pin(async move {
            let Some(user) = user.filter(|user| !user.is_empty()) else {
                return Ok(answer(Problem::sign_in()));
            };
            let permit = match layer.heavy.claim(&layer.endpoint, &user).await {
                Ok(Claim::Granted(permit)) => permit,
                Ok(Claim::Refused(refusal)) => return Ok(answer(Problem::from(&refusal))),
                Err(error) => {
                    tracing::warn!(%error, "The limits gave no answer");
                    return Ok(answer(Problem::from(&error)));
                }
            };
            match permit.run(service.call(request)).await {
                Ok(response) => Ok(response?.map(|body| HeavyBody::Work(permit.guard(body)))),
                Err(stopped) => Ok(answer(Problem::from(&stopped))),
            }
        })
    }
}

fn answer<R>(problem: Problem) -> Response<HeavyBody<R>> {
    problem.into_http().map(|bytes| HeavyBody::Problem(Some(bytes)))
}

/// The body of an answer: the work's, with its permit, or a problem's.
#[derive(Debug)]
pub enum HeavyBody<R> {
    /// What the service answered.
    Work(PermitBody<R>),
    /// A problem document.
    Problem(Option<Bytes>),
}

impl<R> Body for HeavyBody<R>
where
    R: Body<Data = Bytes>,
    R::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Work(body) => Pin::new(body).poll_frame(context),
            Self::Problem(bytes) => {
                Poll::Ready(bytes.take().map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))))
                    .map_err(|never| match never {})
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Work(body) => body.is_end_stream(),
            Self::Problem(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Work(body) => body.size_hint(),
            Self::Problem(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
        }
    }
}
