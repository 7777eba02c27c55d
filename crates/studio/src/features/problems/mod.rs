//! The pages behind the types of problems.

use axum::extract::Path;
use axum::response::Html;
use utoipa_axum::routes;

use crate::platform::problem::{ApiResult, KINDS, Problem, ProblemDocument};
use crate::platform::route::{Access, Cost, Route};

/// The routes of this feature.
pub fn routes() -> Vec<Route> {
    vec![Route::new(Access::Public, Cost::Cheap { rows: 0, bytes: 4_096 }, routes!(page))]
}

/// What a kind of problem means, for people.
#[utoipa::path(
    get,
    path = "/problems/{suffix}",
    tag = "problems",
    params(("suffix" = String, Path, description = "The last part of a problem's type")),
    responses(
        (status = 200, description = "A page", content_type = "text/html"),
        (status = 404, description = "No such kind of problem", body = ProblemDocument),
    )
)]
async fn page(Path(suffix): Path<String>) -> ApiResult<Html<String>> {
    let kind = KINDS.iter().find(|kind| kind.suffix == suffix).ok_or_else(Problem::not_found)?;
    // All three are constants of ours, free of markup.
    let (title, meaning, suffix) = (kind.title, kind.meaning, kind.suffix);
    Ok(Html(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body>\n<h1>{title}</h1>\n<p>{meaning}</p>\n<p>Type: <code>/problems/{suffix}</code></p>\n</body>\n</html>\n"
    )))
}
