//! A hot standby of a private cluster.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use crate::account::Account;
use crate::error::LocalPostgresError;
use crate::folder::{Folder, write_closed};
use crate::options::StopMode;
use crate::orphans;
use crate::server::{Plan, SUPERUSER, Server};

/// A hot standby that follows a [`Cluster`](crate::Cluster) by streaming; readable until it is
/// promoted, a primary of its own from then on. Dropping it stops it as a cluster is stopped.
#[derive(Debug)]
pub struct Standby {
    server: Server,
}

impl Standby {
    pub(crate) async fn start(primary: &Server, folder: &Path) -> Result<Self, LocalPostgresError> {
        let folder = Folder::take(folder).await?;
        let from = primary.plan();
        let binaries = from.binaries.clone();
        let account = Account::for_data(&folder.data())?;
        account.check_reach(folder.path())?;
        let signal = folder.data().join("standby.signal");
        if folder.data_version()?.is_none() {
            let data = folder.unfinished_data(account)?;
            let (socket, port) = (primary.socket_folder().display(), primary.port());
            let arguments = [
                format!("--pgdata={}", data.display()),
                format!("--host={socket}"),
                format!("--port={port}"),
                format!("--username={SUPERUSER}"),
                "--wal-method=stream".to_owned(),
                "--checkpoint=fast".to_owned(),
                "--no-password".to_owned(),
            ];
            let tool = binaries.tool("pg_basebackup");
            if let Err(error) = account.run("pg_basebackup", &tool, arguments).await {
                drop(fs::remove_dir_all(&data));
                return Err(error);
            }
            write_closed(&data.join("standby.signal"), "", account)?;
            folder.finish_data(&data)?;
        } else {
            orphans::settle(&folder, &binaries, account).await?;
            if !signal.exists() {
                return Err(LocalPostgresError::Promoted(folder.path().to_owned()));
            }
        }
        folder.keep_password(&from.password, account)?;
        let plan = Plan {
            folder,
            binaries,
            account,
            password: from.password.clone(),
            port: None,
            settings: from.settings.clone(),
            primary: Some(format!(
                "host={} port={} user={SUPERUSER} application_name=standby",
                primary.socket_folder().display(),
                primary.port(),
            )),
        };
        Ok(Self { server: Server::start(plan).await? })
    }

    /// Makes it a primary of its own, and waits until it accepts writes.
    ///
    /// # Errors
    ///
    /// It is not running, or no longer a standby.
    pub async fn promote(&self) -> Result<(), LocalPostgresError> {
        let plan = self.server.plan();
        let data = plan.folder.data();
        let arguments = [
            "promote".as_ref(),
            "-D".as_ref(),
            data.as_os_str(),
            "-w".as_ref(),
            "-t".as_ref(),
            "60".as_ref(),
        ];
        plan.account.run("pg_ctl", &plan.binaries.tool("pg_ctl"), arguments).await?;
        Ok(())
    }

    /// See [`Cluster::stop`](crate::Cluster::stop).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn stop(&mut self, mode: StopMode) -> Result<(), LocalPostgresError> {
        self.server.stop(mode).await
    }

    /// See [`Cluster::start_again`](crate::Cluster::start_again).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn start_again(&mut self) -> Result<(), LocalPostgresError> {
        self.server.start_again().await
    }
}

impl Deref for Standby {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}
