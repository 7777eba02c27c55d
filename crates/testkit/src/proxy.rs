//! A TCP proxy in front of a server, to make the network between them fail.

mod link;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};

use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
};
use tokio_postgres::{Config, config::Host};
use tokio_util::sync::CancellationToken;

use self::link::{Generation, Link, Network};
use crate::{address, statements::NamedStatement};

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

impl CuttingProxy {
    /// Starts a proxy on a free loopback port before `upstream`, which need not be up yet.
    ///
    /// # Panics
    /// When no loopback port can be bound.
    pub async fn before(upstream: impl Into<Upstream>) -> Self {
        let upstream = upstream.into();
        let network = Arc::new(watch::Sender::new(Network::default()));
        let link = Arc::new(Link::new());
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
                link::accept(listener, place, network, link, closing).await;
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
