"""The pages over HTTP from Airflow's own app: their access rules and their content."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import lakeformat as lake
from airflow_provider_lake.hooks.lake import LakeHook
from airflow_provider_lake.jobs.identity import commit_user
from airflow_provider_lake.page import bounded
from tests.airflow.page.pages import TASK, TASK_PATH, Words, words, write
from tests.airflow.test_registration import modules_loaded_by

NASTY = '<script>alert("1")</script>&amp;\'x'
ADDRESSES = (
    "/lake/",
    "/lake/open?connection=lake_default",
    "/lake/tables/lake_default",
    "/lake/table/lake_default?name=shop.orders",
    "/lake/snapshot/lake_default?name=shop.orders&number=1",
    TASK_PATH,
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_who_is_not_signed_in_sees_nothing(ask, orders, address):
    answer = ask(address, role=None)

    assert answer.status_code == 401
    assert "sign in to Airflow" in words(answer)
    assert "orders" not in answer.text


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_user_without_any_right_is_refused(ask, orders, address):
    """The start page and the form show nothing about tables."""
    answer = ask(address, role="")

    expected = {"/lake/": 200, ADDRESSES[1]: 303}.get(address, 403)
    assert answer.status_code == expected
    assert "orders" not in answer.text


@pytest.mark.parametrize("address", ADDRESSES[2:5])
def test_a_table_is_for_those_who_may_read_its_connection(ask, orders, address):
    write(orders, 1)
    refused = ask(address, role="viewer")

    assert refused.status_code == 403
    assert "the right to read its connection" in words(refused)
    assert ask(address, role="op").status_code == 200


def test_a_task_is_for_those_who_may_see_its_dag(ask, orders, said):
    said["lake_table"] = {"table": "shop.orders"}

    assert ask(TASK_PATH, role="viewer").status_code == 200


def test_every_page_is_asked_here_and_only_reads(server):
    from airflow_provider_lake.page.app import app

    assert {method for route in app.routes for method in route.methods} == {"GET"}
    assert len(app.routes) == len(ADDRESSES)
    assert server.post("/lake/").status_code == 405


def test_the_plugin_costs_workers_and_parsers_nothing():
    loaded = modules_loaded_by(
        "from airflow_provider_lake.compat import AirflowPlugin; before = set(sys.modules); "
        "import airflow_provider_lake.plugin as plugin; plugin.LakePlugin()"
    )

    ours = [name for name in loaded if name.startswith("airflow_provider_lake")]
    assert "airflow_provider_lake.page" in ours
    assert {*loaded} - {*ours} <= sys.stdlib_module_names
    assert not [name for name in ours if name.startswith("airflow_provider_lake.page.")]


def test_pages_find_each_other_below_a_path(server, ask, orders, monkeypatch):
    """Airflow is not at the root of its server."""
    monkeypatch.setattr(server.app, "root_path", "/airflow")

    page = ask("/airflow/lake/tables/lake_default")

    links = [attrs["href"] for tag, attrs in Words(page.text).tags if tag == "a"]
    assert links == ["/airflow/lake/", "/airflow/lake/table/lake_default?name=shop.orders"]
    assert ask(links[1]).status_code == 200


def test_the_cookie_of_the_web_interface_is_enough(server, ask):
    """Frames send no header."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="olga", role="op"))

    assert server.get("/lake/", headers={"Cookie": f"_token={token}"}).status_code == 200
    assert server.get("/lake/", headers={"Cookie": "_token=wrong"}).status_code in (401, 403)


def test_no_script_runs_and_no_other_site_shows_it_in_a_frame(ask, orders):
    headers = ask(ADDRESSES[3]).headers

    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script" not in headers["content-security-policy"]
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_the_lakes_in_the_database_are_listed_for_those_who_may_read_them(ask, airflow_db):
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Connection(conn_id="north/lake", conn_type="lake", extra="{}"))
        session.add(Connection(conn_id="a_database", conn_type="postgres"))
    try:
        seen, hidden = ask("/lake/"), ask("/lake/", role="viewer")
    finally:
        with create_session() as session:
            session.query(Connection).delete()

    assert '<a href="/lake/tables/north%2Flake">north/lake</a>' in seen.text
    assert "a_database" not in seen.text
    assert "north/lake" not in hidden.text


