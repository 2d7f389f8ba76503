"""Pages in Airflow's multi-team mode: each team sees its own lakes, and the shared ones."""

import json

import pytest

import lakeformat as lake
from airflow_provider_lake.jobs.identity import commit_user
from tests.airflow.page.pages import TASK, TASK_PATH, words, write
from tests.airflow.versions import forget_teams, since

pytestmark = since("3.2", "the multi-team mode")

OF_TEAM = "/lake/table/{}?name=shop.orders"


@pytest.fixture
def teams(airflow_db, monkeypatch):
    """Two teams; afterwards no connection, no team and no bundle is left."""
    from airflow.models.connection import Connection
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.team import Team
    from airflow.utils.session import create_session

    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    forget_teams()  # other tests asked for the DAG's team, too
    with create_session() as session:
        session.add_all([Team(name="red"), Team(name="blue")])
    yield
    with create_session() as session:
        session.query(Connection).delete()
        session.query(DagModel).filter(DagModel.dag_id == TASK.dag_id).delete()
        for bundle in session.query(DagBundleModel).filter(DagBundleModel.name == "of-team"):
            session.delete(bundle)
        session.query(Team).delete()
    forget_teams()


@pytest.fixture
def keep(teams, tmp_path):
    """Keep a connection in the database; its lake has the table ``shop.orders``."""
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    def add(conn_id, team=None):
        place = str(tmp_path / f"lake-of-{conn_id}")
        extra = json.dumps({"warehouse": place})
        with create_session() as session:
            session.add(Connection(conn_id, conn_type="lake", extra=extra, team_name=team))
        return orders_at(place)

    return add


def orders_at(place):
    catalog = lake.open_catalog(place)
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", [("id", "BIGINT"), ("item", "STRING")])


