//! What a screen's profile makes of a request: the prompt, the tools, and who is let in.

use super::{body, playing, say, system, tools};
use crate::support::app::ADA;
use crate::support::model::says;

#[tokio::test]
async fn a_page_has_what_all_pages_have_and_its_own() {
    let s = playing([says("Hi."), says("Hi.")]).await;
    say(&s, "reports", "Hello").await;
    assert_eq!(tools(&s), ["list_my_alerts", "list_workflow_rules"]);
    let prompt = system(&s);
    assert!(
        prompt.starts_with(&format!("You help {ADA} with reports.\n\n# Tools\n\n- `list_my_alerts`: ")),
        "{prompt}"
    );
    for part in [
        "## `QUERY:` A search that the user can run\n\nWrite one when the user looks for something.\n",
        "SUGGESTED_VALUES: [{\"label\"",
        "\n- `close_chat`: Closes the chat.",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    assert!(!prompt.contains("OTHER:") && !prompt.contains("{{") && !prompt.contains("{%"), "{prompt}");

    say(&s, "reports/bare", "Hello").await;
    assert!(!system(&s).contains("SUGGESTED"), "a tab without suggestions");
}

#[tokio::test]
async fn nobody_without_its_role_is_let_into_a_tab() {
    let s = playing([says("Hi.")]).await;
    let response = s.app.post(&body("reports/secret", "Hello")).await;
    assert_eq!(response.status(), 403);
    let problem: serde_json::Value = response.json().await.unwrap();
    assert_eq!(problem["code"], "forbidden");
    assert!(s.model.requests().is_empty());

    let analyst = s.app.token_of(ADA, None, &["analyst"]);
    let response = s.app.post_as(&analyst, &body("reports/secret", "Hello")).await;
    assert_eq!(response.status(), 200);
    response.text().await.unwrap();
    assert!(system(&s).contains("This tab is secret."));
}
