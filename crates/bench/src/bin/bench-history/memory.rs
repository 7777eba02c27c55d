//! Resident memory of another process, as Linux tells it.

use anyhow::{Context as _, Result};

/// Resident memory now, in MiB.
pub(crate) fn resident(process: u32) -> Result<f64> {
    field(process, "VmRSS:")
}

/// The most that was resident since [`forget_peak`], in MiB.
pub(crate) fn peak(process: u32) -> Result<f64> {
    field(process, "VmHWM:")
}

/// Begins to look for the peak anew.
pub(crate) fn forget_peak(process: u32) -> Result<()> {
    std::fs::write(format!("/proc/{process}/clear_refs"), "5").context("resetting the peak memory")
}

fn field(process: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kib: u32 = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .with_context(|| format!("no {name} in the status of process {process}"))?;
    Ok(f64::from(kib) / 1024.0)
}
