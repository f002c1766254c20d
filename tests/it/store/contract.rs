//! The stores' contract and its stories. An implementation passes with one line: `contract!(open_new_database)`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::agent::ports::clock::Clock;
use switchboard::agent::ports::places::Changes;
use switchboard::agent::ports::previews::NewPreview;
use switchboard::agent::ports::store::{
    BeginError, Begun, Commit, MostRuns, NewRun, Question, RequestKey, RunEnd, RunStart, StateLeft, Used,
};
use switchboard::agent::ports::store_error::StoreError;
use switchboard::agent::ports::summaries::{HistoryBound, NewSummary};
use switchboard::chat::caller::Owner;
use switchboard::chat::fate::CallFate;
use switchboard::chat::ids::{ConversationId, PreviewId, RunId, ToolCallId};
use switchboard::chat::input::{Ask, Parent};
use switchboard::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin, Replay, UserMessage};
use switchboard::chat::place::PlaceUpdate;
use switchboard::chat::preview::{Base, Change, Decided, Save, Verdict};
use switchboard::chat::run::RunState;
use switchboard::chat::stream::Usage;
use switchboard::chat::tool::{ToolCall, ToolInput, ToolResult};
use switchboard::store::Store;

/// One database; every `open` is a fresh store on the same data.
#[async_trait]
pub trait Database: Send + Sync {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store>;

    /// What the rows of `sql`, each of one text, say to somebody beside the store; it may change them too.
    async fn ask(&self, sql: &str) -> Vec<String>;
}

/// When a [`ManualClock`] begins.
pub const START_MS: i64 = 1_700_000_000_000;

