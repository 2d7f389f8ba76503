"""Faults from 100 on: those of Mixed tables, which are pairs of Iceberg tables."""

from __future__ import annotations

from tests.crash.fault_row import Row

_WRITES = "tests/crash/test_mixed_writes.py::"
_COMMITS = "tests/crash/test_mixed_batch_commits.py::"
_VERBS = "tests/crash/test_mixed_batch_verbs.py::"
_PAIRS = "tests/crash/test_mixed_pairs.py::"
_ADOPTION = "tests/crash/test_mixed_adoption.py::"
_FOLLOWERS = "tests/crash/test_mixed_followers.py::"
_LEASES = "tests/unit/mixed/test_leases.py::"

ROWS = (
    Row(
        "100",
        "killed while changes are written",
        "a retry publishes each commit once",
        (
            f"{_WRITES}test_a_fault_at_any_storage_call_leaves_the_state_before_or_after_a_commit",
            f"{_WRITES}test_repeating_an_interrupted_run_publishes_every_change_once",
        ),
    ),
    Row(
        "101",
        "killed while a batch writes",
        "a retry publishes it once",
        (
            f"{_COMMITS}test_a_fault_at_any_storage_call_leaves_the_state_before_or_after_a_commit",
            f"{_COMMITS}test_repeating_an_interrupted_run_publishes_every_commit_once",
        ),
    ),
    Row(
        "102",
        "killed while a batch updates or deletes rows",
        "a retry publishes it once",
        (
            f"{_VERBS}test_a_fault_at_any_storage_call_leaves_a_change_of_rows_done_or_not_and_a_retry_ends_it",
        ),
    ),
    Row(
        "103",
        "killed while a hanging batch is ended",
        "a retry ends the batch",
        (
            f"{_VERBS}test_the_end_of_a_batch_that_dies_refuses_its_commit_or_not_and_a_repeated_one_does",
        ),
    ),
    Row(
        "104",
        "a batch is ended during its commit",
        "the commit is refused or reported as published",
        (
            f"{_LEASES}test_an_overwrite_that_is_ended_between_its_check_and_its_commit_is_refused",
            f"{_LEASES}test_the_end_of_a_batch_that_publishes_meanwhile_says_so",
        ),
    ),
    Row(
        "105",
        "killed while changes are merged into the base store",
        "a retry merges the rest",
        (
            "tests/crash/test_mixed_compaction.py::test_a_fault_at_any_storage_call_leaves_the_same_rows_and_a_retry_completes_it",
            "tests/crash/test_mixed_versions.py::test_a_fault_at_any_storage_call_keeps_the_newest_rows_and_a_retry_completes_it",
        ),
    ),
    Row(
        "106",
        "killed while snapshots expire",
        "no row is lost, and a retry expires the rest",
        (
            "tests/crash/test_mixed_expiry.py::test_a_fault_at_any_storage_call_keeps_the_rows_and_a_retry_expires_the_rest",
        ),
    ),
    Row(
        "107",
        "killed while orphan files are removed",
        "no needed file is deleted, and a retry removes the rest",
        (
            f"{_FOLLOWERS}test_a_removal_of_orphans_that_dies_deletes_no_needed_file_and_the_next_one_the_rest",
        ),
    ),
    Row(
        "108",
        "a reader with a consumer is killed",
        "the reader gets each commit at least once",
        (
            f"{_FOLLOWERS}test_a_reader_that_dies_misses_no_commit_and_its_consumer_keeps_what_it_has_not_read",
        ),
    ),
    Row(
        "109",
        "killed while both stores are altered",
        "the table has all changes or none",
        (
            "tests/crash/test_mixed_alters.py::test_a_fault_at_any_storage_call_leaves_each_alter_whole_and_the_next_completes_it",
        ),
    ),
    Row(
        "110",
        "killed while an Iceberg table becomes a Mixed table, or the reverse",
        "no row changes, and a retry completes it",
        (
            f"{_ADOPTION}test_an_adoption_that_dies_changes_no_row_and_a_repeated_one_completes_it",
            f"{_ADOPTION}test_a_detach_that_dies_changes_no_row_and_a_repeated_one_completes_it",
        ),
    ),
    Row(
        "111",
        "killed while a table is created",
        "a retry completes the table",
        (f"{_PAIRS}test_a_creation_that_dies_is_completed_by_a_repeated_call_or_dropped",),
    ),
    Row(
        "112",
        "killed while a table is dropped",
        "a read has all rows or fails",
        (
            f"{_PAIRS}test_a_drop_that_dies_shows_no_wrong_rows_and_repeated_ones_remove_both_stores",
        ),
    ),
    Row(
        "113",
        "killed while a table is cloned",
        "the clone is complete or not readable",
        (f"{_PAIRS}test_a_clone_that_dies_shows_no_rows_and_a_repeated_one_completes_it",),
    ),
    Row(
        "114",
        "killed while a table is renamed",
        "the table has one name; or its next use fails, and the error names the rename to repeat",
        (f"{_PAIRS}test_a_rename_that_dies_loses_no_row_and_a_repeated_one_completes_it",),
    ),
    Row(
        "115",
        "streams, batches and optimizings are killed at random",
        "no change is lost, and none is merged twice",
        (
            "tests/crash/test_mixed_storm.py::test_killed_batches_streams_and_optimizings_lose_and_double_nothing",
        ),
    ),
)
