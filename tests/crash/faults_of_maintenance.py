"""Faults 50 to 86: expiry, tags, branches, readers, catalogs, orchestration."""

from __future__ import annotations

from tests.crash.fault_row import Row

_RACING = "tests/crash/test_racing_commits.py::"
_MERGE = "tests/crash/test_manifest_merge.py::"
_PUBLICATION = "tests/crash/test_publication.py::"
_CONCURRENT = "tests/crash/test_concurrent_commits.py::"
_INTERLEAVED = "tests/crash/test_interleavings.py::"
_MESSAGES = "tests/unit/paimon/commit/test_commit_messages.py::"
_SCHEMAS = "tests/unit/paimon/schema_changes/test_schema_changes.py::"
_EXPIRY = "tests/crash/test_expiry.py::"
_EXPIRE = "tests/unit/paimon/expire/test_expire_snapshots.py::"
_TAGS = "tests/unit/paimon/tags/test_tag_operations.py::"
_BRANCHES = "tests/unit/paimon/branches/test_branch_operations.py::"
_ROLLBACK = "tests/unit/paimon/rollback/test_rollback.py::"
_REFERENCES = "tests/crash/test_references.py::"
_MEETINGS = "tests/crash/test_references_meet.py::"
_ORPHANS = "tests/crash/test_orphans.py::"
_SQL = "tests/crash/test_sql_catalog.py::"
_PARTITIONS = "tests/crash/test_partition_upkeep.py::"
_TRANSFER = "tests/crash/test_transfer.py::"

