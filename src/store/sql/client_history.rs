//! What a client said of its conversation from before it began here.

use crate::store::database::Connection;
use crate::store::scope::Scope;
use crate::store::statement::query;

/// The client's messages from before the conversation began.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn client_history_of(
    connection: &mut dyn Connection,
    scope: &Scope,
    conversation: &str,
) -> Result<Option<String>, sqlx::Error> {
    let text: Option<Option<String>> = query(
        "SELECT d.earlier FROM runs r JOIN run_details d ON d.run_id = r.id
         WHERE r.tenant = $1 AND r.user_id = $2 AND r.conversation = $3 AND r.run_seq = 0",
    )
    .bind((scope, conversation))
    .fetch_optional_value(connection)
    .await?;
    Ok(text.flatten())
}
