//! `studio demo run`: a private PostgreSQL, demo data and two replicas, until Ctrl-C.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use local_postgres::{Cluster, ClusterOptions, StopMode};
use tokio::signal::unix::{SignalKind, signal};

use super::FOLDER;
use super::replica::Replica;
use super::seed;
use super::state::State;
use crate::cli::{migrate, print, say};
use crate::platform::access::Role;
use crate::platform::schema;
use crate::settings::Settings;

/// What to run.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Run {
    /// Where PostgreSQL, logs and passwords are kept.
    #[arg(long, default_value = FOLDER)]
    folder: PathBuf,
    /// The replicas' ports on 127.0.0.1.
    #[arg(long, value_delimiter = ',', default_values_t = [8080, 8081])]
    ports: Vec<u16>,
    /// How many audit events the first run writes.
    #[arg(long, default_value_t = 200_000)]
    events: u64,
}

impl Run {
    pub(in crate::cli) async fn run(&self) -> anyhow::Result<()> {
        // Before anything is started, so that an early Ctrl-C is not lost.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("creating {}", self.folder.display()))?;
        let folder = self.folder.canonicalize()?;
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        tokio::pin!(stop);

        print("Starting a private PostgreSQL ..")?;
        // Root's server account may not be able to enter a checkout below a closed home folder.
        let postgres = local_postgres::reachable_folder(&folder.join("postgres"))?;
        let options = ClusterOptions::new(postgres).setting("max_connections", "200");
        // Whatever is dropped on the way out stops by itself: the server, and with their input the replicas.
        let mut cluster = Cluster::start(options).await.context("starting a private PostgreSQL")?;
        let up = tokio::select! {
            up = self.up(&folder, &cluster) => Some(up?),
            () = &mut stop => None,
        };
        let result = match up {
            Some(mut replicas) => {
                let result = tokio::select! {
                    () = &mut stop => Ok(()),
                    ended = any_ended(&mut replicas) => ended,
                };
                say("Stopping ..");
                for replica in replicas {
                    if let Err(error) = replica.stop().await {
                        say(&format!("{error:#}"));
                    }
                }
                result
            }
            None => Ok(()),
        };
        cluster.stop(StopMode::Fast).await.context("stopping PostgreSQL")?;
        say("Stopped. The next run goes on with the same data.");
        result
    }

    /// Brings everything up and says what to do next.
    async fn up(&self, folder: &Path, cluster: &Cluster) -> anyhow::Result<Vec<Replica>> {
        let mut state = State::load_or_new(folder)?;
        state.database = cluster.url("studio");
        state.replicas = self.ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
        state.save(folder)?;
        let settings = settings(cluster, &state);
        print("Migrating ..")?;
        // The whole server is ours, so the console's roles can be kept to the one database.
        let superuser = schema::connect(&cluster.config("postgres")).await?;
        superuser
            .batch_execute("revoke connect on database postgres, template1 from public")
            .await?;
        migrate::migrate(&settings).await?;
        if !state.is_seeded {
            print("Writing demo data ..")?;
            let client = schema::connect(&schema::owner(&settings)?).await?;
            for account in &state.accounts {
                seed::create(&client, account).await?;
            }
            seed::write_events(&client, self.events).await?;
            state.is_seeded = true;
            state.save(folder)?;
        }
        let mut replicas = Vec::new();
        for port in &self.ports {
            replicas.push(Replica::start(&settings, folder, *port).await?);
        }
        tell(folder, &state, &replicas)?;
        Ok(replicas)
    }
}

fn tell(folder: &Path, state: &State, replicas: &[Replica]) -> anyhow::Result<()> {
    print("")?;
    print("Studio is running:")?;
    for replica in replicas {
        print(&format!("  {}", replica.address()))?;
    }
    print("")?;
    print("Accounts:")?;
    for account in &state.accounts {
        let (role, name) = (account.role.name(), &account.name);
        print(&format!("  {role:<14} {name:<6} password {}", account.password))?;
    }
    print("")?;
    print("Next, in another terminal:  make show")?;
    print("It sends 20 SQL queries and exports of one user to both replicas at once,")?;
    print("and shows which were admitted, which were refused, and by whose limit.")?;
    print("")?;
    print(&format!("Logs are in {}. Ctrl-C stops everything.", folder.display()))?;
    Ok(())
}

async fn any_ended(replicas: &mut [Replica]) -> anyhow::Result<()> {
    let ends = replicas.iter_mut().map(|replica| {
        Box::pin(async {
            let status = replica.ended().await?;
            anyhow::bail!("the replica on {} ended by itself: {status}", replica.address())
        })
    });
    futures_util::future::select_all(ends).await.0
}

/// The settings of all replicas: addresses on the private server.
fn settings(cluster: &Cluster, state: &State) -> Settings {
    let address = |role: &str, password: &str, database: &str| {
        format!("postgresql://{role}:{password}@127.0.0.1:{}/{database}", cluster.port())
    };
    let mut settings = Settings::default();
    settings.database.url = address(schema::APP_ROLE, &state.app_password, "studio");
    settings.database.limits_url =
        address(schema::APP_ROLE, &state.app_password, schema::LIMITS_DATABASE);
    settings.database.migration_url = Some(cluster.url("studio"));
    let [viewer, operator, administrator] = &state.console_passwords;
    let console = |role: Role, password: &str| {
        Some(address(&format!("studio_console_{}", role.name()), password, "studio"))
    };
    settings.console.viewer_url = console(Role::Viewer, viewer);
    settings.console.operator_url = console(Role::Operator, operator);
    settings.console.administrator_url = console(Role::Administrator, administrator);
    settings
}
