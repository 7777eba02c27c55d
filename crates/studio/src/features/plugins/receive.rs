//! Receiving an upload: from the request's body into pieces in the database, a piece in memory at a time.

use std::time::Duration;

use axum::body::Body;
use bytes::BytesMut;
use http::StatusCode;
use http_body_util::BodyExt as _;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::declared::{Declared, empty, too_large};
use super::pending::Pending;
use super::{MOST_BYTES, UPLOAD_TIME, hexadecimal};
use crate::platform::paging::Microseconds;
use crate::platform::problem::Problem;

/// Bytes a piece.
const CHUNK: usize = 1 << 20;

/// Why an upload came to nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client sent what cannot be stored.
    Refused(Problem),
    /// The client went away, or cut its body short.
    Cut,
    /// It is no fault of the client's; the word is for the trail.
    Ours(&'static str, Problem),
}

impl Failure {
    /// Something of ours failed.
    pub(super) fn database(problem: Problem) -> Self {
        Self::Ours("database", problem)
    }
}

/// An upload that arrived whole, and is a plugin now.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) size: i32,
    pub(super) sha256: String,
    pub(super) at: Microseconds,
}

/// Receives everything and completes the upload. `left` is cancelled when the client leaves, and by `stop_work`, when
/// this replica has no more time.
pub(super) async fn receive(
    pending: &Pending,
    body: Body,
    declared: &Declared,
    stall: Duration,
    (left, stop_work): (&CancellationToken, &CancellationToken),
) -> Result<Received, Failure> {
    let received = async {
        let mut pieces = Pieces::new(pending);
        pieces.fill(body, stall).await?;
        pieces.finish(declared).await
    };
    tokio::select! {
        biased;
        // Before the other, which it cancels: a replica that shuts down stops uploads that are none the worse for it.
        () = stop_work.cancelled() => Err(Failure::Ours("draining", Problem::draining())),
        () = left.cancelled() => Err(Failure::Cut),
        received = tokio::time::timeout(UPLOAD_TIME, received) => {
            received.unwrap_or_else(|_| Err(Failure::Refused(too_slow())))
        }
    }
}

/// What came so far.
#[derive(Debug)]
struct Pieces<'a> {
    pending: &'a Pending,
    chunk: BytesMut,
    written: i32,
    size: u64,
    hash: Sha256,
}

impl<'a> Pieces<'a> {
    fn new(pending: &'a Pending) -> Self {
        let chunk = BytesMut::with_capacity(CHUNK);
        Self { pending, chunk, written: 0, size: 0, hash: Sha256::new() }
    }

    async fn fill(&mut self, mut body: Body, stall: Duration) -> Result<(), Failure> {
        loop {
            let frame = match tokio::time::timeout(stall, body.frame()).await {
                Err(_) => return Err(Failure::Refused(too_slow())),
                Ok(None) => return Ok(()),
                // The body ended before its declared length, or broke off.
                Ok(Some(Err(_))) => return Err(Failure::Cut),
                Ok(Some(Ok(frame))) => frame,
            };
            // Trailers say nothing that is wanted.
            let Ok(mut bytes) = frame.into_data() else { continue };
            self.size += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            if self.size > MOST_BYTES {
                return Err(Failure::Refused(too_large()));
            }
            self.hash.update(&bytes);
            while !bytes.is_empty() {
                let fits = bytes.len().min(CHUNK - self.chunk.len());
                self.chunk.extend_from_slice(&bytes.split_to(fits));
                if self.chunk.len() == CHUNK {
                    self.write().await?;
                }
            }
        }
    }

    async fn write(&mut self) -> Result<(), Failure> {
        let chunk = std::mem::replace(&mut self.chunk, BytesMut::with_capacity(CHUNK)).freeze();
        self.pending.write(self.written, &chunk).await.map_err(Failure::database)?;
        self.written += 1;
        Ok(())
    }

    async fn finish(mut self, declared: &Declared) -> Result<Received, Failure> {
        if self.size == 0 {
            return Err(Failure::Refused(empty()));
        }
        let digest = std::mem::take(&mut self.hash).finalize();
        let sha256 = hexadecimal(&digest);
        if declared.sha256.as_ref().is_some_and(|declared| *declared != sha256) {
            return Err(Failure::Refused(
                broken().detail("Its SHA-256 is not the one in X-Content-SHA256."),
            ));
        }
        if !self.chunk.is_empty() {
            self.write().await?;
        }
        let size = i32::try_from(self.size)
            .map_err(|error| Failure::database(Problem::internal(&error)))?;
        let at =
            self.pending.complete(size, &digest, self.written).await.map_err(Failure::database)?;
        Ok(Received { size, sha256, at })
    }
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "upload-too-slow", "The upload took too long")
        .detail("Nothing was stored.")
}

/// 400: less came than was declared, or something else.
pub(super) fn broken() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "upload-broken", "The upload did not arrive whole")
}
