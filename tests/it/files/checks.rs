//! Which tests hold which of the contract's checks of files, F01 to F15.

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds.
const TESTED: &str = "
F01 it/files/sent.rs::a_picture_reaches_the_model_by_every_wire
F01 F02 it/providers/requests.rs::claude_gets_what_the_messages_api_takes
F01 F02 it/providers/requests.rs::bedrock_gets_what_converse_takes
F01 F02 it/providers/requests.rs::gemini_gets_what_its_api_takes
F01 F02 it/providers/requests.rs::vertex_gets_what_gemini_and_claude_take_there
F01 F02 it/providers/requests.rs::ollama_gets_what_its_server_takes
F01 F02 it/providers/requests.rs::chat_completions_get_what_most_servers_take
F01 F02 it/providers/requests.rs::responses_get_what_they_take_and_nothing_is_stored
F02 it/files/made.rs::clients_that_know_text_alone_read_where_a_file_of_a_tool_is_and_the_model_sees_it
F03 it/files/sent.rs::a_model_that_cannot_see_reads_a_sentence_and_texts_are_read_by_all
F03 it/files/told.rs::a_fallback_that_cannot_see_tells_so
F04 it/files/kept.rs::what_is_no_file_that_is_taken_is_refused
F04 it/files/refused.rs::a_byte_more_than_may_be_is_refused_and_no_such_file_stands_in_memory
F04 it/files/refused.rs::a_picture_that_is_a_page_too_is_never_one_that_a_browser_shows
F05 F06 it/files/kept.rs::a_file_is_its_users_alone
F05 it/files/clients.rs::a_file_is_its_users_alone_for_every_client
F07 it/files/refused.rs::an_address_instead_of_bytes_is_refused_by_every_wire_and_never_fetched
F08 it/files/clients.rs::a_file_whose_time_is_over_is_nowhere_but_in_a_sentence
F09 it/death/files.rs::who_is_killed_in_the_middle_of_an_upload_lists_nothing_and_what_was_written_goes
F10 it/death/files.rs::no_line_of_the_log_has_the_bytes_of_a_file
F10 F15 it/files/told.rs::no_log_and_no_trail_has_the_bytes_of_a_file
F11 it/files/sdk.rs::node_keeps_files_of_openais_client_and_names_them
F11 it/files/sdk.rs::node_keeps_files_of_anthropics_client_and_names_them
F11 it/responses/sdk.rs::python_keeps_files_and_names_them_in_a_message
F11 it/messages/sdk.rs::python_keeps_files_and_names_them_in_a_message
F12 it/files/sent.rs::only_the_newest_files_of_a_long_history_are_sent_again
F12 it/files/sent.rs::a_model_is_shown_no_more_at_once_than_it_takes
F13 it/files/refused.rs::pictures_that_are_bombs_are_refused_by_their_heads
F14 it/files/s3.rs::a_file_uploaded_at_one_replica_is_read_and_deleted_at_the_other
";

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &[], 'F', 15);
}
