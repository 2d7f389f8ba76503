"""Faults 87 to 99, which the specification does not have."""

from __future__ import annotations

from tests.crash.fault_row import Row

_STAGED = "tests/crash/test_staged_results.py::"
_REFERENCES = "tests/crash/test_references.py::"
_IN_ORDER = "tests/crash/test_transaction_order.py::"
_ROWS_IN_ORDER = "tests/crash/test_row_changes_in_order.py::"
_MEETINGS = "tests/crash/test_references_meet.py::"

ROWS = (
    Row(
        "87",
        "killed while a result is staged or published",
        "a retry publishes it once",
        (
            f"{_STAGED}test_a_fault_at_any_call_of_staging_is_made_good_by_the_next",
            f"{_STAGED}test_a_fault_at_any_call_of_a_publication_is_made_good_by_the_next",
        ),
    ),
    Row(
        "88",
        "a staged result is published and discarded at the same time",
        "one of the two happens",
        (f"{_STAGED}test_who_publishes_and_who_gives_up_never_both_succeed",),
    ),
    Row(
        "89",
        "killed while changes of another table are ingested",
        "each change arrives once",
        (f"{_STAGED}test_a_fault_at_any_call_brings_each_change_once",),
    ),
    Row(
        "90",
        "a commit sleeps while another snapshot takes its number and expires",
        "the commit is in the table once",
        (
            "tests/crash/test_expired_numbers.py::test_a_commit_that_slept_at_any_call_is_in_the_table_once",
        ),
    ),
    Row(
        "91",
        "deletion or renaming of a branch is killed",
        "a retry finishes, and leaves no orphan",
        (
            f"{_REFERENCES}test_after_a_fault_at_any_storage_call_what_stays_reads_as_before_and_a_repeat_ends_it",
        ),
    ),
    Row(
        "92",
        "snapshots of a branch expire while main is fast-forwarded to it",
        "main has complete snapshots, or the fast-forward fails",
        (f"{_MEETINGS}test_a_branch_that_expires_while_main_gets_it_leaves_main_whole",),
    ),
    Row(
        "93",
        "a branch is renamed before a commit to it has written the hint",
        "no directory without a schema is left under the old name",
        (
            "tests/unit/paimon/branches/test_branch_operations.py::test_a_branch_that_is_renamed_before_a_commit_has_written_its_hint_leaves_its_old_place",
        ),
    ),
    Row(
        "94",
        "a stream dies during its commit, and snapshots expire",
        "each row arrives once, or the next batch of the stream is refused",
        (
            "tests/spark/test_stream_faults.py::test_a_fault_at_any_storage_call_costs_no_row_and_makes_none_twice",
            "tests/crash/test_killed_file_streams.py::test_a_stream_of_files_that_dies_anywhere_takes_each_file_once",
            "tests/unit/paimon/table/test_batch_log.py::test_what_a_stream_that_died_may_have_published_is_kept_until_it_is_back",
            "tests/unit/paimon/table/test_batch_log.py::test_where_nothing_can_tell_any_more_a_batch_is_refused",
        ),
    ),
    Row(
        "95",
        "killed while rows wait in temporary files for Spark's write tasks",
        "a retry publishes once",
        (
            "tests/spark/test_killed_handover.py::test_a_retry_publishes_once_and_no_temporary_file_stays",
        ),
    ),
    Row(
        "96",
        "killed while an ingestion replaces rows",
        "a retry replaces them once, and keeps later rows",
        (
            "tests/crash/test_killed_overwrites.py::test_a_retry_of_an_overwrite_that_died_anywhere_replaces_once",
        ),
    ),
    Row(
        "97",
        "killed while an ingestion adds or widens columns",
        "a retry adds the rows once",
        (
            "tests/crash/test_killed_overwrites.py::test_a_retry_of_a_run_that_died_anywhere_while_it_changed_columns_adds_its_rows_once",
        ),
    ),
    Row(
        "98",
        "killed while a batch with `read_snapshot` writes rows",
        "a retry publishes it once, and newer rows remain",
        (
            f"{_IN_ORDER}test_a_fault_at_any_storage_call_leaves_it_done_or_not_and_the_next_try_ends_it",
            f"{_IN_ORDER}test_a_batch_that_failed_leaves_no_file",
        ),
    ),
    Row(
        "99",
        "killed while a batch with `read_snapshot` updates or deletes rows",
        "a retry publishes it once, and newer rows remain",
        (
            f"{_ROWS_IN_ORDER}test_a_fault_at_any_storage_call_leaves_it_done_or_not_and_the_next_try_ends_it",
            f"{_ROWS_IN_ORDER}test_a_stream_at_any_moment_keeps_its_rows_and_the_others_are_changed_once",
        ),
    ),
)
