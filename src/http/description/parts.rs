//! What operations refer to: headers, parameters, how one signs in.

use serde_json::{Value, json};

/// What stands in `components` beside the schemas.
pub(super) fn components() -> Value {
    let text = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    json!({
        "headers": {
            "RequestId": {"description": "The request's id: the one that was sent, where it is well formed.", "required": true, "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}},
            "RunId": text("The run that answers."),
            "ConversationId": text("Its conversation."),
            "RunLocation": text("Where the run is looked at."),
            "Challenge": text("How to sign in (RFC 6750)."),
            "RetryAfter": {"description": "In how many seconds to try again.", "schema": {"type": "integer", "minimum": 0}},
        },
        "parameters": {
            "RequestId": {"name": "X-Request-Id", "in": "header", "description": "The request's id, for logs on both sides; one that is not well formed is replaced.", "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"}},
            "IdempotencyKey": {"name": "Idempotency-Key", "in": "header", "description": "The client's own, for a day: the same request with the same key finds the run that it began before.", "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}},
        },
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A JWT of the configured issuer; `sub` is the user. It goes on to the backend with each tool call, and nowhere else."},
        },
    })
}
