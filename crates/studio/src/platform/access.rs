//! Who is signed in, and what that account may do.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::problem::Problem;
use super::token::TokenId;
use crate::app::App;

/// What an account is in Studio. Each role may do everything that the one before it may.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks at queues and asks the SQL console.
    Viewer,
    /// Also reads the audit trail and works with messages.
    Operator,
    /// Also changes clusters, accounts, settings and limits.
    Administrator,
}

impl Role {
    /// All roles, weakest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Administrator];

    /// The name used in the database, in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// What this role may do.
    pub const fn permissions(self) -> &'static [Permission] {
        match self {
            Self::Viewer => &[Permission::SqlQuery, Permission::QueuesView],
            Self::Operator => &[
                Permission::SqlQuery,
                Permission::QueuesView,
                Permission::AuditRead,
                Permission::MessagesRead,
                Permission::MessagesSend,
                Permission::MessagesMove,
                Permission::MessagesDelete,
            ],
            Self::Administrator => &Permission::ALL,
        }
    }
}

/// One thing that an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Read the audit trail, page by page or as a file.
    AuditRead,
    /// Ask the SQL console.
    SqlQuery,
    /// See clusters, addresses and queues.
    QueuesView,
    /// See the content of messages.
    MessagesRead,
    /// Send messages.
    MessagesSend,
    /// Move messages between queues.
    MessagesMove,
    /// Delete messages.
    MessagesDelete,
    /// Create and delete queues.
    QueuesAdmin,
    /// Register clusters.
    ClustersAdmin,
    /// Create and change accounts.
    UsersAdmin,
    /// Change settings.
    SettingsAdmin,
    /// End another user's heavy request, and see who holds a permit.
    LimitsEvict,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 12] = [
        Self::AuditRead,
        Self::SqlQuery,
        Self::QueuesView,
        Self::MessagesRead,
        Self::MessagesSend,
        Self::MessagesMove,
        Self::MessagesDelete,
        Self::QueuesAdmin,
        Self::ClustersAdmin,
        Self::UsersAdmin,
        Self::SettingsAdmin,
        Self::LimitsEvict,
    ];

    /// The name used in problems and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AuditRead => "audit.read",
            Self::SqlQuery => "sql.query",
            Self::QueuesView => "queues.view",
            Self::MessagesRead => "messages.read",
            Self::MessagesSend => "messages.send",
            Self::MessagesMove => "messages.move",
            Self::MessagesDelete => "messages.delete",
            Self::QueuesAdmin => "queues.admin",
            Self::ClustersAdmin => "clusters.admin",
            Self::UsersAdmin => "users.admin",
            Self::SettingsAdmin => "settings.admin",
            Self::LimitsEvict => "limits.evict",
        }
    }

    /// The permission of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

/// What a request is signed in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedInBy {
    /// A browser's session.
    Session,
    /// A token, of a program.
    Token(TokenId),
}

/// The account behind a request, and how it is signed in. As an extractor it answers 401 when there is none.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// The account's immutable id: the user whom limits count.
    pub account: Uuid,
    /// The account's canonical name.
    pub name: String,
    /// The account's role when the request came in. What a request may do is told by [`SignedIn::may`], which also
    /// knows the grants of a token.
    pub role: Role,
    /// What the request is signed in by.
    pub by: SignedInBy,
    /// The request's id, kept in audit rows.
    pub request_id: String,
    /// What the token was granted; nothing for a session, which may do all that the role may.
    grants: Option<Vec<Permission>>,
}

impl SignedIn {
    /// Somebody with a session.
    pub fn by_session(account: Uuid, name: String, role: Role, request_id: String) -> Self {
        Self { account, name, role, by: SignedInBy::Session, request_id, grants: None }
    }

    /// A program with a token of that account.
    pub fn by_token(
        account: Uuid,
        name: String,
        role: Role,
        request_id: String,
        token: TokenId,
        grants: Vec<Permission>,
    ) -> Self {
        let by = SignedInBy::Token(token);
        Self { account, name, role, by, request_id, grants: Some(grants) }
    }

    /// The user as limits know it.
    pub fn user(&self) -> String {
        self.account.to_string()
    }

    /// Whether this request may do this: the account's role has the permission, and so have the grants of a token.
    pub fn may(&self, permission: Permission) -> bool {
        self.role.permissions().contains(&permission)
            && self.grants.as_ref().is_none_or(|grants| grants.contains(&permission))
    }

    /// Everything that this request may do.
    pub fn permissions(&self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(|permission| self.may(*permission))
    }

    /// The token that the request is signed in by.
    pub fn token(&self) -> Option<TokenId> {
        match self.by {
            SignedInBy::Session => None,
            SignedInBy::Token(id) => Some(id),
        }
    }

    /// Refuses with a 403 problem unless the account may do this.
    pub fn require(&self, permission: Permission) -> Result<(), Problem> {
        if self.may(permission) { Ok(()) } else { Err(Problem::forbidden(permission.name())) }
    }
}

impl FromRequestParts<App> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        // The route table's own check has put it there; a public route has none.
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::sign_in_required)
    }
}
