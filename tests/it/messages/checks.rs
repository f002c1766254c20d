//! Which tests hold which of the contract's checks of Messages, B01 to B14.

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds.
const TESTED: &str = "
B01 it/messages/sdk.rs::messages_streams_and_the_helper_of_node_tell_the_same
B01 it/messages/sdk.rs::models_and_tokens_are_told_to_node
B01 it/messages/sdk.rs::errors_have_the_classes_that_node_catches
B01 it/messages/sdk.rs::messages_streams_and_tools_of_python_are_the_same
B01 it/messages/sdk.rs::errors_models_and_tokens_of_python_are_the_same
B02 it/messages/requests.rs::both_keys_are_taken_with_any_version_and_at_both_addresses
B03 it/messages/models.rs::models_have_the_shape_of_the_client_that_asks
B04 src/dialect/messages/tests/mod.rs::any_events_make_a_stream_that_the_official_clients_accept
B05 it/messages/sdk.rs::the_ai_sdk_runs_its_own_tools_shows_those_of_the_server_and_goes_on
B06 it/messages/client_tools.rs::a_tool_of_the_server_and_one_of_the_client_are_told_apart_in_one_message
B07 B13 it/messages/history.rs::a_conversation_is_texts_and_nothing_that_a_client_could_make_up
B07 it/messages/history.rs::what_its_own_tools_have_said_stands_in_its_next_message_where_its_instructions_count
B08 it/messages/streams.rs::a_model_that_fails_is_an_error_before_the_first_byte_and_in_the_stream
B09 it/messages/repeating.rs::a_run_that_failed_is_gone_on_with_and_writes_nothing_twice
B10 it/messages/history.rs::a_client_says_what_it_wants_where_the_profile_takes_it
B11 it/messages/client_tools.rs::words_beside_results_failures_and_images_are_read_with_them
B12 it/messages/requests.rs::a_long_history_is_taken_and_one_beyond_the_limit_is_not
B14 it/messages/streams.rs::an_answer_that_is_cut_says_so
";

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &[], 'B', 14);
}
