"""Faults 1 to 49: writing, publication, conflicts and recovery."""

from __future__ import annotations

from tests.crash.fault_row import Row

_APPEND = "tests/crash/test_append_commit.py::"
_EVERY = "tests/crash/test_every_commit.py::"
_RACING = "tests/crash/test_racing_commits.py::"
_MERGE = "tests/crash/test_manifest_merge.py::"
_PUBLICATION = "tests/crash/test_publication.py::"
_RECOVERY = "tests/crash/test_recovery.py::"
_CONCURRENT = "tests/crash/test_concurrent_commits.py::"
_PROCESSES = "tests/crash/test_many_processes.py::"
_INTERLEAVED = "tests/crash/test_interleavings.py::"
_KILLED = "tests/crash/test_killed_writers.py::"
_CONFLICTS = "tests/unit/paimon/commit/test_commit_conflicts.py::"
_IDENTITY = "tests/unit/paimon/commit/test_commit_identity.py::"
_MESSAGES = "tests/unit/paimon/commit/test_commit_messages.py::"
_OVERWRITE = "tests/unit/paimon/commit/test_commit_overwrite.py::"
_LOCAL = "tests/unit/storage/test_storage_local.py::"
_SNAPSHOTS = "tests/unit/paimon/metadata/test_snapshots.py::"
_BUCKET = "tests/conformance/test_storage_s3.py::"
_ANSWERS = "tests/conformance/test_storage_publication.py::"
_SQL_LOCK = "tests/conformance/test_sql_lock.py::"
_NO_CALLBACKS = "this library calls no callbacks, so there is nothing to test"
_ORPHANS = "tests/unit/paimon/orphans/test_orphans.py::"

_WRITING = (
    Row(
        "1",
        "killed while data files are written",
        "no snapshot, only orphans",
        (
            f"{_APPEND}test_a_fault_at_any_storage_call_loses_and_doubles_nothing",
            f"{_APPEND}test_repeating_an_interrupted_run_publishes_every_commit_once",
        ),
    ),
    Row(
        "2",
        "killed after the data files, before commit messages are stored",
        "no snapshot, only orphans",
        (
            f"{_RECOVERY}test_a_driver_killed_at_any_call_finds_what_it_kept_and_commits_exactly_that",
        ),
    ),
    Row(
        "3",
        "killed after commit messages are stored, before the commit",
        "a retry commits these files once",
        (
            f"{_RECOVERY}test_a_driver_killed_at_any_call_finds_what_it_kept_and_commits_exactly_that",
        ),
    ),
    Row(
        "4",
        "a write task succeeds twice",
        "the table has only the rows of the attempt whose commit messages are committed",
        (
            f"{_RECOVERY}test_of_a_task_that_ran_twice_only_the_try_that_was_reported_is_in_the_table",
        ),
    ),
    Row(
        "5",
        "killed while manifests are written",
        "no snapshot, only orphans",
        (
            f"{_MERGE}test_a_fault_at_any_call_of_a_merging_append_loses_and_doubles_nothing",
            f"{_MERGE}test_repeating_an_interrupted_run_publishes_every_commit_once",
        ),
    ),
    Row(
        "6",
        "killed after the manifest lists, before publication",
        "no snapshot, only orphans",
        (f"{_EVERY}test_a_fault_at_any_call_leaves_the_state_before_or_after",),
    ),
    Row(
        "7",
        "killed before the temporary file of a snapshot gets its final name",
        "no reader treats the temporary file as a snapshot",
        (
            f"{_PUBLICATION}test_a_file_prepared_for_publication_is_no_snapshot_and_in_nobodys_way",
            f"{_SNAPSHOTS}test_strangers_in_the_snapshot_directory_are_no_snapshots",
            f"{_EVERY}test_repeating_the_step_publishes_it_once",
            f"{_ORPHANS}test_every_directory_of_the_format_is_looked_at",
        ),
    ),
    Row(
        "8",
        "killed before the hint LATEST is written",
        "the snapshot is found, and a retry does not publish it again",
        (
            f"{_APPEND}test_repeating_an_interrupted_run_publishes_every_commit_once",
            f"{_EVERY}test_repeating_the_step_publishes_it_once",
        ),
    ),
    Row(
        "9",
        "killed after publication, before callbacks",
        "the snapshot exists",
        (f"{_EVERY}test_repeating_the_step_publishes_it_once",),
        _NO_CALLBACKS,
    ),
    Row(
        "10",
        "killed between the append and the compaction of one commit",
        "the append is in the table once",
        (
            f"{_RECOVERY}test_a_commit_that_died_before_its_compaction_is_whole_and_can_be_compacted_later",
            f"{_RECOVERY}test_the_same_commit_repeated_after_it_died_half_way_is_finished",
            f"{_EVERY}test_a_fault_at_any_call_leaves_the_state_before_or_after",
        ),
    ),
    Row(
        "11",
        "the hint LATEST cannot be written",
        "the commit succeeds",
        (f"{_PUBLICATION}test_hints_that_cannot_be_written_cost_no_commit_and_no_answer",),
    ),
    Row(
        "12",
        "a hint is damaged or wrong",
        "the newest and oldest snapshots are found; while LATEST is above the newest snapshot, no "
        "orphan is removed",
        (
            f"{_SNAPSHOTS}test_the_newest_snapshot_is_found_whatever_the_hint_says",
            f"{_PUBLICATION}test_the_oldest_snapshot_is_found_by_listing_whatever_its_hint_says",
            f"{_SNAPSHOTS}test_a_hint_beyond_the_newest_snapshot_changes_nothing_but_is_reported",
            f"{_ORPHANS}test_nothing_is_removed_while_the_newest_snapshot_of_a_branch_may_be_lost",
        ),
    ),
    Row(
        "13",
        "an error in a callback before the commit",
        "nothing is visible",
        later=_NO_CALLBACKS,
    ),
    Row(
        "14",
        "an error in a callback after the commit",
        "a retry publishes nothing twice",
        later=_NO_CALLBACKS,
    ),
    Row(
        "15",
        "the disk is full before publication",
        "no snapshot; the data files are kept for a retry",
        (
            f"{_RECOVERY}test_a_snapshot_a_full_disk_has_no_room_for_is_certainly_not_published",
            f"{_RECOVERY}test_on_a_full_disk_the_prepared_files_stay_until_somebody_gives_them_up",
            f"{_EVERY}test_a_commit_that_fails_before_publication_leaves_nothing_behind",
        ),
    ),
)