ROWS = (
    Row(
        "50",
        "expiry is killed between data files",
        "no live file is deleted, and a retry finishes",
        (
            f"{_EXPIRY}test_a_fault_at_any_call_leaves_what_stays_readable_and_the_next_run_finishes",
        ),
    ),
    Row(
        "51",
        "expiry is killed between manifests and snapshots",
        "no live file is deleted, and a retry finishes",
        (
            f"{_EXPIRY}test_a_fault_at_any_call_leaves_what_stays_readable_and_the_next_run_finishes",
        ),
    ),
    Row(
        "52",
        "expiry is killed between snapshot files",
        "no gap after the oldest snapshot, and a retry finishes",
        (
            f"{_EXPIRY}test_a_fault_at_any_call_leaves_what_stays_readable_and_the_next_run_finishes",
        ),
    ),
    Row(
        "53",
        "another program raises EARLIEST too early",
        "a listing finds the hidden snapshots",
        (f"{_EXPIRE}test_a_hint_that_hides_old_snapshots_keeps_none_of_them",),
    ),
    Row(
        "54",
        "two expiries at the same time",
        "no needed file is deleted, and the work is done",
        (f"{_EXPIRY}test_of_two_expiries_at_once_none_does_damage_and_the_work_is_done",),
    ),
    Row(
        "55",
        "an expiry while a tag is created",
        "the creation fails, or the tag is complete",
        (
            f"{_EXPIRY}test_a_tag_made_while_its_snapshot_expires_is_refused_or_complete",
            f"{_EXPIRY}test_a_tag_whose_maker_was_overtaken_by_an_expiry_is_refused",
            f"{_MEETINGS}test_a_tag_made_while_its_snapshot_expires_fails_or_is_complete",
            f"{_TAGS}test_a_tag_of_a_snapshot_that_is_expiring_fails_and_is_not_there",
        ),
    ),
    Row(
        "56",
        "an expiry while a branch or consumer is created",
        "the creation fails, or the branch or consumer is complete",
        (
            f"{_EXPIRY}test_a_consumer_set_while_its_snapshot_expires_is_refused_or_finds_all_it_has_not_read",
            f"{_MEETINGS}test_whoever_comes_second_is_refused_or_has_all_of_it",
        ),
    ),
    Row(
        "57",
        "an expiry during a long read",
        "the read returns the right rows, or an error that advises a retry",
        (
            f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",
            f"{_EXPIRE}test_a_reader_whose_snapshot_expires_is_told_to_scan_again_and_gets_no_wrong_rows",
        ),
    ),
    Row(
        "58",
        "expiry of the snapshot on which a compaction was planned",
        "the compaction is published or refused",
        (
            "tests/crash/test_concurrent_commits.py::test_a_commit_overtaken_by_others_and_by_expiry_is_tried_again_and_succeeds",
            f"{_INTERLEAVED}test_a_compaction_planned_on_an_expired_snapshot_is_checked_against_the_head",
            f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",
        ),
    ),
    Row(
        "59",
        "expiry while a snapshot file is missing",
        "the expiry continues after the gap",
        (f"{_EXPIRE}test_a_gap_in_the_numbers_is_passed_over",),
    ),
    Row(
        "60",
        "expiry of files that two branches share",
        "shared files are kept",
        (
            f"{_EXPIRE}test_a_branch_keeps_what_it_has_written_since_it_was_made_and_shares_by_now",
            "tests/conformance/test_expiry_property.py::test_what_stays_reads_as_before_and_nothing_is_left_over",
        ),
    ),
    Row(
        "61",
        "deletion of a tag that shares files",
        "only unreferenced files are deleted",
        (
            f"{_TAGS}test_deleting_a_tag_removes_exactly_what_only_it_held",
            f"{_TAGS}test_deleting_a_tag_whose_snapshot_is_there_removes_no_other_file",
            f"{_TAGS}test_a_tag_of_a_number_that_was_used_again_is_of_the_old_snapshot",
        ),
    ),
    Row(
        "62",
        "deletion of a tag is killed",
        "the tag is complete, or it is deleted and leaves orphans",
        (
            f"{_REFERENCES}test_after_a_fault_at_any_storage_call_what_stays_reads_as_before_and_a_repeat_ends_it",
        ),
    ),
    Row(
        "63",
        "expiry of a snapshot that moved a file to another level",
        "the file is kept",
        (
            f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",
            f"{_EXPIRE}test_a_file_that_moves_up_a_level_inside_what_expires_stays",
        ),
    ),
    Row(
        "64",
        "expiry is killed in a table that keeps changelogs longer than snapshots",
        "consumers can read all changes within the retention",
        (f"{_EXPIRY}test_changelogs_that_live_longer_can_be_read_whatever_call_an_expiry_dies_at",),
    ),
    Row(
        "65",
        "a file is deleted while a consumer reads it",
        "a clear error",
        (
            "tests/unit/paimon/consumers/test_table_consumers.py::test_a_stream_whose_consumer_fell_behind_is_told_the_earliest_there_is",
        ),
    ),
    Row(
        "66a",
        "a rollback publishes old files in a new snapshot; the snapshots that deleted them expire",
        "referenced files are kept",
        (
            f"{_ROLLBACK}test_files_brought_back_stay_when_what_deleted_them_expires",
            "tests/conformance/test_references_property.py::test_whatever_happens_everything_with_a_name_reads_as_it_did",
        ),
    ),
    Row(
        "66b",
        "expiry after another program has added a deleted file again",
        "the file is kept",
        (
            f"{_EXPIRE}test_a_file_that_was_added_again_after_its_deletion_stays_while_it_is_needed",
            f"{_EXPIRE}test_a_file_that_is_added_again_behind_the_oldest_that_stays_is_found",
        ),
    ),
    Row(
        "66",
        "clocks jump or differ",
        "an expiry keeps at least `snapshot.num-retained.min` snapshots",
        (
            "tests/unit/paimon/expire/test_expire_retention.py::test_whatever_clocks_say_the_numbers_hold",
        ),
    ),
    Row(
        "67",
        "rollback during a commit",
        "no deleted row reappears",
        (
            f"{_ROLLBACK}test_a_commit_whose_base_is_rolled_back_before_it_publishes_is_made_again_on_what_is_left",
            f"{_ROLLBACK}test_a_commit_that_was_published_on_what_is_rolled_back_goes_with_it_and_is_made_again",
            f"{_ROLLBACK}test_numbers_used_again_below_a_commit_under_way_bring_nothing_back",
            f"{_ROLLBACK}test_an_expiry_that_announces_the_target_before_the_fence_is_up_ends_the_rollback",
            f"{_ROLLBACK}test_an_expiry_behind_the_fence_lets_the_target_live_whoever_commits_meanwhile",
        ),
    ),
    Row(
        "68",
        "rollback is killed",
        "the table has a complete state, and a retry finishes",
        (
            f"{_REFERENCES}test_after_a_fault_at_any_storage_call_what_stays_reads_as_before_and_a_repeat_ends_it",
            f"{_ROLLBACK}test_a_rollback_that_was_suspended_for_a_day_removes_nothing",
            f"{_ROLLBACK}test_one_that_fails_before_anything_went_does_not_hold_up_the_expiry_that_makes_room",
            f"{_EXPIRE}test_a_rollback_that_died_does_not_hold_up_expiry_for_ever",
            "tests/crash/test_rollback_identity.py::test_one_that_cuts_history_takes_nothing_out_that_came_after_it",
        ),
    ),
    Row(
        "69",
        "snapshot numbers are reused after a rollback",
        "caches distinguish the snapshots",
        (
            f"{_ROLLBACK}test_what_comes_after_a_rollback_uses_the_numbers_again",
            f"{_ROLLBACK}test_numbers_used_again_below_a_commit_under_way_bring_nothing_back",
            f"{_ROLLBACK}test_an_expiry_that_announces_the_target_before_the_fence_is_up_ends_the_rollback",
            f"{_ROLLBACK}test_an_expiry_behind_the_fence_lets_the_target_live_whoever_commits_meanwhile",
        ),
    ),
    Row(
        "70",
        "fast-forward is killed",
        "a retry resumes it",
        (
            f"{_REFERENCES}test_after_a_fault_at_any_storage_call_what_stays_reads_as_before_and_a_repeat_ends_it",
            f"{_BRANCHES}test_a_commit_to_main_while_it_is_forwarded_is_kept_and_ends_the_forwarding",
        ),
    ),
    Row(
        "71",
        "creation of a branch is killed",
        "the branch is not listed, or a retry completes it",
        (
            f"{_REFERENCES}test_after_a_fault_at_any_storage_call_what_stays_reads_as_before_and_a_repeat_ends_it",
            f"{_BRANCHES}test_a_branch_that_is_being_made_is_not_there_yet",
        ),
    ),
    Row(
        "72",
        "orphan removal during a very long write",
        "the arguments `in_use` and `running_since` of the removal keep the files of the write",
        (
            f"{_ORPHANS}test_the_files_of_a_write_that_takes_days_stay_if_they_are_known",
            "tests/unit/paimon/orphans/test_orphans.py::test_a_writer_that_is_still_at_work_keeps_all_its_files",
            "tests/unit/paimon/orphans/test_orphans.py::test_the_oldest_write_under_way_moves_the_floor",
        ),
    ),
    Row(
        "73",
        "orphan removal during fast expiry",
        "only orphans are deleted, or the removal stops",
        (f"{_ORPHANS}test_beside_a_fast_expiry_a_removal_is_right_or_gives_up",),
    ),
    Row(
        "74",
        "a listing fails during orphan removal",
        "nothing is deleted",
        (f"{_ORPHANS}test_nothing_goes_when_a_directory_cannot_be_listed_or_a_manifest_not_read",),
    ),
    Row(
        "75",
        "orphan removal is killed",
        "the table is intact, and the next removal deletes the rest",
        (
            f"{_ORPHANS}test_a_removal_that_dies_at_any_call_harms_nobody_and_the_next_one_finishes",
            f"{_ORPHANS}test_exactly_what_nothing_leads_to_goes_whatever_has_died",
        ),
    ),
    Row(
        "76",
        "a partition expires by `update-time` while rows are written to it",
        "new rows are kept",
        (
            f"{_PARTITIONS}test_a_compaction_of_a_partition_that_expires_meanwhile_is_told_who_was_first",
            "tests/unit/paimon/partitions/test_partition_expiry.py::test_a_partition_somebody_writes_to_meanwhile_is_looked_at_again",
        ),
    ),
    Row(
        "77",
        "expiry of partitions is killed",
        "the next expiry deletes the rest",
        (f"{_PARTITIONS}test_a_fault_at_any_call_of_an_expiry_leaves_partitions_whole_or_gone",),
    ),
    Row(
        "78",
        "marking a partition as done is killed or repeated",
        "the next call completes the mark",
        (f"{_PARTITIONS}test_a_fault_at_any_call_of_a_mark_is_made_good_by_the_next",),
    ),
    Row(
        "79",
        "renaming a table on an object store is killed",
        "the source is kept until the copy is complete",
        (
            "tests/conformance/test_catalogs.py::test_where_directories_cannot_be_renamed_somebody_has_to_insist",
            f"{_SQL}test_without_a_database_a_power_cut_leaves_the_old_table_or_the_whole_new_one",
        ),
    ),
    Row(
        "80",
        "killed between the files of a table and its entry in the SQL database of a catalog",
        "`lake repair` makes both agree",
        (
            f"{_SQL}test_after_a_power_cut_at_any_storage_call_repair_leaves_all_or_nothing",
            f"{_SQL}test_killed_between_schema_file_and_row_the_table_is_listed_by_repair",
            f"{_SQL}test_killed_between_row_and_directory_the_rename_is_finished_by_repair",
            f"{_SQL}test_killed_between_row_and_files_the_drop_is_finished_by_repair",
        ),
    ),
    Row(
        "81",
        "two processes create one table",
        "one gets an error",
        (f"{_PUBLICATION}test_of_two_who_create_a_table_one_is_told_that_it_exists",),
    ),
    Row(
        "82",
        "two schema changes at the same time",
        "both are made, or one is refused",
        (
            f"{_SCHEMAS}test_a_lost_race_is_checked_again_on_the_schema_of_the_winner",
            f"{_SCHEMAS}test_races_lost_without_end_are_a_conflict",
            f"{_SCHEMAS}test_a_lost_answer_is_found_by_reading_the_schema_back",
        ),
    ),
    Row(
        "83",
        "migration or cloning is killed",
        "the source is unchanged, and a retry completes the work",
        (
            f"{_TRANSFER}test_a_clone_is_not_there_or_whole_and_repeating_it_ends_it",
            f"{_TRANSFER}test_a_migration_comes_in_once_and_whole_and_the_source_stays_as_it_is",
        ),
    ),
    Row(
        "84",
        "manifests are merged during appends",
        "every file is kept",
        (
            f"{_CONCURRENT}test_manifests_merged_while_others_append_hold_every_file",
            f"{_MERGE}test_a_rival_that_commits_first_leaves_the_merge_usable",
            f"{_PARTITIONS}test_manifests_merged_on_demand_while_others_append_hold_every_file",
            f"{_PARTITIONS}test_a_fault_at_any_call_changes_no_row_and_the_next_try_ends_it",
        ),
    ),
    Row(
        "85",
        "a retry runs while the first attempt still runs",
        "the commit is in the table once",
        (
            f"{_RACING}test_a_twin_at_any_moment_publishes_nothing_twice",
            "tests/airflow/jobs/test_identity.py::test_a_retry_is_the_same_user",
        ),
    ),
    Row(
        "86",
        "an old run is cleared in Airflow",
        "a task that failed after its commit finds this commit; a task that succeeded repeats its "
        "work",
        (
            "tests/airflow/jobs/test_identity.py::test_other_work_is_another_user",
            "tests/airflow/jobs/test_cleared_tasks.py::test_every_clear_does_the_work_again",
            f"{_MESSAGES}test_the_same_identity_makes_the_second_time_harmless",
        ),
    ),
)
