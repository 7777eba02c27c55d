//! Pointing a connection configuration at another address.

use std::net::SocketAddr;

use tokio_postgres::{Config, config::SslMode};

/// The same user, password, database and session settings, at `addr` and without TLS.
pub(crate) fn readdressed(config: &Config, addr: SocketAddr) -> Config {
    let mut moved = Config::new();
    moved.host(addr.ip().to_string()).port(addr.port()).ssl_mode(SslMode::Disable);
    if let Some(user) = config.get_user() {
        moved.user(user);
    }
    if let Some(password) = config.get_password() {
        moved.password(password);
    }
    if let Some(database) = config.get_dbname() {
        moved.dbname(database);
    }
    if let Some(options) = config.get_options() {
        moved.options(options);
    }
    if let Some(name) = config.get_application_name() {
        moved.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        moved.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        moved.tcp_user_timeout(*timeout);
    }
    moved.target_session_attrs(config.get_target_session_attrs());
    moved
}

/// `postgres://` address of a TCP configuration, for programs that take one as a setting.
///
/// # Panics
/// When the configuration has no TCP address.
pub(crate) fn url(config: &Config, addr: SocketAddr) -> String {
    let user = escaped(config.get_user().unwrap_or("postgres").as_bytes());
    let password = config.get_password().map(|password| format!(":{}", escaped(password)));
    let database = escaped(config.get_dbname().unwrap_or("postgres").as_bytes());
    format!("postgres://{user}{}@{addr}/{database}", password.unwrap_or_default())
}

/// Percent-encodes all but letters, digits and `-._~`.
fn escaped(text: &[u8]) -> String {
    use std::fmt::Write as _;
    text.iter().fold(String::new(), |mut out, &byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a string takes what is written to it");
        }
        out
    })
}
