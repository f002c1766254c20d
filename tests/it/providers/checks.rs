//! Which tests hold which of the contract's checks of clouds, E01 to E09.

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds.
const TESTED: &str = "
E01 src/llm/bedrock/frames.rs::frames_are_read_the_same_however_the_bytes_are_cut
E01 src/llm/bedrock/frames.rs::any_wrong_byte_is_an_error
E01 src/llm/bedrock/frames.rs::lengths_that_cannot_be_are_refused_as_soon_as_they_are_there
E01 src/llm/bedrock/frames.rs::headers_that_cannot_be_read_are_an_error
E02 src/llm/bedrock/tests.rs::a_turn_of_reasoning_text_and_two_calls_is_the_same_however_it_is_cut
E02 src/llm/bedrock/tests.rs::an_answer_ends_with_its_reason_and_what_was_used_comes_behind_it
E02 it/providers/transcripts.rs::an_answer_cut_off_by_its_connection_is_an_error_like_one_that_just_ends
E03 src/llm/bedrock/tests.rs::exceptions_are_what_their_names_say_before_and_after_the_first_delta
E04 src/llm/bedrock/tests.rs::the_models_name_is_encoded_once_and_the_region_is_part_of_the_host
E05 it/providers/requests.rs::requests_go_to_the_vendors_addresses_with_the_key_in_a_header
E06 it/support/sigv4.rs::amazons_own_examples_are_signed_as_they_are
E06 it/providers/signed.rs::a_request_is_signed_with_the_credentials_of_the_machine
E07 it/providers/requests.rs::vertex_gets_what_gemini_and_claude_take_there
E07 it/providers/vertex.rs::a_service_signs_its_tokens_itself_and_its_file_names_the_project
E07 it/providers/vertex.rs::who_another_service_vouches_for_changes_its_word_for_a_token
E07 it/providers/vertex.rs::fifty_requests_at_once_of_two_models_need_one_token
E07 it/providers/vertex.rs::a_token_that_has_run_out_is_not_sent_again
E08 it/providers/vertex.rs::a_refusal_of_the_token_service_is_the_operator_s_to_mend_and_is_forgotten
E09 it/cli/clouds.rs::a_metadata_server_that_never_answers_keeps_a_server_from_starting_and_it_says_so
";

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &[], 'E', 9);
}
