//! Ports of 127.0.0.1.

use std::net::{Ipv4Addr, TcpListener};

use crate::error::LocalPostgresError;

/// Below the range that systems take outgoing ports from, so that a stopped server's port is
/// not taken by some client before the server starts again.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

pub(crate) fn free() -> Result<u16, LocalPostgresError> {
    (0..1000)
        .map(|_| rand::random_range(RANGE))
        .find(|port| is_free(*port))
        .ok_or(LocalPostgresError::NoPort)
}
