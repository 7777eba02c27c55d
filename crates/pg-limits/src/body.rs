use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use http_body::{Body, Frame, SizeHint};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::permit::Permit;
use crate::stops::Stopped;

/// A response body that keeps a permit: until its last byte, its error, its client's departure,
/// the time bound, or somebody who asks for it to stop, whichever comes first.
///
/// When it is stopped the inner body is dropped and the permit freed even when the client has stopped
/// reading and nobody polls any more; a client that reads on gets an error ([`Stopped`]), never a
/// clean end.
pub struct PermitBody<B> {
    guarded: Arc<Mutex<Guarded<B>>>,
    endpoint: &'static str,
    _left: DropGuard,
}

struct Guarded<B> {
    body: Option<Pin<Box<B>>>,
    permit: Option<Permit>,
    stopped: Option<Stopped>,
    waker: Option<Waker>,
}

impl<B> fmt::Debug for PermitBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitBody").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Permit {
    /// Ties the permit to a response body.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, which its timer needs.
    pub fn guard<B: Send + 'static>(self, body: B) -> PermitBody<B> {
        let endpoint = self.endpoint().name();
        let stop = self.stop();
        let left = CancellationToken::new();
        let guarded = Arc::new(Mutex::new(Guarded {
            body: Some(Box::pin(body)),
            permit: Some(self),
            stopped: None,
            waker: None,
        }));
        let (watched, gone) = (Arc::clone(&guarded), left.clone());
        // Owned by the body: it ends when the body is dropped, at the bound at the latest.
        tokio::spawn(async move {
            tokio::select! {
                () = gone.cancelled() => {}
                stopped = stop => {
                    watched.lock().unwrap_or_else(PoisonError::into_inner).stop(stopped);
                }
            }
        });
        PermitBody { guarded, endpoint, _left: left.drop_guard() }
    }
}

impl<B> Guarded<B> {
    /// Ends the work first, and only then frees the permit.
    fn end(&mut self) {
        self.body = None;
        self.permit = None;
    }

    fn stop(&mut self, stopped: Stopped) {
        if self.body.is_some() {
            self.stopped = Some(stopped);
        }
        self.end();
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl<B> Drop for PermitBody<B> {
    fn drop(&mut self) {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}

impl<B> Body for PermitBody<B>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stopped) = guarded.stopped {
            return Poll::Ready(Some(Err(Box::new(stopped))));
        }
        let Some(body) = guarded.body.as_mut() else { return Poll::Ready(None) };
        match body.as_mut().poll_frame(context) {
            Poll::Pending => {
                guarded.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Poll::Ready(None) => {
                guarded.end();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                guarded.end();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(Some(Ok(frame))) => {
                // Freed with the last byte where the body knows it, not a poll later.
                if body.is_end_stream() {
                    guarded.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        guarded.stopped.is_none() && guarded.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        guarded.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