/// A clock that stands until it is moved.
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(START_MS)))
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
            of_two_runs_that_begin_at_once_one_is_told_who_runs
            twenty_appends_at_once_are_all_kept
            an_append_and_the_end_at_once_agree
            of_twenty_runs_that_begin_at_once_one_runs
            a_call_that_is_dropped_midway_leaves_the_store_usable
            an_append_of_unknown_fate_can_be_repeated
            runs_at_once_in_many_conversations_are_all_kept
            two_stores_on_one_database_write_at_once
            a_restart_keeps_everything
            a_run_that_was_never_begun_takes_nothing
            a_run_that_has_ended_takes_no_more_messages
            the_same_run_begins_once
            a_run_ends_once
            a_run_is_found_as_it_stands
            a_closed_store_is_unavailable
        );
        crate::store::contract::contract!(@ $database, branches:
            an_edit_begins_a_branch_beside_what_was_said
            a_message_of_another_conversation_is_none_to_go_on_from
            history_is_the_way_to_the_root
            a_question_that_is_asked_again_stands_beside_itself
            there_may_be_nothing_to_repeat
            a_run_that_said_something_goes_on_after_it
            a_run_that_said_nothing_is_asked_again
            only_runs_that_did_not_end_well_go_on
            a_summary_stands_for_what_does_not_fit
            a_summary_of_another_branch_is_not_told
        );
        crate::store::contract::contract!(@ $database, waiting:
            a_conversation_has_one_running_run
            runs_wait_in_their_order
            a_queued_run_sees_the_answer_it_waited_for
            a_promotion_that_was_not_heard_of_is_repeated
            a_queued_run_that_is_cancelled_never_runs
            of_many_that_want_their_turn_at_once_one_gets_it
            a_request_that_is_repeated_finds_its_run
            requests_with_one_key_at_once_begin_one_run
            a_key_is_free_after_a_day
            cancelling_is_asked_of_whoever_runs_it
            the_runs_that_live_are_found_in_their_order
        );
        crate::store::contract::contract!(@ $database, directives:
            a_directive_reads_back_as_it_was_kept
            of_many_requests_at_once_with_one_key_or_intent_one_is_kept
            what_is_due_is_taken_once_and_ended_by_its_holder
            a_claim_that_has_run_out_is_its_holders_until_somebody_takes_it
            what_was_sent_is_left_to_those_who_know_its_command
            a_long_intent_is_found_again
            a_client_has_no_key_of_the_servers
            what_was_over_long_ago_is_removed
        );
        crate::store::contract::contract!(@ $database, users:
            of_a_user_who_is_deleted_nothing_is_left
            all_conversations_of_a_user_are_found
        );
        crate::store::contract::contract!(@ $database, plans:
            a_plan_reads_back_as_it_was_kept
            what_a_run_has_begun_ends_with_it
            a_plan_that_waits_is_taken_once
            a_plan_that_is_paused_goes_on_once_behind_a_decision
            what_waits_of_a_plan_goes_with_it
        );
        crate::store::contract::contract!(@ $database, state:
            what_a_run_leaves_is_there_for_the_next_one
            a_summary_stands_for_what_would_fit_where_that_is_wanted
            what_things_are_called_is_kept_for_their_conversation
            a_change_of_data_is_its_users_alone
            what_was_made_for_a_first_message_is_found_once
            sessions_are_listed_by_their_last_answer
        );
        crate::store::contract::contract!(@ $database, leases:
            a_beat_tells_how_every_run_stands
            a_beat_renews_the_leases_of_its_replica_alone
            a_run_that_its_process_does_not_name_ends_with_its_lease
            whoever_has_no_lease_any_more_can_do_nothing
            a_call_is_dispatched_once
            a_call_that_was_sent_has_an_unknown_fate
            what_was_said_is_kept_when_its_process_dies
            what_is_said_is_kept_once_however_often_it_comes
            text_of_a_turn_that_was_committed_is_not_kept_twice
            runs_that_said_nothing_end_as_interrupted
            what_was_noted_and_does_not_read_back_is_lost_and_the_run_ends
            many_runs_are_reaped_once_by_many
            watching_is_told_to_the_owner_and_ends_are_told_to_the_watcher
            the_number_of_an_end_is_its_owners_word
        );
        crate::store::contract::contract!(@ $database, limits:
            as_many_runs_live_as_may_however_many_begin_at_once
            runs_that_have_ended_or_died_make_room
            a_run_that_is_there_already_is_found_without_room
            what_was_used_is_added_up_once
            what_was_used_can_always_be_added_up
            users_without_a_tenant_have_a_bound_of_their_own_alone
            what_stands_against_a_run_is_told_before_it_begins
            what_was_used_is_told_by_day_and_model_to_its_owner_alone
        );
        crate::store::contract::contract!(@ $database, trail:
            the_trail_tells_what_happened_in_a_run
            a_trail_entry_of_unknown_fate_can_be_repeated
            secrets_do_not_reach_the_trail
            long_texts_are_cut_in_the_trail
            a_decision_is_in_the_trail_of_its_conversation
            what_is_old_is_tidied_away
            version_1_goes_on_working
        );
        crate::store::contract::contract!(@ $database, views:
            a_conversation_is_seen_as_it_was_said
            a_call_nobody_heard_of_again_is_seen_as_such
            the_newest_branch_is_seen
            what_the_loop_says_to_itself_is_not_seen
            a_list_goes_from_the_newest_change_on
            a_cursor_that_no_list_gave_is_refused
            a_deleted_conversation_leaves_nothing_behind
            deleting_and_speaking_at_once_agree
            an_export_has_everything
            a_trail_comes_in_parts_oldest_first
            strangers_see_and_change_no_conversation
            rows_of_version_1_are_seen
            long_conversations_and_lists_are_seen_whole
            an_answer_in_parts_is_one_message
            messages_are_counted_on_every_kind_of_branch
            a_view_reads_no_results
            a_clock_behind_the_others_moves_no_conversation_back
        );
        crate::store::contract::contract!(@ $database, summaries:
            what_fits_needs_no_summary
            the_older_part_is_summarised_and_the_next_run_begins_with_that
            what_is_summarised_holds_no_half_of_a_tool_pair
            a_summary_is_its_branchs_own
            a_run_that_is_gone_takes_no_summary
        );
        crate::store::contract::contract!(@ $database, dialog:
            a_title_is_given_where_there_is_none
            a_call_is_found_again_by_its_id
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
        crate::store::contract::contract!(@ $database, approvals:
            a_call_that_waits_reads_back_exactly
            a_call_tells_where_its_approval_stands
            an_approval_begins_a_run_with_the_exact_call
            an_answer_that_is_given_again_goes_on_behind_its_approved_call
            a_refusal_is_told_and_makes_no_call
            a_decision_is_taken_once
            of_many_decisions_at_once_one_is_taken
            a_decision_that_does_not_begin_a_run_is_not_taken
            a_decision_that_waits_for_its_turn_has_its_call_then
            an_approved_call_that_was_not_made_waits_again
            what_has_expired_is_decided_no_more_and_the_model_is_told
            somebody_with_the_role_grants_or_refuses
            whoever_may_not_decide_an_approval_does_not_see_it
            a_call_that_was_changed_beside_us_is_not_made
            a_decision_on_another_branch_is_told_there
        );
        crate::store::contract::contract!(@ $database, clients:
            results_of_a_client_stand_behind_the_calls_again
            results_are_taken_once_and_only_of_the_newest_run
            results_may_come_again_where_their_run_did_not_end_well
            our_words_from_a_user_are_a_message_like_any_other
            what_a_client_told_of_before_begins_every_branch
            an_unlisted_conversation_is_read_by_its_id_alone
            an_unlisted_conversation_goes_when_it_is_old_and_nothing_of_it_lives
            a_run_that_left_calls_to_its_client_ends_with_them
        );
        crate::store::contract::contract!(@ $database, chats:
            a_conversation_has_one_number_of_its_owners
            numbers_asked_for_at_once_are_one
            chats_are_listed_newest_change_first
            a_long_chat_is_read_from_its_newest_runs
            a_chat_has_all_that_was_said_and_shown
            payloads_are_their_conversations_own
            a_deleted_conversation_takes_its_number_and_payloads_along
        );
        crate::store::contract::contract!(@ $database, library:
            what_was_said_is_found_by_its_words
            any_text_is_a_query
            what_was_found_comes_in_parts
            what_is_gone_is_not_found
            searches_at_once_index_everything_once
            what_was_indexed_by_other_rules_is_indexed_anew
            pinned_conversations_come_first_and_archived_ones_apart
            feedback_is_one_for_each_run_and_goes_with_its_conversation
            what_was_used_is_told_by_month_and_conversation files_go_with_the_last_conversation_that_needs_them
        );
        crate::store::contract::contract!(@ $database, previews:
            a_claim_shows_the_change_as_it_was_recorded
            a_preview_knows_the_profile_of_its_run
            whoever_has_lost_a_claim_can_do_nothing
            a_save_is_begun_once_by_a_claim
            a_save_whose_answer_did_not_come_is_known
            a_newer_preview_of_the_same_thing_takes_the_older_ones_place
            as_many_previews_wait_as_may
            a_preview_expires
            previews_of_the_version_before_are_decided
            what_a_preview_changes_is_read_with_it_alone
            nobody_else_claims_or_releases_a_preview
            of_many_claims_at_once_one_wins
            a_released_preview_waits_again
            a_claim_ends_by_itself_after_a_minute
            a_decided_preview_is_never_claimed_again
            a_decision_that_was_not_heard_of_may_be_repeated_but_not_changed
            a_decision_needs_a_claim
            the_next_run_of_the_conversation_is_told_once
            of_two_runs_that_begin_at_once_one_is_told
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
                        crate::store::explained::watch(&database, crate::store::$stories::$story(&database)).await;
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
        bytes: usize,
    ) -> Result<RunStart, BeginError> {
        let (history, ask) = (HistoryBound { bytes, by_summary: false }, Ask::message(text));
        let new = NewRun { id, history, ..self.new_run(Question::Ask { ask: &ask, parent: None }) };
        Ok(running(store.begin_run(new).await?))
    }

    /// A run as most of the stories want it.
    pub fn new_run<'a>(&'a self, question: Question<'a>) -> NewRun<'a> {
        NewRun {
            id: RunId::fresh(),
            owner: &self.owner,
            conversation: &self.conversation,
            context_type: "workflow",
            context: None,
            place: &PlaceUpdate::NONE,
            question,
            earlier: &[],
            unlisted: false,
            asked_as: None,
            gathers: false,
            direct: false,
            form: None,
            key: None,
            queue: None,
            background: false,
            request_id: "req-1",
            replica: "here",
            lease_ms: LEASE_MS,
            history: HistoryBound::ALL,
            most: MostRuns::default(),
        }
    }

    /// Begins a run that asks in any manner.
    pub async fn ask(
        &self,
        store: &dyn Store,
        ask: &Ask,
        parent: Option<Parent>,
    ) -> Result<(RunId, RunStart), BeginError> {
        let new = self.new_run(Question::Ask { ask, parent });
        Ok((new.id, running(store.begin_run(new).await?)))
    }

    /// Asks for a run that may wait behind so many others.
    pub async fn queue(&self, store: &dyn Store, text: &str, queue: u32) -> Result<(RunId, Begun), BeginError> {
        let ask = Ask::message(text.to_owned());
        let new = NewRun { queue: Some(queue), ..self.new_run(Question::Ask { ask: &ask, parent: None }) };
        Ok((new.id, store.begin_run(new).await?))
    }

    /// Asks with an idempotency key.
    pub async fn ask_by_key(
        &self,
        store: &dyn Store,
        text: &str,
        key: RequestKey<'_>,
    ) -> Result<(RunId, Begun), BeginError> {
        let ask = Ask::message(text.to_owned());
        let new = NewRun { key: Some(key), ..self.new_run(Question::Ask { ask: &ask, parent: None }) };
        Ok((new.id, store.begin_run(new).await?))
    }

    /// A question with its answers, said and over.
    pub async fn exchange(&self, store: &dyn Store, text: &str, answers: &[Message]) -> RunId {
        let (run, _) = self.say_within(store, text, 1).await;
        end(store, run, answers).await;
        run
    }

    /// Everything said here so far, seen by a further run, which says nothing.
    pub async fn history(&self, store: &dyn Store) -> Vec<Message> {
        let (run, start) = self.say(store, "what was said?").await;
        end(store, run, &[]).await;
        start.past.history
    }

    /// The message that a run begins with; it says nothing.
    pub async fn told(&self, store: &dyn Store, text: &str) -> UserMessage {
        let (run, start) = self.say(store, text).await;
        complete(store, run).await;
        start.message
    }

    /// Records a preview of a workflow of this name.
    pub async fn preview(&self, store: &dyn Store, name: &str) -> PreviewId {
        self.record(store, &change(name)).await
    }

    /// Records a preview.
    pub async fn record(&self, store: &dyn Store, change: &Change) -> PreviewId {
        store.record_preview(self.new_preview(change, &base())).await.unwrap()
    }

    /// A preview of this change that waits for an hour, however many wait already.
    pub fn new_preview<'a>(&'a self, change: &'a Change, base: &'a Base) -> NewPreview<'a> {
        let (owner, conversation) = (&self.owner, &self.conversation);
        let run = RunId::fresh();
        NewPreview { owner, conversation, run, tool: "preview", change, base, life_ms: 3_600_000, most: 0 }
    }

    /// Claims a preview and settles it.
    pub async fn decide(&self, store: &dyn Store, id: PreviewId, name: &str, verdict: Verdict) -> Decided {
        let claimed = store.claim_preview(&self.owner, id).await.unwrap();
        assert_eq!(claimed.preview.change, change(name));
        let decided = decided(id, name, verdict);
        store.settle_preview(&self.owner, id, claimed.token, &decided).await.unwrap();
        decided
    }
}