@pytest.mark.parametrize("text", ['{"conn_type": "lake", "extra": {}}', "lake://?warehouse=%2Fwh"])
def test_the_lakes_in_the_environment_are_listed_too(ask, airflow_db, monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_CONN_SOUTH", text)
    monkeypatch.setenv("AIRFLOW_CONN_BASE", "postgres://u:hush@host/db")
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", '{"conn_type')

    assert '<a href="/lake/tables/south">south</a>' in ask("/lake/").text
    assert "/lake/tables/base" not in ask("/lake/").text
    assert "south" not in ask("/lake/", role="viewer").text


def test_the_form_leads_to_a_table_or_to_all(ask):
    def leads_to(asked):
        return ask(f"/lake/open?{asked}").headers["location"]

    assert leads_to("connection=a/b%20c&name=") == "/lake/tables/a%2Fb%20c"
    assert leads_to("connection=%20x%20&name=s.o%26p") == "/lake/table/x?name=s.o%26p"
    assert leads_to("connection=//evil.example.org") == "/lake/tables/%2F%2Fevil.example.org"


def test_a_table_says_how_it_fares(ask, orders):
    for number in range(12):
        write(orders, number, user=f"writer-{number}")

    said = words(ask("/lake/table/lake_default?name=shop.orders"))

    health = orders.health(time_travel=False)
    assert f"shop.orders {health.verdict}" in said
    assert f"Score {health.score} of 100" in said
    assert health.reasons[0].finding in said
    assert "To do: lake compact shop.orders" in said
    assert "12 files with 12 rows" in said
    assert "none among the newest 12 snapshots" in said
    assert said.index("writer-11") < said.index("writer-0")


def test_a_compacted_table_says_when(ask, orders):
    for number in range(30):
        write(orders, number)
    compacted = orders.compact().snapshot_ids[-1]
    for number in range(25):
        write(orders, number)

    said = words(ask("/lake/table/lake_default?name=shop.orders"))

    assert f"Last compaction snapshot {compacted} , 20" in said
    assert "not counted" in said


def test_what_is_kept_for_older_snapshots_is_counted_when_asked(ask, orders):
    for number in range(3):
        write(orders, number)
    orders.compact()

    said = words(ask("/lake/table/lake_default?name=shop.orders&history=true"))

    assert "Kept for older snapshots 3 files with" in said


def test_a_keyed_table_shows_its_sorted_runs_by_partition(ask, catalog):
    table = catalog.create_table(
        "shop.keyed",
        [("dt", "STRING"), ("id", "BIGINT")],
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "1"},
    )
    for number in range(3):
        table.write(pa.table({"dt": [NASTY], "id": [number]}))

    answer = ask("/lake/table/lake_default?name=shop.keyed")

    assert "Most sorted runs in a bucket 3" in words(answer)
    assert "primary key dt, id , partitioned by dt" in words(answer)
    assert_tame(answer)


def test_a_table_nobody_has_written_says_so(ask, orders):
    said = words(ask("/lake/table/lake_default?name=shop.orders"))

    assert "shop.orders empty" in said
    assert "The table has no commit yet." in said


def test_a_page_reads_no_data_file_and_writes_none(ask, orders, warehouse, said):
    write(orders, 1, user=commit_user(TASK, "shop.orders"))
    said["lake_table"] = {"table": "shop.orders"}
    for each in Path(warehouse).rglob("*.parquet"):
        each.unlink()
    before = {path: path.stat().st_mtime_ns for path in Path(warehouse).rglob("*")}

    answers = [ask(address) for address in ADDRESSES[2:]]

    assert [each.status_code for each in answers] == [200, 200, 200, 200]
    assert {path: path.stat().st_mtime_ns for path in Path(warehouse).rglob("*")} == before


def assert_tame(answer):
    """No text of a name becomes an element, and no name is cut at a quote."""
    found = Words(answer.text)
    known = {"html", "head", "meta", "title", "style", "body", "p", "a", "h1", "h2", "span", "br"}
    known |= {"table", "tr", "th", "td", "div", "code", "ul", "li", "em", "form", "label", "input"}
    known |= {"dl", "dt", "dd", "small", "details", "summary", "svg", "rect"}
    assert {tag for tag, _ in found.tags} <= known | {"button"}
    attributes = {name for _, attrs in found.tags for name in attrs}
    assert not {name for name in attributes if name.startswith("on")}


def test_names_are_shown_and_do_nothing(ask, catalog, said):
    name = "'&lt;b&gt; onerror=alert(1);'"
    user = commit_user(TASK, f"shop.{name}")
    column = pa.array([NASTY])
    table = catalog.create_table(
        f"shop.{name}", [("<i>", "STRING"), ("id", "STRING")], partition_by=["<i>"]
    )
    table.write(pa.table({"<i>": column, "id": column}), commit=lake.CommitId(user, 1))
    table.write(pa.table({"<i>": column, "id": column}), commit=lake.CommitId(NASTY, 1))
    said["lake_table"] = {"table": f"shop.{name}"}

    of_all = ask("/lake/tables/lake_default")
    links = [attrs["href"] for tag, attrs in Words(of_all.text).tags if tag == "a"]
    [link] = [each for each in links if "/table/" in each]
    of_one, of_task = ask(link), ask(TASK_PATH)
    refused = ask(f"/lake/table/lake_default?name=shop.{quote(NASTY)}")
    strange = ask(f"/lake/tasks/{quote('<b>')}/{quote(chr(34))}/{quote('<x y=')}/0")
    of_snapshots = [ask(link.replace("/table/", "/snapshot/") + f"&number={n}") for n in (1, 2)]

    assert [each.status_code for each in (of_one, of_task, refused, strange)] == [
        200,
        200,
        400,
        200,
    ]
    for answer in (of_all, of_one, of_task, refused, strange, *of_snapshots):
        assert_tame(answer)
    assert NASTY in words(of_snapshots[1])
    assert name in words(of_one)
    assert "<script>" in words(refused)
    assert NASTY in words(of_one)  # the commit user
    assert "Changes by <x y=" in words(strange)


