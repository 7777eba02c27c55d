//! Pools of connections to Studio's own database.

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::NoTls;

/// How long a request waits for a connection of the main pool.
pub const CONNECTION_WAIT: Duration = Duration::from_secs(2);

/// How long a new connection may take: on a loaded machine the password's exchange alone takes a while.
const CONNECT: Duration = Duration::from_secs(5);

/// What every session of the main pool is bounded by, unless its transaction says otherwise: the longest that a cheap
/// request takes. A handler that was dropped leaves its statement behind, which must end too.
const SESSION: &str = "-c statement_timeout=60s -c idle_in_transaction_session_timeout=60s";

/// The pools of one replica.
#[derive(Debug, Clone)]
pub struct Pools {
    /// Connections of the role `studio_app` to Studio's database. Cheap requests and heavy ones share it, which is
    /// why heavy ones are capped for the installation.
    pub main: Pool,
}

impl Pools {
    /// Pools that connect when a connection is first needed.
    ///
    /// # Errors
    /// When the size is none.
    pub fn new(mut main: tokio_postgres::Config, main_size: usize) -> Result<Self, anyhow::Error> {
        let options = main.get_options().map_or_else(String::new, |options| format!("{options} "));
        main.options(format!("{options}{SESSION}"));
        Ok(Self { main: pool(main, main_size)? })
    }

    /// Opens some connections ahead, so that the first requests need not wait for them. Fewer are no harm.
    pub async fn warm(&self, connections: usize) {
        let opened =
            futures_util::future::join_all((0..connections).map(|_| self.main.get())).await;
        if let Some(Err(error)) = opened.into_iter().find(Result::is_err) {
            tracing::warn!(error = %error, "Connections could not be opened ahead");
        }
    }

    /// A connection of the main pool, waited for at most [`CONNECTION_WAIT`].
    pub async fn main(&self) -> Result<Object, PoolError> {
        self.main.get().await
    }
}

/// A pool whose waits are bounded by [`CONNECTION_WAIT`].
pub fn pool(config: tokio_postgres::Config, size: usize) -> Result<Pool, anyhow::Error> {
    let manager = Manager::from_config(
        config,
        NoTls,
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CONNECTION_WAIT))
        .create_timeout(Some(CONNECT))
        .recycle_timeout(Some(CONNECTION_WAIT))
        .build()?;
    Ok(pool)
}
