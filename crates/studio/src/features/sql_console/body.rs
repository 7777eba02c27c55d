//! An answer on its way to its client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, header};

use crate::app::App;
use crate::platform::heavy::Permit;

/// How long an answer that was stopped at the time bound may take to leave: its permit has ended.
const LATE: Duration = Duration::from_secs(10);

/// Sends pieces of JSON. With a permit they keep it until the last byte or its time bound; without
/// one they have [`LATE`]. A client that does not read holds memory no longer than that, and never
/// a connection to the database.
pub(super) fn respond(app: &App, pieces: Vec<Bytes>, permit: Option<Permit>) -> Response {
    let size: usize = pieces.iter().map(Bytes::len).sum();
    let body = match permit {
        Some(permit) => {
            let pieces = stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
            Body::new(permit.guard(Body::from_stream(pieces)))
        }
        None => late(app, pieces),
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_LENGTH, HeaderValue::from(size)),
    ];
    (headers, body).into_response()
}

fn late(app: &App, pieces: Vec<Bytes>) -> Body {
    let pieces = Arc::new(Mutex::new(VecDeque::from(pieces)));
    let kept = Arc::downgrade(&pieces);
    let stop = app.stop_work.clone();
    app.tasks.spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(LATE) => {}
            () = stop.cancelled() => {}
        }
        if let Some(pieces) = kept.upgrade() {
            pieces.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    });
    // A body that ends early breaks its Content-Length, so the client sees a broken answer.
    let sent = stream::poll_fn(move |_| {
        let piece = pieces.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        std::task::Poll::Ready(piece.map(Ok::<_, std::io::Error>))
    });
    Body::from_stream(sent.fuse())
}
