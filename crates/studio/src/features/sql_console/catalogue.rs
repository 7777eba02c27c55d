//! The views that a query may read, with their columns and the permission that each needs.
//!
//! This list is the allow-list: the migration creates these views, the set-up grants them to the
//! roles whose REST permission is the same, and a test compares both with it.

use crate::platform::access::{Permission, Role};

/// The schema of the views, and of nothing else.
pub const SCHEMA: &str = "console";

/// A column of a view.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// The type as PostgreSQL's `format_type` writes it.
    pub data_type: &'static str,
}

/// A view of the console.
#[derive(Debug, PartialEq, Eq)]
pub struct View {
    pub name: &'static str,
    pub purpose: &'static str,
    /// The permission of the REST operation that shows the same.
    pub needs: Permission,
    pub columns: &'static [Column],
}

impl View {
    /// Whether accounts of that role may read the view.
    pub fn is_readable_by(&self, role: Role) -> bool {
        role.permissions().contains(&self.needs)
    }
}

const fn column(name: &'static str, data_type: &'static str) -> Column {
    Column { name, data_type }
}

/// All views, in the order of their names.
pub static VIEWS: &[View] = &[
    View {
        name: "account",
        purpose: "Accounts and their roles, without anything secret.",
        needs: Permission::UsersAdmin,
        columns: &[
            column("id", "uuid"),
            column("name", "text"),
            column("role", "text"),
            column("is_disabled", "boolean"),
            column("created_at", "timestamp with time zone"),
        ],
    },
    View {
        name: "audit_event",
        purpose: "The audit trail. The text of SQL queries is left out.",
        needs: Permission::AuditRead,
        columns: &[
            column("id", "bigint"),
            column("at", "timestamp with time zone"),
            column("actor_id", "uuid"),
            column("actor", "text"),
            column("action", "text"),
            column("target", "text"),
            column("outcome", "text"),
            column("bound", "text"),
            column("row_count", "bigint"),
            column("detail", "jsonb"),
            column("replica", "uuid"),
            column("request_id", "text"),
            column("finished_at", "timestamp with time zone"),
        ],
    },
];

/// The views that a text is checked against.
#[derive(Debug, Clone, Copy)]
pub struct Catalogue {
    views: &'static [View],
}

impl Catalogue {
    /// Every view. Whether the caller may read one is a question of its own, with an answer of its own.
    pub const ALL: Self = Self { views: VIEWS };

    /// The view of that name, in lower case.
    pub fn view(&self, name: &str) -> Option<&'static View> {
        self.views.iter().find(|view| view.name == name)
    }

    /// The views that somebody who may do so much may read.
    pub fn readable_with(
        self,
        may: impl Fn(Permission) -> bool,
    ) -> impl Iterator<Item = &'static View> {
        self.views.iter().filter(move |view| may(view.needs))
    }

    /// The views that accounts of that role may read.
    pub fn readable_by(self, role: Role) -> impl Iterator<Item = &'static View> {
        self.views.iter().filter(move |view| view.is_readable_by(role))
    }
}
