//! What a count is measured against: one trivial upsert of an UNLOGGED row through the same driver, over as many
//! pipelined connections as the limits keep, and with a connection for each client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bench::Installation;
use futures_util::future::try_join_all;
use tokio_postgres::{Client, NoTls, Statement};

const TABLE: &str =
    "create unlogged table counter (name text, key text, count int8, primary key (name, key))
    with (fillfactor = 50)";
const UPSERT: &str = "insert into counter (name, key, count) values ('w', $1, 1)
    on conflict (name, key) do update set count = counter.count + 1";

pub(crate) struct Upserts {
    connections: Vec<Arc<(Client, Statement)>>,
}

impl Upserts {
    pub(crate) async fn open(installation: &Installation, connections: usize) -> Result<Self> {
        let mut opened = vec![];
        for number in 0..connections {
            let (client, connection) = installation.limits().connect(NoTls).await?;
            tokio::spawn(connection);
            if number == 0 {
                client.batch_execute(TABLE).await?;
            }
            let statement = client.prepare(UPSERT).await?;
            opened.push(Arc::new((client, statement)));
        }
        Ok(Self { connections: opened })
    }

    /// Upserts a second of so many clients over so many connections, on the keys that `key` gives.
    pub(crate) async fn rate(
        &self,
        clients: usize,
        connections: usize,
        run: Duration,
        key: impl Fn(u32) -> String + Clone + Send + 'static,
    ) -> Result<f64> {
        let start = Instant::now();
        let connections = self.connections.iter().take(connections).cycle().take(clients);
        let tasks = connections.zip(0_u32..).map(|(connection, client)| {
            let (connection, key) = (Arc::clone(connection), key.clone());
            let task = tokio::spawn(async move {
                let (upserts, statement) = &*connection;
                let mut done = 0_u32;
                while start.elapsed() < run {
                    let key = key(client.wrapping_mul(7919).wrapping_add(done));
                    upserts.execute(statement, &[&key]).await?;
                    done += 1;
                }
                anyhow::Ok(done)
            });
            async move { task.await? }
        });
        let done: u32 = try_join_all(tasks.collect::<Vec<_>>()).await?.into_iter().sum();
        Ok(f64::from(done) / start.elapsed().as_secs_f64())
    }
}
