//! What permits are measured against: two trivial upserts of an UNLOGGED row.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio_postgres::{Client, Statement};

use crate::pairs::all;
use crate::server::Server;

const UPSERT: &str = "insert into counter (key, count, at) values ($1, 1, clock_timestamp())
    on conflict (key) do update set count = counter.count + 1, at = clock_timestamp()";

pub(crate) struct Upserts {
    connections: Vec<Arc<(Client, Statement)>>,
}

impl Upserts {
    pub(crate) async fn open(server: &Server, connections: usize) -> Result<Self> {
        let first = server.client(&server.limits()).await?;
        first
            .batch_execute(
                "create unlogged table counter (key text primary key, count int8, at timestamptz)
                 with (fillfactor = 50)",
            )
            .await?;
        let mut opened = vec![];
        for _ in 0..connections {
            let client = server.client(&server.limits()).await?;
            let statement = client.prepare(UPSERT).await?;
            opened.push(Arc::new((client, statement)));
        }
        Ok(Self { connections: opened })
    }

    /// Each client on a connection and a key of its own; two upserts count as one.
    pub(crate) async fn pairs_on_connections(&self, clients: usize, run: Duration) -> Result<f64> {
        self.pairs(clients, self.connections.len(), run).await
    }

    /// Each client on a key of its own, all over two pipelined connections.
    pub(crate) async fn pairs_pipelined(&self, clients: usize, run: Duration) -> Result<f64> {
        self.pairs(clients, 2, run).await
    }

    async fn pairs(&self, clients: usize, connections: usize, run: Duration) -> Result<f64> {
        let start = Instant::now();
        let tasks = self.connections.iter().take(connections).cycle().take(clients).enumerate();
        let tasks = tasks.map(|(client, connection)| {
            let connection = Arc::clone(connection);
            let key = format!("client-{client}");
            let task = tokio::spawn(async move {
                let (client, statement) = &*connection;
                let mut pairs = 0_u32;
                while start.elapsed() < run {
                    client.execute(statement, &[&key]).await?;
                    client.execute(statement, &[&key]).await?;
                    pairs += 1;
                }
                anyhow::Ok(pairs)
            });
            async move { task.await? }
        });
        let pairs: u32 = all(tasks.collect::<Vec<_>>()).await?.into_iter().sum();
        Ok(f64::from(pairs) / start.elapsed().as_secs_f64())
    }
}
