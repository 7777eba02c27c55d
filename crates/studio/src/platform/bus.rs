//! The bus: PostgreSQL's LISTEN and NOTIFY between replicas.
//!
//! It says only *look again*, and it may lose what it says: whoever listens must read again by itself too, and does so
//! after every reconnect, because notifications sent meanwhile are gone. Senders use the statement
//! `notify "studio.<channel>"` in the transaction that writes, so that nobody looks before there is something to see.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Config, NoTls};
use tokio_util::sync::CancellationToken;

/// What a connection of the bus is called in `pg_stat_activity`.
pub const APPLICATION_NAME: &str = "studio bus";

/// How long a connection may take to be made and to listen.
const CONNECT: Duration = Duration::from_secs(5);
/// How long after a lost connection the next is tried: twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What replicas tell each other about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A setting was changed.
    Setting,
}

impl Channel {
    const ALL: [Self; 1] = [Self::Setting];

    /// The channel's name, which carries the schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setting => "studio.setting",
        }
    }
}

/// What one listener hears. Any number of notices before [`News::come`] count as one.
#[derive(Debug)]
pub struct News(watch::Receiver<u64>);

impl News {
    /// Waits until there may be something to read.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn come(&mut self) {
        if self.0.changed().await.is_err() {
            // The bus has ended: nothing comes any more, and the listener reads by its own clock.
            std::future::pending::<()>().await;
        }
    }
}

/// Tells every replica, this one too, once the transaction has been committed.
///
/// # Errors
/// The database's; the transaction must then not be committed.
pub async fn tell_in(
    client: &impl tokio_postgres::GenericClient,
    channel: Channel,
) -> Result<(), tokio_postgres::Error> {
    // The statement, for the function of the same name is taken from roles that may do less.
    client.batch_execute(&format!("notify \"{}\"", channel.name())).await
}

/// The bus of one replica. Clones share everything.
#[derive(Debug, Clone)]
pub struct Bus {
    channels: Arc<[(Channel, watch::Sender<u64>)]>,
}

impl Default for Bus {
    fn default() -> Self {
        let channels = Channel::ALL.map(|channel| (channel, watch::Sender::new(0)));
        Self { channels: Arc::new(channels) }
    }
}

impl Bus {
    /// Listens to a channel.
    pub fn news(&self, channel: Channel) -> News {
        let sender =
            self.channels.iter().find(|(own, _)| *own == channel).map(|(_, sender)| sender);
        News(sender.map_or_else(|| watch::Sender::new(0).subscribe(), watch::Sender::subscribe))
    }

    fn tell(&self, is_meant: impl Fn(Channel) -> bool) {
        for (_, sender) in self.channels.iter().filter(|(channel, _)| is_meant(*channel)) {
            sender.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Keeps a connection that listens, until shutdown.
    pub async fn keep(self, mut database: Config, shutdown: CancellationToken) {
        database.application_name(APPLICATION_NAME);
        database.connect_timeout(CONNECT);
        // A connection that the network forgot must not look alive for long.
        database.keepalives_idle(Duration::from_secs(10));
        let mut pause = FIRST_PAUSE;
        loop {
            let listening = tokio::select! {
                () = shutdown.cancelled() => return,
                ended = self.listen(&database) => ended,
            };
            match listening {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) => tracing::warn!(error = %error, "The bus cannot listen"),
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One connection, until it ends. Once it listens everybody looks, for what was said before is lost.
    async fn listen(&self, database: &Config) -> Result<(), tokio_postgres::Error> {
        let (client, mut connection) = database.connect(NoTls).await?;
        let listen =
            Channel::ALL.map(|channel| format!("listen \"{}\"", channel.name())).join("; ");
        let mut listening = std::pin::pin!(client.batch_execute(&listen));
        let mut is_listening = false;
        loop {
            let message = tokio::select! {
                listens = &mut listening, if !is_listening => {
                    listens?;
                    is_listening = true;
                    tracing::info!("The bus listens");
                    self.tell(|_| true);
                    continue;
                }
                message = poll_fn(|context| connection.poll_message(context)) => message,
            };
            match message {
                Some(Ok(AsyncMessage::Notification(notice))) => {
                    self.tell(|channel| channel.name() == notice.channel());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::warn!(error = %error, "The bus lost its connection");
                    return if is_listening { Ok(()) } else { Err(error) };
                }
                None => return Ok(()),
            }
        }
    }
}