/// A lease that does not end during a test.
pub const LEASE_MS: i64 = 3_600_000;

/// Begun as the running one.
#[track_caller]
pub fn running(begun: Begun) -> RunStart {
    match begun {
        Begun::Running(start) => *start,
        Begun::Queued | Begun::Joined(_) => panic!("{begun:?}"),
    }
}

/// Messages alone, the first of which is the run's `first`.
pub fn said(first: u32, messages: &[Message]) -> Commit<'_> {
    Commit {
        first,
        messages,
        first_entry: 1,
        trail: &[],
        place: None,
        payloads: &[],
        first_artifact: 0,
        artifacts: &[],
        turns: 0,
        used: Used::default(),
        usage: Usage::default(),
        cost: None,
        first_spent: 0,
        spent: &[],
        helped: &[],
        has_plans: false,
    }
}

/// A new title.
pub fn titled(title: &str) -> Changes {
    Changes { title: Some(title.to_owned()), ..Changes::default() }
}

/// A run that has begun, by a question of no importance.
pub async fn begin(store: &dyn Store, room: &Room) -> RunId {
    let ask = Ask::message("go");
    let new = room.new_run(Question::Ask { ask: &ask, parent: None });
    store.begin_run(new).await.unwrap();
    new.id
}

/// An end that is not a failure.
pub fn ended(state: RunState) -> RunEnd<'static> {
    RunEnd {
        state,
        error: None,
        answer: None,
        approvals: &[],
        paused: None,
        left: &[],
        state_left: StateLeft::default(),
        last_event_id: 9,
    }
}

