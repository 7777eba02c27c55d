//! Pools of connections to Studio's own database.

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::NoTls;

/// How long a request waits for a connection of the main pool.
pub const CONNECTION_WAIT: Duration = Duration::from_secs(2);

/// The pools of one replica.
#[derive(Debug, Clone)]
pub struct Pools {
    /// Connections of the role `studio_app` to Studio's database. Cheap requests and heavy ones share it, which is
    /// why heavy ones are capped for the installation.
    pub main: Pool,
}

impl Pools {
    /// Pools that connect when a connection is first needed.
    pub fn new(main: tokio_postgres::Config, main_size: usize) -> Result<Self, anyhow::Error> {
        Ok(Self { main: pool(main, main_size)? })
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
        .create_timeout(Some(CONNECTION_WAIT))
        .recycle_timeout(Some(CONNECTION_WAIT))
        .build()?;
    Ok(pool)
}
