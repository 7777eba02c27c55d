//! A folder that the server's account can enter.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::error::{Doing, LocalPostgresError};

/// `preferred`, or a folder below `/var/lib/local-postgres` when root starts the server and its
/// account cannot enter the way to `preferred`: in a checkout below `/root`, say. The same
/// `preferred` gives the same answer on the same machine. Nothing is created.
///
/// # Errors
///
/// [`LocalPostgresError::NoAccount`] for root without an unprivileged account.
pub fn reachable_folder(preferred: &Path) -> Result<PathBuf, LocalPostgresError> {
    let preferred = std::path::absolute(preferred).doing("cannot resolve", preferred)?;
    let account = Account::for_data(&preferred.join("data"))?;
    // What does not exist yet is created open to pass, so the way to it is what counts.
    let way = preferred.ancestors().skip(1).find(|step| step.is_dir()).unwrap_or(Path::new("/"));
    match account.check_reach(way) {
        Ok(()) => Ok(preferred),
        Err(LocalPostgresError::NotTraversable { .. }) => {
            let name = preferred.file_name().unwrap_or_default().to_string_lossy();
            let place = fnv1a(preferred.as_os_str().as_encoded_bytes());
            Ok(Path::new("/var/lib/local-postgres").join(format!("{name}-{place:016x}")))
        }
        Err(other) => Err(other),
    }
}

/// A hash that stays the same over releases of Rust, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
