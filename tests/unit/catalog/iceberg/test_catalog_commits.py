"""A commit through a catalog publishes once, on the newest metadata, or fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from sqlalchemy.exc import OperationalError

import lakeformat as lake
from lakeformat.catalog.iceberg.catalog import IcebergCatalog
from lakeformat.iceberg.commit.commit import commit_metadata
from lakeformat.iceberg.commit.handle import TableHandle
from lakeformat.iceberg.expire.expire import ExpiryRequest, expire_snapshots
from lakeformat.iceberg.metadata.metadata_json import metadata_to_json
from lakeformat.iceberg.metadata.updates import remove_snapshots, set_properties
from lakeformat.storage.sql.database import SqlDatabase
from lakeformat.storage.sql.failure import translated
from tests.iceberg_rest_server import Refused, RestServer, rest_server
from tests.unit.catalog.iceberg.test_sql_metastore import opened, register
from tests.unit.iceberg.path_table import appended, empty_metadata, names

NAME = "shop.orders"


@pytest.fixture
def server() -> Iterator[RestServer]:
    with rest_server() as found:
        found.databases["shop"] = {}
        yield found


@pytest.fixture(params=["sql", "rest"])
def handle(request, tmp_path) -> Callable[[], TableHandle]:
    """Opens an empty table of version 3 again and again, each time as another process does."""
    location = f"file://{tmp_path}/shop/orders"
    address = f"{location}/metadata/00000-first.metadata.json"
    path = Path(urlsplit(address).path)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(metadata_to_json(empty_metadata(location, 3))))
    if request.param == "sql":
        opened(tmp_path).create_database("shop")
        register(tmp_path, NAME, address)
        return lambda: opened(tmp_path).table(NAME)._handle
    rest = request.getfixturevalue("server")
    rest.tables[NAME] = address
    return lambda: (
        lake.open_catalog(str(tmp_path), format="iceberg", metastore="rest", uri=rest.uri)
        .table(NAME)
        ._handle
    )


def append(name: str, meanwhile: Callable[[], object] = lambda: None):
    """A change that appends a snapshot, after something that happens during its first attempt."""
    pending = [meanwhile]

    def change(loaded):
        while pending:
            pending.pop()()
        return appended(loaded.metadata, name)

    return change


def files(handle: Callable[[], TableHandle]) -> list[str]:
    places = handle().load().places
    return sorted(info.name for info in places.storage.list(f"{places.root}/metadata"))


def test_a_commit_names_a_new_metadata_file(handle):
    result = commit_metadata(handle(), append("a"))
    assert result.is_published
    now = handle().load()
    assert names(now.metadata) == ["a"]
    assert now.path.rpartition("/")[2].startswith("00001-")
    assert now.metadata.metadata_log[-1].metadata_file.endswith("/00000-first.metadata.json")
    assert now.metadata.next_row_id == 1
    assert len(files(handle)) == 2


def test_every_kind_of_change_reaches_the_catalog(handle):
    commit_metadata(handle(), append("a"))
    commit_metadata(handle(), append("b"))
    first = handle().load().metadata.snapshots[0].snapshot_id
    commit_metadata(handle(), lambda its: set_properties(its.metadata, {"owner": "ada"}))
    commit_metadata(handle(), lambda its: remove_snapshots(its.metadata, [first]))
    now = handle().load().metadata
    assert names(now) == ["b"]
    assert now.properties == {"owner": "ada"}


def test_a_commit_that_loses_is_made_again_on_the_metadata_of_the_winner(handle):
    result = commit_metadata(
        handle(), append("a", meanwhile=lambda: commit_metadata(handle(), append("b")))
    )
    assert result.attempts == 2
    assert names(handle().load().metadata) == ["b", "a"]
    assert len(files(handle)) == 3, "the file of the lost attempt is deleted"


def test_an_open_table_commits_again_and_again(handle):
    one, two = handle(), handle()
    for number, each in enumerate([one, two, one, two]):
        commit_metadata(each, append(str(number)))
    assert names(one.load().metadata) == ["0", "1", "2", "3"]


def test_the_metadata_log_names_files_in_a_directory_outside_of_the_table(tmp_path):
    kept = f"file://{tmp_path}/metadata/orders"
    catalog = lake.open_catalog(
        str(tmp_path / "warehouse"),
        format="iceberg",
        metastore="sql",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        options={"external-roots": kept},
    )
    catalog.create_database("shop")
    table = catalog.create_table(NAME, [("id", "BIGINT")], options={"write.metadata.path": kept})
    table.write(pa.table({"id": [1]}))
    table.write(pa.table({"id": [2]}))
    logged = [each.metadata_file for each in table._handle.load().metadata.metadata_log]
    stored = sorted(each.name for each in (tmp_path / "metadata/orders").glob("*.metadata.json"))
    assert logged == [f"{kept}/{name}" for name in stored[:-1]]


def test_a_table_of_a_sql_catalog_keeps_as_few_metadata_files_as_it_asks_for(tmp_path):
    found = _sql_table(tmp_path)
    few = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    commit_metadata(found, lambda its: set_properties(its.metadata, few))
    for name in "abc":
        commit_metadata(found, append(name))
    assert len(files(lambda: found)) == 2


@pytest.mark.parametrize("status", [304, 408, 499, 500, 501, 502, 503, 504, 507, 520, 524, 529])
def test_a_commit_whose_answer_is_lost_is_found_in_the_table(server, tmp_path, status):
    found = _rest_table(server, tmp_path)
    server.lost_answers = [status]
    result = commit_metadata(found, append("a"))
    assert (result.is_published, result.attempts) == (True, 1)
    assert names(found.load().metadata) == ["a"]


def test_a_conflict_with_itself_is_found_in_the_table(server, tmp_path):
    """A proxy that sent the request twice answers with the conflict of the second one."""
    found = _rest_table(server, tmp_path)
    server.lost_answers = [409]
    result = commit_metadata(found, append("a"))
    assert (result.is_published, result.attempts) == (True, 1)
    assert names(found.load().metadata) == ["a"]


@pytest.mark.parametrize("change", ["append", "overwrite", "delete"])
def test_a_conflict_with_itself_is_found_although_its_snapshot_has_expired(
    server, tmp_path, monkeypatch, change
):
    """The snapshot of the next writer names the expired one as its parent."""
    catalog = _rest_catalog(server, tmp_path)
    table = catalog.create_table(NAME, [("id", "BIGINT")])
    table.write(pa.table({"id": [1, 5]}))
    _answer_with_a_conflict_after(server, monkeypatch, lambda: _append_and_expire(catalog, 8))
    done, rows = {
        "append": (lambda: table.write(pa.table({"id": [2]})), [1, 2, 5, 8]),
        "overwrite": (lambda: table.write(pa.table({"id": [2]}), overwrite="table"), [2, 8]),
        "delete": (lambda: table.delete("id = 5"), [1, 8]),
    }[change]
    done()
    assert _ids(catalog) == rows


@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_a_conflict_is_an_unknown_outcome_if_newer_snapshots_have_expired(
    server, tmp_path, monkeypatch, is_rolled_back
):
    catalog = _rest_catalog(server, tmp_path)
    table = catalog.create_table(NAME, [("id", "BIGINT")])
    first = table.write(pa.table({"id": [1]})).snapshot_id

    def others() -> None:
        if is_rolled_back:
            catalog.table(NAME).rollback(snapshot=first)
        _append_and_expire(catalog, 8, 9)

    _answer_with_a_conflict_after(server, monkeypatch, others)
    commit = lake.CommitId("loader", 1)
    with pytest.raises(lake.CommitOutcomeUnknownError, match="published meanwhile have expired"):
        table.write(pa.table({"id": [2]}), commit=commit)
    assert _ids(catalog) == ([1, 8, 9] if is_rolled_back else [1, 2, 8, 9])


def test_an_expiry_of_older_snapshots_does_not_stop_a_writer_that_lost(
    server, tmp_path, monkeypatch
):
    catalog = _rest_catalog(server, tmp_path)
    table = catalog.create_table(NAME, [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    commit = server._commit

    def commit_second(name, body):
        monkeypatch.undo()
        _append_and_expire(catalog, 8)
        return commit(name, body)

    monkeypatch.setattr(server, "_commit", commit_second)
    table.write(pa.table({"id": [2]}))
    assert _ids(catalog) == [1, 2, 8]


@pytest.mark.parametrize("version", [2, 3])
def test_a_commit_is_tried_again_after_a_write_to_a_branch_that_was_created_meanwhile(
    server, tmp_path, monkeypatch, version
):
    """The service refuses the old sequence number with status 400, not with a conflict."""
    catalog = _rest_catalog(server, tmp_path)
    table = catalog.create_table(NAME, [("id", "BIGINT")], format_version=version)
    table.write(pa.table({"id": [1]}))
    commit = server._commit

    def commit_second(name, body):
        monkeypatch.undo()
        catalog.table(NAME).branches.create("dev")
        catalog.table(f"{NAME}$branch_dev").write(pa.table({"id": [9]}))
        return commit(name, body)

    monkeypatch.setattr(server, "_commit", commit_second)
    table.write(pa.table({"id": [2]}))
    assert _ids(catalog) == [1, 2]
    branch = catalog.table(f"{NAME}$branch_dev").scan().to_arrow()
    assert sorted(branch.column("id").to_pylist()) == [1, 9]


def test_an_expiry_keeps_the_files_of_a_branch_that_was_created_meanwhile(server, tmp_path):
    """A REST catalog accepts both changes, because they touch different branches."""
    server.warehouse = f"file://{tmp_path}"
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore="rest", uri=server.uri)
    table = catalog.create_table(NAME, [("id", "BIGINT")])
    first = table.write(pa.table({"id": [1]})).snapshot_id
    table.write(pa.table({"id": [2]}), overwrite="table")
    branch = f"{NAME}$branch_side"

    def meanwhile(_):
        catalog.table(NAME).branches.create("side", snapshot=first)
        catalog.table(branch).write(pa.table({"id": [3]}))
        return ()

    request = ExpiryRequest(snapshots=[first], unread=meanwhile)
    expire_snapshots(table._handle, request, dry_run=False)
    assert first not in [each.snapshot_id for each in table._handle.load().metadata.snapshots]
    rows = catalog.table(branch).scan().to_arrow()
    assert sorted(rows.column("id").to_pylist()) == [1, 3]


def test_a_new_branch_or_tag_does_not_replace_one_of_another_writer(server, tmp_path, monkeypatch):
    server.warehouse = f"file://{tmp_path}"
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore="rest", uri=server.uri)
    table = catalog.create_table(NAME, [("id", "BIGINT")])
    first = table.write(pa.table({"id": [1]})).snapshot_id
    second = table.write(pa.table({"id": [2]})).snapshot_id
    commit = server._commit

    def before_the_next_commit(other: Callable[[], object]) -> None:
        def commit_second(name, body):
            monkeypatch.undo()
            other()
            return commit(name, body)

        monkeypatch.setattr(server, "_commit", commit_second)

    def create_and_write() -> None:
        catalog.table(NAME).branches.create("dev")
        catalog.table(f"{NAME}$branch_dev").write(pa.table({"id": [3]}))

    before_the_next_commit(create_and_write)
    with pytest.raises(lake.AlreadyExistsError, match="dev"):
        table.branches.create("dev")
    rows = catalog.table(f"{NAME}$branch_dev").scan().to_arrow()
    assert sorted(rows.column("id").to_pylist()) == [1, 2, 3]
    before_the_next_commit(lambda: catalog.table(NAME).tags.create("v1", snapshot=first))
    with pytest.raises(lake.AlreadyExistsError, match="v1"):
        table.tags.create("v1", snapshot=second)
    assert catalog.table(NAME).references["v1"].snapshot_id == first


@pytest.mark.parametrize(
    ("status", "lost"),
    [
        (409, "the catalog reported a conflict, and it could not be checked"),
        (408, "status 408"),
        (504, "status 504"),
        (524, "status 524"),
    ],
)
def test_a_commit_that_cannot_be_looked_for_has_an_unknown_outcome(server, tmp_path, status, lost):
    found = _rest_table(server, tmp_path)
    server.lost_answers, server.failures_after_loss = [status], [(503, "busy")]
    with pytest.raises(lake.CommitOutcomeUnknownError, match=f"was published: {lost}"):
        commit_metadata(found, append("a"))
    assert names(found.load().metadata) == ["a"]


@pytest.mark.parametrize("status", [301, 302])
def test_a_commit_that_would_be_redirected_as_a_get_is_refused(server, tmp_path, status):
    found = _rest_table(server, tmp_path)
    server.shows_metadata, server.redirect = True, status
    refused = rf"publish table '{NAME}'.* POST to .*/moved/v1/.*\. Nothing was changed\. .*'uri'"
    with pytest.raises(lake.InvalidRequestError, match=refused):
        commit_metadata(found, append("a"))
    with pytest.raises(lake.InvalidRequestError, match=refused):
        commit_metadata(found, lambda its: set_properties(its.metadata, {"a": "b"}))
    assert names(found.load().metadata) == []


def test_a_commit_whose_answer_is_in_another_place_has_an_unknown_outcome(server, tmp_path):
    found = _rest_table(server, tmp_path)
    server.shows_metadata, server.redirect = True, 303
    with pytest.raises(lake.CommitOutcomeUnknownError, match="status 303, a redirect of POST"):
        commit_metadata(found, append("a"))


@pytest.mark.parametrize("status", [307, 308])
def test_a_commit_follows_a_redirect_that_keeps_the_request(server, tmp_path, status):
    found = _rest_table(server, tmp_path)
    server.redirect = status
    assert commit_metadata(found, append("a")).is_published
    assert names(found.load().metadata) == ["a"]


def test_an_answer_without_the_new_snapshot_does_not_count_as_published(
    server, tmp_path, monkeypatch
):
    found = _rest_table(server, tmp_path)
    old = {"metadata-location": server.tables[NAME], "metadata": server._content(NAME)}
    monkeypatch.setattr(server, "_commit", lambda name, body: old)
    with pytest.raises(lake.CommitOutcomeUnknownError, match="lacks the snapshot of this commit"):
        commit_metadata(found, append("a"))


@pytest.mark.parametrize("status", [409, 500])
def test_a_commit_without_a_snapshot_is_found_by_the_state_of_the_table(server, tmp_path, status):
    catalog = _rest_catalog(server, tmp_path)
    table = catalog.create_table(NAME, [("id", "BIGINT"), ("a", "BIGINT"), ("b", "BIGINT")])
    table.write(pa.table({"id": [1], "a": [10], "b": [20]}))
    swap = [
        lake.rename_column("a", "x"),
        lake.rename_column("b", "a"),
        lake.rename_column("x", "b"),
    ]
    server.lost_answers = [status]
    catalog.alter_table(NAME, *swap)
    assert catalog.table(NAME).scan().to_arrow().to_pylist() == [{"id": 1, "a": 20, "b": 10}]


def test_a_commit_without_a_snapshot_is_not_found_beneath_another_commit(
    server, tmp_path, monkeypatch
):
    found = _rest_table(server, tmp_path)
    commit = server._commit

    def commit_twice(name, body):
        monkeypatch.undo()
        commit(name, body)
        commit_metadata(_handle(server, tmp_path), append("other"))
        raise Refused(500, "the answer is lost")

    monkeypatch.setattr(server, "_commit", commit_twice)
    with pytest.raises(lake.CommitOutcomeUnknownError):
        commit_metadata(found, lambda its: set_properties(its.metadata, {"a": "b"}))


def test_a_new_column_is_not_mistaken_for_the_one_of_another_writer(server, tmp_path, monkeypatch):
    """Both changes make a schema with the same id."""
    catalog = _rest_catalog(server, tmp_path)
    catalog.create_table(NAME, [("id", "BIGINT")])
    commit = server._commit

    def commit_second(name, body):
        monkeypatch.undo()
        catalog.alter_table(NAME, lake.add_column("other", "BIGINT"))
        return commit(name, body)

    monkeypatch.setattr(server, "_commit", commit_second)
    catalog.alter_table(NAME, lake.add_column("own", "BIGINT"))
    assert catalog.table(NAME).scan().to_arrow().column_names == ["id", "other", "own"]


def test_the_same_new_tag_of_another_writer_is_an_error(server, tmp_path, monkeypatch):
    catalog = _rest_catalog(server, tmp_path)
    table = catalog.create_table(NAME, [("id", "BIGINT")])
    table.write(pa.table({"id": [1]}))
    commit = server._commit

    def commit_second(name, body):
        monkeypatch.undo()
        catalog.table(NAME).tags.create("v1")
        return commit(name, body)

    monkeypatch.setattr(server, "_commit", commit_second)
    with pytest.raises(lake.AlreadyExistsError, match="v1"):
        table.tags.create("v1")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, lake.InvalidRequestError),
        (403, lake.AccessDeniedError),
        (413, lake.InvalidRequestError),
        (429, lake.UnavailableError),
    ],
)
def test_a_service_that_refuses_a_commit_publishes_nothing(server, tmp_path, status, error):
    found = _rest_table(server, tmp_path)

    def refused(loaded):
        server.failures = [(status, "read only")] * 2
        return appended(loaded.metadata, "a")

    with pytest.raises(error, match="read only"):
        commit_metadata(found, refused)
    server.failures.clear()
    assert names(found.load().metadata) == []


def test_a_lost_answer_of_the_sql_database_is_found_in_the_row(tmp_path, monkeypatch):
    found = _sql_table(tmp_path)
    lose_the_next_answer(monkeypatch)
    assert commit_metadata(found, append("a")).is_published
    assert names(found.load().metadata) == ["a"]


def test_a_lost_answer_to_a_creation_keeps_the_file_that_the_row_names(tmp_path, monkeypatch):
    catalog = opened(tmp_path)
    catalog.create_database("shop")
    lose_the_next_answer(monkeypatch)
    created = catalog.create_table(NAME, [("id", "BIGINT")])
    assert created.scan().to_arrow().num_rows == 0


def lose_the_next_answer(monkeypatch) -> None:
    """Let the SQL database commit the next change, and then fail."""
    writing = SqlDatabase.writing

    def lost(self, doing):
        monkeypatch.setattr(SqlDatabase, "writing", writing)
        with translated(self.address, doing):
            with writing(self, doing) as connection:
                yield connection
            raise OperationalError("commit", {}, Exception("connection lost"))

    monkeypatch.setattr(SqlDatabase, "writing", contextmanager(lost))


def _answer_with_a_conflict_after(
    server: RestServer, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]
) -> None:
    """Let the next commit succeed, call ``meanwhile``, and then answer with status 409."""
    commit = server._commit

    def commit_twice(name, body):
        monkeypatch.undo()
        commit(name, body)
        meanwhile()
        raise Refused(409, "a requirement is not met")

    monkeypatch.setattr(server, "_commit", commit_twice)


def _append_and_expire(catalog: IcebergCatalog, *numbers: int) -> None:
    table = catalog.table(NAME)
    for number in numbers:
        table.write(pa.table({"id": [number]}))
    table.expire_snapshots(older_than=datetime.now(UTC), retain_min=1)


def _ids(catalog: IcebergCatalog) -> list[int]:
    return sorted(catalog.table(NAME).scan().to_arrow().column("id").to_pylist())


def _rest_catalog(server: RestServer, tmp_path: Path) -> IcebergCatalog:
    server.warehouse = f"file://{tmp_path}"
    return lake.open_catalog(str(tmp_path), format="iceberg", metastore="rest", uri=server.uri)


def _table_file(tmp_path: Path) -> str:
    location = f"file://{tmp_path}/shop/orders"
    path = tmp_path / "shop/orders/metadata/00000-first.metadata.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(metadata_to_json(empty_metadata(location))))
    return f"file://{path}"


def _rest_table(server: RestServer, tmp_path: Path) -> TableHandle:
    server.tables[NAME] = _table_file(tmp_path)
    return _handle(server, tmp_path)


def _handle(server: RestServer, tmp_path: Path) -> TableHandle:
    catalog = lake.open_catalog(str(tmp_path), format="iceberg", metastore="rest", uri=server.uri)
    return catalog.table(NAME)._handle


def _sql_table(tmp_path: Path) -> TableHandle:
    opened(tmp_path).create_database("shop")
    register(tmp_path, NAME, _table_file(tmp_path))
    return opened(tmp_path).table(NAME)._handle
