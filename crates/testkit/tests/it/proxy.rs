use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use testkit::{CuttingProxy, wait_until};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};

const SOON: Duration = Duration::from_secs(20);

/// A server that sends back what it gets, and the proxy before it.
async fn echo() -> (CuttingProxy, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await.ok();
            });
        }
    });
    (CuttingProxy::before(addr).await, server)
}

async fn ask(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn bytes_pass_and_are_counted_in_each_direction() {
    let (proxy, _server) = echo().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut stream, "hello").await.unwrap(), "hello");
    wait_until("both directions counted", SOON, || async {
        (proxy.bytes_to_server(), proxy.bytes_to_client()) == (5, 5)
    })
    .await;
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
}

#[tokio::test]
async fn an_orderly_end_passes_as_an_orderly_end_after_the_last_byte() {
    let (proxy, _server) = echo().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let text = vec![7; 1 << 20];
    let (mut from, mut to) = stream.split();
    let send = async {
        to.write_all(&text).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (read, ()) = tokio::join!(from.read_to_end(&mut got), send);
    assert_eq!(read.unwrap(), text.len());
    wait_until("the connection closed", SOON, || async { proxy.open() == 0 }).await;
}

#[tokio::test]
async fn a_cut_resets_open_connections_and_serves_new_ones() {
    let (proxy, _server) = echo().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    ask(&mut stream, "hello").await.unwrap();
    proxy.cut().await;
    assert_eq!(proxy.open(), 0);
    assert_eq!(stream.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut next = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut next, "again").await.unwrap(), "again");
}

#[tokio::test]
async fn a_refusing_proxy_makes_no_connection_and_keeps_the_open_ones() {
    let (proxy, _server) = echo().await;
    let mut open = TcpStream::connect(proxy.addr()).await.unwrap();
    ask(&mut open, "hello").await.unwrap();
    proxy.refuse();
    let refused = async { ask(&mut TcpStream::connect(proxy.addr()).await?, "x").await };
    refused.await.unwrap_err();
    assert_eq!(ask(&mut open, "still").await.unwrap(), "still");
    proxy.restore();
    let mut next = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut next, "again").await.unwrap(), "again");
}

#[tokio::test]
async fn a_half_open_connection_stays_silent_until_the_network_is_restored() {
    let (proxy, _server) = echo().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    ask(&mut stream, "hello").await.unwrap();
    wait_until("the echo counted", SOON, || async { proxy.bytes_to_client() == 5 }).await;
    proxy.half_open();
    stream.write_all(b"lost?").await.unwrap();
    wait_until("the bytes held back", SOON, || async { proxy.bytes_held() == 5 }).await;
    assert_eq!(proxy.bytes_to_server(), 5);
    let fresh = TcpStream::connect(proxy.addr()).await.unwrap();
    wait_until("a new connection taken", SOON, || async { proxy.open() == 2 }).await;
    drop(fresh);
    proxy.restore();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"lost?");
}

#[tokio::test]
async fn a_half_open_connection_can_still_be_cut() {
    let (proxy, _server) = echo().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    ask(&mut stream, "hello").await.unwrap();
    proxy.half_open();
    stream.write_all(b"lost").await.unwrap();
    wait_until("the bytes held back", SOON, || async { proxy.bytes_held() == 4 }).await;
    proxy.cut().await;
    stream.read_u8().await.unwrap_err();
    assert_eq!((proxy.bytes_held(), proxy.bytes_to_server()), (0, 5));
}

#[tokio::test]
async fn a_delay_holds_back_every_answer() {
    let (proxy, _server) = echo().await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let delay = Duration::from_millis(40);
    proxy.delay(delay);
    let start = Instant::now();
    assert_eq!(ask(&mut stream, "slow").await.unwrap(), "slow");
    assert!(start.elapsed() >= delay * 2, "once in each direction");
}

#[tokio::test]
async fn a_client_of_a_server_that_is_not_there_is_reset() {
    // Bound and not listening: nobody else can come to serve this port.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let proxy = CuttingProxy::before(bound.local_addr().unwrap()).await;
    // The reset may come before the client has noticed that it is connected.
    let connect = async { TcpStream::connect(proxy.addr()).await?.read_u8().await };
    connect.await.unwrap_err();
}

#[tokio::test]
async fn a_dropped_proxy_closes_its_connections_and_its_port() {
    let (proxy, _server) = echo().await;
    let addr = proxy.addr();
    let mut stream = TcpStream::connect(addr).await.unwrap();
    ask(&mut stream, "hello").await.unwrap();
    drop(proxy);
    stream.read_u8().await.unwrap_err();
    TcpStream::connect(addr).await.unwrap_err();
}

#[tokio::test]
async fn the_configuration_keeps_all_but_the_address() {
    let given: tokio_postgres::Config =
        "host=db.example port=6000 user=ann password='p@ss w' dbname=orders application_name=it"
            .parse()
            .unwrap();
    let proxy = CuttingProxy::before(&given).await;
    let config = proxy.config();
    assert_eq!(config.get_ports(), [proxy.addr().port()]);
    assert_eq!((config.get_user(), config.get_dbname()), (Some("ann"), Some("orders")));
    assert_eq!(config.get_application_name(), Some("it"));
    assert_eq!(proxy.url(), format!("postgres://ann:p%40ss%20w@{}/orders", proxy.addr()));
}
