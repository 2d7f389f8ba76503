"""Faults 50 to 86: expiry, tags, branches, readers, catalogs, orchestration."""

from __future__ import annotations

from tests.crash.fault_row import Row

_RACING = "tests/crash/test_racing_commits.py::"
_MERGE = "tests/crash/test_manifest_merge.py::"
_PUBLICATION = "tests/crash/test_publication.py::"
_CONCURRENT = "tests/crash/test_concurrent_commits.py::"
_INTERLEAVED = "tests/crash/test_interleavings.py::"
_MESSAGES = "tests/unit/test_commit_messages.py::"
_SCHEMAS = "tests/unit/test_schema_changes.py::"
_EXPIRY = "expiry comes with step 6"
_TAGS = "making and deleting tags comes with step 6"
_BRANCHES = "making branches comes with step 6"
_ROLLBACK = "rollback comes with step 6"
_ORPHANS = "removal of orphans comes with step 6"
_SQL = "tests/crash/test_sql_catalog.py::"

ROWS = (
    Row(
        "50",
        "expiry killed between data files",
        "no live file is gone; a rerun finishes",
        later=_EXPIRY,
    ),
    Row("51", "expiry killed between manifests and snapshots", "as 50", later=_EXPIRY),
    Row(
        "52",
        "expiry killed between snapshot files or before EARLIEST",
        "no gap from the oldest on; a rerun finishes",
        later=_EXPIRY,
    ),
    Row(
        "53",
        "another program writes EARLIEST too early",
        "hidden snapshots are found by a real listing",
        later=_EXPIRY,
    ),
    Row("54", "two expire at once", "no damage; the work is done once", later=_EXPIRY),
    Row("55", "expiry and a new tag", "the tag fails or is complete", later=_EXPIRY),
    Row("56", "expiry and a new branch, consumer or lease", "as 55", later=_EXPIRY),
    Row(
        "57",
        "expiry under a long read",
        "the reader is told to retry; no wrong rows",
        (f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",),
        f"the readers there are compactions; {_EXPIRY}",
    ),
    Row(
        "58",
        "expiry of the snapshot a compaction was planned on",
        "checked against the head; published or refused",
        (
            "tests/crash/test_concurrent_commits.py::test_a_commit_overtaken_by_others_and_by_expiry_is_tried_again_and_succeeds",
            f"{_INTERLEAVED}test_a_compaction_planned_on_an_expired_snapshot_is_checked_against_the_head",
            f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",
        ),
    ),
    Row("59", "expiry over a missing snapshot", "goes on behind it", later=_EXPIRY),
    Row("60", "expiry of files two branches share", "shared files stay", later=_EXPIRY),
    Row(
        "61",
        "a tag is deleted beside snapshots and other tags",
        "exactly what nobody refers to goes",
        later=_TAGS,
    ),
    Row("62", "deletion of a tag is killed", "the tag is gone, the rest are orphans", later=_TAGS),
    Row(
        "63",
        "a file moves up a level inside what expires",
        "the file stays",
        (f"{_INTERLEAVED}test_every_snapshot_of_a_keyed_table_holds_what_the_dict_holds",),
        f"the expiry there is a stand-in; {_EXPIRY}",
    ),
    Row(
        "64",
        "changelogs that live longer, killed at each step",
        "consumers read everything within their time",
        later=_EXPIRY,
    ),
    Row("65", "a consumer's file goes while it reads", "a clear error", later=_EXPIRY),
    Row(
        "66a",
        "a rollback adds files again that expire meanwhile",
        "they stay as long as anybody needs them",
        later=_ROLLBACK,
    ),
    Row("66b", "another program adds a file twice, then expiry", "it stays", later=_EXPIRY),
    Row(
        "66",
        "clocks jump or differ",
        "never more expires than the counts allow",
        later=_EXPIRY,
    ),
    Row("67", "rollback under a commit", "a fence: no gap, nothing comes back", later=_ROLLBACK),
    Row("68", "rollback is killed", "some complete state; a rerun finishes", later=_ROLLBACK),
    Row(
        "69",
        "numbers are used again after a rollback",
        "caches go by uuid",
        later=_ROLLBACK,
    ),
    Row("70", "fast-forward is killed", "it can be taken up again", later=_BRANCHES),
    Row("71", "creation of a branch is killed", "not listed, or completed", later=_BRANCHES),
    Row(
        "72",
        "removal of orphans under a very long write",
        "the write's files are known and stay",
        later=_ORPHANS,
    ),
    Row("73", "removal of orphans under fast expiry", "right, or given up", later=_ORPHANS),
    Row("74", "removal of orphans, a listing fails", "nothing is deleted", later=_ORPHANS),
    Row(
        "75", "removal of orphans killed and run later", "the plan is checked again", later=_ORPHANS
    ),
    Row(
        "76",
        "a partition expires under its writer",
        "the writer is told; no other partition changes",
        later="expiry of partitions comes with step 6",
    ),
    Row(
        "77",
        "expiry of partitions is killed between batches",
        "the rest go next time",
        later="expiry of partitions comes with step 6",
    ),
    Row(
        "78",
        "a partition is marked done twice or half",
        "all is done in the end, nothing harms",
        later="marking partitions comes with step 6",
    ),
    Row(
        "79",
        "renaming a table on an object store is killed",
        "refused unless insisted on; then the source stays until all is there",
        (
            "tests/conformance/test_catalogs.py::test_where_directories_cannot_be_renamed_somebody_has_to_insist",
            f"{_SQL}test_without_a_database_a_power_cut_leaves_the_old_table_or_the_whole_new_one",
        ),
    ),
    Row(
        "80",
        "killed between the files of a table and its rows in the database",
        "repair makes both agree",
        (
            f"{_SQL}test_after_a_power_cut_at_any_storage_call_repair_leaves_all_or_nothing",
            f"{_SQL}test_killed_between_schema_file_and_row_the_table_is_listed_by_repair",
            f"{_SQL}test_killed_between_row_and_directory_the_rename_is_finished_by_repair",
            f"{_SQL}test_killed_between_row_and_files_the_drop_is_finished_by_repair",
        ),
    ),
    Row(
        "81",
        "two create one table",
        "one is told that it exists",
        (f"{_PUBLICATION}test_of_two_who_create_a_table_one_is_told_that_it_exists",),
    ),
    Row(
        "82",
        "two schema changes",
        "both in turn, or one refused",
        (
            f"{_SCHEMAS}test_a_lost_race_is_checked_again_on_the_schema_of_the_winner",
            f"{_SCHEMAS}test_races_lost_without_end_are_a_conflict",
            f"{_SCHEMAS}test_a_lost_answer_is_found_by_reading_the_schema_back",
        ),
    ),
    Row(
        "83",
        "migration or cloning is killed",
        "the source is whole; a rerun does no harm",
        later="cloning comes with step 6",
    ),
    Row(
        "84",
        "manifests are merged under appends",
        "every file stays; the content is the same",
        (
            f"{_CONCURRENT}test_manifests_merged_while_others_append_hold_every_file",
            f"{_MERGE}test_a_rival_that_commits_first_leaves_the_merge_usable",
        ),
        "merging without a commit comes with step 6",
    ),
    Row(
        "85",
        "a task is killed late and its retry runs beside it",
        "as 41; none deletes files of the other",
        (
            f"{_RACING}test_a_twin_at_any_moment_publishes_nothing_twice",
            "tests/airflow/test_identity.py::test_a_retry_is_the_same_user",
        ),
    ),
    Row(
        "86",
        "an old run is cleared and run again",
        "another run is another user; the same one finds its commit",
        (
            "tests/airflow/test_identity.py::test_other_work_is_another_user",
            f"{_MESSAGES}test_the_same_identity_makes_the_second_time_harmless",
        ),
    ),
)
