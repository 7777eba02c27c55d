//! `GET /api/v1/sql/catalogue`: what a query may use.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::bounds::{self, ENDPOINT, Limits};
use super::catalogue::Catalogue;
use super::functions::FUNCTIONS;
use crate::app::App;
use crate::platform::access::SignedIn;

/// What the caller's queries may use.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = SqlCatalogue)]
pub(super) struct Shown {
    /// The schema of the views; it need not be written.
    schema: &'static str,
    views: Vec<ShownView>,
    functions: Vec<&'static str>,
    limits: Limits,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = SqlCatalogueView)]
struct ShownView {
    name: &'static str,
    purpose: &'static str,
    columns: Vec<ShownColumn>,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = SqlCatalogueColumn)]
struct ShownColumn {
    name: &'static str,
    #[serde(rename = "type")]
    data_type: &'static str,
}

/// The views that the caller may read, the functions that a query may call, and its bounds.
#[utoipa::path(
    get,
    path = "/api/v1/sql/catalogue",
    tag = "sql",
    responses((status = 200, description = "What a query may use", body = Shown))
)]
pub(super) async fn show(State(app): State<App>, who: SignedIn) -> Json<Shown> {
    let views = Catalogue::ALL
        .readable_with(|permission| who.may(permission))
        .map(|view| ShownView {
            name: view.name,
            purpose: view.purpose,
            columns: view
                .columns
                .iter()
                .map(|column| ShownColumn { name: column.name, data_type: column.data_type })
                .collect(),
        })
        .collect();
    Json(Shown {
        schema: super::catalogue::SCHEMA,
        views,
        functions: FUNCTIONS.iter().map(|function| function.name).collect(),
        limits: bounds::limits(&app.in_force.endpoint(&ENDPOINT)),
    })
}