def dag_of(team):
    """Let the DAG of the task belong to a team."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.team import Team
    from airflow.utils.session import create_session

    with create_session() as session:
        bundle = DagBundleModel(name="of-team")
        bundle.teams.append(session.get(Team, team))
        session.add(bundle)
        session.flush()
        session.add(DagModel(dag_id=TASK.dag_id, bundle_name="of-team"))


def test_a_member_sees_the_tables_of_a_connection_of_the_team(ask, keep):
    write(keep("red_lake", "red"), 1, user="writer-of-red")

    table = ask(OF_TEAM.format("red_lake"), teams=["red"])
    tables = ask("/lake/tables/red_lake", teams=["red"])

    assert "writer-of-red" in words(table)
    assert "lake-of-red_lake" in words(tables)


@pytest.mark.parametrize("address", ["/lake/tables/red_lake", OF_TEAM.format("red_lake")])
@pytest.mark.parametrize("teams_of_user", [[], ["blue"]])
def test_who_is_not_of_the_team_sees_none_of_its_tables(ask, keep, address, teams_of_user):
    keep("red_lake", "red")

    answer = ask(address, teams=teams_of_user)

    assert answer.status_code == 403
    assert "orders" not in answer.text


def test_each_user_is_offered_the_lakes_of_the_own_teams_and_the_shared_ones(ask, keep):
    for conn_id, team in (("red_lake", "red"), ("blue_lake", "blue"), ("shared_lake", None)):
        keep(conn_id, team)

    red, admin = words(ask("/lake/", teams=["red"])), words(ask("/lake/", role="admin"))

    assert "red_lake of team red shared_lake" in red
    assert "blue_lake" not in red
    assert "blue_lake of team blue red_lake of team red shared_lake" in admin


def test_the_default_connection_of_a_team_is_not_the_servers_own_folder(ask, keep):
    write(keep("lake_default", "red"), 1, user="writer-of-red")

    assert "writer-of-red" in words(ask(OF_TEAM.format("lake_default"), teams=["red"]))


def test_a_connection_of_a_team_outside_of_the_database_is_left_out_and_the_page_says_so(
    ask, teams, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW_CONN__RED___HIDDEN", connection_in_text(tmp_path))

    start = words(ask("/lake/", teams=["red"]))
    answer = ask("/lake/tables/hidden", teams=["red"])

    assert "only if it is in Airflow's database" in start
    assert answer.status_code == 404
    assert "a connection of a team only if the connection is in that list" in words(answer)


def connection_in_text(place):
    return json.dumps({"conn_type": "lake", "extra": {"warehouse": str(place / "hidden")}})


def test_a_task_shows_what_it_changed_in_the_lake_of_its_team(ask, keep, said):
    write(keep("red_lake", "red"), 1, user=commit_user(TASK, "shop.orders"))
    dag_of("red")
    said["lake_table"] = {"table": "shop.orders", "lake_conn_id": "red_lake"}

    assert "Snapshot 1 APPEND" in words(ask(TASK_PATH, role="viewer", teams=["red"]))
    assert ask(TASK_PATH, role="viewer", teams=["blue"]).status_code == 403


def test_a_task_finds_a_connection_that_its_team_has_in_the_environment(
    ask, teams, said, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW_CONN__RED___HIDDEN", connection_in_text(tmp_path))
    write(orders_at(tmp_path / "hidden"), 1, user=commit_user(TASK, "shop.orders"))
    dag_of("red")
    said["lake_table"] = {"table": "shop.orders", "lake_conn_id": "hidden"}

    assert "Snapshot 1 APPEND" in words(ask(TASK_PATH, role="viewer", teams=["red"]))


def test_a_task_that_names_a_connection_of_another_team_shows_nothing_of_it(ask, keep, said):
    write(keep("blue_lake", "blue"), 1, user=commit_user(TASK, "shop.orders"))
    dag_of("red")
    said["lake_table"] = {"table": "shop.orders", "lake_conn_id": "blue_lake"}

    answer = ask(TASK_PATH, role="viewer", teams=["red"])

    assert answer.status_code == 404
    assert "connection 'blue_lake' does not exist" in words(answer)


def test_without_the_mode_a_connection_left_to_a_team_is_not_offered(ask, keep, monkeypatch):
    keep("red_lake", "red")
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "False")

    start = words(ask("/lake/"))

    assert "red_lake" not in start
    assert "team" not in start
    assert ask("/lake/tables/red_lake").status_code == 404


def test_a_backend_that_fails_for_a_team_is_not_taken_for_one_that_knows_nothing(
    ask, keep, monkeypatch
):
    from airflow.secrets import BaseSecretsBackend

    class Vault(BaseSecretsBackend):
        def get_connection(self, conn_id, team_name=None):
            if team_name == "red":
                raise OSError("sealed")

    keep("lake_default", "red")
    monkeypatch.setattr("airflow.configuration.ensure_secrets_loaded", lambda: [Vault()])
    monkeypatch.setattr(
        "airflow.sdk.execution_time.supervisor.ensure_secrets_backend_loaded", lambda: [Vault()]
    )

    answer = ask(OF_TEAM.format("lake_default"), teams=["red"])

    assert answer.status_code == 503
    assert "Vault failed with OSError" in words(answer)


def test_secrets_of_a_connection_of_a_team_are_masked(ask, keep, monkeypatch):
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    from airflow_provider_lake.hooks.lake import LakeHook

    keep("red_lake", "red")
    secret = "Kx9-secret-key-of-red"
    with create_session() as session:
        [stored] = session.query(Connection)
        stored.set_extra(json.dumps({"warehouse": "/w", "s3_secret_key": secret}))

    def fail(self, name):
        assert self.catalog_options["s3.secret-key"] == secret
        raise lake.UnavailableError(f"the store refuses {secret!r}")

    monkeypatch.setattr(LakeHook, "table", fail)
    answer = ask(OF_TEAM.format("red_lake"), teams=["red"])

    assert answer.status_code == 503
    assert "the store refuses &#39;***&#39;" in answer.text
