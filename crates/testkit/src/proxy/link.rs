//! The connections of a proxy: taken in, passed on and cut.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

use super::Place;
use crate::statements::{FrontendMessages, NamedStatement};

/// How the network between the clients and the server behaves.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Network {
    pub(super) is_refusing: bool,
    pub(super) is_half_open: bool,
    pub(super) delay: Duration,
}

/// What a proxy knows of its connections.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) generation: Mutex<Generation>,
    pub(super) accepted: AtomicU64,
    pub(super) open: AtomicUsize,
    pub(super) to_server: AtomicU64,
    pub(super) to_client: AtomicU64,
    pub(super) held: AtomicU64,
    pub(super) named_statements: Mutex<Vec<NamedStatement>>,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            generation: Mutex::new(Generation::new()),
            accepted: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            to_server: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
            held: AtomicU64::new(0),
            named_statements: Mutex::default(),
        }
    }
}

/// The connections accepted between two cuts. Each holds a clone of `alive`, so that `gone` ends
/// when the last of them has closed its sockets.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) cut: CancellationToken,
    pub(super) alive: mpsc::Sender<()>,
    pub(super) gone: mpsc::Receiver<()>,
}

impl Generation {
    pub(super) fn new() -> Self {
        let (alive, gone) = mpsc::channel(1);
        Self { cut: CancellationToken::new(), alive, gone }
    }
}

/// Takes in connections until `closing`, and then drops those that are open.
pub(super) async fn accept(
    listener: TcpListener,
    place: Place,
    network: watch::Receiver<Network>,
    link: Arc<Link>,
    closing: CancellationToken,
) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        // An accept fails for one client that is gone again, and the next one is served.
        let Ok((client, _)) = accepted else { continue };
        if network.borrow().is_refusing {
            client.set_zero_linger().ok();
            continue;
        }
        let (cut, alive) = {
            let generation = link.generation.lock().unwrap_or_else(PoisonError::into_inner);
            (generation.cut.clone(), generation.alive.clone())
        };
        link.accepted.fetch_add(1, Ordering::SeqCst);
        link.open.fetch_add(1, Ordering::SeqCst);
        let (place, network, link) = (place.clone(), network.clone(), Arc::clone(&link));
        connections.spawn(async move {
            serve(client, place, network, &link, &cut).await;
            link.open.fetch_sub(1, Ordering::SeqCst);
            drop(alive);
        });
    }
}

/// Serves one connection until both sides have ended it, one of them has broken it or it is cut.
/// But for the first, the sockets are reset: nobody may take it for an orderly end.
async fn serve(
    mut client: TcpStream,
    place: Place,
    network: watch::Receiver<Network>,
    link: &Link,
    cut: &CancellationToken,
) {
    let passed_on = match place {
        Place::Tcp(host, port) => match TcpStream::connect((host, port)).await {
            Ok(mut server) => {
                let run = forward(client.split(), server.split(), network, link);
                let passed_on = cut.run_until_cancelled(run).await;
                if !matches!(passed_on, Some(Ok(()))) {
                    server.set_zero_linger().ok();
                }
                passed_on
            }
            Err(error) => Some(Err(error)),
        },
        Place::Unix(path) => match UnixStream::connect(path).await {
            Ok(mut server) => {
                let run = forward(client.split(), server.split(), network, link);
                cut.run_until_cancelled(run).await
            }
            Err(error) => Some(Err(error)),
        },
    };
    if !matches!(passed_on, Some(Ok(()))) {
        client.set_zero_linger().ok();
    }
}

async fn forward(
    (client_out, client_in): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    (server_out, server_in): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    network: watch::Receiver<Network>,
    link: &Link,
) -> io::Result<()> {
    let mut messages = FrontendMessages::default();
    let held = &link.held;
    let there = pump(client_out, server_in, network.clone(), held, |bytes| {
        let named = messages.read(bytes);
        if !named.is_empty() {
            link.named_statements.lock().unwrap_or_else(PoisonError::into_inner).extend(named);
        }
        count(&link.to_server, bytes);
    });
    let back = pump(server_out, client_in, network, held, |bytes| count(&link.to_client, bytes));
    tokio::try_join!(there, back).map(|_| ())
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut network: watch::Receiver<Network>,
    held: &AtomicU64,
    mut note: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut chunk = vec![0_u8; 16 * 1024];
    loop {
        let read = from.read(&mut chunk).await?;
        let bytes = chunk.get(..read).unwrap_or_default();
        let _held = Held::new(held, bytes);
        let delay = network.borrow().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        // After the read and after the delay: what came while the network was lost stays held.
        if network.wait_for(|network| !network.is_half_open).await.is_err() {
            return Ok(());
        }
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        // Noted first: who has the answer must find the question noted.
        note(bytes);
        to.write_all(bytes).await?;
    }
}

/// Bytes on their way through the proxy, until they are passed on or lost with the connection.
struct Held<'a> {
    held: &'a AtomicU64,
    bytes: u64,
}

impl<'a> Held<'a> {
    fn new(held: &'a AtomicU64, bytes: &[u8]) -> Self {
        let bytes = bytes.len().try_into().unwrap_or(u64::MAX);
        held.fetch_add(bytes, Ordering::SeqCst);
        Self { held, bytes }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

fn count(counter: &AtomicU64, bytes: &[u8]) {
    counter.fetch_add(bytes.len().try_into().unwrap_or(u64::MAX), Ordering::SeqCst);
}
