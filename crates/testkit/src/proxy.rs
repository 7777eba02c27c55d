//! A TCP proxy in front of a server, to make the network between them fail.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::{mpsc, oneshot, watch},
};
use tokio_postgres::{Config, config::Host};
use tokio_util::sync::CancellationToken;

use crate::{
    address,
    statements::{FrontendMessages, NamedStatement},
};

/// The server behind a [`CuttingProxy`].
#[derive(Debug, Clone)]
pub struct Upstream {
    place: Place,
    config: Option<Config>,
}

#[derive(Debug, Clone)]
enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

impl From<SocketAddr> for Upstream {
    fn from(addr: SocketAddr) -> Self {
        Self { place: Place::Tcp(addr.ip().to_string(), addr.port()), config: None }
    }
}

impl From<&Config> for Upstream {
    /// Takes the first host, by TCP or by Unix socket.
    ///
    /// # Panics
    /// When the configuration names no host.
    fn from(config: &Config) -> Self {
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let place = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => Place::Tcp(host.clone(), port),
            Some(Host::Unix(folder)) => Place::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            None => panic!("the configuration names no host"),
        };
        Self { place, config: Some(config.clone()) }
    }
}

impl From<Config> for Upstream {
    fn from(config: Config) -> Self {
        Self::from(&config)
    }
}

/// A TCP proxy on loopback that can cut, refuse, delay and swallow.
///
/// It runs on a thread of its own, so that a blocked test does not stop it. Dropping it closes
/// every connection.
#[derive(Debug)]
pub struct CuttingProxy {
    addr: SocketAddr,
    upstream: Upstream,
    network: Arc<watch::Sender<Network>>,
    link: Arc<Link>,
    closing: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// How the network between the clients and the server behaves.
#[derive(Debug, Clone, Copy, Default)]
struct Network {
    is_refusing: bool,
    is_half_open: bool,
    delay: Duration,
}

#[derive(Debug)]
struct Link {
    generation: Mutex<Generation>,
    accepted: AtomicU64,
    open: AtomicUsize,
    to_server: AtomicU64,
    to_client: AtomicU64,
    held: AtomicU64,
    named_statements: Mutex<Vec<NamedStatement>>,
}

/// The connections accepted between two cuts. Each holds a clone of `alive`, so that `gone` ends
/// when the last of them has closed its sockets.
#[derive(Debug)]
struct Generation {
    cut: CancellationToken,
    alive: mpsc::Sender<()>,
    gone: mpsc::Receiver<()>,
}

impl Generation {
    fn new() -> Self {
        let (alive, gone) = mpsc::channel(1);
        Self { cut: CancellationToken::new(), alive, gone }
    }
}

impl CuttingProxy {
    /// Starts a proxy on a free loopback port before `upstream`, which need not be up yet.
    ///
    /// # Panics
    /// When no loopback port can be bound.
    pub async fn before(upstream: impl Into<Upstream>) -> Self {
        let upstream = upstream.into();
        let network = Arc::new(watch::Sender::new(Network::default()));
        let link = Arc::new(Link {
            generation: Mutex::new(Generation::new()),
            accepted: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            to_server: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
            held: AtomicU64::new(0),
            named_statements: Mutex::default(),
        });
        let closing = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for the proxy");
        let (bound, addr) = oneshot::channel();
        let run = {
            let (place, network) = (upstream.place.clone(), network.subscribe());
            let (link, closing) = (Arc::clone(&link), closing.clone());
            async move {
                let listener =
                    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port");
                bound.send(listener.local_addr().expect("the port just bound")).ok();
                accept(listener, place, network, link, closing).await;
            }
        };
        let thread = std::thread::spawn(move || runtime.block_on(run));
        let addr = addr.await.expect("the proxy has bound its port");
        Self { addr, upstream, network, link, closing, thread: Some(thread) }
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The configuration given to [`Self::before`], pointed at the proxy.
    ///
    /// # Panics
    /// When the proxy was put before a bare address.
    pub fn config(&self) -> Config {
        address::readdressed(self.given_config(), self.addr)
    }

    /// The same as [`Self::config`] as a `postgres://` address.
    ///
    /// # Panics
    /// When the proxy was put before a bare address.
    pub fn url(&self) -> String {
        address::url(self.given_config(), self.addr)
    }

    fn given_config(&self) -> &Config {
        self.upstream.config.as_ref().expect("a proxy before a configuration, not a bare address")
    }

    /// Resets every connection that is open now, on both sides, and returns when they are closed.
    /// New connections are served; call [`Self::refuse`] first for an outage that lasts.
    pub async fn cut(&self) {
        let mut old = {
            let mut generation =
                self.link.generation.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *generation, Generation::new())
        };
        old.cut.cancel();
        drop(old.alive);
        while old.gone.recv().await.is_some() {}
    }

    /// Resets every new connection as soon as it is made. Open ones stay.
    ///
    /// The port stays bound, or another process could take it: a client sees a reset rather than
    /// "connection refused", and both are a connection that was not made.
    pub fn refuse(&self) {
        self.network.send_modify(|network| network.is_refusing = true);
    }

    /// Holds each chunk of bytes for `delay` before it is passed on, in either direction.
    pub fn delay(&self, delay: Duration) {
        self.network.send_modify(|network| network.delay = delay);
    }

    /// Stops passing on bytes and closes, without closing anything, as a network does that loses
    /// every packet. New connections are accepted and get no answer.
    pub fn half_open(&self) {
        self.network.send_modify(|network| network.is_half_open = true);
    }

    /// Ends [`Self::refuse`], [`Self::delay`] and [`Self::half_open`]. Bytes held back go on.
    pub fn restore(&self) {
        self.network.send_replace(Network::default());
    }

    /// Connections accepted so far, those refused not counted.
    pub fn accepted(&self) -> u64 {
        self.link.accepted.load(Ordering::SeqCst)
    }

    /// Connections open now.
    pub fn open(&self) -> usize {
        self.link.open.load(Ordering::SeqCst)
    }

    /// Bytes passed on from clients to the server.
    pub fn bytes_to_server(&self) -> u64 {
        self.link.to_server.load(Ordering::SeqCst)
    }

    /// Bytes passed on from the server to clients.
    pub fn bytes_to_client(&self) -> u64 {
        self.link.to_client.load(Ordering::SeqCst)
    }

    /// Bytes that the proxy has taken in and not passed on yet, of both directions: those that
    /// [`Self::delay`] and [`Self::half_open`] hold back. It takes in at most 16 KiB of each
    /// direction of a connection; the rest waits in the sender's sockets.
    pub fn bytes_held(&self) -> u64 {
        self.link.held.load(Ordering::SeqCst)
    }

    /// Every prepared statement that a PostgreSQL client gave a name to, in the order in which
    /// they were passed on. A session encrypted by TLS cannot be read; [`Self::config`] has none.
    pub fn named_statements(&self) -> Vec<NamedStatement> {
        self.link.named_statements.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.closing.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

async fn accept(
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