_OUTCOMES = (
    Row(
        "16",
        "2 to 32 writers try to publish the same snapshot number",
        "one gets this number; every commit is in the table once",
        (
            f"{_PUBLICATION}test_of_many_writers_for_one_number_each_gets_one_of_its_own",
            f"{_PROCESSES}test_eight_processes_append_side_by_side",
            f"{_BUCKET}test_of_racing_processes_one_publishes_each_name",
            f"{_BUCKET}test_eight_processes_append_to_one_table",
        ),
    ),
    Row(
        "17",
        "a conditional PUT succeeds without an answer",
        "the writer recognises its snapshot",
        (
            f"{_PUBLICATION}test_whatever_the_store_says_a_publication_is_made_once_with_the_same_body",
            f"{_APPEND}test_a_lost_answer_of_the_publication_is_resolved_by_reading_back",
            f"{_ANSWERS}test_a_commit_is_there_once_whatever_the_store_answers",
        ),
    ),
    Row(
        "18",
        "a conditional PUT does not arrive",
        "it is sent again, and publishes one snapshot",
        (
            f"{_PUBLICATION}test_whatever_the_store_says_a_publication_is_made_once_with_the_same_body",
        ),
    ),
    Row(
        "19",
        "a conditional PUT arrives late",
        "the writer recognises its snapshot",
        (
            f"{_RACING}test_a_publication_that_arrives_late_is_recognised_as_ours",
            f"{_RACING}test_a_failure_after_a_doubtful_attempt_removes_no_file_that_may_be_published",
        ),
    ),
    Row(
        "20",
        "two PUTs overlap and get 409",
        "both are sent again, and one wins",
        (
            f"{_ANSWERS}test_a_conflict_is_repeated_after_a_pause",
            f"{_ANSWERS}test_a_conflict_with_a_winner_is_lost",
        ),
    ),
    Row(
        "21",
        "the store ignores the condition of a PUT",
        "the write is refused; a [lock](catalogs.md#the-lock) or the storage option "
        "[`unsafe.single-writer`](storage.md#a-store-is-tested-before-it-is-trusted) allows it",
        (
            f"{_ANSWERS}test_a_store_without_a_guarantee_is_refused_with_the_remedies",
            f"{_ANSWERS}test_under_a_lock_such_a_store_publishes",
        ),
    ),
    Row(
        "22",
        "two processes create one local file",
        "one wins",
        (
            f"{_PROCESSES}test_of_many_processes_one_creates_each_file",
            f"{_LOCAL}test_a_lost_race_is_noticed_at_the_link",
        ),
    ),
    Row(
        "23",
        "NFS reports an error for a link that it created",
        "the writer recognises its file",
        (f"{_LOCAL}test_a_link_that_was_made_twice_by_the_server_is_a_win",),
    ),
    Row(
        "24",
        "a reader finds a truncated snapshot",
        "a clear error, and no wrong rows",
        (f"{_PUBLICATION}test_a_snapshot_that_is_half_there_is_an_error_and_no_wrong_rows",),
    ),
    Row(
        "25",
        "a lock holder sleeps past its lease",
        "its publication is refused",
        (f"{_SQL_LOCK}test_a_process_that_slept_too_long_does_not_publish_and_frees_nothing",),
    ),
    Row(
        "26",
        "a lock holder dies",
        "other writers continue after the end of the lease",
        (f"{_SQL_LOCK}test_the_lock_of_a_dead_process_is_free_after_its_lease",),
    ),
    Row(
        "27",
        "the lock's database does not answer",
        "an immediate error, and nothing is lost",
        (
            f"{_SQL_LOCK}test_a_connection_lost_while_waiting_is_an_error_at_once",
            f"{_SQL_LOCK}test_a_connection_lost_while_holding_stops_the_publication_and_the_row_goes_later",
        ),
    ),
    Row(
        "28",
        "hosts and databases are in different time zones",
        "the database's clock measures the age of a lock",
        (
            f"{_SQL_LOCK}test_hosts_in_other_time_zones_agree_on_how_old_a_lock_is",
            f"{_SQL_LOCK}test_a_row_of_ours_expires_by_the_clock_of_the_database",
        ),
    ),
    Row(
        "29",
        "a holder releases its expired lock",
        "its successor keeps the lock",
        (
            f"{_SQL_LOCK}test_a_holder_who_was_taken_over_hears_of_it_and_leaves_the_successor_alone",
            f"{_SQL_LOCK}test_releasing_without_having_noticed_leaves_the_successor_alone_too",
        ),
    ),
    Row(
        "30",
        "no attempt of a publication gets an answer",
        "the error reports that the outcome is unknown; no file is deleted",
        (f"{_RACING}test_while_the_outcome_is_unknown_every_file_stays",),
    ),
)