pub async fn append(store: &dyn Store, run: RunId, first: u32, messages: &[Message]) -> Result<(), StoreError> {
    store.append(run, said(first, messages)).await
}

/// Completes a run that has said nothing yet, with all its answers.
pub async fn end(store: &dyn Store, run: RunId, answers: &[Message]) {
    store.finish_run(run, said(1, answers), ended(RunState::Completed)).await.unwrap();
}

/// Completes a run that has said all.
pub async fn complete(store: &dyn Store, run: RunId) {
    end(store, run, &[]).await;
}

/// A change of the thing that this name's change is about.
pub fn change(name: &str) -> Change {
    let body = json!({ "z": [1, null, "nul \u{0}"], "a": { "name": name } });
    let save = Save::replace(["v1", "w-1"]);
    let existing_id = Some(format!("w-{name}"));
    Change { what: "workflow".into(), existing_id, name: name.into(), save, body, current: None }
}

/// What it was made against.
pub fn base() -> Base {
    Base { reader: "rules".into(), digest: Some("0123".into()) }
}

pub fn decided(preview: PreviewId, name: &str, verdict: Verdict) -> Decided {
    let saved_id = (verdict == Verdict::Accept).then(|| format!("saved-{name}"));
    let comment = Some(format!("about {name}\u{0}"));
    Decided { preview, what: "workflow".into(), name: name.into(), verdict, comment, saved_id, may_be_saved: false }
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
    let result = |id, content: &str, fate| {
        let (name, content) = ("get_rule".into(), content.into());
        ToolResult { id, name, content, fate, files: Vec::new() }
    };
    let (done, failed) = ("{\"id\":\"\u{0}\"}", "{\"error\":\"bad params\"}");
    let results = vec![result(given, done, CallFate::Done), result(minted, failed, CallFate::Failed)];
    [Message::Assistant(AssistantMessage { origin, parts }), Message::ToolResults(results)]
}

/// A summary that was made.
pub fn summary(text: &str) -> NewSummary {
    NewSummary { text: text.to_owned(), original_tokens: 1000 }
}

/// The summary that a run begins with.
pub fn words(start: &RunStart) -> Option<&str> {
    start.past.summary.as_ref().map(|summary| summary.text.as_str())
}
