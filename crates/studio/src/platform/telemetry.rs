//! Logs and metrics.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Sends logs to standard error: as JSON, or as text where a person watches.
pub fn log(is_json: bool) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,tokio_postgres=warn,refinery_core=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only when a test has set one before.
    if is_json {
        builder.json().try_init().ok()
    } else {
        builder.try_init().ok()
    };
}

/// The recorder of this process, installed when first asked for.
pub fn recorder() -> Option<&'static PrometheusHandle> {
    METRICS.get_or_init(|| PrometheusBuilder::new().install_recorder().ok()).as_ref()
}
