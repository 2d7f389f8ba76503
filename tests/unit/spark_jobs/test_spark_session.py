"""The settings of a session's JVM on this machine, and the driver's address for executors."""

from __future__ import annotations

import pytest

from spark_jobs.runtime.spark_session import _java_options, _place

_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def _nobody_has_chosen(monkeypatch):
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_the_jvm_is_quiet_and_collects_garbage_with_the_least_cpu():
    assert "log4j2.properties -XX:+UseParallelGC" in str(_java_options({})[_OPTIONS])


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_collector_chosen_in_the_environment_stays_the_only_one(name, monkeypatch):
    monkeypatch.setenv(name, "-Xss4m -XX:+UseZGC")

    assert "-XX:" not in str(_java_options({})[_OPTIONS])


def test_a_collector_chosen_for_spark_stays_the_only_one(tmp_path, monkeypatch):
    settings = tmp_path / "conf" / "spark-defaults.conf"
    settings.parent.mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    settings.write_text("spark.driver.extraJavaOptions -Xss4m\n")
    assert "-XX:+UseParallelGC" in str(_java_options({})[_OPTIONS])

    settings.write_text("spark.driver.defaultJavaOptions -XX:+UseG1GC\n")
    assert "-XX:" not in str(_java_options({})[_OPTIONS])

    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert "-XX:+UseParallelGC" in str(_java_options({})[_OPTIONS])


def test_a_collector_chosen_by_the_caller_stays_the_only_one():
    given = {"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"}

    assert "-XX:" not in str(_java_options(given)[_OPTIONS])


@pytest.mark.parametrize(
    "master", ["local[*]", "local", "local-cluster[2,1,512]", "spark://127.0.0.1:7077"]
)
def test_on_this_machine_it_is_at_home(master):
    assert _place(master)["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["spark://far.example.org:7077", "yarn", "k8s://https://far"])
def test_executors_elsewhere_do_not_look_on_their_own_machines(master):
    assert _place(master) == {}
