//! How a server is reached.

use crate::server::{SUPERUSER, Server};

impl Server {
    /// Connects as the superuser over the Unix socket. Any role can: set `user`.
    pub fn config(&self, database: &str) -> tokio_postgres::Config {
        let mut config = self.login(database);
        config.host_path(self.socket_folder());
        config
    }

    /// Connects as the superuser to 127.0.0.1, with its password. Other roles need their own.
    pub fn tcp_config(&self, database: &str) -> tokio_postgres::Config {
        let mut config = self.login(database);
        config.host("127.0.0.1");
        config
    }

    fn login(&self, database: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.port(self.port()).user(SUPERUSER).password(&self.plan().password).dbname(database);
        config
    }

    /// The same as [`tcp_config`](Self::tcp_config), as a `postgresql://` address for any client.
    pub fn url(&self, database: &str) -> String {
        let database: String = database
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                    char::from(byte).to_string()
                }
                other => format!("%{other:02X}"),
            })
            .collect();
        let password = &self.plan().password;
        format!("postgresql://{SUPERUSER}:{password}@127.0.0.1:{}/{database}", self.port())
    }
}
