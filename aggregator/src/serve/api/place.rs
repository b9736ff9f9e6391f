//! The names in an address. One that cannot be read is refused in the same words as all the rest.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::refusal::Refusal;

/// The names in an address, as the route has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<T>(pub T);

impl<T, S> FromRequestParts<S> for Place<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(names)) => Ok(Place(names)),
            Err(why) if why.status().is_server_error() => Err(Refusal::failed(why.body_text())),
            Err(why) => Err(Refusal::bad(format!(
                "the names in the address cannot be read: {}; write them as UTF-8, with %XX for \
                 what an address may not hold",
                why.body_text()
            ))),
        }
    }
}
