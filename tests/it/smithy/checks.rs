//! Which tests hold which of the contract's checks, S01 to S84: each test was read beside its check. One that is renamed or
//! removed makes this test fail, and so does a check without any.

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds, in the order of the first: those of `it/` at the boundary, those
/// of `src/` beside what they test.
const TESTED: &str = "
S01 S10 S27 S29 it/smithy/mod.rs::an_answer_is_told_as_the_extension_reads_it_and_its_history_is_the_same
S01 S03 it/smithy/chat.rs::pieces_are_told_as_they_come_and_silence_is_filled_with_comments
S02 it/smithy/chat.rs::a_text_arrives_as_it_is_whatever_its_lines_end_with
S04 S08 it/smithy/mod.rs::what_is_wrong_with_a_message_is_told_and_nothing_is_made
S04 S07 S08 S22 S23 S24 S25 S39 it/smithy/mod.rs::dialogs_are_made_chosen_renamed_and_deleted
S05 S27 it/smithy/chat.rs::the_model_gets_what_the_server_has_kept_and_nothing_that_a_client_says_of_it
S06 S09 it/smithy/mod.rs::the_answer_can_be_one_document_and_the_editor_is_shown_to_the_model
S06 it/smithy/local.rs::an_open_document_of_six_megabytes_is_taken_and_cut
S06 it/smithy/chat.rs::an_editor_that_says_nothing_of_itself_is_answered
S09 it/smithy/chat.rs::one_document_of_a_failure_is_a_failure
S10 S11 S14 it/smithy/chat.rs::each_call_of_a_turn_is_told_before_its_own_edit_and_reading_makes_none
S12 S27 it/smithy/mod.rs::the_history_has_reasoning_and_what_was_said_of_calls_that_wait_as_the_stream_had_them
S12 src/dialect/smithy/tests.rs::segments_are_closed_before_anything_else_and_done_is_last
S13 it/smithy/chat.rs::whatever_the_model_server_answers_the_stream_ends_well_and_the_dialog_goes_on
S13 it/smithy/mod.rs::a_failure_ends_with_error_and_done_and_the_dialog_goes_on
S14 S50 it/workspace/files.rs::a_failure_is_a_result_in_the_words_of_its_tool_and_changes_nothing
S15 it/workspace/files.rs::ten_failures_in_a_row_end_an_answer_and_a_success_begins_anew
S16 it/smithy/chat.rs::an_answer_that_never_comes_to_its_end_is_ended
S17 it/smithy/chat.rs::an_editor_that_goes_away_ends_its_answer_and_what_was_said_is_kept
S17 it/workspace/commands.rs::the_lines_of_a_command_are_told_while_it_runs_and_it_ends_with_its_client
S18 it/smithy/mod.rs::a_second_message_to_a_dialog_wins_and_both_streams_end_well
S19 S30 it/smithy/chat.rs::dialogs_that_are_answered_at_once_stay_apart
S20 it/smithy/local.rs::a_server_that_is_stopped_ends_its_streams_with_error_and_done
S21 it/death/workspace.rs::files_and_checkpoints_survive_kills_at_any_moment
S22 S25 S29 it/smithy/chat.rs::lists_and_histories_have_pages_and_ends
S24 it/smithy/dialog.rs::a_title_of_the_user_stays
S25 it/workspace/changes.rs::what_was_kept_goes_with_its_conversation_and_files_stay
S26 it/smithy/dialog.rs::the_model_gives_a_dialog_its_title_while_it_has_none
S28 it/smithy/mod.rs::a_long_dialog_is_read_to_its_beginning_whatever_the_pages
S28 src/dialect/smithy/tests.rs::pages_put_together_are_the_whole_whatever_their_size
S30 S65 it/smithy/dialog.rs::the_model_reads_again_what_a_tool_has_said
S31 S39 it/workspace/changes.rs::a_checkpoint_is_told_before_anything_else_and_can_be_restored
S31 S37 S41 it/smithy/mod.rs::checkpoints_and_sessions_are_those_of_the_workspace
S32 src/workspace/checkpoints/tests/restored.rs::everything_comes_back_byte_for_byte
S32 src/workspace/checkpoints/tests/seen.rs::an_edit_of_the_same_size_whose_time_is_set_back_is_found
S32 S39 it/workspace/changes.rs::what_a_command_did_counts_at_once_and_is_taken_back
S33 S44 it/workspace/changes.rs::the_users_repository_is_never_touched
S33 S36 it/smithy/rounds.rs::what_git_tracks_comes_back_whatever_is_ignored_and_git_stays_byte_for_byte
S33 src/workspace/checkpoints/tests/git.rs::the_repository_of_the_user_is_not_touched
S33 src/workspace/checkpoints/tests/restored.rs::a_restore_leaves_alone_what_it_does_not_know
S34 it/workspace/changes.rs::what_was_there_before_a_restore_is_kept_and_comes_back
S34 it/workspace/changes.rs::a_restore_straight_after_an_answer_can_be_undone
S34 src/workspace/checkpoints/tests/restored.rs::a_restore_can_be_undone_and_redone
S35 it/workspace/changes.rs::ignored_files_that_the_agent_touched_come_back_and_others_are_left_alone
S36 src/workspace/checkpoints/tests/excluded.rs::what_git_tracks_is_never_left_out
S36 src/workspace/checkpoints/tests/excluded.rs::folders_of_dependencies_stay_out_without_any_rule
S36 src/workspace/checkpoints/tests/excluded.rs::rules_hold_as_git_has_them
S37 it/workspace/changes.rs::what_is_no_checkpoint_of_this_conversation_is_refused_and_changes_nothing
S37 it/workspace/changes.rs::nothing_is_taken_back_while_an_answer_is_given
S38 S41 S42 it/workspace/changes.rs::changes_are_shown_approved_and_taken_back
S38 src/workspace/checkpoints/tests/diffs.rs::all_kinds_of_changes_are_told
S40 it/smithy/rounds.rs::differences_are_applied_by_patch
S40 src/workspace/checkpoints/tests/diffs.rs::random_edits_are_applied_by_patch
S40 src/workspace/checkpoints/tests/diffs.rs::edges_of_files_are_applied_by_patch
S40 src/workspace/checkpoints/tests/diffs.rs::headers_with_odd_names_are_understood
S43 it/smithy/rounds.rs::three_rounds_of_approval_and_reset_are_right_and_every_checkpoint_comes_back
S43 src/workspace/checkpoints/tests/history.rs::three_rounds_of_work_approval_and_reset_keep_every_id
S44 src/workspace/checkpoints/tests/odd.rs::an_empty_folder_has_the_empty_tree
S45 it/smithy/rounds.rs::a_project_of_five_thousand_files_is_looked_at_for_each_question
S46 it/workspace/files.rs::the_coding_profile_is_offered_with_its_tools_where_there_is_a_workspace
S47 src/workspace/files/tests/reading.rs::text_is_read_as_it_is
S47 src/workspace/files/tests/reading.rs::of_a_large_file_one_megabyte_is_read_and_no_character_is_torn
S48 S49 S50 it/smithy/rounds.rs::files_are_changed_whole_in_each_format_and_nothing_is_left_beside_them
S48 src/workspace/files/tests/writing.rs::a_file_is_replaced_whole_and_keeps_its_permissions
S48 src/workspace/files/tests/writing.rs::on_a_full_disk_neither_a_temporary_file_nor_a_new_folder_is_left
S49 src/workspace/files/replace/tests.rs::all_marks_are_understood
S49 src/workspace/files/replace/tests.rs::a_patch_is_applied_by_its_hunks
S49 src/workspace/files/replace/tests.rs::blocks_stand_in_any_order_and_are_looked_for_in_the_text_as_it_was
S50 src/workspace/files/replace/tests.rs::line_ends_stay
S51 src/workspace/files/tests/writing.rs::deleting_removes_a_file_and_tells_what_it_was
S51 it/workspace/files.rs::each_change_is_told_with_its_diff_behind_its_own_result
S52 src/workspace/files/tests/folders.rs::a_folder_is_listed_by_name_with_its_folders_and_links
S52 S53 it/workspace/files.rs::files_are_read_listed_and_searched
S53 src/workspace/files/search/tests.rs::an_expression_matches_line_by_line
S54 it/smithy/walls.rs::an_expression_that_explodes_ends_and_hits_are_bounded
S54 src/workspace/files/search/tests.rs::an_exploding_expression_ends_in_time
S54 src/workspace/files/search/tests.rs::hits_are_bounded_by_number_and_size_and_are_the_first_ones
S54 src/workspace/files/search/tests.rs::files_are_searched_but_not_hidden_binary_and_installed_ones
S55 it/workspace/commands.rs::a_command_runs_in_the_workspace_and_its_end_is_told
S55 it/workspace/sandbox/basics.rs::results_are_told_whole
S56 it/workspace/commands.rs::a_command_over_its_time_is_a_failure_with_what_it_wrote
S56 it/workspace/sandbox/basics.rs::nothing_outlives_its_command
S56 it/workspace/sandbox/basics.rs::output_is_cut_and_memory_stays_flat
S57 it/workspace/sandbox/basics.rs::the_environment_is_the_commands_own
S58 it/workspace/sandbox/escapes.rs::files_outside_are_out_of_reach
S58 it/workspace/sandbox/escapes.rs::what_is_protected_stays_as_it_is
S58 it/workspace/sandbox/escapes.rs::the_machine_is_out_of_reach
S59 it/workspace/commands.rs::what_is_asked_for_and_not_there_is_refused_and_other_tools_work
S60 it/smithy/walls.rs::no_tool_reads_or_changes_anything_outside_of_the_folder
S60 src/workspace/files/tests/paths.rs::nothing_outside_of_the_root_is_named_by_any_tool
S60 src/workspace/files/tests/links.rs::a_link_that_leads_outside_is_followed_by_no_tool
S60 it/workspace/races.rs::no_tool_gets_out_while_another_process_exchanges_folders_for_links
S61 src/workspace/files/tests/paths.rs::the_state_folder_is_protected_from_every_tool_in_any_letter_case
S61 src/workspace/files/tests/paths.rs::no_tool_writes_below_a_git_folder_but_reading_there_works
S62 it/smithy/walls.rs::pages_of_all_kinds_are_read_where_their_host_is_allowed
S62 src/toolsets/web/tests/pages.rs::a_page_is_told_as_the_protocol_has_it
S62 src/toolsets/web/tests/pages.rs::bodies_are_read_by_their_types
S62 src/toolsets/web/tests/pages.rs::redirects_are_followed_five_times
S62 src/toolsets/web/tests/pages.rs::the_time_counts_from_the_first_request_to_the_last_byte
S63 it/smithy/walls.rs::no_spelling_of_a_private_address_is_connected_to
S63 src/toolsets/web/tests/walls.rs::nobody_is_connected_to_at_a_refused_address
S63 src/toolsets/web/tests/walls.rs::a_redirect_is_vetted_like_an_address
S64 it/tools/web.rs::a_search_is_offered_with_an_engine_and_asks_it_alone
S64 src/toolsets/web/tests/searches.rs::a_search_is_told_as_the_protocol_has_it
S66 it/smithy/summaries.rs::a_long_dialog_is_told_a_pair_and_no_message_falls_between_two_summaries
S67 it/smithy/summaries.rs::a_summariser_that_fails_costs_nothing_but_the_summary
S67 it/conversations/summaries.rs::a_run_waits_for_a_summary_only_so_long_and_the_next_one_has_it
S68 S79 it/smithy/config.rs::the_settings_are_shown_without_keys
S69 S73 S74 it/smithy/config.rs::by_default_each_user_chooses_their_model_and_changes_nothing_else
S69 it/smithy/config.rs::a_new_provider_answers_from_the_next_message_on_and_after_a_restart
S70 it/smithy/config.rs::the_whole_document_comes_back_with_its_bullets_and_one_change
S71 it/smithy/config.rs::what_makes_no_sense_is_refused_by_name_and_changes_nothing
S72 it/smithy/config.rs::a_rename_takes_its_references_along
S73 it/smithy/config.rs::a_provider_that_cannot_be_asked_is_in_nobodys_way
S75 it/smithy/config.rs::a_server_without_a_model_says_so_until_it_has_one
S76 it/smithy/local.rs::the_local_user_needs_no_token_for_these_routes_and_for_no_others
S76 it/page/session.rs::only_a_browser_on_this_machine_is_signed_in
S77 it/smithy/local.rs::without_the_setting_everybody_needs_a_token
S77 S78 it/smithy/mod.rs::dialogs_are_their_owners_and_need_the_role_and_a_workspace
S78 it/workspace/owners.rs::each_owner_works_in_a_folder_of_their_own
S79 it/cli/secrets.rs::no_secret_is_logged_stored_or_answered
S79 it/workspace/commands.rs::a_command_sees_nothing_of_the_server_and_nothing_outside
S80 S81 it/smithy/local.rs::an_editor_starts_the_server_finds_it_and_stops_it
S81 it/workspace/owners.rs::one_process_holds_a_workspace
S81 it/smithy/local.rs::what_is_no_project_ends_with_two
";

/// Checks that no test of the suite holds, and where they are seen to.
const ELSEWHERE: [(&str, &str); 3] = [
    (
        "S82",
        "the extension's own code is not in this repository: reader.rs has its way of reading, and it was run by hand",
    ),
    ("S83", "its webview, as S82"),
    ("S84", "its process manager, as S82; local.rs starts, finds and stops the server as it does"),
];

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &ELSEWHERE, 'S', 84);
}
