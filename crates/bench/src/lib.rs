//! What the benchmarks share: how a figure is judged, what machine it was measured on, and a Studio to measure.

mod installation;
mod machine;
mod verdict;

pub use installation::{Account, Installation, Replica};
pub use machine::{describe, load};
pub use verdict::Verdicts;

/// The middle value of a few runs.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A folder for a private server, which the server's unprivileged account can reach.
///
/// # Errors
///
/// When the folder cannot be made.
pub fn server_folder() -> std::io::Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new().prefix("bench-").tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}
