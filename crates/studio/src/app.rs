//! The application: its shared state, and the router built from the route table.

mod by_token;
mod cors;
mod guard;

use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::cors::CorsLayer;
use utoipa::OpenApi as _;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use uuid::Uuid;

use crate::features;
use crate::platform::account::PasswordChecks;
use crate::platform::audit::AuditTrail;
use crate::platform::bus::Bus;
use crate::platform::database::Pools;
use crate::platform::heavy::{self, Endpoint, HeavyRequests};
use crate::platform::in_force::InForce;
use crate::platform::refusals::Refusals;
use crate::platform::route::Cost;
use crate::platform::token;
use crate::settings::Settings;

/// The largest body that is read: 64 KiB of query text with every character escaped.
const BODY_BYTES: usize = 512 * 1024;

/// What every handler may use. Clones share everything.
#[derive(Debug, Clone)]
pub struct App {
    /// The settings this replica was started with.
    pub settings: Arc<Settings>,
    /// Connections to Studio's database.
    pub pools: Pools,
    /// The limits on heavy requests, shared by all replicas.
    pub heavy: HeavyRequests,
    /// The audit trail.
    pub audit: AuditTrail,
    /// Settings that change at run time.
    pub in_force: InForce,
    /// What replicas tell each other.
    pub bus: Bus,
    /// Refusals of all limits, over time.
    pub refusals: Refusals,
    /// When the set-up of the SQL console was last found to hold.
    pub console: features::sql_console::SetUpSeen,
    /// Checks passwords.
    pub passwords: Arc<PasswordChecks>,
    /// Which tokens were lately noted as used.
    pub token_uses: token::UsesNoted,
    /// Whose the tokens are that this replica has seen.
    pub token_owners: token::TokenOwners,
    /// What pages of other origins may do.
    cors: Option<CorsLayer>,
    /// Work that outlives its handler; awaited at shutdown.
    pub tasks: TaskTracker,
    /// Cancelled when this replica begins to shut down.
    pub shutdown: CancellationToken,
    /// Cancelled when this replica has no more time to let heavy work finish.
    pub stop_work: CancellationToken,
    /// This replica's id, new at every start.
    pub replica: Uuid,
}

impl App {
    /// Prepares everything a replica needs. Pools connect when a connection is first needed.
    ///
    /// # Errors
    /// When an address in the settings is not one, or the limits cannot be reached.
    pub async fn new(settings: Settings) -> anyhow::Result<Self> {
        let main: tokio_postgres::Config =
            settings.database.url.parse().context("database.url is not an address")?;
        let in_force = InForce::new(&settings, main.clone())?;
        let pools = Pools::new(main, usize::try_from(settings.database.main_pool)?)?;
        let tasks = TaskTracker::new();
        let heavy = heavy::connect(&settings, &endpoints()).await?;
        let replica = heavy.replica();
        Ok(Self {
            audit: AuditTrail::new(pools.clone(), tasks.clone(), replica),
            cors: cors::layer(&settings.http)?,
            settings: Arc::new(settings),
            pools,
            heavy,
            in_force,
            bus: Bus::default(),
            refusals: Refusals::default(),
            console: features::sql_console::SetUpSeen::default(),
            passwords: Arc::default(),
            token_uses: token::UsesNoted::default(),
            token_owners: token::TokenOwners::default(),
            tasks,
            shutdown: CancellationToken::new(),
            stop_work: CancellationToken::new(),
            replica,
        })
    }

    /// The HTTP face: every route of the table behind its own guard.
    pub fn router(&self) -> Router {
        let mut router = OpenApiRouter::with_openapi(Document::openapi());
        for route in features::routes() {
            let guard = guard::Guard::new(self.clone(), &route);
            let layer = axum::middleware::from_fn_with_state(guard, guard::check);
            router = router.routes(route.methods.map(|methods| methods.route_layer(layer)));
        }
        let (router, _) = router.split_for_parts();
        let router = router
            .fallback(guard::nothing_here)
            .method_not_allowed_fallback(guard::wrong_method)
            .layer(DefaultBodyLimit::max(BODY_BYTES))
            .layer(tower_http::catch_panic::CatchPanicLayer::custom(guard::panicked))
            .layer(axum::middleware::from_fn(guard::around));
        // Outermost: a page of another origin may read a refusal too, and its preflight costs nothing.
        let router = match &self.cors {
            Some(cors) => router.layer(cors.clone()),
            None => router,
        };
        router.with_state(self.clone())
    }
}

/// Every endpoint whose requests are heavy.
fn endpoints() -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for route in features::routes() {
        if let Cost::Heavy(endpoint) = route.cost
            && !endpoints.iter().any(|known| known.name() == endpoint.name())
        {
            endpoints.push(*endpoint);
        }
    }
    endpoints
}

/// The frame of the API's document.
#[derive(utoipa::OpenApi)]
#[openapi(info(
    title = "Studio",
    description = "A replicated web console for Apache ActiveMQ Artemis clusters. Problems are RFC 9457 documents; 64-bit numbers are strings; times are RFC 3339 in UTC with microseconds.",
))]
struct Document;

/// The document of the API, generated from the route table.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut router = OpenApiRouter::with_openapi(Document::openapi());
    for route in features::routes() {
        router = router.routes(route.methods);
    }
    let (_, document): (Router<App>, _) = router.split_for_parts();
    document
}
