//! Runs a checked query: a connection of its own under the role's login, a read-only transaction,
//! every row read into a bounded buffer, and the connection closed.

mod answer;
mod bounded;
mod chunks;
mod failure;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use tokio_postgres::{Client, Config, NoTls};
use tokio_util::sync::CancellationToken;

pub(crate) use self::answer::{Answer, Document};
use self::answer::{Column, Room};
pub(crate) use self::failure::{Failure, invalid_sql};
use super::bounds::{self, COLUMNS_MAX};
use crate::app::App;
use crate::platform::heavy::Permit;
use crate::platform::work::{Bounds, Ended};

/// How long a query waits for its connection.
const CONNECTION_WAIT: Duration = Duration::from_secs(2);

/// What the role's own settings say too; here they hold also where the set-up could not be made.
const SET_LOCAL: &str = "set local search_path = console; set local lock_timeout = '1s'; \
     set local work_mem = '8MB'; set local hash_mem_multiplier = 1; set local jit = off; \
     set local max_parallel_workers_per_gather = 0; set local standard_conforming_strings = on; \
     set local client_min_messages = error; set local timezone = 'UTC'; \
     set local datestyle = 'ISO, YMD'; set local intervalstyle = postgres; \
     set local bytea_output = hex; set local extra_float_digits = 1;";

/// Runs a checked statement until its end or the first of its bounds.
///
/// When this returns the statement has ended in the database too, or its backend was told to
/// terminate, and its connection is closed.
///
/// # Errors
///
/// A [`Failure`] says why there is no answer.
///
/// # Cancel safety
///
/// Not cancel safe: a task that is never dropped calls it, and tells by `left` that its client has
/// gone.
pub(crate) async fn run(
    app: &App,
    login: &Config,
    checked: &str,
    permit: &Permit,
    left: &CancellationToken,
) -> Result<Answer, Failure> {
    let client = connect(app, login).await?;
    let limited =
        Bounds { permit, at_most: None, left, terminator: &app.pools.main, set_local: SET_LOCAL };
    // Outside the work, so that what was read survives a stop at the time bound.
    let answer = Arc::new(Mutex::new(Answer::new(permit.endpoint())));
    let (growing, checked) = (Arc::clone(&answer), checked.to_owned());
    let rows = bounds::rows(permit.endpoint());
    let (ended, connection) = limited
        .run(client, move |client| {
            async move { read(client, &checked, rows, &growing).await }.boxed()
        })
        .await;
    // Never used again: what a query could have left in the session goes with it.
    drop(connection);
    let mut answer = std::mem::replace(
        &mut *answer.lock().unwrap_or_else(PoisonError::into_inner),
        Answer::new(permit.endpoint()),
    );
    match ended {
        Ended::Done(Ok(())) => Ok(answer),
        Ended::Done(Err(failure)) => Err(failure),
        Ended::TimeBound if answer.row_count() > 0 => {
            answer.stop_at_time_bound();
            Ok(answer)
        }
        Ended::TimeBound => Err(Failure::TimeBound(*permit.endpoint())),
        Ended::ClientLeft => Err(Failure::ClientLeft),
        Ended::Administrator if permit.is_stop_asked() => Err(Failure::Evicted),
        Ended::Administrator | Ended::RecoveryConflict => Err(Failure::Stopped),
        Ended::Failed(error) => Err(Failure::from(error)),
    }
}

/// A connection of its own, at most [`CONNECTION_WAIT`] away.
async fn connect(app: &App, login: &Config) -> Result<Client, Failure> {
    let mut config = login.clone();
    config.application_name("studio sql console");
    let (client, connection) = tokio::time::timeout(CONNECTION_WAIT, config.connect(NoTls))
        .await
        .map_err(|_| Failure::Unavailable("no connection in time".to_owned()))?
        .map_err(|error| Failure::Unavailable(error.to_string()))?;
    app.tasks.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "A connection of the SQL console ended");
        }
    });
    Ok(client)
}

/// Reads rows until they end or no more fit, at most `most`.
async fn read(
    client: &Client,
    checked: &str,
    most: u64,
    answer: &Mutex<Answer>,
) -> Result<Result<(), Failure>, tokio_postgres::Error> {
    // The checked statement itself, so that what PostgreSQL has against it is about its author's text.
    let columns: Vec<Column> = client
        .prepare(checked)
        .await?
        .columns()
        .iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            data_type: column.type_().name().to_owned(),
        })
        .collect();
    if columns.len() > COLUMNS_MAX {
        return Ok(Err(Failure::TooManyColumns(columns.len())));
    }
    let lock = || answer.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = lock().begin(&columns) {
        return Ok(Err(Failure::Internal(error.to_string())));
    }
    let statement = client.prepare(&bounded::statement(checked, columns.len(), most)).await?;
    let rows = client.query_raw(&statement, std::iter::empty::<&str>()).await?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await? {
        let cut = row.try_get::<_, Option<Vec<i32>>>(2)?;
        let room = lock().push(row.try_get(0)?, row.try_get(1)?, cut.as_deref());
        match room {
            Ok(Room::More) => {}
            Ok(Room::Full) => {
                stop(client).await;
                // The end of the statement, or its cancellation: the answer is whole either way.
                while let Some(Ok(_)) = rows.next().await {}
                break;
            }
            Err(error) => return Ok(Err(Failure::Internal(error.to_string()))),
        }
    }
    Ok(Ok(()))
}

/// Asks the server to stop. Its connection is closed afterwards, so a late cancel hits nobody.
async fn stop(client: &Client) {
    if let Err(error) = client.cancel_token().cancel_query(NoTls).await {
        tracing::warn!(error = %error, "A cancel could not be sent");
    }
}
