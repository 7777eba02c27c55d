//! The route table: every route carries its cost and who may call it, and the application is built from it.

use std::fmt;
use std::time::Duration;

use utoipa_axum::router::UtoipaMethodRouter;

use super::access::Permission;
use super::heavy::Endpoint;
use crate::app::App;

/// What a request to a route may cost at most.
#[derive(Debug, Clone, Copy)]
pub enum Cost {
    /// Grows with the data: bounded by a permit of this endpoint.
    Heavy(&'static Endpoint),
    /// Bounded by itself: at most so many rows read and bytes answered, whatever the data.
    Cheap {
        /// The most rows that a request reads.
        rows: u32,
        /// The most bytes that a request answers.
        bytes: u32,
    },
}

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Public,
    /// Any account.
    SignedIn,
    /// An account whose role has this permission, and a token of it that was granted the same.
    Needs(Permission),
    /// Any account, by a session only: what a token may never do.
    Session,
    /// An account whose role has this permission, by a session only.
    SessionNeeds(Permission),
}

impl Access {
    /// The permission that is needed.
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Public | Self::SignedIn | Self::Session => None,
            Self::Needs(permission) | Self::SessionNeeds(permission) => Some(permission),
        }
    }

    /// Whether a token is refused, whatever it was granted.
    pub const fn is_session_only(self) -> bool {
        matches!(self, Self::Session | Self::SessionNeeds(_))
    }
}

/// One path with its methods.
pub struct Route {
    /// Handlers and their documentation, as `utoipa_axum::routes!` gives them.
    pub methods: UtoipaMethodRouter<App>,
    /// What a request may cost.
    pub cost: Cost,
    /// Who may call it. Checked before the handler runs.
    pub access: Access,
    /// The total time limit of a request, where it is not the usual one of its cost.
    pub time: Option<Duration>,
}

impl Route {
    /// A route of the table.
    pub fn new(access: Access, cost: Cost, methods: UtoipaMethodRouter<App>) -> Self {
        Self { methods, cost, access, time: None }
    }

    /// The same with a total time limit of its own.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// The paths and methods of this route, as documented.
    pub fn operations(&self) -> Vec<(String, http::Method)> {
        let mut operations = Vec::new();
        for (path, item) in &self.methods.1.paths {
            let methods = [
                (&item.get, http::Method::GET),
                (&item.post, http::Method::POST),
                (&item.put, http::Method::PUT),
                (&item.delete, http::Method::DELETE),
                (&item.patch, http::Method::PATCH),
            ];
            for (operation, method) in methods {
                if operation.is_some() {
                    operations.push((path.clone(), method));
                }
            }
        }
        operations
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Route")
            .field("operations", &self.operations())
            .field("cost", &self.cost)
            .field("access", &self.access)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
