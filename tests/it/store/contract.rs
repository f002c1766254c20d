//! The stores' contract: a database to open, a clock to set, the words that the stories are told in, and the list of all
//! stories. An implementation passes with one line: `contract!(open_new_database)`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::agent::ports::clock::Clock;
use switchboard::agent::ports::store::{NewRun, RunStart, StoreError};
use switchboard::chat::caller::Owner;
use switchboard::chat::ids::{ConversationId, PreviewId, RunId, ToolCallId};
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, Replay, UserMessage};
use switchboard::chat::preview::{Change, Decided, Save, Verdict};
use switchboard::chat::tool::{ToolCall, ToolInput, ToolResult};
use switchboard::store::Store;

/// One database; every `open` is a fresh store on the same data.
#[async_trait]
pub trait Database: Send + Sync {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store>;
}

/// A clock that stands until it is moved.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_700_000_000_000)))
    }

    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Makes a test of every story of the contract; `$database` is a function that gives a new, empty
/// [`Database`], or none where the test goes without.
macro_rules! contract {
    ($database:path) => {
        crate::store::contract::contract!(@ $database, conversations:
            a_new_conversation_begins_without_history
            the_next_run_sees_what_was_said_and_called
            history_reads_back_exactly
            the_newest_whole_messages_that_fit_are_history
            a_conversation_of_many_messages_is_read_whole_or_cut_anywhere
            nobody_else_sees_a_conversation
            the_same_conversation_id_of_two_owners_names_two_conversations
            no_character_of_a_name_is_refused_or_mistaken_for_another
            two_runs_that_begin_at_once_keep_their_messages_apart
            twenty_appends_at_once_are_all_kept
            an_append_and_the_end_at_once_agree
            twenty_runs_that_begin_at_once_have_twenty_places
            a_call_that_is_dropped_midway_leaves_the_store_usable
            an_append_of_unknown_fate_can_be_repeated
            runs_at_once_in_many_conversations_are_all_kept
            two_stores_on_one_database_write_at_once
            a_restart_keeps_everything
            a_run_that_was_never_begun_takes_nothing
            a_run_that_has_ended_takes_no_more_messages
            the_same_run_begins_once
            a_run_ends_once
            a_closed_store_is_unavailable
        );
        crate::store::contract::contract!(@ $database, drafts:
            a_draft_reads_back_exactly
            numbers_keep_their_last_digit
            a_draft_lives_ten_minutes_after_its_last_use
            nobody_else_and_no_other_conversation_sees_a_draft
            of_two_savers_the_second_is_told_that_the_draft_changed
            the_twenty_first_live_draft_is_refused
            drafts_asked_for_at_once_stop_at_twenty
            a_body_that_could_not_be_read_again_is_refused
            a_restart_keeps_drafts
        );
        crate::store::contract::contract!(@ $database, previews:
            a_claim_shows_the_change_as_it_was_recorded
            nobody_else_claims_or_releases_a_preview
            of_many_claims_at_once_one_wins
            a_released_preview_waits_again
            a_claim_ends_by_itself_after_a_minute
            a_decided_preview_is_never_claimed_again
            a_decision_that_was_not_heard_of_may_be_repeated_but_not_changed
            a_decision_needs_a_claim
            the_next_run_of_the_conversation_is_told_once
            two_runs_that_begin_at_once_are_not_both_told
            more_decisions_than_fit_one_run_are_told_by_the_next
            accepted_changes_come_newest_first
            nobody_else_sees_accepted_changes
            a_restart_keeps_claims_and_untold_decisions
        );
    };
    (@ $database:path, $stories:ident: $($story:ident)+) => {
        mod $stories {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $story() {
                    if let Some(database) = $database().await {
                        crate::store::$stories::$story(&database).await;
                    }
                }
            )+
        }
    };
}
pub(crate) use contract;

/// Asserts that two values look the same; raw JSON has no equality, and its debug form shows every byte.
#[track_caller]
pub fn assert_same(found: &impl std::fmt::Debug, expected: &impl std::fmt::Debug) {
    assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));
}

/// A place to speak in: whose, and which conversation.
#[derive(Clone)]
pub struct Room {
    pub owner: Owner,
    pub conversation: ConversationId,
}

impl Room {
    /// `tenant/user/conversation`.
    pub fn at(path: &str) -> Self {
        let [tenant, user, conversation] = path.split('/').collect::<Vec<_>>()[..] else { panic!("{path}") };
        let owner = Owner { tenant: tenant.into(), user: user.into() };
        Self { owner, conversation: ConversationId::parse(conversation).unwrap() }
    }