def test_a_secret_in_an_error_is_not_shown(ask, connect, warehouse, monkeypatch):
    secret = "Zf7-secret-key-of-the-store"
    connect(
        "lake_default",
        conn_type="lake",
        extra={"warehouse": warehouse, "s3_secret_key": secret, "s3_access_key": "our-access-key"},
    )

    def fail(self, name):
        assert self.catalog_options["s3.secret-key"] == secret
        raise lake.UnavailableError(f"the store refuses {secret!r} of our-access-key")

    monkeypatch.setattr(LakeHook, "table", fail)
    answer = ask("/lake/table/lake_default?name=shop.orders")

    assert answer.status_code == 503
    assert "the store refuses &#39;***&#39; of ***" in answer.text


def test_what_nobody_expected_is_left_to_the_log(ask, warehouse, monkeypatch, caplog):
    def fail(self, name):
        raise RuntimeError("what a stranger's library says")

    monkeypatch.setattr(LakeHook, "table", fail)
    answer = ask("/lake/table/lake_default?name=shop.orders")

    assert answer.status_code == 500
    assert "failed with RuntimeError" in words(answer)
    assert "stranger" not in answer.text
    assert "what a stranger's library says" in caplog.text


@pytest.mark.parametrize(
    ("address", "status", "happened", "next_step"),
    [
        (
            "/lake/table/no_lake?name=a.b",
            404,
            "connection 'no_lake' does not exist",
            "Admin, Connections",
        ),
        ("/lake/table/lake_default?name=shop.no", 404, "shop.no", "check the name"),
        ("/lake/table/lake_default?name=orders", 400, "orders", "check the table's name"),
        ("/lake/table/lake_default", 400, "''", "check the table's name"),
        (
            "/lake/table/odd_lake?name=a.b",
            400,
            "has type 'spark': use a connection of type 'lake'",
            "fields of the connection",
        ),
        ("/lake/table/lake_default?name=a.b&history=x", 422, "history", "the address"),
        ("/lake/nowhere", 404, "Not Found", "Browse"),
    ],
)
def test_what_cannot_be_shown_says_why_and_what_to_do(
    ask, catalog, connect, address, status, happened, next_step
):
    connect("odd_lake", conn_type="spark", extra={"warehouse": "/w"})
    answer = ask(address)

    assert answer.status_code == status
    assert happened in words(answer)
    assert next_step in words(answer).partition("What to do next")[2]


def test_a_damaged_table_says_which_file(ask, orders, warehouse):
    write(orders, 1)
    [manifest] = [p for p in Path(warehouse).rglob("manifest-*-0") if "list" not in p.name]
    manifest.write_bytes(b"")

    answer = ask("/lake/table/lake_default?name=shop.orders")

    assert answer.status_code == 500
    assert manifest.name in words(answer)


@pytest.fixture
def stuck(monkeypatch):
    """A storage that answers only once it is let go."""
    goes_on = threading.Event()
    monkeypatch.setattr(LakeHook, "table", lambda self, name: goes_on.wait(60))
    yield goes_on
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "lake-page":
            thread.join()


def test_a_slow_storage_ends_in_a_page(ask, warehouse, stuck, monkeypatch):
    monkeypatch.setattr(bounded, "PATIENCE_SECONDS", 0.2)

    answer = ask("/lake/table/lake_default?name=shop.orders")

    assert answer.status_code == 504
    assert "Where table 'shop.orders' of connection 'lake_default'" in words(answer)
    assert "LakeHealthOperator" in words(answer)


def test_what_hangs_takes_few_threads_and_holds_up_nobody(ask, warehouse, stuck):
    with ThreadPoolExecutor(bounded.AT_ONCE) as pool:
        address = "/lake/table/lake_default?name=shop.orders"
        waiting = [pool.submit(ask, address) for _ in range(bounded.AT_ONCE)]
        give_up = time.monotonic() + 30
        while bounded._free._value and time.monotonic() < give_up:
            time.sleep(0.01)
        others, one_more = ask("/lake/"), ask(address)
        stuck.set()
        answers = [each.result() for each in waiting]

    assert others.status_code == 200
    assert one_more.status_code == 503
    assert f"{bounded.AT_ONCE} other pages are reading tables" in words(one_more)
    assert {each.status_code for each in answers} == {500}  # it is not a table they were given
    assert bounded._free._value == bounded.AT_ONCE
