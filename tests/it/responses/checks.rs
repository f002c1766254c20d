//! Which tests hold which of the contract's checks of Responses, A01 to A27.

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds.
const TESTED: &str = "
A01 it/responses/streams.rs::the_object_is_the_one_that_the_stream_ends_with
A01 A04 it/responses/sdk.rs::objects_streams_and_the_helper_of_node_tell_the_same
A02 it/responses/streams.rs::a_plain_answer_is_one_message_between_its_beginning_and_its_end
A03 src/dialect/responses/tests.rs::a_run_with_thoughts_a_tool_and_text_has_each_as_an_item_in_order
A04 it/responses/sdk.rs::python_reads_objects_streams_and_what_is_stored
A04 it/responses/sdk.rs::the_ai_sdk_runs_its_own_tools_shows_those_of_the_server_and_goes_on
A05 A06 it/responses/client_tools.rs::a_turn_of_codex_calls_a_tool_of_ours_and_one_of_its_own
A06 it/responses/client_tools.rs::what_its_own_tools_have_said_stands_in_its_next_message_where_its_instructions_count
A07 it/responses/streams.rs::a_model_that_fails_ends_a_stream_with_its_failure_and_an_object_with_an_error
A08 it/responses/stored.rs::a_stream_is_read_again_from_the_start_and_from_any_event_in_the_same_bytes
A09 it/responses/stored.rs::a_response_in_the_background_comes_at_once_and_is_read_until_it_is_there
A10 it/responses/stored.rs::a_response_is_cancelled_once_and_stays_so
A11 it/responses/history.rs::a_response_is_gone_on_from_and_an_older_one_begins_a_branch
A11 it/responses/history.rs::an_item_of_another_users_response_is_not_there
A12 it/responses/stored.rs::one_that_is_not_stored_or_anothers_is_not_there
A13 it/responses/approvals.rs::a_call_waits_is_made_once_when_it_is_let_through_and_by_nobody_else
A14 it/responses/client_tools.rs::what_a_client_has_told_of_its_own_calls_is_no_call_of_ours
A14 it/responses/history.rs::a_conversation_that_the_client_keeps_is_texts_and_nothing_else
A16 it/responses/requests.rs::what_only_other_servers_know_is_passed_over
A17 it/responses/requests.rs::a_long_history_is_taken_and_one_beyond_the_limit_is_not
A19 it/providers/responses.rs::reasoning_goes_back_before_the_calls_it_led_to_within_its_run
A20 it/providers/responses.rs::a_failure_after_the_first_token_ends_the_run_and_no_tool_runs
A21 it/providers/responses.rs::what_a_model_refuses_to_be_asked_is_left_out_from_then_on
A22 it/providers/responses.rs::a_failure_before_the_first_token_is_tried_again_where_it_may_pass
A23 src/dialect/responses/tests.rs::any_events_make_a_stream_that_the_official_clients_accept
";

/// Checks that no test holds, and why.
const ELSEWHERE: [(&str, &str); 6] = [
    ("A15", "no encrypted content is given or read: docs/DECISIONS.md"),
    ("A18", "answers in a form are given: requests.rs::an_answer_has_the_form_that_its_request_wants"),
    ("A24", "the Agents API is not served: the contract says next"),
    ("A25", "the same"),
    ("A26", "the same"),
    ("A27", "the same"),
];

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &ELSEWHERE, 'A', 27);
}