    /// The three places that must not see what `acme/ann/c1` holds: another tenant, another user, another conversation.
    pub fn strangers() -> [Self; 3] {
        ["other/ann/c1", "acme/bob/c1", "acme/ann/c2"].map(Self::at)
    }

    /// Begins a run; all history is wanted.
    pub async fn say(&self, store: &dyn Store, text: &str) -> (RunId, RunStart) {
        self.say_within(store, text, 0).await
    }

    /// Begins a run that wants so many bytes of history.
    pub async fn say_within(&self, store: &dyn Store, text: &str, history_bytes: usize) -> (RunId, RunStart) {
        let id = RunId::fresh();
        (id, self.try_say(store, id, text, history_bytes).await.unwrap())
    }

    pub async fn try_say(
        &self,
        store: &dyn Store,
        id: RunId,
        text: &str,
        history_bytes: usize,
    ) -> Result<RunStart, StoreError> {
        let (owner, conversation) = (&self.owner, &self.conversation);
        store.begin_run(NewRun { id, owner, conversation, profile: "workflow", text, history_bytes }).await
    }

    /// Everything said here so far, seen by a further run.
    pub async fn history(&self, store: &dyn Store) -> Vec<Message> {
        self.say(store, "what was said?").await.1.history
    }

    /// Records a preview of a workflow of this name.
    pub async fn preview(&self, store: &dyn Store, name: &str) -> PreviewId {
        store.record_preview(&self.owner, &self.conversation, &change(name)).await.unwrap()
    }

    /// Claims a preview and settles it.
    pub async fn decide(&self, store: &dyn Store, id: PreviewId, name: &str, verdict: Verdict) -> Decided {
        let claimed = store.claim_preview(&self.owner, id).await.unwrap();
        assert_eq!(claimed.change, change(name));
        let decided = decided(id, name, verdict);
        store.end_claim(&self.owner, id, Some(&decided)).await.unwrap();
        decided
    }
}

pub fn change(name: &str) -> Change {
    let body = json!({ "z": [1, null, "nul \u{0}"], "a": { "name": name } });
    let save = Save::replace(["v1", "w-1"]);
    Change { what: "workflow".into(), existing_id: Some("w-1".into()), name: name.into(), save, body }
}

pub fn decided(preview: PreviewId, name: &str, verdict: Verdict) -> Decided {
    let saved_id = (verdict == Verdict::Accept).then(|| format!("saved-{name}"));
    let comment = Some(format!("about {name}\u{0}"));
    Decided { preview, what: "workflow".into(), name: name.into(), verdict, comment, saved_id }
}

pub fn user(text: &str) -> Message {
    Message::User(UserMessage::new(text))
}

pub fn answer(text: &str) -> Message {
    let origin = ModelOrigin { provider: "demo".into(), model: "rules".into() };
    let parts = vec![AssistantPart::Text { text: text.into(), replay: None }];
    Message::Assistant(AssistantMessage { origin: Arc::new(origin), parts })
}

/// A turn with thinking, text, two calls and what its vendor wants back, and the turn's results.
pub fn tool_turn() -> [Message; 2] {
    let raw = |json: &str| Replay::new(RawValue::from_string(json.into()).unwrap());
    let Value::Object(arguments) = json!({ "z": 1, "a": { "nul\u{0}": [true, null, -0.5] } }) else { unreachable!() };
    let (given, minted) = (ToolCallId::from_model("toolu_1"), ToolCallId::mint());
    let call = |id: &ToolCallId, input| ToolCall { id: id.clone(), name: "get_rule".into(), input };
    let parts = vec![
        AssistantPart::Thinking { text: "hm\u{0}".into(), replay: Some(raw(r#"{ "sig" :"\u00e9", "n":1.0}"#)) },
        AssistantPart::Opaque(raw("null")),
        AssistantPart::Text { text: "I look \u{2028} it up".into(), replay: None },
        AssistantPart::ToolCall { call: call(&given, ToolInput::Object(arguments)), replay: Some(raw("[ ]")) },
        AssistantPart::ToolCall { call: call(&minted, ToolInput::Invalid("{\"a\":".into())), replay: None },
    ];
    let origin = Arc::new(ModelOrigin { provider: "claude".into(), model: "m".into() });
    let result =
        |id, content: &str, is_error| ToolResult { id, name: "get_rule".into(), content: content.into(), is_error };
    let results = vec![result(given, "{\"id\":\"\u{0}\"}", false), result(minted, "{\"error\":\"bad params\"}", true)];
    [Message::Assistant(AssistantMessage { origin, parts }), Message::ToolResults(results)]
}
