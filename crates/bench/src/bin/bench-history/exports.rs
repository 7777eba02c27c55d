//! A whole export over HTTP beside `COPY .. TO STDOUT` by psql, and the memory that it takes.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bench::{Installation, Replica, Verdicts, median};

use crate::memory;
use crate::session::Session;

pub(crate) struct Exports<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) session: &'a Session,
    pub(crate) replica: &'a Replica,
}

impl Exports<'_> {
    pub(crate) async fn measure(&self, verdicts: &mut Verdicts) -> Result<()> {
        let process = self.replica.process()?;
        let before = memory::resident(process)?;
        memory::forget_peak(process)?;
        let (mut exports, mut copies) = (vec![], vec![]);
        for _ in 0..3 {
            copies.push(self.copy().await?);
            let (rows, bytes, took) =
                self.session.export("/api/v1/audit/export?format=csv").await?;
            ensure!(rows >= self.installation.events, "the export has {rows} rows only");
            exports.push(took.as_secs_f64());
            println!(
                "export of {rows} rows, {} MB: {:.2} s; psql {:.2} s",
                bytes / 1_000_000,
                took.as_secs_f64(),
                copies.last().copied().unwrap_or(f64::NAN),
            );
        }
        let peak = memory::peak(process)?;
        println!("resident memory of the replica: {before:.1} MiB before, {peak:.1} MiB at most");
        verdicts.at_least("export, of psql's rate", median(copies) / median(exports), 0.6);
        verdicts.at_most("memory that three exports add, MiB", peak - before, 32.0);
        Ok(())
    }

    /// Seconds that psql takes for the same rows, into nothing.
    async fn copy(&self) -> Result<f64> {
        let mut psql = self.installation.psql();
        psql.args(["--command", include_str!("copy.sql")]).stdout(Stdio::null());
        let start = Instant::now();
        let status = psql.status().await.context("running psql")?;
        ensure!(status.success(), "psql ended with {status}");
        Ok(start.elapsed().as_secs_f64())
    }
}
