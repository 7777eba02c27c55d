use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

use crate::enter::Admitted;

/// A response body whose request is in flight: until its last byte, its error, or its client's
/// departure, whichever comes first.
pub struct AdmittedBody<B> {
    body: Pin<Box<B>>,
    admitted: Option<Admitted>,
}

impl<B> fmt::Debug for AdmittedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmittedBody").field("admitted", &self.admitted).finish_non_exhaustive()
    }
}

impl Admitted {
    /// Ties the admission to a response body.
    pub fn guard<B>(self, body: B) -> AdmittedBody<B> {
        AdmittedBody { body: Box::pin(body), admitted: Some(self) }
    }
}

impl<B: Body> Body for AdmittedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = self.body.as_mut().poll_frame(context);
        let has_ended = match &polled {
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            Poll::Ready(_) => true,
            Poll::Pending => false,
        };
        if has_ended {
            self.admitted = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