_TOGETHER = (
    Row(
        "31",
        "two appends at the same time",
        "both are in the table",
        (
            f"{_RACING}test_a_rival_at_any_moment_costs_nobody_a_row",
            f"{_INTERLEAVED}test_every_snapshot_of_an_append_table_holds_what_the_dict_holds",
        ),
    ),
    Row(
        "32",
        "two compactions of the same files",
        "one is refused",
        (
            f"{_CONFLICTS}test_a_compaction_of_files_that_are_gone_is_refused_with_both_users_and_the_files",
            f"{_CONCURRENT}test_the_files_of_a_compaction_that_lost_are_removed_and_no_others",
        ),
    ),
    Row(
        "33",
        "two compactions write overlapping keys to one level",
        "the second is refused",
        (
            f"{_CONFLICTS}test_two_compactions_of_other_files_must_not_share_keys_on_one_level",
            f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",
        ),
    ),
    Row(
        "34",
        "an append and a compaction at the same time",
        "both succeed",
        (f"{_CONCURRENT}test_an_append_and_a_compaction_both_succeed_in_either_order",),
    ),
    Row(
        "35",
        "a compaction while its partition is overwritten, dropped or expired",
        "the compaction is refused",
        (
            f"{_CONCURRENT}test_rows_that_were_replaced_do_not_come_back_by_a_compaction",
            "tests/crash/test_partition_upkeep.py::test_a_compaction_of_a_partition_that_expires_meanwhile_is_told_who_was_first",
        ),
    ),
    Row(
        "36",
        "an append between the reads and the commit of an overwrite",
        "the overwrite is planned again; the append is kept",
        (
            f"{_CONCURRENT}test_an_overwrite_of_what_it_has_read_is_planned_again_and_keeps_what_came_in",
            f"{_OVERWRITE}TestPinned::test_an_overwrite_notices_rows_that_came_in",
        ),
    ),
    Row(
        "37",
        "two dynamic overwrites of different partitions",
        "both are in the table",
        (f"{_CONCURRENT}test_two_dynamic_overwrites_of_other_partitions_are_both_there",),
    ),
    Row(
        "38",
        "appends during a rescale",
        "the rescale is planned again; the appends are kept",
        (
            f"{_CONCURRENT}test_a_rescale_that_has_not_read_what_came_in_is_refused_and_can_be_planned_again",
        ),
    ),
    Row(
        "39",
        "an append with the number of buckets from before a rescale",
        "the append is refused",
        (f"{_CONFLICTS}TestBucketCounts::test_an_append_with_an_old_number_is_refused",),
    ),
    Row(
        "40",
        "two writers delete rows of one data file",
        "the second is refused",
        (
            f"{_CONFLICTS}TestDeletionVectors::test_the_second_of_two_writers_on_one_file_is_refused",
        ),
    ),
    Row(
        "41",
        "two processes make the same commit",
        "it is in the table once",
        (
            f"{_RACING}test_a_twin_at_any_moment_publishes_nothing_twice",
            f"{_RACING}test_a_twin_behind_a_rival_is_still_found",
        ),
    ),
    Row(
        "42",
        "a commit loses to other commits in each of its attempts",
        "the commit fails, and a retry publishes it once",
        (
            f"{_RECOVERY}test_whoever_ran_out_of_attempts_publishes_once_when_it_is_run_again",
            f"{_RACING}test_a_commit_that_always_loses_leaves_nothing_behind",
        ),
    ),
    Row(
        "43",
        "the schema changes between write and commit",
        "the table can be read",
        (
            f"{_CONCURRENT}test_a_schema_that_changes_at_any_moment_is_the_one_of_the_snapshot_or_the_one_before",
            "tests/unit/paimon/commit/test_commit.py::test_the_snapshot_names_the_schema_in_force_and_drops_statistics_of_an_older_one",
        ),
    ),
    Row(
        "44",
        "appends at the same time to a table with row ids",
        "the ids are unique and without gaps",
        (f"{_CONCURRENT}test_racing_appends_number_their_rows_without_gap_and_overlap",),
    ),
)

