//! Which tests hold which of the contract's checks of MCP, C01 to C19: of the server, and of our client (C17 to C19).

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds.
const TESTED: &str = "
C01 it/mcp_server/conformance.rs::the_conformance_suite_finds_what_is_expected_in_each_revision
C02 it/mcp_server/conformance.rs::the_inspector_lists_tools_and_calls_one_in_both_eras
C03 it/mcp_server/identity.rs::without_a_good_token_a_client_reads_who_gives_one
C03 it/mcp_server/identity.rs::the_document_needs_no_token_and_names_the_issuers
C04 it/mcp_server/identity.rs::a_token_for_somebody_else_is_none
C05 it/mcp_server/identity.rs::pages_of_foreign_sites_stay_outside
C06 it/mcp_server/hostile.rs::what_is_no_message_is_refused_by_its_number
C06 it/mcp_server/hostile.rs::headers_and_body_say_the_same_or_nothing_is_done
C07 it/mcp_server/listing.rs::tools_are_those_of_the_callers_roles_in_a_stable_order
C08 it/mcp_server/calls.rs::an_answer_is_text_and_data_and_its_conversation_goes_on
C08 it/mcp_server/calls.rs::another_users_conversation_is_none
C09 it/mcp_server/calls.rs::progress_grows_and_stops_with_the_result
C10 it/mcp_server/calls.rs::who_goes_away_cancels_the_run
C11 it/mcp_server/approvals.rs::a_user_is_asked_by_a_form_and_the_call_is_made_once
C11 it/mcp_server/approvals.rs::a_state_counts_for_its_user_and_its_call_alone
C11 it/mcp_server/approvals.rs::a_state_has_an_end
C12 it/mcp_server/approvals.rs::what_a_role_decides_is_not_taken_of_a_client_whose_user_has_that_role
C13 it/mcp_server/approvals.rs::what_a_role_decides_and_what_no_form_can_show_is_told_in_words
C14 it/mcp_server/tasks.rs::a_task_is_there_at_once_and_its_result_later_also_after_a_restart
C14 it/mcp_server/tasks.rs::a_task_is_cancelled
C15 it/mcp_server/listing.rs::a_client_of_the_revision_before_has_an_initialize_and_lists_too
C15 it/mcp_server/peer.rs::the_official_client_lists_and_calls_with_an_initialize
C16 it/mcp_server/hostile.rs::a_message_has_four_mebibytes_at_most
C17 C18 it/tools/mcp/newest.rs::a_server_without_an_initialize_is_used_with_one_token_of_its_issuer
C17 it/tools/mcp/everything.rs::over_http_it_is_the_same_and_tells_how_far_it_is
C19 it/tools/mcp/conformance.rs::our_client_does_what_is_expected_of_one_in_each_revision
";

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &[], 'C', 19);
}
