//! What pages of other origins may do: call the API by token, and read what an answer says of limits.

use anyhow::Context as _;
use http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::CorsLayer;

use crate::settings::HttpSettings;

/// The layer that answers preflight requests, which are free, and marks every other answer, refusals included. Without
/// origins in the settings there is none.
///
/// # Errors
/// When an origin is not one.
pub(super) fn layer(settings: &HttpSettings) -> anyhow::Result<Option<CorsLayer>> {
    let texts = settings.cors_origins.split(',').map(str::trim).filter(|text| !text.is_empty());
    let origins = texts.map(origin).collect::<anyhow::Result<Vec<_>>>()?;
    if origins.is_empty() {
        return Ok(None);
    }
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE];
    let [limit, policy, request] =
        ["ratelimit", "ratelimit-policy", "x-request-id"].map(HeaderName::from_static);
    Ok(Some(
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods(methods)
            .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, header::IF_MATCH])
            .expose_headers([limit, policy, request, header::RETRY_AFTER, header::ETAG]),
    ))
}

fn origin(text: &str) -> anyhow::Result<HeaderValue> {
    let uri: http::Uri =
        text.parse().with_context(|| format!("http.cors_origins: `{text}` is not an origin"))?;
    let is_origin = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.authority().is_some()
        && uri.path_and_query().is_none_or(|path| path == "/")
        && !text.ends_with('/');
    anyhow::ensure!(
        is_origin,
        "http.cors_origins: `{text}` is not an origin such as https://ops.example.com"
    );
    HeaderValue::from_str(text).context("http.cors_origins")
}

#[cfg(test)]
mod tests {
    use super::layer;
    use crate::settings::HttpSettings;

    fn of(origins: &str) -> anyhow::Result<bool> {
        let settings = HttpSettings { cors_origins: origins.to_owned(), ..Default::default() };
        layer(&settings).map(|layer| layer.is_some())
    }

    #[test]
    fn origins_are_origins_and_none_are_no_layer() {
        assert!(!of("").unwrap());
        assert!(of("https://ops.example.com, http://127.0.0.1:3000").unwrap());
        for bad in ["*", "null", "ops.example.com", "https://a/path", "https://a/", "ftp://a"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
