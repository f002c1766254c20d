//! What clients of Messages ask besides (`docs/protocol/messages.md`): about how many tokens a request has. Models are listed where
//! those of OpenAI's protocol are.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::problem::Problem;
use crate::dialect::messages::{Body, Messages};

/// This route.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(count_tokens))
}

/// An estimate.
#[derive(Serialize, ToSchema)]
#[schema(as = MessagesTokens)]
struct TokensBody {
    input_tokens: usize,
}

/// 200 with about how many tokens a request has.
#[utoipa::path(
    post,
    path = "/v1/messages/count_tokens",
    operation_id = "countMessageTokens",
    tag = "Messages",
    summary = "Estimate a request's tokens",
    description = "One for four bytes of what the client sends. What the profile adds is not counted.",
    request_body = Body<'static>,
    responses(
        (status = 200, description = "The estimate.", body = TokensBody),
        (status = 400, description = "`malformed_json`, `invalid_request`: what is wrong."),
    ),
)]
async fn count_tokens(
    State(services): State<Services>,
    Authenticated(_): Authenticated,
    body: Taken,
) -> Result<Json<TokensBody>, Problem> {
    let input_tokens = services.intake.work(body.len(), move || Messages::estimate(&body)).await?;
    Ok(Json(TokensBody { input_tokens }))
}
