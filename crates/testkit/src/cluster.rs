//! Private PostgreSQL clusters: one that a test process shares, and ones of a test's own.

use std::{
    ops::{Deref, DerefMut},
    path::PathBuf,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use local_postgres::{Cluster, ClusterOptions, Standby, StopMode};
use tokio::sync::OnceCell;

use crate::folder::MarkedFolder;

/// Outlives every test's runtime. What tests share must not be bound to the runtime of the test
/// that happened to be first.
static SHARED_RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime for what tests share")
});

/// The cluster that all tests of a process share. It ends with the process.
///
/// Tests meet in it only if they stay in their own [`TestDatabase`](crate::TestDatabase): roles,
/// settings of the server and its statistics belong to the whole cluster.
#[derive(Debug)]
pub struct SharedCluster {
    cluster: Cluster,
    /// Kept for its lock; a later process removes the folder.
    _folder: MarkedFolder,
}

impl Deref for SharedCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// The cluster of this test process, started by the first call. It does not survive a crash of
/// the machine (`fsync` is off) and takes 300 connections.
///
/// Under a runner that starts one process a test, such as nextest, each test has one.
///
/// # Panics
/// When PostgreSQL is not installed or does not start, with the reason.
pub async fn cluster() -> &'static SharedCluster {
    static SHARED: OnceCell<SharedCluster> = OnceCell::const_new();
    SHARED
        .get_or_init(|| async {
            let start = SHARED_RUNTIME.spawn(async {
                let folder = MarkedFolder::create();
                let options = options(&folder).setting("max_connections", "300");
                SharedCluster { cluster: started(options).await, _folder: folder }
            });
            start.await.expect("the shared cluster starts")
        })
        .await
}

/// A cluster of one test's own, to stop, restart and fail over. Ends with the drop and with the
/// process; its folder is removed.
///
/// Derefs to [`Cluster`], for its addresses, settings and files.
#[derive(Debug)]
pub struct OwnCluster {
    // The order of the drops: the server goes before its folder.
    cluster: Cluster,
    folder: MarkedFolder,
    standbys: AtomicU32,
}

/// Starts a cluster for one test; `set` may change its options, as in
/// `own_cluster(|options| options.setting("max_connections", "20"))`. `fsync` is off unless set.
///
/// # Panics
/// When PostgreSQL is not installed or does not start, with the reason.
pub async fn own_cluster(set: impl FnOnce(ClusterOptions) -> ClusterOptions) -> OwnCluster {
    let folder = MarkedFolder::create();
    let cluster = started(set(options(&folder))).await;
    OwnCluster { cluster, folder, standbys: AtomicU32::new(0) }
}

impl OwnCluster {
    /// Stops the server and waits until it has ended.
    ///
    /// # Panics
    /// When it does not stop.
    pub async fn stop(&mut self, mode: StopMode) {
        self.cluster.stop(mode).await.unwrap_or_else(|error| panic!("stopping: {error}"));
    }

    /// Starts the stopped server on the same port and data.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_again(&mut self) {
        self.cluster.start_again().await.unwrap_or_else(|error| panic!("starting again: {error}"));
    }

    /// Adds a hot standby that follows this cluster.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn add_standby(&self) -> OwnStandby {
        let number = self.standbys.fetch_add(1, Ordering::Relaxed);
        // A folder of its own: the standby may be kept longer than its primary.
        let folder = MarkedFolder::create();
        let standby = self
            .cluster
            .add_standby(folder.path().join(format!("standby-{number}")))
            .await
            .unwrap_or_else(|error| panic!("adding a standby: {error}"));
        OwnStandby { standby, _folder: folder }
    }

    /// The folder that holds the cluster and is removed with it; room for a test's own files.
    pub fn temporary_folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

impl Deref for OwnCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// A standby of an [`OwnCluster`]. Derefs to [`Standby`]: `promote()` makes it a primary.
#[derive(Debug)]
pub struct OwnStandby {
    // The order of the drops: the server goes before its folder.
    standby: Standby,
    _folder: MarkedFolder,
}

impl Deref for OwnStandby {
    type Target = Standby;

    fn deref(&self) -> &Standby {
        &self.standby
    }
}

impl DerefMut for OwnStandby {
    fn deref_mut(&mut self) -> &mut Standby {
        &mut self.standby
    }
}

fn options(folder: &MarkedFolder) -> ClusterOptions {
    ClusterOptions::new(folder.path().join("cluster")).setting("fsync", "off")
}

async fn started(options: ClusterOptions) -> Cluster {
    Cluster::start(options)
        .await
        .unwrap_or_else(|error| panic!("no PostgreSQL to test on: {error}"))
}
