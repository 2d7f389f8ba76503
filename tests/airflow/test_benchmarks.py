"""The benchmarks of the provider; nothing runs them but a person, as one starts a whole Airflow."""

import pytest

from benchmarks import airflow_provider, airflow_speed
from benchmarks.airflow_imports import CASES, import_table
from benchmarks.airflow_speed import run_table


def cells(line):
    return [each.strip() for each in line.strip("|").split("|")]


def test_the_cost_of_an_import_is_given_in_modules_and_as_a_part_of_airflow_s_own():
    name = "an operator"

    _, _, line = import_table(1, {name: CASES[name]})

    case, modules, millis, part, most = cells(line)
    assert (case, most) == (name, "40 modules")
    assert 1 < int(modules) <= 40
    assert int(millis) > 0
    assert 0 < int(part.removesuffix("%")) < 100


def test_the_fastest_run_decides_because_all_others_wait_for_the_scheduler():
    _, _, empty, health, expiry = run_table(
        {"empty": [2.0, 9.0], "health": [3.0, 4.0], "expire_snapshots": [3.1, 3.2]}
    )

    assert cells(empty) == ["`empty`", "5.50", "2.00", "1.00", ""]
    assert cells(health) == ["`health`", "3.50", "3.00", "1.50", "1.5: reached"]
    assert cells(expiry) == ["`expire_snapshots`", "3.15", "3.10", "1.55", "1.5: missed"]


@pytest.mark.parametrize("benchmark", [airflow_provider, airflow_speed])
def test_a_report_is_written_into_a_new_folder(benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "report", lambda *_: iter(["a line"]))
    monkeypatch.setattr("logging.disable", lambda _: None)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    name = benchmark.__name__.rpartition(".")[2]

    benchmark.main(["--out", str(tmp_path / "new")])

    assert (tmp_path / "new" / f"{name}.md").read_text() == "a line\n"
