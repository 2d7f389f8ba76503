"""The pages as users see them: signed in, in a browser, inside of Airflow's own interface."""

import json
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from browser import Browser, find_chromium
from local_airflow import LocalAirflow

import lakeformat as lake

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300
PASSWORDS = {"olga": "olga-is-op", "vera": "vera-is-viewer"}
TABLE_PAGE = "lake/table/lake_default?name=shop.orders"
TEXT_COLORS = {"light": "rgb(27, 35, 48)", "dark": "rgb(230, 233, 238)"}

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="needs a browser: apt-get install chromium"
)


class GuardedAirflow(LocalAirflow):
    """One where people have passwords."""

    def ask(self, method, path, body=None):
        if not self._token:
            self._token = self.token("olga")
        return super().ask(method, path, body)

    def token(self, user):
        login = json.dumps({"username": user, "password": PASSWORDS[user]}).encode()
        asked = urllib.request.Request(
            f"{self.url}/auth/token", login, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)["access_token"]

    def status(self, path, user=None):
        """Return the answer of a page of ours to a user, or to an anonymous request."""
        headers = {} if user is None else {"Authorization": f"Bearer {self.token(user)}"}
        asked = urllib.request.Request(f"{self.url}/{path}", headers=headers)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def airflow(place):
    connection = {"conn_type": "lake", "extra": {"warehouse": str(place / "warehouse")}}
    passwords = place / "passwords.json"
    passwords.write_text(json.dumps(PASSWORDS))
    settings = {
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "olga:op,vera:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "PYTHONPATH": str(ROOT),
    }
    with GuardedAirflow(
        place / "airflow", ROOT / "dags", settings=settings, folder=place
    ) as airflow:
        airflow.wait_for_dags("ingest_orders", seconds=PATIENCE)
        yield airflow


@pytest.fixture(scope="module")
def landed(airflow, place):
    """The tab of a task that has landed a day's orders; other writers have been there since."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    for day in (yesterday, yesterday + timedelta(days=1)):  # if midnight comes meanwhile
        files = place / "incoming" / "orders" / f"{day:%Y-%m-%d}"
        files.mkdir(parents=True)
        (files / "part-1.csv").write_text("id,item\n1,tea\n2,milk\n")
    airflow.set_paused("ingest_orders", False)
    airflow.wait_for_runs("ingest_orders", 1, seconds=PATIENCE)
    orders = lake.open_catalog(str(place / "warehouse")).table("shop.orders")
    for number in range(12):
        orders.write(pa.table({"id": [number], "item": ["tea"]}))
    [run] = airflow.runs("ingest_orders")
    return f"dags/ingest_orders/runs/{quote(run, '')}/tasks/land_orders/plugin/lake-snapshots"


@pytest.fixture
def sign_in(airflow, tmp_path):
    """A browser in which a user has signed in."""
    with Browser(tmp_path) as browser:

        def as_user(user):
            browser.open(airflow.url)
            browser.fill("input[name=username]", user)
            browser.fill("input[name=password]", PASSWORDS[user])
            browser.click("document.querySelector('button[type=submit]')")
            browser.wait_for("location.pathname === '/' && document.body.innerText.includes('Dag')")
            return browser

        yield as_user


def named(kind, name):
    """JavaScript that finds an element by its text."""
    return f"[...document.querySelectorAll('{kind}')].find(e => e.innerText.trim() === '{name}')"


def see(browser, url, words, picture):
    """Return the text of a complete page, and a screenshot."""
    browser.open(url)
    browser.wait_for_text(words)
    time.sleep(1)  # for what moves into its place around it
    browser.screenshot(picture)
    assert picture.stat().st_size > 10_000
    return browser.text()


def test_the_pages_in_the_interface(airflow, landed, sign_in, place):
    browser = sign_in("olga")

    table = see(
        browser, f"{airflow.url}/plugin/lake/{TABLE_PAGE}", "Newest snapshots", place / "table.png"
    )
    assert "lake compact shop.orders" in table
    assert "13 files with 14 rows" in table

    tab = see(browser, f"{airflow.url}/{landed}", "Changes by land_orders", place / "task.png")
    assert "+2; total rows 2" in tab
    assert "Snapshot 2" not in tab

    wrong = f"{airflow.url}/plugin/lake/{TABLE_PAGE}".replace("lake_default", "lost_lake")
    trouble = see(browser, wrong, "This connection does not exist", place / "error.png")
    assert "What to do next" in trouble

    browser.open(airflow.url)
    browser.click(named("button", "Browse"))
    browser.click(named("a", "Lake tables"))
    browser.wait_for_text("Connections of type lake")
    form = "document.querySelector('iframe').contentDocument.querySelector('form')"
    browser.ask(f"{form}.elements.name.value = 'shop.orders'; {form}.requestSubmit()")
    browser.wait_for_text("Newest snapshots")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_have_the_theme_of_the_interface(airflow, landed, sign_in, place, theme):
    """Airflow keeps the theme that a user has chosen in the browser; the system's is light."""
    browser = sign_in("olga")
    browser.ask(f"localStorage.setItem('theme', '{theme}')")
    pages = {
        "start": ("plugin/lake", "Connections of type lake"),
        "tables": ("plugin/lake/lake/tables/lake_default", "Last commit"),
        "table": (f"plugin/lake/{TABLE_PAGE}", "Newest snapshots"),
        "snapshot": ("plugin/lake/lake/snapshot/lake_default?name=shop.orders&number=1", "+2"),
        "task": (landed, "Changes by land_orders"),
    }
    for name, (address, words) in pages.items():
        see(browser, f"{airflow.url}/{address}", words, place / f"{name}-{theme}.png")
        body = "document.querySelector('iframe').contentDocument.body"
        assert browser.ask("document.documentElement.className").split() == [theme]
        assert browser.ask(f"getComputedStyle({body}).color") == TEXT_COLORS[theme]
        assert browser.ask(f"getComputedStyle({body}).backgroundColor") == "rgba(0, 0, 0, 0)"


def test_a_viewer_sees_tasks_and_no_other_table(airflow, landed, sign_in, place):
    browser = sign_in("vera")

    see(browser, f"{airflow.url}/{landed}", "Changes by land_orders", place / "viewer.png")
    browser.open(f"{airflow.url}/plugin/lake/{TABLE_PAGE}")
    said = browser.wait_for_text("You may not see this page")

    assert "Score" not in said


def test_who_is_not_signed_in_sees_nothing(airflow, landed):
    [link] = [
        link
        for link in airflow.ask("GET", _links_of(landed))["extra_links"].values()
        if link is not None
    ]
    assert link == f"{airflow.url}/{landed}"
    for path in ("lake/", TABLE_PAGE, "lake/tasks/ingest_orders/x/land_orders/-1"):
        assert airflow.status(path) == 401
        assert airflow.status(path, "olga") == 200
    assert airflow.status(TABLE_PAGE, "vera") == 403


def _links_of(tab):
    instance = tab.removesuffix("/plugin/lake-snapshots")
    return instance.replace("/runs/", "/dagRuns/").replace("/tasks/", "/taskInstances/") + "/links"
