//! Which tests hold which of the contract's checks, B01 to B85. A test that is renamed or removed makes this one fail, and so does a
//! check that has neither a test nor a reason.

use crate::support::checks::all_are_held;

/// Tests by file and name, each behind the checks that it holds.
const TESTED: &str = "
B01 B11 it/agent_stream/turns.rs::a_turn_tells_of_its_session_and_ends_once
B03 B06 B08 it/agent_stream/refusals.rs::mistakes_have_one_form_on_all_routes
B04 it/agent_stream/refusals.rs::nobody_gets_in_without_a_good_token_on_any_route
B05 it/agent_stream/refusals.rs::a_session_that_is_not_there_is_told_in_the_stream
B06 B07 B82 it/agent_stream/refusals.rs::what_may_be_missing_or_odd_is_no_mistake_and_both_spellings_mean_the_same
B09 it/identity/cookies.rs::a_cookie_counts_for_pages_of_this_site_and_of_listed_ones
B09 it/identity/cookies.rs::pages_of_listed_origins_may_send_their_cookie
B10 it/identity/cookies.rs::the_backend_gets_the_cookie_where_it_is_told_to_and_never_repeats_it_to_the_model
B10 B33 B36 B38 B39 B40 B43 B44 B45 B47 B49 it/agent_stream/catalogue.rs::each_tool_makes_its_request_and_reads_its_answer
B11 B12 B13 B82 it/agent_stream/sessions.rs::a_session_goes_on_with_what_was_said_and_is_shown_in_rows
B12 B13 it/agent_stream/sessions.rs::counts_add_up_over_turns_and_the_newest_ten_sessions_are_listed
B14 it/agent_stream/sessions.rs::of_a_long_session_the_newest_messages_are_shown
B15 B16 it/agent_stream/sessions.rs::sessions_are_listed_renamed_left_and_deleted
B15 it/agent_stream/sessions.rs::a_title_that_is_no_json_is_refused_and_a_session_that_is_gone_is_not_found
B16 it/agent_stream/labels.rs::a_session_that_is_left_gets_its_labels_once
B17 it/agent_stream/labels.rs::an_answer_that_cannot_be_used_changes_nothing_and_it_may_be_tried_again
B17 it/agent_stream/labels.rs::where_nobody_makes_labels_that_is_said
B18 it/agent_stream/places.rs::after_a_restart_a_session_is_as_it_was
B18 it/agent_stream/places.rs::after_a_kill_a_session_is_as_it_was
B19 it/agent_stream/sessions.rs::what_was_said_elsewhere_counts_only_where_no_session_is_named
B19 it/agent_stream/sessions.rs::of_what_was_said_elsewhere_the_newest_fifty_count
B20 it/agent_stream/sessions.rs::nobody_reaches_the_sessions_of_others
B21 B22 B29 it/agent_stream/turns.rs::every_context_has_its_own_prompt_and_pool_and_an_unknown_one_is_global
B23 B24 B26 it/agent_stream/turns.rs::a_focus_is_kept_changed_and_cleared_and_told_when_it_changes
B25 B72 it/agent_stream/leaving.rs::a_client_that_leaves_in_the_middle_of_a_text_ends_its_turn_and_what_was_said_is_kept
B27 B28 it/agent_stream/refusals.rs::a_project_that_cannot_be_had_ends_the_turn_before_a_model_is_asked
B29 it/agent_stream/places.rs::prompts_show_what_belongs_to_their_place_and_names_stay_on_their_line
B30 B31 it/agent_stream/state.rs::a_turn_leaves_what_it_was_about_and_the_next_one_begins_with_that
B30 it/agent_stream/state.rs::a_move_is_told_as_a_recap_of_its_own
B31 it/agent_stream/state.rs::a_turn_that_fails_leaves_nothing
B32 B36 B37 it/agent_stream/turns.rs::calls_are_told_with_their_results_and_every_one_is_answered
B33 B34 it/agent_stream/catalogue.rs::each_context_offers_its_pool_and_each_tool_its_arguments
B34 it/agent_stream/failures.rs::what_only_reads_never_makes_a_write_however_often_it_is_asked_for
B34 it/agent_stream/plans.rs::what_only_reads_makes_no_plan_that_writes
B35 it/agent_stream/failures.rs::a_tool_that_was_not_loaded_is_offered_then_and_works_in_the_same_turn
B36 it/agent_stream/failures.rs::arguments_that_are_no_json_are_told_and_the_other_calls_are_made
B37 it/agent_stream/failures.rs::a_backend_that_fails_is_told_in_its_own_words_and_the_turn_goes_on
B37 it/agent_stream/failures.rs::a_backend_over_its_time_is_a_timeout
B41 it/agent_stream/operations.rs::what_results_have_named_is_told_by_its_name_also_in_later_turns
B42 it/agent_stream/operations.rs::a_name_that_nobody_knows_is_looked_up_once_before_a_change
B42 B43 it/agent_stream/operations.rs::reads_searches_and_what_is_made_have_their_names_and_other_calls_have_none
B46 it/agent_stream/turns.rs::the_call_behind_the_last_one_that_is_allowed_ends_the_turn
B47 B48 it/agent_stream/turns.rs::a_created_project_moves_the_session_and_the_same_turn_goes_on_there
B47 B54 it/agent_stream/places.rs::a_new_project_is_told_in_order_and_its_questions_are_dropped
B47 it/agent_stream/places.rs::nothing_else_moves_a_session
B50 B51 it/agent_stream/clarify.rs::little_said_is_asked_about_in_two_rounds_and_then_no_more
B52 it/agent_stream/clarify.rs::who_said_enough_is_not_asked
B53 it/agent_stream/clarify.rs::a_helper_of_no_use_means_one_general_question
B54 it/agent_stream/clarify.rs::a_project_that_is_made_ends_the_questions
B54 it/agent_stream/clarify.rs::who_leaves_leaves_no_round_without_its_question
B55 B65 B68 it/agent_stream/plans.rs::steps_begin_when_their_needs_are_met_and_are_told_as_they_happen
B55 it/agent_stream/plan_steps.rs::several_tools_of_a_step_have_their_own_arguments_and_one_failure_fails_it
B56 B85 it/agent_stream/plans.rs::a_helper_writes_the_steps_that_are_not_given
B56 it/agent_stream/plan_steps.rs::steps_are_read_however_the_helper_writes_them
B57 it/agent_stream/plans.rs::a_draft_waits_and_is_carried_out_once
B57 it/agent_stream/plans.rs::a_draft_that_is_dropped_is_never_carried_out
B58 B85 it/agent_stream/plans.rs::a_review_lets_a_plan_through_or_holds_it
B59 it/agent_stream/plans.rs::every_mistake_of_a_plan_is_named_and_nothing_of_it_is_done
B60 it/agent_stream/plans.rs::a_step_that_fails_ends_what_depends_on_it
B61 B62 B65 B68 it/agent_stream/plans.rs::an_executor_sees_its_step_and_nothing_else
B62 B64 it/agent_stream/plans.rs::an_executor_that_fails_fails_its_step_alone
B63 it/agent_stream/plan_steps.rs::no_more_steps_run_at_once_than_the_settings_allow
B66 it/agent_stream/plans.rs::in_project_create_a_plan_makes_the_project_first
B67 it/agent_stream/plans.rs::a_client_that_leaves_takes_every_step_with_it
B69 it/agent_stream/state.rs::context_usage_is_what_the_model_is_sent_of_the_session
B70 it/agent_stream/state.rs::over_its_budget_a_session_is_summarised_behind_the_scenes
B70 it/agent_stream/state.rs::a_summary_that_fails_loses_nothing_and_is_tried_again
B71 it/agent_stream/state.rs::no_turn_waits_for_a_summary
B72 it/agent_stream/leaving.rs::a_client_that_leaves_before_a_word_was_said_harms_nothing
B73 it/agent_stream/leaving.rs::a_client_that_leaves_during_a_call_ends_that_too
B74 it/agent_stream/turns.rs::a_second_message_takes_the_place_of_the_first
B74 it/agent_stream/leaving.rs::leaving_and_asking_again_in_one_moment_works_every_time
B74 it/agent_stream/leaving.rs::a_run_that_is_cancelled_by_its_id_ends_its_stream_as_cancelled
B75 it/agent_stream/turns.rs::a_model_that_fails_is_told_once_and_the_next_turn_works
B75 it/agent_stream/leaving.rs::a_model_that_refuses_or_breaks_is_told_in_words_of_ours
B76 it/agent_stream/prewarm.rs::a_prewarm_makes_a_session_and_says_what_is_at_hand
B77 it/agent_stream/prewarm.rs::what_was_loaded_is_used_until_a_write_changes_it
B77 it/agent_stream/prewarm.rs::a_write_in_one_replica_is_seen_in_the_other
B78 it/agent_stream/prewarm.rs::a_backend_that_fails_fails_no_prewarm_and_mistakes_are_told
B79 it/agent_stream/prewarm.rs::a_first_message_finds_the_session_that_waits_for_it
B79 it/agent_stream/prewarm.rs::a_message_that_overtakes_its_prewarm_is_in_the_same_session
B80 it/agent_stream/message.rs::an_agent_says_one_thing_and_nothing_of_it_is_kept
B80 it/agent_stream/message.rs::what_is_wrong_has_its_status
B81 it/agent_stream/telemetry.rs::a_developer_is_told_how_a_turn_is_carried_out
B83 it/agent_stream/client.rs::a_page_goes_through_its_day_with_its_cookie
B84 it/agent_stream/leaving.rs::an_answer_without_anything_in_it_never_ends_in_silence
";

/// Checks that no test of the suite holds by itself, and why.
const ELSEWHERE: [(&str, &str); 1] =
    [("B02", "fields.rs holds every frame that any test of this folder reads to its fields")];

#[test]
fn each_check_has_its_tests() {
    all_are_held(TESTED, &ELSEWHERE, 'B', 85);
}
