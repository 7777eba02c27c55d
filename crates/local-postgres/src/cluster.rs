//! A primary with its folder.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::{Doing, LocalPostgresError};
use crate::folder::Folder;
use crate::options::{ClusterOptions, StopMode};
use crate::server::{Plan, SUPERUSER, Server};
use crate::standby::Standby;
use crate::{download, orphans, settings};

/// A private PostgreSQL server with its data.
///
/// Dropping it stops the server: a fast stop, for which the thread is blocked some seconds at
/// most. Should this process be killed, a guard process stops the server.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
}

impl Cluster {
    /// Starts the cluster of `options`' folder, and initialises it when it is new.
    ///
    /// A server that a killed process left running on this folder is stopped first. Returns
    /// when connections are accepted. Dropping the future ends what it began; the next start
    /// works.
    ///
    /// # Errors
    ///
    /// See [`LocalPostgresError`]; a folder of someone else is refused and left as it is.
    pub async fn start(options: ClusterOptions) -> Result<Self, LocalPostgresError> {
        settings::check(&options.settings)?;
        let folder = Folder::take(&options.folder).await?;
        let account = Account::for_data(&folder.data())?;
        account.check_reach(folder.path())?;
        let binaries = download::find_or_download(&folder).await?;
        account.check_reach(binaries.folder())?;
        let password = folder.password(account)?;
        if folder.data_version()?.is_none() {
            let durable =
                !options.settings.iter().any(|(name, value)| name == "fsync" && value == "off");
            initialise(&folder, &binaries, account, durable).await?;
        } else {
            orphans::settle(&folder, &binaries, account).await?;
        }
        let (port, settings) = (options.port, options.settings);
        let plan = Plan { folder, binaries, account, password, port, settings, primary: None };
        Ok(Self { server: Server::start(plan).await? })
    }

    /// Stops the server and waits until it has ended. Does nothing when it is stopped.
    /// When the future is dropped, the server goes on stopping.
    ///
    /// # Errors
    ///
    /// [`LocalPostgresError::DidNotStop`] after 60 s, such as when [`StopMode::Smart`] waits for
    /// a client; the server goes on stopping.
    pub async fn stop(&mut self, mode: StopMode) -> Result<(), LocalPostgresError> {
        self.server.stop(mode).await
    }

    /// Starts the server that was stopped or has ended, on the same port. Does nothing when it
    /// runs.
    ///
    /// # Errors
    ///
    /// The server does not start, or its port was taken meanwhile.
    pub async fn start_again(&mut self) -> Result<(), LocalPostgresError> {
        self.server.start_again().await
    }

    /// Copies this cluster to `folder` and starts it there as a hot standby, on a port of its
    /// own and with the same settings. A standby that is there already goes on following.
    ///
    /// # Errors
    ///
    /// The folder is someone else's, the copy fails, or the standby does not start.
    pub async fn add_standby(
        &self,
        folder: impl Into<PathBuf>,
    ) -> Result<Standby, LocalPostgresError> {
        Standby::start(&self.server, &folder.into()).await
    }
}

impl Deref for Cluster {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

async fn initialise(
    folder: &Folder,
    binaries: &Binaries,
    account: Account,
    durable: bool,
) -> Result<(), LocalPostgresError> {
    let mut result = Ok(());
    // Not every system has C.UTF-8; C sorts the same way.
    for locale in ["C.UTF-8", "C"] {
        let data = folder.unfinished_data(account)?;
        let mut arguments = vec![
            format!("--pgdata={}", data.display()),
            format!("--username={SUPERUSER}"),
            format!("--pwfile={}", folder.password_path().display()),
            format!("--locale={locale}"),
            "--encoding=UTF8".to_owned(),
            "--auth-local=trust".to_owned(),
            "--auth-host=scram-sha-256".to_owned(),
        ];
        if !durable {
            arguments.push("--no-sync".to_owned());
        }
        result = match account.run("initdb", &binaries.tool("initdb"), arguments).await {
            Ok(_) => return folder.finish_data(&data),
            Err(error) => {
                fs::remove_dir_all(&data).doing("cannot remove", &data)?;
                Err(error)
            }
        };
        let no_locale = matches!(&result, Err(LocalPostgresError::Tool { output, .. })
            if output.contains("invalid locale"));
        if !no_locale {
            break;
        }
    }
    result
}