_RECOVERIES = (
    Row(
        "45",
        "a retry while the last snapshot of its commit user exists",
        "it publishes exactly the missing commits",
        (
            f"{_APPEND}test_repeating_an_interrupted_run_publishes_every_commit_once",
            f"{_KILLED}test_killed_and_repeated_writers_publish_every_commit_once",
        ),
    ),
    Row(
        "46",
        "a retry, with the [start of the first attempt](library.md#write-and-read), after the "
        "snapshots of its commit user have expired",
        "the commit is never added twice; a retry that cannot decide fails",
        (
            f"{_RECOVERY}test_files_that_were_compacted_away_are_not_committed_again",
            f"{_MESSAGES}test_a_second_time_is_noticed_when_the_history_in_between_has_expired",
            f"{_IDENTITY}test_a_first_try_whose_snapshot_may_have_expired_is_undecidable",
        ),
    ),
    Row(
        "47",
        "a retry after its files were deleted",
        "a clear error, and no commit",
        (f"{_RECOVERY}test_files_that_are_gone_are_not_committed",),
    ),
    Row(
        "48",
        "a backfill of an older day after commits of newer days",
        "it is committed under its own commit user",
        (
            f"{_RECOVERY}test_a_backfill_of_an_older_day_is_a_run_of_its_own_and_is_committed",
            "tests/unit/paimon/commit/test_commit.py::test_a_commit_out_of_order_is_refused_because_history_cannot_tell",
        ),
    ),
    Row(
        "49",
        "a second commit with the same `CommitId` and other rows",
        "it adds nothing; a different number of rows is refused",
        (f"{_MESSAGES}test_one_identity_for_other_rows_is_refused",),
    ),
)

ROWS = (*_WRITING, *_OUTCOMES, *_TOGETHER, *_RECOVERIES)
